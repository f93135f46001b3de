// Who looks at this page, what they may do, and where clients of Redis reach the server. The server
// decides on every request; this is only for what is offered.

import { read } from "./api.js";
import { Name } from "./names.js";

let known = null;

// Asks the server, and returns what it tells.
export async function learn() {
  known = await read("/v1/session");
  return known;
}

// The last answer, or null.
export const session = () => known;

export const isAdmin = () => known?.admin ?? true;

const bytesOf = (name) => atob(name.asBase64());

// Whether a right is given on a queue or topic; without a name, on any.
export function may(right, name) {
  if (!known?.rights) return true;
  const names = known.rights[right] ?? [];
  if (!name) return names.length > 0;
  const wanted = bytesOf(name);
  return names.some((it) => {
    const own = bytesOf(Name.in(it, "name"));
    return it.prefix ? wanted.startsWith(own) : wanted === own;
  });
}
