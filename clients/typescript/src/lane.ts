// What queues and the lanes of members have in common: every command on tasks that are there.
import type { Caller } from "./caller.js";
import * as commands from "./commands.js";
import type { Codec } from "./codec.js";
import type { Changed, Explanation, Lease } from "./inspection.js";
import { Job, type JobSource } from "./job.js";
import type {
  Abortable, ComeBack, PopOptions, Rest, Side, TakeOptions,
} from "./options.js";
import {
  bytesIfAny, listOf, mapOf, numberOf, numberOrNull, type Outcome, type Plain, plainOf,
  type RawTask, type State, type StateOrGone, taskOf, textOf,
} from "./replies.js";
import { type WithResult, withResult } from "./results.js";
import { settingsOf, type Settings, type SettingsChange } from "./settings.js";
import { type Task, taskWithPayload } from "./task.js";
import { type Place, pop, take } from "./taking.js";
import { noteRedrive } from "./tracing.js";
import type { Words } from "./words.js";
import { Worker, type Handler, type WorkerOptions } from "./worker.js";

/** How the tasks of a queue are read and leased. */
export interface LaneSettings<T, R = unknown> {
  readonly codec: Codec<T>;
  readonly resultCodec: Codec<R>;
  /** How long a lease lasts where the take does not say; null sends no TTR. */
  readonly ttrMs: number | null;
}

/** A queue, or the lane of a member in a topic. */
export class Lane<T, R = unknown> implements JobSource<T, R> {
  /** @internal */
  readonly caller: Caller;
  /** How payloads become bytes. */
  readonly codec: Codec<T>;
  /** How results become bytes. */
  readonly resultCodec: Codec<R>;
  /** The name of the queue, or of the topic. */
  readonly name: string;
  /** The member whose lane this is, or null. */
  readonly member: string | null;
  /** How long a lease lasts where the take does not say, in milliseconds; null sends no TTR. */
  readonly ttrMs: number | null;

  /** @internal */
  constructor(caller: Caller, name: string, member: string | null, settings: LaneSettings<T, R>) {
    this.caller = caller;
    this.name = name;
    this.member = member;
    this.codec = settings.codec;
    this.resultCodec = settings.resultCodec;
    this.ttrMs = settings.ttrMs;
  }

  /**
   * Takes the most urgent task under a lease. Returns null if there is none within `waitMs`. If the
   * signal is aborted, a task that still arrives is released.
   */
  async take(options: TakeOptions = {}): Promise<Job<T, R> | null> {
    return (await this.takeMany(1, options))[0] ?? null;
  }

  /** Takes up to `count` tasks, as soon as there is one. The list is empty if there is none. */
  async takeMany(count: number, options: TakeOptions = {}): Promise<Job<T, R>[]> {
    const ttrMs = options.ttrMs === undefined ? this.ttrMs : options.ttrMs;
    const tasks = await take(this.caller, this.place, count, { ...options, ttrMs });
    return tasks.map((task) => new Job(this, task));
  }

  /**
   * Takes the most urgent task for good, or returns null. It is never sent twice: if its reply is
   * lost it throws `ConnectionLost`, and the task may be lost too.
   */
  async pop(options: PopOptions = {}): Promise<Task<T, R> | null> {
    return (await this.popMany(1, options))[0] ?? null;
  }

  /** Takes up to `count` tasks for good. */
  async popMany(count: number, options: PopOptions = {}): Promise<Task<T, R>[]> {
    return (await pop(this.caller, this.place, count, options)).map((task) => this.#task(task));
  }

  /** Works on the tasks with a function, until the worker is stopped. It starts at once. */
  process(handler: Handler<T, R>, options: WorkerOptions<T> = {}): Worker<T> {
    return new Worker(this, handler, options);
  }

  /** Shows what a take would choose, or with `state` the tasks of that state. Changes nothing. */
  async peek(options: Rest<commands.PeekOptions> = {}): Promise<Task<T, R>[]> {
    const reply = await this.ask(commands.peek(this.name, { ...options, withMeta: true }), options);
    return listOf(reply).map((task) => this.#task(taskOf(task)));
  }

  /** Returns one task in any state, or null. */
  async get(id: string, options: Abortable = {}): Promise<Task<T, R> | null> {
    const reply = await this.ask(commands.get(this.name, id), options);
    return reply === null ? null : this.#task(taskOf(reply));
  }

  /** Goes through all tasks page by page, or those of one state or key. */
  async *scan(
    options: Rest<commands.ScanOptions, "count"> & { pageSize?: number } = {},
  ): AsyncGenerator<Task<T, R>, void, undefined> {
    const words = commands.scan(this.name, { ...options, count: options.pageSize, withMeta: true });
    for await (const task of this.pages(words, options)) yield this.#task(taskOf(task));
  }

  /** Goes through the leases: who holds which task. */
  async *leases(options: Abortable = {}): AsyncGenerator<Lease, void, undefined> {
    for await (const lease of this.pages(commands.leases(this.name), options)) {
      yield plainOf(lease) as unknown as Lease;
    }
  }

  /**
   * Tells why a task is not handed out, or without an id which one would be next. Refused with
   * `NOTFOUND` if there is no such task.
   */
  async explain(id?: string, options: Abortable = {}): Promise<Explanation> {
    const reply = await this.ask(commands.explain(this.name, id), options);
    return plainOf(reply) as unknown as Explanation;
  }

  /**
   * Waits until a task has ended and tells how, with what has come of the work. The outcome is
   * `timeout` after `waitMs`, where Infinity is for ever. Of a task that is gone the server tells
   * how it ended as long as it remembers that; refused with `NOTFOUND` afterwards.
   */
  async awaitEnd(
    id: string,
    options: Abortable & { waitMs?: number } = {},
  ): Promise<{ outcome: Outcome; state: StateOrGone } & WithResult<R>> {
    const blocksMs = options.waitMs ?? 0;
    const words = commands.awaitCommand(this.name, id, { waitMs: blocksMs, result: true });
    const [outcome, state, result] = listOf(await this.ask(words, { ...options, blocksMs }));
    const end = { outcome: textOf(outcome) as Outcome, state: textOf(state) as StateOrGone };
    return withResult(end, bytesIfAny(result), this.resultCodec);
  }

  /** Brings a buried task back. Refused with `WRONGSTATE` in another state, and with `TAKEN`. */
  async dig(id: string, options: Rest<commands.DigOptions> & { payload?: T } = {}): Promise<StateOrGone> {
    const payload = this.encodeIfGiven(options.payload);
    const words = commands.dig(this.name, id, { ...options, payload });
    return textOf(await this.change(words, options)) as StateOrGone;
  }

  /** Brings the oldest `count` buried tasks back, or all of them. Returns how many. */
  async plow(options: Rest<commands.PlowOptions> = {}): Promise<number> {
    return numberOf(await this.change(commands.plow(this.name, options), options));
  }

  /** Removes tasks in any state, also those that are held. Returns how many there were. */
  async kill(ids: string | readonly string[], options: Abortable = {}): Promise<number> {
    const all = typeof ids === "string" ? [ids] : ids;
    return numberOf(await this.change(commands.kill(this.name, all), options));
  }

  /**
   * Ends a task, or if it is taken, asks its holder to stop, for `graceMs` at most. Returns X, or T
   * if its holder is asked, or Z or D if it was finished. Refused with `NOTFOUND` if there is no
   * such task.
   */
  async cancel(id: string, options: Rest<commands.CancelOptions> = {}): Promise<StateOrGone> {
    const words = commands.cancel(this.name, id, options);
    return textOf(await this.change(words, options)) as StateOrGone;
  }

  /** Turns a task into another state. Refused with `TAKEN` while it is held. */
  async switchTo(
    id: string,
    state: Exclude<State, "T">,
    options: ComeBack = {},
  ): Promise<StateOrGone> {
    const words = commands.switchCommand(this.name, id, state, options);
    return textOf(await this.change(words, options)) as StateOrGone;
  }

  /** Takes a task away from its holder. Refused with `NOTTAKEN` if it is not held. */
  async snatch(id: string, options: ComeBack = {}): Promise<StateOrGone> {
    const words = commands.snatch(this.name, id, options);
    return textOf(await this.change(words, options)) as StateOrGone;
  }

  /**
   * Brings a waiting, buried or finished task back as if it had never been taken. Refused with
   * `TAKEN` while it is held.
   */
  async restart(id: string, options: ComeBack = {}): Promise<StateOrGone> {
    const words = commands.restart(this.name, id, options);
    return textOf(await this.change(words, options)) as StateOrGone;
  }

  /**
   * Changes a task where it is. `ttlMs` counts from now, and null removes it. A taken task needs
   * its receipt, else it is refused with `NOTOWNER`; one that is not current with `STALE`.
   */
  async update(
    id: string,
    change: Omit<Rest<commands.UpdateOptions>, "signal"> & { payload?: T },
    options: Abortable = {},
  ): Promise<void> {
    const payload = this.encodeIfGiven(change.payload);
    await this.ask(commands.update(this.name, id, { ...change, payload }), options);
  }

  /** Moves the end of the time to live of a ready task. Returns the end in Unix milliseconds. */
  async prolong(id: string, byMs: number, options: Abortable = {}): Promise<number | null> {
    const words = commands.touch(this.name, { id }, { byMs });
    return numberOrNull(await this.change(words, options));
  }

  /** Moves the oldest tasks of one state to a queue, 1,000 by default. Returns how many. */
  async move(to: string, options: Rest<commands.MoveOptions> = {}): Promise<number> {
    return numberOf(await this.change(commands.move(this.name, to, options), options));
  }

  /** Moves ready dead letters back to the queues that they come from. Returns how many. */
  async redrive(options: Rest<commands.RedriveOptions> = {}): Promise<number> {
    const count = numberOf(await this.change(commands.redrive(this.name, options), options));
    noteRedrive(this.name, count);
    return count;
  }

  /**
   * Does the same with all tasks of this queue, or with those of them that are chosen. One option
   * says what: `restart`, `cancel`, `kill`, `redrive`, `move`, `priority` or `delayMs`. The others
   * say with which tasks, such as `reason: "*timeout*"`, and all of them have to fit. `dry` only
   * counts. A request whose reply was lost is sent again, and then the numbers may be too low.
   */
  async bulk(
    options: Rest<commands.BulkOptions, "count"> & { pageSize?: number },
  ): Promise<Changed> {
    let [changed, looked, cursor] = [0, 0, "0"];
    do {
      const words = commands.bulk(this.name, { ...options, cursor, count: options.pageSize });
      const [next, seen, done] = listOf(await this.ask(words, options));
      cursor = textOf(next);
      looked += numberOf(seen);
      changed += numberOf(done);
    } while (cursor !== "0");
    if (options.redrive && !options.dry) noteRedrive(this.name, changed);
    return { changed, looked };
  }

  /** Returns the figures, as the page on the protocol lists them. */
  async stats(options: Abortable = {}): Promise<{ [name: string]: Plain }> {
    return plainOf(await this.ask(commands.stats(this.name), options)) as {
      [name: string]: Plain;
    };
  }

  /** Changes settings. A queue that is not there is created. */
  async set(change: SettingsChange, options: Abortable = {}): Promise<void> {
    await this.ask(commands.queueSet(this.name, change), options);
  }

  /** Returns the settings. Refused with `NOQUEUE` if the queue does not exist. */
  async show(options: Abortable = {}): Promise<Settings> {
    return settingsOf(mapOf(await this.ask(commands.queueShow(this.name), options)));
  }

  /** Removes all tasks. Returns how many. Refused with `NOQUEUE` if the queue does not exist. */
  async truncate(options: Abortable = {}): Promise<number> {
    return numberOf(await this.change(commands.queueTruncate(this.name), options));
  }

  /** Pauses puts, takes or both, for good or for a while. */
  async pause(
    side: Side = "both",
    options: Rest<commands.QueuePauseOptions> = {},
  ): Promise<void> {
    await this.ask(commands.queuePause(this.name, sideOf(side), options), options);
  }

  /** Ends a pause. */
  async resume(side: Side = "both", options: Abortable = {}): Promise<void> {
    await this.ask(commands.queueResume(this.name, sideOf(side)), options);
  }

  /**
   * Sends any command of `commands` about this queue, never twice, such as
   * `queue.command(commands.queuePause, "in")`.
   */
  async command<A extends unknown[]>(
    build: (queue: string, ...given: A) => Words,
    ...given: A
  ): Promise<Plain> {
    return plainOf(await this.change(build(this.name, ...given), {}));
  }

  /** @internal Makes good that the lane has ended, if that can be. */
  comeBackAfterEnd(): Promise<boolean> {
    return Promise.resolve(false);
  }

  /** @internal */
  get place(): Place {
    return { queues: [this.name], member: this.member };
  }

  /** @internal Sends what may be sent twice without harm. */
  protected ask(words: Words, options: Abortable & { blocksMs?: number }) {
    return this.caller.ask(this.#inLane(words), options);
  }

  /** @internal Sends what must not be sent twice. */
  protected change(words: Words, options: Abortable) {
    return this.caller.change(this.#inLane(words), options);
  }

  /** @internal Goes through the elements of all pages. */
  protected pages(words: Words, options: Abortable) {
    return this.caller.pages(this.#inLane(words), options);
  }

  /** @internal */
  protected encodeIfGiven(payload: T | undefined): Uint8Array | string | undefined {
    return payload === undefined ? undefined : this.codec.encode(payload);
  }

  #inLane(words: Words): Words {
    return words.option("MEMBER", this.member ?? undefined);
  }

  #task(task: RawTask): Task<T, R> {
    return taskWithPayload(task, this.codec, this.resultCodec);
  }
}

function sideOf(side: Side): "in" | "out" | undefined {
  return side === "both" ? undefined : side;
}
