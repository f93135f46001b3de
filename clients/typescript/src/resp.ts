// RESP3: requests as bytes, and replies as they come in pieces. It knows no command and no socket.
import { PinpriqError } from "./errors.js";
import type { Word } from "./words.js";

/** A reply that says no. */
export class ErrorReply extends Error {}

/** A reply as it came: texts and payloads are bytes, status lines are strings. */
export type Reply =
  | null | number | string | Buffer | ErrorReply | MapBytes | Reply[] | { [key: string]: Reply };

/** The longest line, which is a number, a status or a refusal. */
const LINE_BYTES_MAX = 1 << 20;
const LINE_END = "\r\n";
const LINE_FEED = 0x0a;
const DOLLAR = 0x24;
const MAP = 0x25;
const COLON = 0x3a;

/** Returns the bytes of a request. */
export function requestBytes(words: readonly Word[]): Buffer {
  const pieces: Uint8Array[] = [];
  // Texts are put together before they become bytes, since each piece has a cost.
  let text = `*${words.length}${LINE_END}`;
  for (const word of words) {
    text += `$${Buffer.byteLength(word)}${LINE_END}`;
    if (typeof word === "string") {
      text += word + LINE_END;
    } else {
      pieces.push(Buffer.from(text), word);
      text = LINE_END;
    }
  }
  const rest = Buffer.from(text);
  return pieces.length === 0 ? rest : Buffer.concat([...pieces, rest]);
}

/** A list or a map of which elements are missing. */
interface Open {
  readonly kind: string;
  readonly elements: Reply[];
  missing: number;
}

/**
 * A map in a list, such as a task with all that is known of it. Its members are read when they are
 * asked for, since most workers ask for few.
 */
export class MapBytes {
  readonly #bytes: Buffer;
  /** Where the line of each name and each value begins, in turn. */
  readonly #places: readonly number[];

  /** Gets bytes of its own. */
  constructor(bytes: Buffer, places: readonly number[]) {
    this.#bytes = bytes;
    this.#places = places;
  }

  /** Returns the bytes of a member, or undefined if it is absent or something else. */
  blob(name: string): Buffer | undefined {
    const at = this.#find(name);
    if (this.#bytes[at] !== DOLLAR) return undefined;
    const start = this.#lineEnd(at);
    const length = this.#numberAt(at);
    return length < 0 ? undefined : this.#bytes.subarray(start, start + length);
  }

  /** Returns a member that is a text, or undefined if it is absent or something else. */
  text(name: string): string | undefined {
    const at = this.#find(name);
    if (this.#bytes[at] !== DOLLAR) return undefined;
    const start = this.#lineEnd(at);
    const length = this.#numberAt(at);
    return length < 0 ? undefined : this.#bytes.toString("utf8", start, start + length);
  }

  /** Returns a member that is a number, or undefined if it is absent or something else. */
  number(name: string): number | undefined {
    const at = this.#find(name);
    return this.#bytes[at] === COLON ? this.#numberAt(at) : undefined;
  }

  /** Returns a member of any kind, or undefined if it is absent. */
  member(name: string): Reply | undefined {
    const at = this.#find(name);
    if (at < 0) return undefined;
    const end = this.#places[this.#places.indexOf(at) + 1];
    return new Replies().add(this.#bytes.subarray(at, end))[0];
  }

  /** Returns all members. */
  whole(): { [key: string]: Reply } {
    const [map] = new Replies().add(this.#bytes);
    return map as { [key: string]: Reply };
  }

  // Returns where the value of this name begins, or -1. Names have no bytes beyond ASCII.
  #find(name: string): number {
    const bytes = this.#bytes;
    for (let pair = 0; pair < this.#places.length; pair += 2) {
      const at = this.#places[pair] ?? 0;
      if (bytes[at] !== DOLLAR || this.#numberAt(at) !== name.length) continue;
      const start = this.#lineEnd(at);
      let same = 0;
      while (same < name.length && bytes[start + same] === name.charCodeAt(same)) same++;
      if (same === name.length) return this.#places[pair + 1] ?? -1;
    }
    return -1;
  }

  #lineEnd(at: number): number {
    let end = at;
    while (this.#bytes[end] !== LINE_FEED) end++;
    return end + 1;
  }

  #numberAt(at: number): number {
    return wholeNumber(this.#bytes, at + 1, this.#lineEnd(at) - LINE_END.length);
  }
}

/** Makes replies of the bytes that arrive. */
export class Replies {
  #pieces: Buffer[] = [];
  #length = 0;
  // How many bytes there must be before another look is worth it, so that a long payload that
  // arrives in many pieces is put together once.
  #needed = 1;
  readonly #open: Open[] = [];
  readonly #onPush: ((message: Reply[]) => void) | undefined;

  /** `onPush` is given what the server says by itself, before the replies that came with it. */
  constructor(onPush?: (message: Reply[]) => void) {
    this.#onPush = onPush;
  }

  /** Adds bytes, and returns the replies that are complete now. Throws if the bytes are no RESP. */
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
    const outer = this.#open.length === 1 ? this.#open[0] : undefined;
    if ((outer?.kind === "*" || outer?.kind === ">") && all[at] === MAP) {
      const places: number[] = [];
      const end = this.#skipMap(all, at, places);
      if (end === null) return null;
      // A copy, as of a payload.
      const map = new MapBytes(Buffer.from(all.subarray(at, end)), places);
      return this.#fold(map, complete, end);
    }
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
      // Names are texts, so that they need no bytes of their own.
      const isName = kind === "$" && this.#isName;
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

  // Notes where each name and value of a map begins. Returns where the map ends, or null if more
  // bytes are needed.
  #skipMap(all: Buffer, start: number, places: number[]): number | null {
    let at = start;
    // How many elements are missing of each list or map that has begun. The first is the whole.
    const missing = [1];
    while (missing.length > 0) {
      const inner = missing.length - 1;
      if (missing[inner] === 0) {
        missing.pop();
        continue;
      }
      missing[inner] = (missing[inner] ?? 0) - 1;
      if (inner === 1) places.push(at - start);
      let feed = at;
      while (feed < all.length && all[feed] !== LINE_FEED) feed++;
      if (feed === all.length) {
        if (feed - at > LINE_BYTES_MAX) throw noResp("a line without an end");
        this.#needed = all.length - start + 1;
        return null;
      }
      const kind = String.fromCharCode(all[at] ?? 0);
      if (!KINDS.includes(kind)) throw noResp(`a line that begins with ${JSON.stringify(kind)}`);
      const next = feed + 1;
      if ("$=!*~>%".includes(kind)) {
        const length = wholeNumber(all, at + 1, feed - 1);
        if (Number.isNaN(length) || length < -1) throw noResp("no length");
        if ("$=!".includes(kind)) {
          at = length === -1 ? next : next + length + LINE_END.length;
        } else {
          missing.push(Math.max(kind === "%" ? 2 * length : length, 0));
          at = next;
        }
      } else {
        at = next;
      }
      if (at > all.length) {
        this.#needed = at - start;
        return null;
      }
    }
    return at;
  }

  // Whether the next element is the name of a member of a map, or of what the server says by itself.
  get #isName(): boolean {
    const open = this.#open.at(-1);
    if (open === undefined) return false;
    return open.kind === "%" ? open.missing % 2 === 0 : open.kind === ">" && open.elements.length === 0;
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
      if (open.kind === ">") this.#onPush?.(open.elements);
      value = closed(open);
    }
  }
}

const KINDS = "$=!*~>%+-:,(#_";

// Returns the whole number between these places, or NaN.
function wholeNumber(bytes: Buffer, start: number, end: number): number {
  const isNegative = bytes[start] === 0x2d;
  let number = 0;
  let at = isNegative ? start + 1 : start;
  if (at >= end) return Number.NaN;
  for (; at < end; at++) {
    const digit = (bytes[at] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return Number.NaN;
    number = number * 10 + digit;
  }
  return isNegative ? -number : number;
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
