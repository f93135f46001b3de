// Takes jobs ahead for a worker. The server pushes them, and may call each back until it is started.
import type { Caller } from "./caller.js";
import * as commands from "./commands.js";
import { ConnectionLost, isRefused } from "./errors.js";
import type { Job } from "./job.js";
import type { Lane } from "./lane.js";
import type { Link } from "./link.js";
import type { Reply } from "./resp.js";
import { type RawTask, taskOf, textOf } from "./replies.js";
import type { Words } from "./words.js";

/** The most jobs that are taken ahead of a fair queue, which charges a share for each. */
const FAIR_PREFETCH_MAX = 1;

/** What a worker does about deliveries. */
export interface PrefetchEvents {
  /** A job has arrived. */
  readonly onTask: (task: RawTask) => void;
  /** The server has called a job back. */
  readonly onRecall: (receipt: string) => void;
  /** Nothing that was not started is ours now: the connection has ended. */
  readonly onLost: () => void;
  /** There is a new connection. Returns how many jobs are worked on. */
  readonly onReady: () => number;
  /** There are no deliveries for now. */
  readonly onTrouble: (error: unknown) => void;
}

/** A connection of its own to which the jobs of one worker are pushed. */
export class Prefetch<T> {
  readonly #caller: Caller;
  readonly #lane: Lane<T>;
  readonly #link: Link;
  readonly #events: PrefetchEvents;
  readonly #ttrMs: number;
  readonly #concurrency: number;
  readonly #prefetch: number;
  readonly #timer: NodeJS.Timeout;
  readonly #underWay = new Set<Promise<unknown>>();
  #ageingMs: number | null = null;
  #isOpen = false;
  #isStopping = false;
  #turn = 0;

  /** Begins to connect. */
  constructor(
    lane: Lane<T>,
    { ttrMs, concurrency, prefetch }: { ttrMs: number; concurrency: number; prefetch: number },
    events: PrefetchEvents,
  ) {
    this.#caller = lane.caller;
    this.#lane = lane;
    this.#ttrMs = ttrMs;
    this.#concurrency = concurrency;
    this.#prefetch = prefetch;
    this.#events = events;
    this.#link = lane.caller.linkWith({
      onPush: (message) => this.#receive(message),
      onReady: () => void this.#open(),
      onEnd: () => this.#lose(),
    });
    // It is a sign of life too, and makes a lane that has ended meanwhile known again.
    const everyMs = Math.min(ttrMs / 3, this.#link.silenceMaxMs);
    this.#timer = setInterval(() => this.#isOpen && void this.#subscribe(), everyMs);
  }

  /** Whether what is sent here would leave at once. */
  get isOpen(): boolean {
    return this.#isOpen && this.#link.isReady;
  }

  /** Returns a number that is smaller for a job that the queue hands out sooner. */
  rankOf(task: RawTask): number {
    const priority = task.priority ?? 0;
    return this.#ageingMs === null ? priority : (task.putAt ?? 0) + priority * this.#ageingMs;
  }

  /** Grants so many further deliveries. */
  grant(credit: number): void {
    if (credit <= 0 || !this.isOpen || this.#isStopping) return;
    this.#send(commands.credit(credit)).catch(() => undefined);
  }

  /**
   * Begins with a job. There is no need to wait: what is sent in the same step leaves in one piece.
   * Refused with `STALE` if the job was called back.
   */
  async start(job: Job<T>): Promise<void> {
    const member = this.#lane.member ?? undefined;
    await this.#sendOrAsk(commands.start(job.queue, job.receipt, { member }));
  }

  /** Acknowledges a job. Refused with `STALE` if its lease has ended. */
  async acknowledge(job: Job<T>): Promise<void> {
    await this.#sendOrAsk(commands.ack(job.queue, [job.receipt]));
  }

  /** Has everything called back that was not started. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#timer);
    if (this.isOpen) await this.#send(commands.unsubscribe()).catch(() => undefined);
  }

  /** Ends the connection, after the replies that are under way. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#underWay);
    this.#caller.end(this.#link);
  }

  async #open(): Promise<void> {
    const turn = ++this.#turn;
    let prefetch = this.#prefetch;
    try {
      const { ranking, ageingMs } = await this.#lane.show();
      // Deliveries are charged when they are made.
      if (ranking === "fair") prefetch = Math.min(prefetch, FAIR_PREFETCH_MAX);
      this.#ageingMs = ranking === "ageing" ? ageingMs : null;
    } catch {
      this.#ageingMs = null;
    }
    if (turn !== this.#turn || !this.#link.isReady || this.#isStopping) return;
    this.#isOpen = true;
    const working = this.#events.onReady();
    void this.#subscribe();
    this.grant(this.#concurrency + prefetch - working);
  }

  async #subscribe(): Promise<void> {
    const words = commands.subscribe([this.#lane.name], {
      ttrMs: this.#ttrMs,
      recall: true,
      withMeta: true,
      member: this.#lane.member ?? undefined,
    });
    try {
      await this.#send(words);
    } catch (error) {
      if (this.#isStopping || error instanceof ConnectionLost) return;
      const isBack = isRefused(error, "NOTFOUND") && (await this.#hasJoinedAgain());
      if (!isBack) this.#events.onTrouble(error);
      else if (this.isOpen && !this.#isStopping) void this.#subscribe();
    }
  }

  async #hasJoinedAgain(): Promise<boolean> {
    try {
      return await this.#lane.comeBackAfterEnd();
    } catch {
      return false;
    }
  }

  #receive(message: Reply[]): void {
    const [word, first, , receipt] = message;
    if (textOf(word) === "recall") this.#events.onRecall(textOf(receipt));
    else if (first !== undefined && !this.#isStopping) this.#events.onTask(taskOf(first));
  }

  #lose(): void {
    this.#turn++;
    this.#isOpen = false;
    this.#events.onLost();
  }

  // Sends over this connection. If the reply is lost with it, another one tells what has happened.
  async #sendOrAsk(words: Words): Promise<void> {
    if (this.isOpen) {
      try {
        await this.#send(words);
        return;
      } catch (error) {
        const isUnknown = error instanceof ConnectionLost || isRefused(error, "UNKNOWN", "TRYAGAIN");
        if (!isUnknown) throw error;
      }
    }
    await this.#caller.ask(words);
  }

  #send(words: Words): Promise<Reply> {
    const silenceMs = this.#link.silenceMaxMs;
    const reply = this.#link.send(words.list, { leaveWithinMs: 1, silenceMs });
    const forget = (): void => void this.#underWay.delete(noted);
    const noted: Promise<unknown> = reply.catch(() => undefined).finally(forget);
    this.#underWay.add(noted);
    return reply;
  }
}
