// A taken task, and the ways to end its lease.
import type { Codec } from "./codec.js";
import type { Caller } from "./caller.js";
import * as commands from "./commands.js";
import { type Cancelled, cancelledOf, isRefused, PinpriqError } from "./errors.js";
import { Headway, type Told } from "./headway.js";
import type { AckOptions, Rest, WithCheckpoint } from "./options.js";
import { numberOrNull, type RawTask, type StateOrGone, textOf } from "./replies.js";
import type { TaskMeta } from "./meta.js";
import type { Reply } from "./resp.js";
import { encodedResult } from "./results.js";
import { noteState } from "./tracing.js";
import type { Word, Words } from "./words.js";

/** What a job needs of where it comes from. */
export interface JobSource<T, R = unknown> {
  readonly caller: Caller;
  readonly codec: Codec<T>;
  readonly resultCodec: Codec<R>;
  /** Hears that a job has something to tell. */
  onTold?(job: Job<T>): void;
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
export class Job<T, R = unknown> implements AsyncDisposable {
  // Whatever the type of its results: a worker knows none.
  readonly #source: JobSource<T>;
  #payload: { value: T } | undefined;
  #payloadError: { error: unknown } | undefined;
  #settlement: Settlement | undefined;
  #cancelled: Cancelled | undefined;
  // What is to be told, if anything was. Null: nothing more is told.
  #headway: Headway | null | undefined;
  #resultBytes: Word | undefined;

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
  constructor(source: JobSource<T, R>, task: RawTask) {
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

  /**
   * The checkpoint that the attempts before have left, or undefined if there is none. A take tells
   * it only with `withMeta`, which workers have.
   */
  get lastCheckpoint(): Buffer | undefined {
    return this.#task.checkpoint;
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
   * Finishes the task. `result` says what has come of the work: who waits for the task gets it, and
   * the task has it where the queue keeps finished tasks. There, `payload` replaces the payload.
   * `keepMs` keeps this task for that long. Refused with `STALE` if the lease has ended, with
   * `WRONGSTATE` if `keepMs` meets a queue that keeps its tasks for good, and with `TOOLARGE` or
   * `BUSY` if the server cannot keep the result or the payload: acknowledge without it then.
   */
  async ack(options: AckOptions<T, R> = {}): Promise<void> {
    const words = this.ackWords(options);
    await this.#settle("acked", () => this.#source.caller.ask(words, options));
  }

  /** @internal The words that finish the task. */
  ackWords({ result, payload, keepMs, ...rest }: AckOptions<T, R>): Words {
    const given = { ...rest, payload: this.#encoded(payload), zombieMs: keepMs };
    const bytes = encodedResult(result, this.#source.resultCodec);
    return commands.ack(this.queue, this.receipt, given).option("RESULT", bytes);
  }

  /** @internal Finishes the task with the result that was noted. */
  async ackAsNoted(): Promise<void> {
    const words = commands.ack(this.queue, this.receipt).option("RESULT", this.#resultBytes);
    await this.#settle("acked", () => this.#source.caller.ask(words));
  }

  /** @internal What a worker sends with the acknowledgement. */
  get resultBytes(): Word | undefined {
    return this.#resultBytes;
  }

  /** @internal Notes a copy of what has come of the work. Throws `BadPayload` if it has no bytes. */
  noteResult(result: unknown): void {
    const bytes = encodedResult(result, this.#source.resultCodec);
    this.#resultBytes = bytes instanceof Uint8Array ? Buffer.from(bytes) : bytes;
  }

  /**
   * Says that the task could not be done. The server counts a failure and decides what follows;
   * `delayMs` replaces the back-off of the queue. Returns R, W or B, or X if the task has left the
   * queue. A reason beyond 1,024 bytes is cut. Refused with `STALE` if the lease has ended, and with
   * `BUSY` if there is no room for the `checkpoint` that was given.
   */
  async fail(
    reason?: string,
    options: Rest<commands.FailOptions, "reason" | "checkpoint"> &
      WithCheckpoint & { payload?: T } = {},
  ): Promise<StateOrGone> {
    const payload = this.#encoded(options.payload);
    const given = { ...options, reason, payload, checkpoint: undefined };
    const state = await this.#settle("failed", () =>
      this.#sendWithCheckpoint(options.checkpoint, (checkpoint) => {
        const words = commands.fail(this.queue, this.receipt, given);
        return this.#source.caller.ask(words.option("CHECKPOINT", checkpoint), options);
      }),
    );
    this.#noteState(state, reason);
    return state;
  }

  /**
   * Gives the task back, which is no failure. Returns R, or W with `delayMs`, or X if its time to
   * live had passed. `toTail` sends it behind its equals. Refused with `STALE` if the lease has
   * ended, and with `BUSY` if there is no room for the `checkpoint` that was given.
   */
  release(
    options: Rest<commands.ReleaseOptions, "tail" | "checkpoint"> &
      WithCheckpoint & { payload?: T; toTail?: boolean } = {},
  ): Promise<StateOrGone> {
    const payload = this.#encoded(options.payload);
    const given = { ...options, payload, tail: options.toTail, checkpoint: undefined };
    return this.#settle("released", () =>
      this.#sendWithCheckpoint(options.checkpoint, (checkpoint) => {
        const words = commands.release(this.queue, this.receipt, given);
        return this.#source.caller.ask(words.option("CHECKPOINT", checkpoint), options);
      }),
    );
  }

  /**
   * Sets the task aside until somebody digs it up. A reason beyond 1,024 bytes is cut. A checkpoint
   * that was not sent yet is sent before it. Refused with `STALE` if the lease has ended.
   */
  async bury(
    reason?: string,
    options: Rest<commands.BuryOptions, "reason"> & { payload?: T } = {},
  ): Promise<void> {
    const given = { ...options, reason, payload: this.#encoded(options.payload) };
    const words = commands.bury(this.queue, this.receipt, given);
    if (this.#headway?.news?.checkpoint !== undefined) {
      // Whatever comes of this, the burial is tried.
      await this.touch({ signal: options.signal }).catch(() => undefined);
    }
    await this.#settle("buried", () => this.#source.caller.ask(words, options));
    this.#noteState("B", reason);
  }

  /**
   * Renews the lease: it lasts its TTR again from now. With `byMs` its deadline moves by that much.
   * Returns the new deadline in Unix milliseconds, or null if there is none. Refused with `STALE`
   * if the lease has ended, and with `CANCELLED` if the task was cancelled: stop and release it.
   * Refused with `BUSY`, and not renewed, if there is no room for the `checkpoint` or `progress`
   * that was given.
   */
  touch(
    options: Rest<commands.TouchOptions, "checkpoint"> & WithCheckpoint = {},
  ): Promise<number | null> {
    const { caller } = this.#source;
    const mayRepeat = options.byMs === undefined;
    return this.#touch(this.#headway?.news, (told) => {
      const progress = options.progress ?? told.progress;
      const given = { ...options, progress, checkpoint: undefined };
      const words = commands.touch(this.queue, this.receipt, given);
      words.option("CHECKPOINT", options.checkpoint ?? told.checkpoint);
      return mayRepeat ? caller.ask(words, options) : caller.change(words, options);
    });
  }

  /**
   * Tells people how far the work has come, such as "3 of 10". They see it until the lease ends.
   * An empty text removes it. Returns at once: a worker sends the newest text within about a
   * second, and otherwise it goes with the next `touch()`. Throws a `RangeError` beyond 256 bytes.
   */
  progress(text: string): void {
    this.#tell((headway) => headway.noteProgress(text));
  }

  /**
   * Keeps what the next attempt needs to go on from here. It reads it as `lastCheckpoint`. An empty
   * one removes it, and so does the acknowledgement. Returns at once: a worker sends the newest one
   * within about a second, and otherwise it goes with the next `touch()`. One that was not sent yet
   * goes with `fail()` and `release()`. Throws a `RangeError` beyond 65,536 bytes.
   */
  checkpoint(value: Word): void {
    this.#tell((headway) => headway.noteCheckpoint(value));
  }

  /** @internal Renews the lease, and tells how far the work has come, if that is due. */
  async renew(retryForMs: number): Promise<void> {
    const news = this.newsInMs === 0 ? this.#headway?.news : undefined;
    await this.#touch(news, ({ progress, checkpoint }) => {
      const words = commands.touch(this.queue, this.receipt, { progress });
      return this.#source.caller.ask(words.option("CHECKPOINT", checkpoint), { retryForMs });
    });
  }

  /** @internal In how many milliseconds there is something to tell, or undefined if not. */
  get newsInMs(): number | undefined {
    return this.#settlement === undefined ? this.#headway?.dueInMs : undefined;
  }

  /** @internal Drops what was not told. Nothing is told from here on. */
  tellNothing(): void {
    this.#headway = null;
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
    this.tellNothing();
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

  #tell(note: (headway: Headway) => void): void {
    // A value that is too long is a mistake at any time.
    const headway = this.#headway ?? new Headway();
    note(headway);
    if (this.#headway === null || this.#settlement !== undefined) return;
    this.#headway = headway;
    this.#source.onTold?.(this);
  }

  async #touch(
    news: Told | undefined,
    send: (told: Told) => Promise<Reply>,
  ): Promise<number | null> {
    try {
      return numberOrNull(await this.#sendWith(news, send));
    } catch (error) {
      this.#cancelled ??= cancelledOf(error);
      if (isRefused(error, "STALE", "NOTFOUND", "CANCELLED")) this.tellNothing();
      throw error;
    }
  }

  // Sends the end of the lease with a checkpoint that was given, or with one that was not sent yet.
  #sendWithCheckpoint(
    given: Word | undefined,
    send: (checkpoint: Word | undefined) => Promise<Reply>,
  ): Promise<Reply> {
    const checkpoint = given === undefined ? this.#headway?.checkpoint : undefined;
    const news = checkpoint === undefined ? undefined : { checkpoint };
    return this.#sendWith(news, (told) => send(given ?? told.checkpoint));
  }

  #sendWith(news: Told | undefined, send: (told: Told) => Promise<Reply>): Promise<Reply> {
    const headway = this.#headway;
    return headway && news ? headway.sendWith(news, send) : send({});
  }

  async #settle(settlement: Settlement, send: () => Promise<Reply>): Promise<StateOrGone> {
    const before = this.#settlement;
    this.#settlement = settlement;
    try {
      return textOf(await send()) as StateOrGone;
    } catch (error) {
      // A lease that has ended needs no further end.
      if (!isRefused(error, "STALE")) this.#settlement = before;
      throw error;
    }
  }
}
