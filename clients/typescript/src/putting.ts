// The words of puts, and the unique keys that make them safe to repeat.
import { randomBytes } from "node:crypto";
import type { PutOptions } from "./options.js";
import { Words } from "./words.js";

/** Returns the words of a put without those that block and those of its unique key. */
export function putWords(
  queue: string,
  payload: Uint8Array | string,
  options: Omit<PutOptions, "unique" | "roomMs">,
): Words {
  return new Words("PUT", queue, payload)
    .option("KEY", options.key)
    .priority(options.priority)
    .span("DELAY", options.delayMs)
    .moment("AT", options.at)
    .span("TTL", options.ttlMs)
    .span("TTR", options.ttrMs)
    .option("ID", options.id);
}

/** Makes unique keys that nobody else makes. */
export class OwnKeys {
  readonly #prefix = `${randomBytes(12).toString("base64url")}-`;
  readonly #retryForMs: number;
  #made = 0;

  constructor(retryForMs: number) {
    this.#retryForMs = retryForMs;
  }

  /** Returns another key. */
  next(): string {
    return this.#prefix + (this.#made++).toString(36);
  }

  /**
   * Returns how long such a key must count. A put is tried again for the retry time after it may
   * have blocked; twice that leaves room for the last try to arrive.
   */
  windowMs(blocksMs: number): number {
    return 2 * this.#retryForMs + (Number.isFinite(blocksMs) ? blocksMs : 0);
  }
}
