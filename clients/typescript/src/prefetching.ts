// Takes jobs ahead for a worker. The server pushes them, and calls back what was not started.
import type { Caller } from "./caller.js";
import * as commands from "./commands.js";
import { ConnectionLost, isRefused, Refused } from "./errors.js";
import type { Lane } from "./lane.js";
import type { Held } from "./leases.js";
import type { Link } from "./link.js";
import { ErrorReply, type Reply } from "./resp.js";
import { listOf, type RawTask, taskOf, textOf } from "./replies.js";
import { Words } from "./words.js";

/** The most jobs that are taken ahead of a fair queue, which charges a share for each. */
const FAIR_PREFETCH_MAX = 1;
/** The most jobs that one request starts or acknowledges. */
const TOGETHER_MAX = 100;
/** How long starts and acknowledgements wait for others while there is no hurry. */
const GATHER_MS = 1;
/** So many free places are worth a write of their own. */
const MANY = 16;
/** Credit is granted a few at a time: this part of the prefetch. */
const CREDIT_PARTS = 2;

/** A request that is sent with others. */
interface Gathered {
  readonly words: Words;
  /** Whether it makes sense on this connection only. */
  readonly isOfConnection: boolean;
  readonly onReply: (reply: Reply) => void;
  readonly onError: (error: unknown) => void;
}

/** Refusals that do not tell what was done. */
const UNSURE = /^(UNKNOWN|TRYAGAIN) /;

/** What a worker does about deliveries. */
export interface PrefetchEvents<T> {
  /** A job has arrived. */
  readonly onTask: (task: RawTask) => void;
  /** The server has called a job back. */
  readonly onRecall: (receipt: string) => void;
  /** A job that was delivered is cancelled. */
  readonly onCancel: (receipt: string, reason: string) => void;
  /** A job was not started. `STALE` means that it was called back. */
  readonly onNotStarted: (held: Held<T>, error: unknown) => void;
  /** A job was acknowledged, or was not, for this reason. What it still does is waited for. */
  readonly onAcknowledged: (held: Held<T>, error: unknown) => Promise<void> | void;
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
  readonly #events: PrefetchEvents<T>;
  readonly #ttrMs: number;
  readonly #concurrency: number;
  readonly #prefetch: number;
  readonly #timer: NodeJS.Timeout;
  readonly #underWay = new Set<Promise<unknown>>();
  // What has begun and was not started, and what is to be acknowledged, the oldest first.
  readonly #starting = new Set<Held<T>>();
  readonly #ending: Held<T>[] = [];
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
    events: PrefetchEvents<T>,
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

  /** Starts a job that has begun, soon. One that ends before that needs no start of its own. */
  start(held: Held<T>): void {
    this.#starting.add(held);
    this.#gather();
  }

  /** Acknowledges a job, soon. */
  acknowledge(held: Held<T>): void {
    // The acknowledgement starts a job too.
    this.forgetStart(held);
    this.#ending.push(held);
    this.#gather();
  }

  /** Does without the start of a job, because something else ends its lease. */
  forgetStart(held: Held<T>): void {
    this.#starting.delete(held);
  }

  /** Has everything called back that was not started. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    // What has begun must not be called back.
    this.#flush();
    clearInterval(this.#timer);
    if (this.isOpen) await this.#send(commands.unsubscribe()).catch(() => undefined);
  }

  /** Waits for the replies that are under way. */
  async settle(): Promise<void> {
    this.#flush();
    // What was refused may be sent once more.
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
  }

  /** Ends the connection, after the replies that are under way. */
  async close(): Promise<void> {
    await this.settle();
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
    // Without it, or with a server that cannot tell, renewals are refused.
    void this.#send(new Words("CLIENT", "CANCELS", "ON")).catch(() => undefined);
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
    const [word, first, , receipt, reason] = message;
    const what = textOf(word);
    if (what === "recall") this.#events.onRecall(textOf(receipt));
    else if (what === "cancel") this.#events.onCancel(textOf(receipt), textOf(reason));
    else if (first !== undefined && !this.#isStopping) this.#events.onTask(taskOf(first));
  }

  #lose(): void {
    this.#turn++;
    this.#isOpen = false;
    this.#events.onLost();
  }

  // Sends what was gathered, once in each turn of the event loop at most, or later if there is no
  // hurry.
  #gather(): void {
    const areMany = this.#free >= MANY && this.#free >= this.#lump;
    if (this.#ending.length >= TOGETHER_MAX || (areMany && this.#isCreditDue)) {
      // Others may go on to end in this step of the program. The server delivers more meanwhile.
      this.#flush();
    } else if (this.#isCreditDue || this.#isStartDue) {
      this.#soon ??= setImmediate(() => this.#flush());
    } else {
      this.#later ??= setTimeout(() => this.#flush(), GATHER_MS);
    }
  }

  // Whether the next that is called back would be what has begun. While others wait in the worker,
  // the server calls those back first.
  get #isStartDue(): boolean {
    return this.#isStopping || this.#events.isHungry();
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
    const tellEnd = (held: Held<T>, error: unknown): void => {
      const more = this.#events.onAcknowledged(held, error);
      if (more) void this.#noted(more);
    };
    const plain: Held<T>[] = [];
    for (const held of this.#ending.splice(0)) {
      const { receipt, resultBytes } = held.job;
      if (resultBytes === undefined) {
        plain.push(held);
      } else {
        const words = commands.ack(queue, receipt).option("RESULT", resultBytes);
        requests.push(together(words, [held], tellEnd));
      }
    }
    for (const some of parts(plain)) {
      const words = commands.ack(queue, receiptsOf(some));
      requests.push(together(words, some, tellEnd));
    }
    if (this.#isCreditDue) {
      const words = commands.credit(this.#free);
      const ignore = (): void => undefined;
      requests.push({ words, isOfConnection: true, onReply: ignore, onError: ignore });
      this.#free = 0;
    }
    const member = this.#lane.member ?? undefined;
    for (const some of parts(this.#dueToStart())) {
      const words = commands.start(queue, receiptsOf(some), { member });
      const tell = (held: Held<T>, error: unknown): void => {
        if (error !== undefined) this.#events.onNotStarted(held, error);
      };
      requests.push(together(words, some, tell));
    }
    if (requests.length > 0) void this.#noted(this.#sendAll(requests));
    if (this.#starting.size > 0) this.#gather();
  }

  // Removes and returns what is to be started by now. Most short jobs end before they are.
  #dueToStart(): Held<T>[] {
    const [oldest] = this.#starting;
    const now = performance.now();
    if (!oldest || (!this.#isStartDue && now - oldest.renewedAt < GATHER_MS)) return [];
    const due: Held<T>[] = [];
    for (const held of this.#starting) {
      // What began just after it goes with it.
      if (!this.#isStartDue && now - held.renewedAt < GATHER_MS / 2) break;
      due.push(held);
      this.#starting.delete(held);
    }
    return due;
  }

  // Sends requests over this connection. What it does not tell, another one is asked about.
  async #sendAll(requests: readonly Gathered[]): Promise<void> {
    let replies: Reply[] = [];
    if (this.isOpen) {
      const words = requests.map((request) => request.words.list);
      const limits = { ...this.#limits, atOnce: true };
      replies = await this.#link.sendAll(words, limits).catch(() => []);
    }
    const asked: Promise<void>[] = [];
    for (const [at, request] of requests.entries()) {
      const reply = replies[at];
      if (reply === undefined || (reply instanceof ErrorReply && UNSURE.test(reply.message))) {
        if (request.isOfConnection) continue;
        asked.push(this.#caller.ask(request.words).then(request.onReply, request.onError));
      } else if (reply instanceof ErrorReply) {
        request.onError(new Refused(reply.message));
      } else {
        request.onReply(reply);
      }
    }
    await Promise.all(asked);
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

// Returns one request about several jobs, and tells of each what the reply to it was.
function together<T>(
  words: Words,
  all: readonly Held<T>[],
  tell: (held: Held<T>, error: unknown) => void,
): Gathered {
  const onReply = (reply: Reply): void => {
    const replies = all.length > 1 ? listOf(reply) : [];
    for (const [at, held] of all.entries()) {
      const each = replies[at];
      tell(held, each instanceof ErrorReply ? new Refused(each.message) : undefined);
    }
  };
  const onError = (error: unknown): void => {
    for (const held of all) tell(held, error);
  };
  return { words, isOfConnection: false, onReply, onError };
}

function receiptsOf<T>(all: readonly Held<T>[]): string[] {
  return all.map(({ job }) => job.receipt);
}
