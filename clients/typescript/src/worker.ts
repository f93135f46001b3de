// Takes jobs, has them worked on, and acknowledges or fails them.
//
// A finished job is acknowledged by the next take, so each job costs one round trip. While the
// queue is empty the take blocks, and then finished jobs are acknowledged by themselves.
//
// A worker that takes jobs ahead has them pushed instead. Then a job is acknowledged in one piece
// with the start of the next one, and the server calls back what was not started.
import * as commands from "./commands.js";
import type { CallOptions } from "./caller.js";
import { Cancelled, cancelledOf, Closed, isRefused, PinpriqError } from "./errors.js";
import {
  backoffMs, FAILURES_MAX, isGivenUp, policyFor, policyOf, reasonOf, type Policy,
} from "./failing.js";
import { Job, type JobSource } from "./job.js";
import type { Lane } from "./lane.js";
import { type Control, type Held, LeaseKeeper } from "./leases.js";
import { Prefetch } from "./prefetching.js";
import type { Reply } from "./resp.js";
import { isAboutResult, isLarge } from "./results.js";
import { pause, pauseBefore } from "./reconnecting.js";
import { listOf, type RawTask, type StateOrGone, taskOf } from "./replies.js";
import { giveBack } from "./taking.js";
import { callHook, escaped, failureLine, type Log, logToStderr, nameOf } from "./telling.js";
import { Attempt, tracerOfProgram } from "./tracing.js";
import type { Words } from "./words.js";
import type { Handler, WorkerEvent, WorkerOptions } from "./worker_options.js";

export type { Handler, Work, WorkerEvent, WorkerOptions } from "./worker_options.js";

const BLOCK_MS = 20_000;
const DONE_MAX = 100;
const GRACE_MS = 30_000;
const LONGEST_PAUSE_MS = 5_000;
/** Refusals that no later try can change. */
const FATAL = [
  "BADARG", "ERR", "CROSSSHARD", "CROSSSLOT", "NOAUTH", "NOPERM", "READONLY", "WRONGPASS",
];

/** A job that has arrived and was not started. */
interface Arrived<T> {
  readonly job: Job<T>;
  readonly rank: number;
  readonly arrivedAt: number;
}

/** Works on the tasks of a queue or a lane, from `process()` until it is stopped. */
export class Worker<T> implements AsyncDisposable {
  readonly #lane: Lane<T>;
  readonly #source: JobSource<T>;
  readonly #handler: Handler<T>;
  readonly #options: WorkerOptions<T>;
  readonly #concurrency: number;
  readonly #places: number;
  readonly #ttrMs: number;
  readonly #log: Log;
  readonly #tracer = tracerOfProgram();
  readonly #keeper: LeaseKeeper<T>;
  readonly #stopping = new AbortController();
  readonly #working = new Map<Held<T>, Promise<void>>();
  readonly #ahead: Held<T>[] = [];
  readonly #prefetch: Prefetch<T> | undefined;
  // What was not started, the most urgent first.
  readonly #arrived: Arrived<T>[] = [];
  // Receipts of jobs that are worked on although they were called back. Their places are taken.
  readonly #calledBack = new Set<string>();
  #finishedJobs: Job<T>[] = [];
  #isBlocked = false;
  #fatal: { error: unknown } | undefined;
  #graceMs: number;
  #wake: (() => void) | undefined;

  /**
   * Settles when the worker has stopped. Rejects if it cannot go on, such as without a right to
   * take. If it is not awaited, Node ends the process then.
   */
  readonly finished: Promise<void>;

  /** @internal */
  constructor(lane: Lane<T>, handler: Handler<T>, options: WorkerOptions<T>) {
    if (isGenerator(handler)) {
      throw new PinpriqError("a handler cannot be a generator: what it returns would never run");
    }
    this.#lane = lane;
    const { caller, codec, resultCodec } = lane;
    this.#source = { caller, codec, resultCodec, onTold: (job) => this.#keeper.tellSoon(job) };
    this.#handler = handler;
    this.#options = options;
    this.#concurrency = options.concurrency ?? 1;
    this.#places = this.#concurrency + (options.prefetch ?? 0);
    const areNumbers = Number.isInteger(this.#concurrency) && Number.isInteger(this.#places);
    if (!areNumbers || this.#concurrency < 1 || this.#places < this.#concurrency) {
      throw new PinpriqError("a worker needs a concurrency of 1 or more, and no negative prefetch");
    }
    const ttrMs = options.ttrMs ?? lane.ttrMs;
    if (ttrMs === null || !(ttrMs > 0)) {
      throw new PinpriqError("a worker needs a ttrMs, to know when to renew");
    }
    this.#ttrMs = ttrMs;
    this.#graceMs = options.graceMs ?? GRACE_MS;
    this.#log = options.log === null ? () => undefined : (options.log ?? logToStderr);
    this.#keeper = new LeaseKeeper<T>(
      ttrMs,
      (job) => this.#tell({ type: "renewed", job }),
      (held, error) => this.#meetEnd(held, error),
    );
    const prefetch = this.#places - this.#concurrency;
    // The server pushes in its own order only.
    if (prefetch > 0 && options.from === undefined && options.order === undefined) {
      const how = { ttrMs, concurrency: this.#concurrency, prefetch };
      this.#prefetch = new Prefetch<T>(lane, how, {
        onTask: (task) => this.#arrive(task),
        onRecall: (receipt) => this.#callBack(receipt),
        onCancel: (receipt, reason) => this.#meetCancel(receipt, new Cancelled(reason)),
        onNotStarted: (held, error) => this.#meetNotStarted(held, error),
        onAcknowledged: ({ job }, error) => {
          if (error === undefined) return this.#noteAcked(job);
          if (this.#leavesOut(job, error)) return this.#acknowledgeAlone(job);
          this.#meetNotAcked(job, error);
        },
        onLost: () => void this.#arrived.splice(0),
        isHungry: () => this.#arrived.length === 0,
        onReady: () => {
          // What was called back has a place like any other, as the new connection counts.
          this.#calledBack.clear();
          return this.#working.size;
        },
        onTrouble: (error) => this.#meetNoDeliveries(error),
      });
    }
    const onAbort = (): void => this.#beginToStop();
    options.signal?.addEventListener("abort", onAbort, { once: true });
    if (options.signal?.aborted) this.#beginToStop();
    this.finished = this.#run().finally(() => {
      options.signal?.removeEventListener("abort", onAbort);
    });
  }

  /**
   * Takes no more jobs, gives back what was taken ahead, and waits for the jobs that are worked on.
   * Those that take longer than `graceMs` get their signal and are released.
   */
  async stop(options: { graceMs?: number } = {}): Promise<void> {
    this.#graceMs = options.graceMs ?? this.#graceMs;
    this.#beginToStop();
    await this.finished;
  }

  /** Stops as `stop()` does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #beginToStop(): void {
    if (this.#stopping.signal.aborted) return;
    this.#say(`${this.#what()} stops`);
    this.#tell({ type: "stopping" });
    this.#stopping.abort(new PinpriqError("the worker stops"));
    this.#wake?.();
  }

  // What it serves, for people.
  #what(): string {
    const { name, member } = this.#lane;
    const place = member === null ? escaped(name) : `${escaped(name)} as ${escaped(member)}`;
    return `the worker of ${place}`;
  }

  async #run(): Promise<void> {
    const plural = this.#concurrency === 1 ? "" : "s";
    this.#say(`${this.#what()} starts, ${this.#concurrency} job${plural} at a time`);
    try {
      await (this.#prefetch ? this.#waitUntilStopped() : this.#takeUntilStopped());
    } catch (error) {
      this.#say(`${this.#what()} cannot go on: ${escaped(reasonOf(error))}`);
      throw error;
    } finally {
      await this.#finish();
      this.#say(`${this.#what()} has stopped`);
      this.#tell({ type: "stopped" });
    }
  }

  async #takeUntilStopped(): Promise<void> {
    const { signal } = this.#stopping;
    for (let failures = 0; ; ) {
      await this.#roomOrStop();
      if (signal.aborted) return;
      try {
        await this.#takeOnce();
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (isRefused(error, ...FATAL) || error instanceof Closed) throw error;
        if (isRefused(error, "NOTFOUND") && (await this.#hasJoinedAgain())) continue;
        this.#tell({ type: "trouble", error });
        const pauseMs = pauseBefore(failures++, LONGEST_PAUSE_MS);
        this.#say(`no task was taken, next try in ${pauseMs} ms: ${escaped(reasonOf(error))}`);
        await pause(pauseMs, signal).catch(() => undefined);
      }
    }
  }

  async #waitUntilStopped(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
      if (this.#fatal !== undefined) throw this.#fatal.error;
    }
  }

  #meetNoDeliveries(error: unknown): void {
    if (isRefused(error, ...FATAL) || error instanceof Closed) {
      this.#fatal = { error };
      this.#wake?.();
      return;
    }
    this.#tell({ type: "trouble", error });
    this.#say(`there are no deliveries for now: ${escaped(reasonOf(error))}`);
  }

  #arrive(task: RawTask): void {
    if (this.#stopping.signal.aborted || !this.#prefetch) return;
    const job = new Job(this.#source, task);
    const rank = this.#prefetch.rankOf(task);
    let at = this.#arrived.length;
    while (at > 0 && (this.#arrived[at - 1]?.rank ?? 0) > rank) at--;
    this.#arrived.splice(at, 0, { job, rank, arrivedAt: performance.now() });
    this.#tell({ type: "taken", job });
    this.#begin();
  }

  #callBack(receipt: string): void {
    const arrived = this.#removeArrived(receipt);
    if (arrived) this.#tell({ type: "recalled", job: arrived.job });
    else this.#calledBack.add(receipt);
  }

  #removeArrived(receipt: string): Arrived<T> | undefined {
    const at = this.#arrived.findIndex(({ job }) => job.receipt === receipt);
    return at < 0 ? undefined : this.#arrived.splice(at, 1)[0];
  }

  // A job that has not begun is not run. Its place is free when the server knows.
  #meetCancel(receipt: string, error: Cancelled): void {
    const arrived = this.#removeArrived(receipt);
    if (arrived) {
      const held = this.#keeper.hold(arrived.job, arrived.arrivedAt);
      this.#cancel(held, error);
      this.#occupy(held, this.#release(held));
      return;
    }
    for (const held of this.#working.keys()) {
      if (held.job.receipt === receipt) this.#cancel(held, error);
    }
  }

  // Returns the most urgent job that has arrived, and starts it without waiting for the reply.
  #startNext(prefetch: Prefetch<T>): Held<T> | undefined {
    for (let next = this.#arrived.shift(); next; next = this.#arrived.shift()) {
      const { job, arrivedAt } = next;
      const now = performance.now();
      if (now - arrivedAt >= this.#ttrMs) {
        // Its lease has ended, which has used up the credit.
        prefetch.grant(1);
        continue;
      }
      const held = this.#keeper.hold(job, now);
      prefetch.start(held);
      return held;
    }
    return undefined;
  }

  #meetNotStarted(held: Held<T>, error: unknown): void {
    const { job, control } = held;
    if (!isRefused(error, "STALE", "NOTFOUND", "CANCELLED")) return this.#meetTrouble(error, job);
    if (job.settlement !== undefined || control.isAborted) return;
    this.#keeper.drop(job);
    this.#meetEnd(held, error);
  }

  async #hasJoinedAgain(): Promise<boolean> {
    try {
      return await this.#lane.comeBackAfterEnd();
    } catch {
      return false;
    }
  }

  #room(): number {
    return this.#places - this.#working.size - this.#ahead.length;
  }

  async #roomOrStop(): Promise<void> {
    while (this.#room() <= 0 && !this.#stopping.signal.aborted) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async #takeOnce(): Promise<void> {
    const done = this.#finishedJobs.splice(0, DONE_MAX);
    if (done.length > 0) {
      await this.#takeAndAcknowledge(done);
      return;
    }
    this.#isBlocked = true;
    try {
      const words = this.#takeWords().add("WAIT", String(BLOCK_MS));
      const release = async (reply: Reply): Promise<void> => {
        const tasks = listOf(reply).map(taskOf);
        await Promise.all(tasks.map((task) => giveBack(this.#lane.caller, task)));
      };
      await this.#admit(words, {
        isRepeatable: true,
        blocksMs: BLOCK_MS,
        signal: this.#stopping.signal,
        onLateReply: release,
      });
    } finally {
      this.#isBlocked = false;
    }
  }

  async #takeAndAcknowledge(done: Job<T>[]): Promise<void> {
    const words = this.#takeWords();
    for (const { queue, receipt, resultBytes } of done) {
      words.add("DONE", queue, receipt).option("RESULT", resultBytes);
    }
    const mayBeResult = done.some(({ resultBytes }) => resultBytes !== undefined);
    try {
      await this.#admit(words, {});
    } catch (error) {
      // Nothing was acknowledged, or that is unknown. One lease that has ended refuses all, and so
      // does one result.
      await Promise.all(done.map((job) => this.#acknowledgeAlone(job)));
      if (!isRefused(error, "STALE") && !(mayBeResult && isAboutResult(error))) throw error;
      return;
    }
    for (const job of done) this.#noteAcked(job);
  }

  #takeWords(): Words {
    const room = this.#room();
    return commands.take([this.#lane.name], {
      count: room > 1 ? room : undefined,
      ttrMs: this.#ttrMs,
      from: this.#options.from,
      order: this.#options.order,
      // How often a task has failed decides what is done with it.
      withMeta: true,
      member: this.#lane.member ?? undefined,
    });
  }

  async #admit(words: Words, sending: CallOptions): Promise<void> {
    const { reply } = await this.#lane.caller.call(words.list, sending);
    const takenAt = performance.now();
    // What finishes from here on goes with the next take.
    this.#isBlocked = false;
    for (const task of listOf(reply).map(taskOf)) {
      const job = new Job(this.#source, task);
      this.#ahead.push(this.#keeper.hold(job, takenAt));
      this.#tell({ type: "taken", job });
    }
    this.#begin();
  }

  // Begins to work on what was taken ahead, as far as there are hands.
  #begin(): void {
    while (this.#working.size < this.#concurrency && !this.#stopping.signal.aborted) {
      const held = this.#prefetch ? this.#startNext(this.#prefetch) : this.#ahead.shift();
      if (!held) return;
      this.#occupy(held, this.#work(held));
    }
  }

  // Keeps the place of a job until the work on it has ended.
  #occupy(held: Held<T>, work: Promise<void>): void {
    const ended = work.finally(() => {
      this.#working.delete(held);
      // What came in the place of a job that was called back has its credit.
      const isReplaced = this.#calledBack.size > 0 && this.#calledBack.delete(held.job.receipt);
      if (!isReplaced) this.#prefetch?.grant(1);
      this.#begin();
      // What is pushed is not asked for.
      if (!this.#prefetch) this.#wake?.();
    });
    this.#working.set(held, ended);
  }

  // Works on a job and settles it, whatever the handler does. Never throws.
  async #work(held: Held<T>): Promise<void> {
    try {
      if (this.#tracer === undefined) return await this.#workAndSettle(held);
      const attempt = new Attempt(this.#tracer, held.job, this.#lane.member);
      await attempt.run(() => this.#workAndSettle(held, attempt));
    } catch (error) {
      this.#keeper.drop(held.job);
      this.#meetTrouble(error, held.job);
    }
  }

  async #workAndSettle(held: Held<T>, attempt?: Attempt): Promise<void> {
    const { job, control } = held;
    if (job.failures >= FAILURES_MAX && (await this.#isGivenUpBefore(job, attempt))) return;
    this.#tell({ type: "started", job });
    let returned: unknown;
    try {
      returned = await this.#runHandler(job, control);
    } catch (error) {
      // A renewal by the handler may have told it first.
      if (job.cancelled) this.#cancel(held, job.cancelled);
      if (job.cancelled) attempt?.noteCancelled();
      else attempt?.fail(error);
      if (control.isAborted) return;
      // The failure goes over another connection, and a start behind it would be refused.
      this.#prefetch?.forgetStart(held);
      if (job.settlement === undefined) {
        return job.cancelled ? this.#release(held) : this.#fail(job, error);
      }
      if (!job.cancelled) this.#meetTrouble(error, job);
    }
    if (control.isAborted) return;
    // Nobody goes on from a job that is done.
    job.tellNothing();
    if (job.settlement !== undefined) {
      this.#keeper.drop(job);
      this.#tell({ type: "settled", job });
      return;
    }
    this.#noteResult(job, returned);
    if (this.#prefetch) {
      // The reply to a renewal may come after that to the acknowledgement.
      this.#keeper.drop(job);
      // The next job begins before the reply comes.
      this.#prefetch.acknowledge(held);
    } else if (this.#isBlocked || this.#stopping.signal.aborted || isLarge(job.resultBytes)) {
      await this.#acknowledgeAlone(job);
    } else {
      this.#finishedJobs.push(job);
    }
  }

  // Runs the handler once, within what is around it. Returns what it has returned.
  async #runHandler(job: Job<T>, control: Control): Promise<unknown> {
    let running: Promise<void> | undefined;
    let returned: unknown;
    const call = async (): Promise<void> => {
      const work = { get signal() { return control.signal; } };
      returned = await this.#handler(job, work);
      if (isIterator(returned)) throw new PinpriqError("the handler returned a generator");
    };
    const run = (): Promise<void> => (running ??= call());
    const { around } = this.#options;
    if (!around) {
      await run();
      return returned;
    }
    await around(job, run);
    if (running === undefined) throw new PinpriqError("what is around the job has not run it");
    await running;
    return returned;
  }

  // Notes what has come of a job. The work was done, so it is acknowledged in any case.
  #noteResult(job: Job<T>, returned: unknown): void {
    try {
      job.noteResult(returned);
    } catch (error) {
      this.#meetNoResult(job, error);
    }
  }

  // Leaves the result out if the acknowledgement was refused because of it. Returns whether it did.
  #leavesOut(job: Job<T>, error: unknown): boolean {
    if (job.resultBytes === undefined || !isAboutResult(error)) return false;
    job.noteResult(undefined);
    this.#meetNoResult(job, error);
    return true;
  }

  #meetNoResult(job: Job<T>, error: unknown): void {
    this.#say(`${nameOf(job)}: acknowledged without its result: ${escaped(reasonOf(error))}`);
    this.#tell({ type: "trouble", error, job });
  }

  async #acknowledgeAlone(job: Job<T>): Promise<void> {
    try {
      await job.ackAsNoted();
      this.#noteAcked(job);
    } catch (error) {
      if (this.#leavesOut(job, error)) return this.#acknowledgeAlone(job);
      this.#keeper.drop(job);
      this.#meetNotAcked(job, error);
    }
  }

  #meetNotAcked(job: Job<T>, error: unknown): void {
    if (!isRefused(error, "STALE")) return this.#meetTrouble(error, job);
    this.#say(`${nameOf(job)}: its lease had ended before it was acknowledged`);
    this.#tell({ type: "leaseLost", error, job });
  }

  #noteAcked(job: Job<T>): void {
    job.noteAcked();
    this.#keeper.drop(job);
    this.#tell({ type: "acked", job });
  }

  // Says that a job has failed. Gives it up if its queue never does.
  async #fail(job: Job<T>, error: unknown): Promise<void> {
    const reason = reasonOf(error);
    try {
      const failures = job.failures + 1;
      const policy = policyFor(await this.#policy(), job.meta);
      const deadLetter = policy?.deadLetter ?? null;
      let state: StateOrGone = "B";
      let delayMs: number | undefined;
      if (job.isOfPayload(error) || isGivenUp(policy, failures)) {
        await job.bury(reason);
      } else {
        delayMs = this.#ownDelayMs(job, error) ?? backoffMs(policy, failures);
        state = await job.fail(reason, delayMs === undefined ? {} : { delayMs });
      }
      this.#say(failureLine(job, reason, { state, delayMs, deadLetter }));
      this.#tell({ type: "failed", job, error, state });
    } catch (trouble) {
      this.#say(`${nameOf(job)}: ${escaped(reason)}`);
      this.#meetTrouble(trouble, job);
    } finally {
      this.#keeper.drop(job);
    }
  }

  // What the program says about how long a failed job waits.
  #ownDelayMs(job: Job<T>, error: unknown): number | undefined {
    try {
      const delayMs = this.#options.failDelayMs?.(job, error);
      if (delayMs === undefined || (Number.isFinite(delayMs) && delayMs >= 0)) return delayMs;
      throw new PinpriqError(`failDelayMs returned ${String(delayMs)}, which is no time`);
    } catch (trouble) {
      this.#meetTrouble(trouble, job);
      return undefined;
    }
  }

  // Buries a job that has failed too often and that its queue has not given up, such as one that
  // ended the process each time. Returns whether it did.
  async #isGivenUpBefore(job: Job<T>, attempt: Attempt | undefined): Promise<boolean> {
    const failures = job.failures;
    const policy = policyFor(await this.#policy(), job.meta);
    if (!isGivenUp(policy, failures)) return false;
    const why = `failed ${failures} times, while ${FAILURES_MAX} are allowed: not run again`;
    const last = job.meta?.reason ?? null;
    const reason = last === null ? why : `${why}; the last time: ${last}`;
    const error = new PinpriqError(reason);
    attempt?.fail(error);
    try {
      await job.bury(reason);
      this.#say(`${nameOf(job)}: ${why}: buried`);
      this.#tell({ type: "failed", job, error, state: "B" });
    } finally {
      this.#keeper.drop(job);
    }
    return true;
  }

  #policy(): Promise<Policy | null> {
    return policyOf(() => this.#lane.show());
  }

  // Notes that a lease cannot be renewed any more.
  #meetEnd(held: Held<T>, error: unknown): void {
    const place = this.#ahead.indexOf(held);
    if (place >= 0) this.#ahead.splice(place, 1);
    const cancelled = cancelledOf(error);
    if (cancelled) {
      this.#cancel(held, cancelled);
      if (place >= 0) this.#occupy(held, this.#release(held));
      return;
    }
    held.control.abort(error);
    this.#say(`${nameOf(held.job)}: its lease was lost: ${escaped(reasonOf(error))}`);
    this.#tell({ type: "leaseLost", job: held.job, error });
    this.#wake?.();
  }

  // Tells the handler, if there is one, that its job is not wanted. It is heard of in several ways.
  #cancel(held: Held<T>, error: Cancelled): void {
    const { job, control } = held;
    if (control.isTold) return;
    job.noteCancelled(error);
    control.cancel(error);
    this.#keeper.drop(job);
    this.#say(`${nameOf(job)}: it was cancelled: ${escaped(error.message)}`);
    this.#tell({ type: "cancelled", job, error });
  }

  async #finish(): Promise<void> {
    this.#beginToStop();
    const isOver = new AbortController();
    const prefetch = this.#prefetch;
    // The server calls them back.
    for (const { job } of this.#arrived.splice(0)) this.#tell({ type: "released", job });
    void Promise.all([
      prefetch?.stop(),
      ...this.#ahead.splice(0).map((held) => this.#release(held)),
      ...this.#finishedJobs.splice(0).map((job) => this.#acknowledgeAlone(job)),
      ...this.#working.values(),
    ])
      .then(() => prefetch?.settle())
      .finally(() => isOver.abort());
    // The pause ends early, by the signal, when nothing is left to do.
    await pause(this.#graceMs, isOver.signal).catch(() => undefined);
    if (!isOver.signal.aborted) await this.#releaseLate();
    await prefetch?.close();
    this.#keeper.stop();
  }

  // Functions that still work on a job whose lease is lost are not awaited either.
  async #releaseLate(): Promise<void> {
    const late = [...this.#working.keys()].filter(({ control }) => !control.isAborted);
    for (const { control } of late) control.abort(new PinpriqError("the worker has stopped"));
    await Promise.all(late.map((held) => this.#release(held)));
  }

  async #release(held: Held<T>): Promise<void> {
    const { job } = held;
    try {
      if (job.settlement !== undefined) return;
      await job.release();
      this.#tell({ type: "released", job });
    } catch (error) {
      // A task that was cancelled has left with its lease too.
      const hasLeft = job.cancelled !== undefined && isRefused(error, "STALE", "NOTFOUND");
      if (hasLeft) this.#tell({ type: "released", job });
      else this.#meetTrouble(error, job);
    } finally {
      this.#keeper.drop(job);
    }
  }

  #meetTrouble(error: unknown, job: Job<T>): void {
    this.#say(`${nameOf(job)}: ${escaped(reasonOf(error))}`);
    this.#tell({ type: "trouble", error, job });
  }

  #say(line: string): void {
    callHook(this.#log, line, logToStderr);
  }

  #tell(event: WorkerEvent<T>): void {
    callHook(this.#options.trace, event, this.#log);
  }
}

// Whether a function is a generator, which returns at once and has then done nothing.
function isGenerator(handler: unknown): boolean {
  return /^(Async)?GeneratorFunction$/.test((handler as Function)?.constructor?.name ?? "");
}

function isIterator(returned: unknown): boolean {
  if (typeof returned !== "object" || returned === null) return false;
  const isIterable = Symbol.iterator in returned || Symbol.asyncIterator in returned;
  return isIterable && "next" in returned && typeof returned.next === "function";
}
