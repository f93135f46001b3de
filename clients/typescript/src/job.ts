// A taken task, and the ways to end its lease.
import type { Codec } from "./codec.js";
import type { Caller } from "./caller.js";
import * as commands from "./commands.js";
import { type Cancelled, cancelledOf, isRefused, PinpriqError } from "./errors.js";
import type { Abortable, Rest } from "./options.js";
import { numberOrNull, type RawTask, type StateOrGone, textOf } from "./replies.js";
import type { TaskMeta } from "./meta.js";
import { noteState } from "./tracing.js";
import type { Words } from "./words.js";

/** What a job needs of where it comes from. */
export interface JobSource<T> {
  readonly caller: Caller;
  readonly codec: Codec<T>;
}

/** How a job became settled. */
export type Settlement = "acked" | "failed" | "released" | "buried";

/**
 * A taken task. It is yours until you acknowledge, fail, release or bury it, or until its lease
 * ends.
 *
 * With `await using` it is released at the end of the block unless you have settled it. JavaScript
 * does not tell a disposed object whether the block threw, so leaving the block never acknowledges:
 * call `ack()` as its last step.
 */
export class Job<T> implements AsyncDisposable {
  readonly #source: JobSource<T>;
  #payload: { value: T } | undefined;
  #payloadError: { error: unknown } | undefined;
  #settlement: Settlement | undefined;
  #cancelled: Cancelled | undefined;

  /** The queue, or the topic if the job comes from the lane of a member. */
  readonly queue: string;
  /** The name of the task within its queue. */
  readonly id: string;
  /** The proof of this lease. */
  readonly receipt: string;
  /** The payload as it came. */
  readonly bytes: Buffer;
  readonly #task: RawTask;

  /** @internal */
  constructor(source: JobSource<T>, task: RawTask) {
    if (task.receipt === null) throw new PinpriqError("a job needs a receipt");
    this.#source = source;
    this.queue = task.queue;
    this.id = task.id;
    this.receipt = task.receipt;
    this.bytes = task.bytes;
    this.#task = task;
  }

  /** What else the server knows of the task. A take tells it only with `withMeta`. */
  get meta(): TaskMeta | undefined {
    return this.#task.meta;
  }

  /** @internal How often it was taken, if that is known. */
  get attempts(): number | undefined {
    return this.#task.attempts;
  }

  /** @internal Its headers, without the rest of `meta`. */
  get headers(): Readonly<Record<string, string>> {
    return this.#task.headers;
  }

  /** @internal How often it has failed, if that is known. */
  get failures(): number {
    return this.#task.failures ?? 0;
  }

  /** The payload. Throws `BadPayload` if the bytes are not what the codec expects. */
  get payload(): T {
    try {
      this.#payload ??= { value: this.#source.codec.decode(this.bytes) };
    } catch (error) {
      this.#payloadError = { error };
      throw error;
    }
    return this.#payload.value;
  }

  /** @internal Whether this is what reading the payload threw. */
  isOfPayload(error: unknown): boolean {
    return this.#payloadError?.error === error && this.#payloadError !== undefined;
  }

  /** How this client has settled the job, or undefined. */
  get settlement(): Settlement | undefined {
    return this.#settlement;
  }

  /**
   * Finishes the task. `result` replaces its payload where the queue keeps finished tasks, and
   * `keepMs` keeps this one for that long. Refused with `STALE` if the lease has ended, and with
   * `WRONGSTATE` if `keepMs` meets a queue that keeps its tasks for good.
   */
  async ack(
    options: Rest<commands.AckOptions, "zombieMs"> & { result?: T; keepMs?: number } = {},
  ): Promise<void> {
    const { result, keepMs } = options;
    const given = { payload: this.#encoded(result), zombieMs: keepMs };
    await this.#settle("acked", commands.ack(this.queue, this.receipt, given), options);
  }

  /**
   * Says that the task could not be done. The server counts a failure and decides what follows;
   * `delayMs` replaces the back-off of the queue. Returns R, W or B, or X if the task has left the
   * queue. A reason beyond 1,024 bytes is cut. Refused with `STALE` if the lease has ended.
   */
  async fail(
    reason?: string,
    options: Rest<commands.FailOptions, "reason"> & { payload?: T } = {},
  ): Promise<StateOrGone> {
    const given = { ...options, reason, payload: this.#encoded(options.payload) };
    const words = commands.fail(this.queue, this.receipt, given);
    const state = await this.#settle("failed", words, options);
    this.#noteState(state, reason);
    return state;
  }

  /**
   * Gives the task back, which is no failure. Returns R, or W with `delayMs`, or X if its time to
   * live had passed. `toTail` sends it behind its equals. Refused with `STALE` if the lease has
   * ended.
   */
  release(
    options: Rest<commands.ReleaseOptions, "tail"> & { payload?: T; toTail?: boolean } = {},
  ): Promise<StateOrGone> {
    const given = { ...options, payload: this.#encoded(options.payload), tail: options.toTail };
    return this.#settle("released", commands.release(this.queue, this.receipt, given), options);
  }

  /**
   * Sets the task aside until somebody digs it up. A reason beyond 1,024 bytes is cut. Refused with
   * `STALE` if the lease has ended.
   */
  async bury(
    reason?: string,
    options: Rest<commands.BuryOptions, "reason"> & { payload?: T } = {},
  ): Promise<void> {
    const given = { ...options, reason, payload: this.#encoded(options.payload) };
    await this.#settle("buried", commands.bury(this.queue, this.receipt, given), options);
    this.#noteState("B", reason);
  }

  /**
   * Renews the lease: it lasts its TTR again from now. With `byMs` its deadline moves by that much.
   * Returns the new deadline in Unix milliseconds, or null if there is none. Refused with `STALE`
   * if the lease has ended, and with `CANCELLED` if the task was cancelled: stop and release it.
   */
  async touch(options: Rest<commands.TouchOptions> = {}): Promise<number | null> {
    const { caller } = this.#source;
    const words = commands.touch(this.queue, this.receipt, options);
    const mayRepeat = options.byMs === undefined;
    try {
      return numberOrNull(
        await (mayRepeat ? caller.ask(words, options) : caller.change(words, options)),
      );
    } catch (error) {
      this.#cancelled ??= cancelledOf(error);
      throw error;
    }
  }

  /** Releases the task unless it is settled. That the lease has ended already is no error. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#settlement !== undefined) return;
    try {
      await this.release();
    } catch (error) {
      if (!isRefused(error, "STALE", "NOTFOUND")) throw error;
    }
  }

  /** @internal That the task was cancelled, and why, if that is known. */
  get cancelled(): Cancelled | undefined {
    return this.#cancelled;
  }

  /** @internal Notes that the task was cancelled. */
  noteCancelled(why: Cancelled): void {
    this.#cancelled = why;
  }

  /** @internal Notes that a take of the worker acknowledges the task. */
  noteAcked(): void {
    this.#settlement = "acked";
  }

  // A task that was cancelled is not given up, whatever its holder says.
  #noteState(state: StateOrGone, reason: string | undefined): void {
    if (this.#cancelled === undefined) noteState(state, reason);
  }

  #encoded(payload: T | undefined): Uint8Array | string | undefined {
    return payload === undefined ? undefined : this.#source.codec.encode(payload);
  }

  async #settle(
    settlement: Settlement,
    words: Words,
    options: Abortable,
  ): Promise<StateOrGone> {
    const before = this.#settlement;
    this.#settlement = settlement;
    try {
      return textOf(await this.#source.caller.ask(words, options)) as StateOrGone;
    } catch (error) {
      // A lease that has ended needs no further end.
      if (!isRefused(error, "STALE")) this.#settlement = before;
      throw error;
    }
  }
}
