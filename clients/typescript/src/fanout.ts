// Fan-out: topics, and members that get everything published to a topic.
import type { Caller } from "./caller.js";
import * as commands from "./commands.js";
import type { Codec } from "./codec.js";
import { isRefused } from "./errors.js";
import { Lane, type LaneSettings } from "./lane.js";
import type { Abortable, Rest } from "./options.js";
import { TIMER_MS_MAX } from "./reconnecting.js";
import { numberOf, plainOf } from "./replies.js";
import { callHook, logToStderr } from "./telling.js";
import { sendTraced, tracerOfProgram } from "./tracing.js";
import type { Headers } from "./words.js";

const LEASE_MS = 60_000;

/** How a task is published. */
export type PublishOptions = Rest<commands.PublishOptions>;

/** What a topic tells of one member. Moments are Unix milliseconds. */
export interface MemberInfo {
  /** Its name. */
  readonly member: string;
  /** Another number for a member that returns under the same name. */
  readonly incarnation: number;
  /** When it ends without a sign of life. */
  readonly leaseUntil: number;
  /** How many tasks are ready in its lane. */
  readonly ready: number;
  /** How many tasks of its lane are taken. */
  readonly taken: number;
}

/** How a member lives. */
export interface JoinOptions extends Abortable {
  /** How long the member lives without a sign of life, in milliseconds. 60,000 by default. */
  readonly leaseMs?: number;
  /** Whether to send a sign of life at each third of the lease. True by default. */
  readonly heartbeat?: boolean;
  /** Is called when the member had ended and has joined again: it has missed tasks. */
  readonly onRejoined?: (incarnation: number) => void;
  /** Is called when a sign of life could not be sent. The next one is still sent. */
  readonly onTrouble?: (error: unknown) => void;
}

/** A topic: a name that members share. */
export class Topic<T, R = unknown> {
  readonly #caller: Caller;
  readonly #settings: LaneSettings<T, R>;
  /** The name. */
  readonly name: string;
  /** How payloads become bytes. */
  readonly codec: Codec<T>;

  /** @internal */
  constructor(caller: Caller, name: string, settings: LaneSettings<T, R>) {
    this.#caller = caller;
    this.name = name;
    this.codec = settings.codec;
    this.#settings = settings;
  }

  /**
   * Puts a task into the lane of each member, all or none. Returns how many lanes; 0 means that
   * no member has joined. It is sent once: if the reply is lost it throws `ConnectionLost`.
   */
  publish(payload: T, options: PublishOptions = {}): Promise<number> {
    const tracer = tracerOfProgram();
    if (!tracer) return this.#send(payload, options);
    const sending = { what: "publish", to: this.name, server: this.#caller.server } as const;
    const send = (headers: Headers | undefined): Promise<number> =>
      this.#send(payload, { ...options, headers });
    return sendTraced(tracer, sending, options.headers, send);
  }

  async #send(payload: T, options: PublishOptions): Promise<number> {
    const words = commands.publish(this.name, this.codec.encode(payload), options);
    return numberOf(await this.#caller.change(words, options));
  }

  /** Returns the members, in the order of their names. */
  async members(options: Abortable = {}): Promise<MemberInfo[]> {
    const reply = await this.#caller.ask(commands.members(this.name), options);
    return plainOf(reply) as unknown as MemberInfo[];
  }

  /**
   * Gives a member a lane in this topic. From then on it gets everything published. If it has the
   * lane already, it keeps it with its backlog. Refused with `BUSY` if there is no memory for it.
   */
  async join(member: string, options: JoinOptions = {}): Promise<Member<T, R>> {
    const joined = new Member(this.#caller, this.name, member, this.#settings, options);
    await joined.join(options);
    return joined;
  }
}

/**
 * The lane of a member in a topic. It is used like a queue. While it is open, it sends signs of
 * life at each third of its lease, and joins again if the member has ended.
 */
export class Member<T, R = unknown> extends Lane<T, R> implements AsyncDisposable {
  readonly #options: JoinOptions;
  readonly #leaseMs: number;
  #incarnation: number | undefined;
  #beats: NodeJS.Timeout | undefined;
  #isOpen = true;

  /** The name of the member. */
  override readonly member: string;

  /** @internal */
  constructor(
    caller: Caller,
    topic: string,
    member: string,
    settings: LaneSettings<T, R>,
    options: JoinOptions,
  ) {
    super(caller, topic, member, settings);
    this.member = member;
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
  }

  /** The number of this life of the member. */
  get incarnation(): number {
    return this.#incarnation ?? 0;
  }

  /** Joins again, which is harmless. Returns the incarnation. */
  async join(options: Abortable = {}): Promise<number> {
    const words = commands.join(this.name, this.member, { leaseMs: this.#leaseMs });
    const incarnation = numberOf(await this.caller.ask(words, options));
    const before = this.#incarnation;
    this.#incarnation = incarnation;
    if (before !== undefined && before !== incarnation) {
      callHook(this.#options.onRejoined, incarnation, logToStderr);
    }
    if (this.#isOpen && this.#options.heartbeat !== false) {
      const everyMs = Math.min(this.#leaseMs / 3, TIMER_MS_MAX);
      this.#beats ??= setInterval(() => void this.#beat(), everyMs);
    }
    return incarnation;
  }

  /** Sends a sign of life now. Refused with `NOTFOUND` if the member has ended: join again. */
  async beat(options: Abortable = {}): Promise<void> {
    const words = commands.beat(this.member, { leaseMs: this.#leaseMs });
    await this.caller.ask(words, { ...options, retryForMs: this.#leaseMs / 3 });
  }

  /** Ends the lane, whose content is lost. Returns false if there was none. */
  async leave(options: Abortable = {}): Promise<boolean> {
    this.close();
    return (await this.caller.ask(commands.leave(this.name, this.member), options)) === 1;
  }

  /** Ends the member with its lanes in all topics. Returns how many lanes it had. */
  async leaveAll(options: Abortable = {}): Promise<number> {
    this.close();
    return numberOf(await this.caller.ask(commands.leave(undefined, this.member), options));
  }

  /** Ends the signs of life. The lane stays with its content until the lease ends. */
  close(): void {
    this.#isOpen = false;
    clearInterval(this.#beats);
  }

  /** Ends the signs of life, as `close()` does. */
  [Symbol.asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }

  /** @internal */
  override async comeBackAfterEnd(): Promise<boolean> {
    if (!this.#isOpen) return false;
    await this.join();
    return true;
  }

  async #beat(): Promise<void> {
    try {
      await this.beat();
    } catch (error) {
      if (!this.#isOpen) return;
      const trouble = isRefused(error, "NOTFOUND") ? await this.#troubleWithJoining() : error;
      if (trouble !== undefined) callHook(this.#options.onTrouble, trouble, logToStderr);
    }
  }

  async #troubleWithJoining(): Promise<unknown> {
    try {
      await this.join();
      return undefined;
    } catch (error) {
      return error;
    }
  }
}
