// Requests to the API of the server that this page came from, and what they answer.
//
// A refusal is an error whose message is the sentence of the problem document. That the server
// cannot be reached at all is a `Gone`, and the banner tells it.

export class Refused extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? problem?.title ?? `The server answered with status ${status}.`);
    this.status = status;
    this.code = problem?.code ?? "";
  }
}

export class Gone extends Error {
  constructor() {
    super("The server cannot be reached.");
  }
}

const listeners = new Set();

// Calls a function with true when the server is noticed to be gone, and false when it answers.
export function onReach(listener) {
  listeners.add(listener);
}

function tell(isGone) {
  for (const listener of listeners) listener(isGone);
}

let tellSignedOut = () => {};

// Calls a function when the server asks for a sign-in.
export function onSignedOut(listener) {
  tellSignedOut = listener;
}

// Numbers that a double would change stay what they are.
function exact(_, value, context) {
  const isLarge = typeof value === "number" && !Number.isSafeInteger(value);
  const source = context?.source;
  return isLarge && source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value;
}

export async function ask(method, path, { body, type, headers = {}, signal } = {}) {
  const given = { ...headers };
  if (body !== undefined) given["Content-Type"] = type ?? "application/json";
  if (method !== "GET") given["Pinpriq-Request"] = "1";
  let response;
  let text;
  try {
    response = await fetch(path, { method, body, headers: given, signal, cache: "no-store" });
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    tell(true);
    throw new Gone();
  }
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  const answer = isJson && text !== "" ? JSON.parse(text, exact) : text;
  // A server that loads its tasks is not back yet.
  const isLoading = answer?.code === "LOADING";
  tell(isLoading);
  if (isLoading) throw new Gone();
  if (response.status === 401 && answer?.code === "NOAUTH") tellSignedOut();
  if (!response.ok) throw new Refused(response.status, isJson ? answer : undefined);
  return answer;
}

export const read = (path, options) => ask("GET", path, options);

// Changes something. Members of the object that are undefined are left out; null clears.
export function change(method, path, values) {
  const body =
    values === undefined
      ? undefined
      : JSON.stringify(values, (_, value) =>
          typeof value === "bigint" && JSON.rawJSON ? JSON.rawJSON(String(value)) : value,
        );
  return ask(method, path, { body });
}

// The same, or null if there is no such thing.
export async function readOrNull(path, options) {
  try {
    return await read(path, options);
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null;
    throw error;
  }
}
