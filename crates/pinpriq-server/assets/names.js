// Names of queues, topics, members, schedules and tasks: any bytes. Where they are UTF-8 they are
// text, else the API gives them in base64. This module turns them into text to show, and into
// paths, for the API and for the views alike.

export class Name {
  constructor(text, base64) {
    this.text = text;
    this.base64 = base64;
  }

  // The name in a member of an object of the API, or null if there is none.
  static in(object, field) {
    if (typeof object?.[field] === "string") return new Name(object[field]);
    const coded = object?.[`${field}_base64`];
    return typeof coded === "string" ? new Name(undefined, coded) : null;
  }

  // The text to show. Bytes that are no text are escapes.
  get shown() {
    if (this.text === "") return "(empty)";
    return this.text ?? escaped(bytesOf(this.base64));
  }

  // What distinguishes it from all others.
  get key() {
    return this.text === undefined ? `b${this.base64}` : `t${this.text}`;
  }

  get needsQuery() {
    return this.text === undefined || ["", ".", ".."].includes(this.text);
  }

  get segment() {
    return this.needsQuery ? "-" : encodeURIComponent(this.text);
  }

  // Adds itself to a query or to a body in JSON.
  addTo(values, field) {
    if (this.text === undefined) values[`${field}_base64`] = this.base64;
    else values[field] = this.text;
    return values;
  }

  asBase64() {
    return this.base64 ?? base64Of(new TextEncoder().encode(this.text));
  }
}

export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

export function base64Of(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

// Bytes as text in which everything but printable ASCII is an escape.
export function escaped(bytes) {
  const one = (byte) =>
    byte >= 32 && byte < 127 && byte !== 92
      ? String.fromCharCode(byte)
      : `\\x${byte.toString(16).padStart(2, "0")}`;
  return Array.from(bytes, one).join("");
}

// Builds a path with its query. Steps are words, or pairs of a field and a name.
export function target(steps, { verb, query = {} } = {}) {
  const values = {};
  const path = steps.map((step) => {
    if (typeof step === "string") return step;
    const [field, name] = step;
    if (name.needsQuery) values[`${field}_base64`] = name.asBase64();
    return name.segment;
  });
  for (const [field, value] of Object.entries(query)) {
    if (value instanceof Name) value.addTo(values, field);
    else if (value !== undefined && value !== null && value !== "") values[field] = String(value);
  }
  const pairs = Object.entries(values).map(([key, it]) => `${key}=${encodeURIComponent(it)}`);
  const end = pairs.length > 0 ? `?${pairs.join("&")}` : "";
  return `/${path.join("/")}${verb ? `:${verb}` : ""}${end}`;
}

// The address of a view.
export const link = (steps, query) => `#${target(steps, { query })}`;

// A queue, or the lane of a member in a topic: its path in the API.
export function placePath({ name, member }, rest = [], options = {}) {
  const query = { ...options.query, member };
  return target(["v1", "queues", ["queue", name], ...rest], { ...options, query });
}

// The address of the view of a queue or lane.
export const placeLink = ({ name, member }, rest = [], query = {}) =>
  link(["queues", ["queue", name], ...rest], { ...query, member });

// What a queue or lane is called in a sentence.
export const placeShown = ({ name, member }) =>
  member ? `${name.shown} · ${member.shown}` : name.shown;
