// RESP3: requests as bytes, and replies as they come in pieces. It knows no command and no socket.
import { PinpriqError } from "./errors.js";
import type { Word } from "./words.js";

/** A reply that says no. */
export class ErrorReply extends Error {}

/** A reply as it came: texts and payloads are bytes, status lines are strings. */
export type Reply =
  | null | number | string | Buffer | ErrorReply | Reply[] | { [key: string]: Reply };

/** The longest line, which is a number, a status or a refusal. */
const LINE_BYTES_MAX = 1 << 20;
const LINE_END = "\r\n";
const LINE_FEED = 0x0a;

/** Returns the bytes of a request. */
export function requestBytes(words: readonly Word[]): Buffer {
  const pieces: Buffer[] = [Buffer.from(`*${words.length}${LINE_END}`)];
  for (const word of words) {
    const bytes = typeof word === "string" ? Buffer.from(word) : word;
    pieces.push(Buffer.from(`$${bytes.byteLength}${LINE_END}`));
    pieces.push(bytes as Buffer, Buffer.from(LINE_END));
  }
  return Buffer.concat(pieces);
}

/** A list or a map of which elements are missing. */
interface Open {
  readonly kind: string;
  readonly elements: Reply[];
  missing: number;
}

/** Makes replies of the bytes that arrive. */
export class Replies {
  #pieces: Buffer[] = [];
  #length = 0;
  // How many bytes there must be before another look is worth it, so that a long payload that
  // arrives in many pieces is put together once.
  #needed = 1;
  readonly #open: Open[] = [];

  /**
   * Adds bytes, and returns the replies that are complete now. What the server says by itself is
   * left out. Throws if the bytes are no RESP.
   */
  add(bytes: Buffer): Reply[] {
    this.#pieces.push(bytes);
    this.#length += bytes.length;
    if (this.#length < this.#needed) return [];
    const all = this.#pieces.length === 1 ? bytes : Buffer.concat(this.#pieces, this.#length);
    const complete: Reply[] = [];
    let at = 0;
    for (;;) {
      const end = this.#element(all, at, complete);
      if (end === null) break;
      at = end;
    }
    this.#length = all.length - at;
    this.#pieces = this.#length === 0 ? [] : [all.subarray(at)];
    return complete;
  }

  // Reads one line, with the bytes that it announces. Returns where the next one begins, or null if
  // more bytes are needed.
  #element(all: Buffer, at: number, complete: Reply[]): number | null {
    const feed = all.indexOf(LINE_FEED, at);
    if (feed < 0) {
      if (all.length - at > LINE_BYTES_MAX) throw noResp("a line without an end");
      this.#needed = all.length - at + 1;
      return null;
    }
    const kind = String.fromCharCode(all[at] ?? 0);
    const line = all.toString("utf8", at + 1, feed - 1);
    const next = feed + 1;
    if (kind === "$" || kind === "=" || kind === "!") {
      const length = lengthOf(line);
      if (length === null) return this.#fold(null, complete, next);
      const end = next + length;
      if (all.length < end + LINE_END.length) {
        this.#needed = end + LINE_END.length - at;
        return null;
      }
      // The names of members are texts, so that they need no bytes of their own.
      const isName = this.#isName && kind === "$";
      const value = isName ? all.toString("utf8", next, end) : blob(kind, all, next, end);
      return this.#fold(value, complete, end + LINE_END.length);
    }
    if ("*~>%".includes(kind)) {
      const count = lengthOf(line);
      if (count === null) return this.#fold(null, complete, next);
      const missing = kind === "%" ? 2 * count : count;
      if (missing === 0) return this.#fold(closed({ kind, elements: [], missing }), complete, next);
      this.#open.push({ kind, elements: [], missing });
      return next;
    }
    return this.#fold(scalar(kind, line), complete, next);
  }

  // Whether the next element is the name of a member of a map.
  get #isName(): boolean {
    const open = this.#open.at(-1);
    return open !== undefined && open.kind === "%" && open.missing % 2 === 0;
  }

  // Puts an element where it belongs, and ends the lists that are complete with it.
  #fold(element: Reply | undefined, complete: Reply[], next: number): number {
    let value = element;
    for (;;) {
      const open = this.#open.at(-1);
      if (!open) {
        if (value !== undefined) complete.push(value);
        return next;
      }
      open.elements.push(value ?? null);
      if (--open.missing > 0) return next;
      this.#open.pop();
      value = closed(open);
    }
  }
}

// Returns a list or a map. What the server says by itself is undefined.
function closed({ kind, elements }: Open): Reply | undefined {
  if (kind === ">") return undefined;
  if (kind !== "%") return elements;
  const map: { [key: string]: Reply } = Object.create(null) as { [key: string]: Reply };
  for (let at = 0; at < elements.length; at += 2) {
    map[String(elements[at])] = elements[at + 1] ?? null;
  }
  return map;
}

function blob(kind: string, all: Buffer, start: number, end: number): Reply {
  if (kind === "!") return new ErrorReply(all.toString("utf8", start, end));
  // The first four bytes of a verbatim text say which kind it is.
  const first = kind === "=" ? start + 4 : start;
  // A copy, so that a payload does not keep everything that arrived with it.
  return Buffer.from(all.subarray(first, end));
}

function scalar(kind: string, line: string): Reply {
  switch (kind) {
    case "+":
      return line;
    case "-":
      return new ErrorReply(line);
    case ":":
    case ",":
    case "(":
      return numberIn(line);
    case "#":
      return line === "t" ? 1 : 0;
    case "_":
      return null;
    default:
      throw noResp(`a line that begins with ${JSON.stringify(kind)}`);
  }
}

function numberIn(line: string): number {
  if (/^[+-]?inf$/.test(line)) return line.startsWith("-") ? -Infinity : Infinity;
  const number = Number(line);
  if (line === "" || Number.isNaN(number)) throw noResp("a number that is none");
  return number;
}

// Returns a length, or null where there is no value at all.
function lengthOf(line: string): number | null {
  const length = Number(line);
  if (line === "" || !Number.isInteger(length) || length < -1) throw noResp("no length");
  return length === -1 ? null : length;
}

function noResp(what: string): PinpriqError {
  return new PinpriqError(`the server does not speak RESP: it sent ${what}`);
}
