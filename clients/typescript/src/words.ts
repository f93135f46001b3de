// The words of requests: how options become arguments.

/** One word of a request. */
export type Word = string | Uint8Array;

/** A moment: a date, or Unix milliseconds. */
export type Moment = Date | number;

/** A lease by its receipt, or a task by its id. */
export type Held = string | { readonly id: string };

/** Headers of a task: at most 16 short values by name. */
export type Headers = Readonly<Record<string, Word>>;

const REASON_BYTES_MAX = 1_024;

/** Collects the words of one request. Options without a value are left out. */
export class Words {
  readonly list: Word[];

  constructor(...words: Word[]) {
    this.list = words;
  }

  /** Adds words as they are. */
  add(...words: Word[]): this {
    this.list.push(...words);
    return this;
  }

  /** Adds an option with a text or bytes. */
  option(name: string, value: Word | undefined): this {
    return value === undefined ? this : this.add(name, value);
  }

  /** Adds an option with a whole number. */
  number(name: string, value: number | bigint | undefined): this {
    return value === undefined ? this : this.add(name, String(value));
  }

  /** Adds an option with a length of time in milliseconds. Parts of one are rounded up. */
  span(name: string, valueMs: number | undefined): this {
    return valueMs === undefined ? this : this.add(name, spanWord(valueMs));
  }

  /** Adds an option with a moment. */
  moment(name: string, value: Moment | undefined): this {
    return value === undefined ? this : this.add(name, String(Math.ceil(Number(value))));
  }

  /** Adds an option with a number, where null is none. */
  numberOrNone(name: string, value: number | bigint | null | undefined): this {
    return value === undefined ? this : this.add(name, value === null ? "NONE" : `${value}`);
  }

  /** Adds an option with a length of time in milliseconds, where null is none. */
  spanOrNone(name: string, valueMs: number | null | undefined): this {
    return valueMs === null ? this.add(name, "NONE") : this.span(name, valueMs);
  }

  /** Adds a reason. One beyond 1,024 bytes is cut, and not within a character. */
  reason(name: string, value: string | undefined): this {
    return value === undefined ? this : this.add(name, shortened(value));
  }

  /** Adds an option once for each pair. */
  pairs(name: string, values: readonly (readonly [string, string])[] | undefined): this {
    for (const pair of values ?? []) this.add(name, ...pair);
    return this;
  }

  /** Adds an option with two values. */
  two(name: string, values: readonly [Word | number, Word | number] | undefined): this {
    if (values === undefined) return this;
    const words = values.map((value) => (typeof value === "number" ? `${value}` : value));
    return this.add(name, ...words);
  }

  /**
   * Adds an option whose value is a number and so many names with their values. None at all remove
   * those of a task in `UPDATE`, and are left out elsewhere.
   */
  headers(name: string, values: Headers | undefined): this {
    if (values === undefined) return this;
    const pairs = Object.entries(values);
    if (pairs.length === 0 && this.list[0] !== "UPDATE") return this;
    return this.add(name, `${pairs.length}`, ...pairs.flat());
  }

  /** Adds an option whose value is a number and so many names. None at all are left out. */
  counted(name: string, values: readonly Word[] | undefined): this {
    if (values === undefined || values.length === 0) return this;
    return this.add(name, `${values.length}`, ...values);
  }

  /** Adds a word that can be left out. */
  maybe(value: Word | undefined): this {
    return value === undefined ? this : this.add(value);
  }

  /** Adds one queue, or several of them. */
  queues(names: readonly string[]): this {
    return names.length === 1 ? this.add(...names) : this.add("QUEUES", `${names.length}`, ...names);
  }

  /** Adds queues, or none. */
  anyQueues(names: readonly string[]): this {
    return names.length === 0 ? this : this.queues(names);
  }

  /** Adds the receipt of a lease, several of them, a number, or the id of a task. */
  held(held: Held | number | readonly string[]): this {
    if (typeof held === "string") return this.add(held);
    if (typeof held === "number") return this.add(String(held));
    return "id" in held ? this.add("ID", held.id) : this.add(...held);
  }

  /** Adds a word if it is wanted. */
  flag(name: string, isWanted: boolean | undefined): this {
    return isWanted ? this.add(name) : this;
  }
}

function shortened(reason: string): string {
  const bytes = Buffer.from(reason);
  if (bytes.length <= REASON_BYTES_MAX) return reason;
  let end = REASON_BYTES_MAX;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end).toString("utf8");
}

/** Returns a length of time as a word. Infinity is -1, which only `WAIT` accepts. */
export function spanWord(valueMs: number): string {
  return valueMs === Number.POSITIVE_INFINITY ? "-1" : String(Math.ceil(valueMs));
}
