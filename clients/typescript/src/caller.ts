// Sends requests, and sends them again where that does no harm.
//
// Requests that do not block share one connection. Each one that blocks has a connection of its
// own while it does, since everything behind it would wait.
import type { Address } from "./addresses.js";
import { Closed, ConnectionLost, isRefused, Refused } from "./errors.js";
import { Link, type LinkEvents, type LinkSettings } from "./link.js";
import { pause, pauseBefore } from "./reconnecting.js";
import { listOf, textOf } from "./replies.js";
import type { Reply } from "./resp.js";
import { type Word, Words } from "./words.js";

const IDLE_LINKS_MAX = 16;
const LONGEST_PAUSE_MS = 1_000;
const INTERRUPTION_MS = 1_000;

/** How a request is sent. */
export interface CallOptions {
  /** Whether sending it twice does no harm, so that it is sent again after a lost reply. */
  readonly isRepeatable?: boolean | undefined;
  /** How long it may block, in milliseconds. */
  readonly blocksMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * What to do with a reply that came although the signal was aborted. Without it the reply is
   * returned.
   */
  readonly onLateReply?: ((reply: Reply) => Promise<void>) | undefined;
  /** For how long to try, instead of the setting of the client. */
  readonly retryForMs?: number | undefined;
}

/** A reply, and whether the request had been sent before without one. */
export interface Answer {
  readonly reply: Reply;
  readonly repeated: boolean;
}

/** Sends the requests of one client. */
export class Caller {
  readonly #settings: LinkSettings;
  readonly #main: Link;
  readonly #idle: Link[] = [];
  readonly #busy = new Set<Link>();
  #isClosed = false;

  /** For how long a request is tried again, in milliseconds. */
  readonly retryForMs: number;
  /** The server, if there is only one. */
  readonly server: Address | undefined;

  constructor(settings: LinkSettings, retryForMs: number) {
    const { addresses } = settings.place;
    this.server = addresses.length === 1 ? addresses[0] : undefined;
    this.#settings = settings;
    this.retryForMs = retryForMs;
    this.#main = new Link(settings);
  }

  /** Sends a request until there is a reply, or it must not or need not be sent again. */
  async call(words: readonly Word[], options: CallOptions = {}): Promise<Answer> {
    const blocksMs = options.blocksMs ?? 0;
    const retryForMs = options.retryForMs ?? this.retryForMs;
    const tryUntil = performance.now() + retryForMs + (Number.isFinite(blocksMs) ? blocksMs : 0);
    let repeated = false;
    for (let tries = 0; ; tries++) {
      const limits = {
        leaveWithinMs: Math.max(tryUntil - performance.now(), 1),
        silenceMs: blocksMs + this.#settings.silenceMaxMs,
      };
      try {
        const reply =
          blocksMs > 0
            ? await this.#sendAndBlock(words, limits, options)
            : await this.#main.send(words, { ...limits, signal: options.signal });
        return { reply, repeated };
      } catch (error) {
        const pauseMs = pauseBefore(tries, LONGEST_PAUSE_MS);
        const isInTime = performance.now() + pauseMs < tryUntil;
        if (!isInTime || !isWorthRepeating(error, options.isRepeatable ?? false)) {
          throw repeated ? markRepeated(error) : error;
        }
        repeated ||= isRefused(error, "UNKNOWN");
        repeated ||= error instanceof ConnectionLost && error.mayHaveHappened;
        await pause(pauseMs, options.signal);
      }
    }
  }

  /** Sends what may be sent twice without harm. */
  async ask(words: Words, options: Pick<CallOptions, "signal" | "blocksMs" | "retryForMs"> = {}) {
    const { signal, blocksMs, retryForMs } = options;
    const sending = { isRepeatable: true, signal, blocksMs, retryForMs };
    return (await this.call(words.list, sending)).reply;
  }

  /** Sends what must not be sent twice. */
  async change(words: Words, { signal }: Pick<CallOptions, "signal"> = {}) {
    return (await this.call(words.list, { signal })).reply;
  }

  /** Goes through the elements of all pages. */
  async *pages(words: Words, options: Pick<CallOptions, "signal">) {
    for (let cursor = "0"; ; ) {
      const page = new Words(...words.list).add("CURSOR", cursor);
      const reply = listOf(await this.ask(page, options));
      yield* listOf(reply[1]);
      cursor = textOf(reply[0]);
      if (cursor === "0") return;
    }
  }

  /** Makes a connection of its own, which hears what the server says by itself. */
  linkWith(events: LinkEvents): Link {
    const link = new Link(this.#settings, events);
    this.#busy.add(link);
    return link;
  }

  /** Ends such a connection. */
  end(link: Link): void {
    this.#giveBack(link, true);
  }

  /** Sends a transaction once. */
  transact(commands: readonly (readonly Word[])[]): Promise<Reply[]> {
    const silenceMs = this.#settings.silenceMaxMs;
    return this.#main.transact(commands, { leaveWithinMs: this.retryForMs, silenceMs });
  }

  /** Ends all connections, after the replies to requests that do not block. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const link of [...this.#idle, ...this.#busy]) link.destroy();
    if (this.#main.isReady) {
      const limits = { leaveWithinMs: INTERRUPTION_MS, silenceMs: INTERRUPTION_MS };
      await this.#main.send(["PING"], limits).catch(() => undefined);
    }
    this.#main.destroy();
  }

  async #sendAndBlock(
    words: readonly Word[],
    limits: { leaveWithinMs: number; silenceMs: number },
    { signal, onLateReply }: CallOptions,
  ): Promise<Reply> {
    signal?.throwIfAborted();
    if (this.#isClosed) throw new Closed("the client is closed");
    const link = this.#idle.pop() ?? new Link(this.#settings);
    this.#busy.add(link);
    const reply = link.send(words, limits);
    // The server ends the wait as soon as this side of the connection ends, so that a task under
    // way still arrives. Another connection could not ask for that: behind a load balancer it may
    // be one to another node, where the number of this one is that of another client.
    const interrupt = (): void => link.endInput(INTERRUPTION_MS);
    signal?.addEventListener("abort", interrupt, { once: true });
    try {
      const came = await reply;
      if (signal?.aborted && onLateReply) {
        await onLateReply(came);
        signal.throwIfAborted();
      }
      this.#giveBack(link, signal?.aborted ?? false);
      return came;
    } catch (error) {
      this.#giveBack(link, signal?.aborted === true || !isRefused(error));
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", interrupt);
    }
  }

  #giveBack(link: Link, isSpoilt: boolean): void {
    this.#busy.delete(link);
    if (isSpoilt || this.#isClosed || this.#idle.length >= IDLE_LINKS_MAX) link.destroy();
    else this.#idle.push(link);
  }
}

function isWorthRepeating(error: unknown, isRepeatable: boolean): boolean {
  if (error instanceof ConnectionLost) return isRepeatable || !error.mayHaveHappened;
  if (isRefused(error, "UNKNOWN")) return isRepeatable;
  return isRefused(error, "TRYAGAIN", "CLUSTERDOWN");
}

function markRepeated(error: unknown): unknown {
  if (error instanceof ConnectionLost) return new ConnectionLost(error.message, true, error.cause);
  if (!(error instanceof Refused)) return error;
  return new Refused(error.message, { repeated: true });
}
