// The unique keys that make them safe to repeat.
import { randomBytes } from "node:crypto";

/** Makes unique keys that no other client makes. */
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
