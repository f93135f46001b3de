// How far the work on a job has come, as its holder tells it, until the server knows.
import { isRefused } from "./errors.js";
import type { Word } from "./words.js";

const PROGRESS_BYTES_MAX = 256;
const CHECKPOINT_BYTES_MAX = 65_536;
/** A worker tells the server at most this often. */
export const TELL_MS = 1_000;

/** What a request tells besides. */
export interface Told {
  readonly progress?: string | undefined;
  readonly checkpoint?: Word | undefined;
}

/** The newest values of one job that the server does not know yet. */
export class Headway {
  #progress: string | undefined;
  #checkpoint: Word | undefined;
  #toldAt = Number.NEGATIVE_INFINITY;
  #isUnderWay = false;

  /** Notes a text for people. Throws a `RangeError` if it is too long. */
  noteProgress(text: string): void {
    checkLength("a progress", text, PROGRESS_BYTES_MAX);
    this.#progress = text;
  }

  /** Notes a copy of what the next attempt needs. Throws a `RangeError` if it is too long. */
  noteCheckpoint(value: Word): void {
    checkLength("a checkpoint", value, CHECKPOINT_BYTES_MAX);
    this.#checkpoint = typeof value === "string" ? value : Buffer.from(value);
  }

  /** The checkpoint that the server does not know yet. */
  get checkpoint(): Word | undefined {
    return this.#checkpoint;
  }

  /**
   * What a renewal can tell, or undefined. While one is under way that tells something, no other
   * does, since the older one could arrive last.
   */
  get news(): Told | undefined {
    const isNothing = this.#progress === undefined && this.#checkpoint === undefined;
    if (isNothing || this.#isUnderWay) return undefined;
    return { progress: this.#progress, checkpoint: this.#checkpoint };
  }

  /** In how many milliseconds a worker may tell what is new, or undefined if nothing is. */
  get dueInMs(): number | undefined {
    return this.news && Math.max(this.#toldAt + TELL_MS - performance.now(), 0);
  }

  /**
   * Sends a request that tells this. If there is no room for it, the request is sent again without
   * the checkpoint, then without the progress, and what was left out is still new. A server that
   * knows of neither gets the request alone, and what it cannot keep is dropped.
   */
  async sendWith<R>(all: Told, send: (told: Told) => Promise<R>): Promise<R> {
    this.#isUnderWay = true;
    this.#toldAt = performance.now();
    let isUnknown = false;
    try {
      for (let told = all; ; ) {
        try {
          const reply = await send(told);
          this.#forget(isUnknown ? all : told);
          return reply;
        } catch (error) {
          const isLeast = told.progress === undefined && told.checkpoint === undefined;
          if (isLeast || !isRefused(error, "BUSY", "BADARG")) throw error;
          isUnknown = error.kind === "BADARG";
          const mayFit = !isUnknown && told.checkpoint !== undefined;
          told = mayFit ? { progress: told.progress } : {};
        }
      }
    } finally {
      this.#isUnderWay = false;
    }
  }

  // What was noted meanwhile is still new.
  #forget({ progress, checkpoint }: Told): void {
    if (this.#progress === progress) this.#progress = undefined;
    if (this.#checkpoint === checkpoint) this.#checkpoint = undefined;
  }
}

function checkLength(what: string, value: Word, most: number): void {
  const length = Buffer.byteLength(value);
  if (length <= most) return;
  throw new RangeError(`${what} has at most ${most} bytes, and this one has ${length}`);
}
