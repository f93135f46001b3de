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
/** The most jobs that one request starts or acknowledges. */
const TOGETHER_MAX = 100;
/** How long starts and acknowledgements are gathered while there is no hurry. */
const GATHER_MS = 1;
/** Credit is granted a few at a time: this part of the prefetch. */
const CREDIT_PARTS = 4;

/** A job whose start or end waits to be sent, and who waits for the reply. */
interface Waiting<T> {
  readonly job: Job<T>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A request that is sent with others. */
interface Gathered {
  readonly words: Words;
  /** Whether it makes sense on this connection only. */
  readonly isOfConnection: boolean;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

/** Refusals that do not tell what was done. */
const UNSURE = /^(UNKNOWN|TRYAGAIN) /;

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
  #soon: NodeJS.Immediate | undefined;
  #later: NodeJS.Timeout | undefined;
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
   * Begins with a job. There is no need to wait: what is asked within a moment leaves in one piece,
   * and a job that ends before that needs no start of its own. Refused with `STALE` if the job was
   * called back.
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
    this.forgetStart(job);
    return new Promise((resolve, reject) => {
      this.#ending.push({ job, resolve, reject });
      this.#gather();
    });
  }

  /** Does without the start of a job, because something else ends its lease. */
  forgetStart(job: Job<T>): void {
    this.#starting.get(job)?.resolve();
    this.#starting.delete(job);
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

  // Sends what was gathered, once in each turn of the event loop at most. While others wait in the
  // worker there is no hurry: the server calls those back first, and none of them lacks credit. Most
  // short jobs end meanwhile.
  #gather(): void {
    if (this.#soon !== undefined) return;
    const isFull = this.#ending.length >= TOGETHER_MAX || this.#starting.size >= TOGETHER_MAX;
    if (isFull || this.#isCreditDue || this.#events.isHungry() || this.#isStopping) {
      this.#soon = setImmediate(() => this.#flush());
    } else {
      this.#later ??= setTimeout(() => this.#flush(), GATHER_MS);
    }
  }

  get #isCreditDue(): boolean {
    const isDue = this.#free >= this.#lump || (this.#free > 0 && this.#events.isHungry());
    return isDue && this.isOpen && !this.#isStopping;
  }

  // Sends what was gathered, in few requests and one piece.
  #flush(): void {
    clearImmediate(this.#soon);
    clearTimeout(this.#later);
    this.#soon = this.#later = undefined;
    const requests: Gathered[] = [];
    const queue = this.#lane.name;
    for (const some of parts(this.#ending)) {
      requests.push(together(some, (receipts) => commands.ack(queue, receipts)));
    }
    this.#ending = [];
    if (this.#isCreditDue) {
      const words = commands.credit(this.#free);
      const ignore = (): void => undefined;
      requests.push({ words, isOfConnection: true, resolve: ignore, reject: ignore });
      this.#free = 0;
    }
    const member = this.#lane.member ?? undefined;
    for (const some of parts([...this.#starting.values()])) {
      requests.push(together(some, (receipts) => commands.start(queue, receipts, { member })));
    }
    this.#starting.clear();
    if (requests.length > 0) void this.#sendAll(requests);
  }

  // Sends requests over this connection. What it does not tell, another one is asked about.
  async #sendAll(requests: readonly Gathered[]): Promise<void> {
    let replies: Reply[] = [];
    if (this.isOpen) {
      const words = requests.map((request) => request.words.list);
      const all = this.#link.sendAll(words, this.#limits);
      replies = await this.#noted(all).catch(() => []);
    }
    for (const [at, request] of requests.entries()) {
      const reply = replies[at];
      if (reply === undefined || (reply instanceof ErrorReply && UNSURE.test(reply.message))) {
        if (request.isOfConnection) continue;
        this.#noted(this.#caller.ask(request.words)).then(request.resolve, request.reject);
      } else if (reply instanceof ErrorReply) {
        request.reject(new Refused(reply.message));
      } else {
        request.resolve(reply);
      }
    }
  }

  get #limits(): { leaveWithinMs: number; silenceMs: number } {
    return { leaveWithinMs: 1, silenceMs: this.#link.silenceMaxMs };
  }

  #send(words: Words): Promise<Reply> {
    return this.#noted(this.#link.send(words.list, this.#limits));
  }

  // Notes that a reply is under way.
  #noted<R>(reply: Promise<R>): Promise<R> {
    const forget = (): void => void this.#underWay.delete(reply);
    this.#underWay.add(reply);
    reply.then(forget, forget);
    return reply;
  }
}

// Cuts a list into as many parts as need a request each.
function parts<E>(all: readonly E[]): E[][] {
  const count = Math.ceil(all.length / TOGETHER_MAX);
  return Array.from({ length: count }, (_, at) =>
    all.slice(at * TOGETHER_MAX, (at + 1) * TOGETHER_MAX),
  );
}

// Returns one request about several jobs, each of which hears its own reply.
function together<T>(
  all: readonly Waiting<T>[],
  wordsOf: (receipts: readonly string[]) => Words,
): Gathered {
  const resolve = (reply: Reply): void => {
    const replies = all.length > 1 ? listOf(reply) : [];
    for (const [at, waiting] of all.entries()) {
      const each = replies[at];
      if (each instanceof ErrorReply) waiting.reject(new Refused(each.message));
      else waiting.resolve();
    }
  };
  const reject = (error: unknown): void => {
    for (const waiting of all) waiting.reject(error);
  };
  const words = wordsOf(all.map(({ job }) => job.receipt));
  return { words, isOfConnection: false, resolve, reject };
}
