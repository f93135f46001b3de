// Views and their addresses. Each view has an address behind the `#`, so that it can be linked,
// kept and gone back to, whatever serves the page.

import { Name } from "./names.js";

// Returns what an address means: the steps of its path and the values of its query.
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const values = {};
  for (const pair of query.split("&").filter(Boolean)) {
    const [name, value = ""] = pair.split(/=(.*)/s);
    values[decode(name)] = decode(value);
  }
  return { steps: path.split("/").filter(Boolean).map(decode), values };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// The name at a step, or in the query where no path can carry it.
export function nameAt(route, at, field) {
  const coded = route.values[`${field}_base64`];
  if (coded === undefined) return new Name(route.steps[at]);
  const text = textOf(coded);
  return text === null ? new Name(undefined, coded) : new Name(text);
}

function textOf(base64) {
  try {
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

// Changes the query of the address without going anywhere.
export function keep(values) {
  const { values: known } = parse(location.hash);
  const merged = { ...known, ...values };
  const pairs = Object.entries(merged).filter(([, value]) => value !== undefined && value !== "");
  const query = pairs.map(([name, it]) => `${name}=${encodeURIComponent(it)}`).join("&");
  const path = location.hash.split("?")[0] || "#/";
  history.replaceState(null, "", query ? `${path}?${query}` : path);
}
