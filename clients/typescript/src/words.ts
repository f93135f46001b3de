// The words of requests: how options become arguments.

/** One word of a request. */
export type Word = string | Uint8Array;

/** A moment: a date, or Unix milliseconds. */
export type Moment = Date | number;

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

  /** Adds a priority, where null is none. */
  priority(value: number | bigint | null | undefined): this {
    return value === undefined ? this : this.add("PRIORITY", value === null ? "NONE" : `${value}`);
  }

  /** Adds a word if it is wanted. */
  flag(name: string, isWanted: boolean | undefined): this {
    return isWanted ? this.add(name) : this;
  }
}

/** Returns a length of time as a word. Infinity is -1, which only `WAIT` accepts. */
export function spanWord(valueMs: number): string {
  return valueMs === Number.POSITIVE_INFINITY ? "-1" : String(Math.ceil(valueMs));
}
