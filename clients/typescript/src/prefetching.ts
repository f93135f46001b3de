// Takes jobs ahead for a worker. The server pushes them, and calls back what was not started.
import type { Caller } from "./caller.js";
import * as commands from "./commands.js";
import { ConnectionLost, isRefused, Refused } from "./errors.js";
import type { Job } from "./job.js";
import type { Lane } from "./lane.js";
import type { Link } from "./link.js";
import { ErrorReply, type Reply } from "./resp.js";
import { listOf, type RawTask, taskOf, textOf } from "./replies.js";
import type { Words } from "./words.js";

/** The most jobs that are taken ahead of a fair queue, which charges a share for each. */
const FAIR_PREFETCH_MAX = 1;
/** The most jobs that one request acknowledges. */
const ACK_MAX = 100;
/** Credit is granted a few at a time: this part of the prefetch. */
const CREDIT_PARTS = 4;

/** A job whose start or end waits to be sent, and who waits for the reply. */
interface Waiting<T> {
  readonly job: Job<T>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** What a worker does about deliveries. */
export interface PrefetchEvents {
  /** A job has arrived. */
  readonly onTask: (task: RawTask) => void;
  /** The server has called a job back. */
  readonly onRecall: (receipt: string) => void;
  /** Nothing that was not started is ours now: the connection has ended. */
  readonly onLost: () => void;
  /** Whether nothing waits that has arrived. */
  readonly isHungry: () => boolean;
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
  readonly #starting = new Map<Job<T>, Waiting<T>>();
  #ending: Waiting<T>[] = [];
  #isGathering = false;
  // Places that are free and for which no credit was granted.
  #free = 0;
  #lump = 1;
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

  /** Notes that so many further jobs may be delivered. */
  grant(places: number): void {
    this.#free += places;
    this.#gather();
  }

  /**
   * Begins with a job. There is no need to wait: what is asked in the same step of the program
   * leaves in one piece. Refused with `STALE` if the job was called back.
   */
  start(job: Job<T>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#starting.set(job, { job, resolve, reject });
      this.#gather();
    });
  }

  /** Acknowledges a job. Refused with `STALE` if its lease has ended. */
  acknowledge(job: Job<T>): Promise<void> {
    // The acknowledgement starts a job too.
    this.#starting.get(job)?.resolve();
    this.#starting.delete(job);
    return new Promise((resolve, reject) => {
      this.#ending.push({ job, resolve, reject });
      this.#gather();
    });
  }

  /** Has everything called back that was not started. */
  async stop(): Promise<void> {
    // What has begun must not be called back.
    this.#flush();
    this.#isStopping = true;
    clearInterval(this.#timer);
    if (this.isOpen) await this.#send(commands.unsubscribe()).catch(() => undefined);
  }

  /** Ends the connection, after the replies that are under way. */
  async close(): Promise<void> {
    this.#flush();
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
    this.#lump = Math.max(1, Math.floor(prefetch / CREDIT_PARTS));
    this.#free = 0;
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

  #gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    process.nextTick(() => {
      this.#isGathering = false;
      this.#flush();
    });
  }

  // Sends what was gathered, as few requests.
  #flush(): void {
    const ending = this.#ending;
    this.#ending = [];
    for (let at = 0; at < ending.length; at += ACK_MAX) {
      void this.#acknowledge(ending.slice(at, at + ACK_MAX));
    }
    const isDue = this.#free >= this.#lump || (this.#free > 0 && this.#events.isHungry());
    if (isDue && this.isOpen && !this.#isStopping) {
      this.#send(commands.credit(this.#free)).catch(() => undefined);
      this.#free = 0;
    }
    for (const { job, resolve, reject } of this.#starting.values()) {
      const member = this.#lane.member ?? undefined;
      const words = commands.start(job.queue, job.receipt, { member });
      this.#sendOrAsk(words).then(resolve, reject);
    }
    this.#starting.clear();
  }

  async #acknowledge(ending: Waiting<T>[]): Promise<void> {
    const receipts = ending.map(({ job }) => job.receipt);
    try {
      const reply = await this.#sendOrAsk(commands.ack(this.#lane.name, receipts));
      const replies = ending.length > 1 ? listOf(reply) : [];
      for (const [at, { resolve, reject }] of ending.entries()) {
        const each = replies[at];
        if (each instanceof ErrorReply) reject(new Refused(each.message));
        else resolve();
      }
    } catch (error) {
      for (const { reject } of ending) reject(error);
    }
  }

  // Sends over this connection. If the reply is lost with it, another one tells what has happened.
  async #sendOrAsk(words: Words): Promise<Reply> {
    if (this.isOpen) {
      try {
        return await this.#send(words);
      } catch (error) {
        const isLost = error instanceof ConnectionLost;
        if (!isLost && !isRefused(error, "UNKNOWN", "TRYAGAIN")) throw error;
      }
    }
    return this.#caller.ask(words);
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
