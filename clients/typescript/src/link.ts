// A way to the server, which connects again by itself.
//
// It knows whether a request that got no reply had left, and it never sends a request twice.
import { Connection, type ConnectionSettings, type Order, orderOf } from "./connection.js";
import { Closed, ConnectionLost, Refused } from "./errors.js";
import { pauseBefore, TIMER_MS_MAX } from "./reconnecting.js";
import { ErrorReply, type Reply } from "./resp.js";
import type { Word } from "./words.js";

/** What all connections of a client have in common. */
export interface LinkSettings extends ConnectionSettings {
  readonly longestPauseMs: number;
  /** How long a connection may be silent while a request is under way that does not block. */
  readonly silenceMaxMs: number;
  readonly onError: (error: Error) => void;
}

/** What a request must not take longer than. */
export interface SendLimits {
  /** How long it may wait for a connection before it is withdrawn. */
  readonly leaveWithinMs: number;
  /** How long the connection may be silent while it is under way. Then another one is made. */
  readonly silenceMs: number;
  /** Whether it leaves before the program's step ends, not with what else the step sends. */
  readonly atOnce?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** What a link tells by itself. */
export interface LinkEvents {
  /** What the server says by itself. */
  readonly onPush: (message: Reply[]) => void;
  /** There is a new connection. */
  readonly onReady: () => void;
  /** The connection has ended. */
  readonly onEnd: () => void;
}

const LIVES_BY_RECONNECTING = /^(BUSY|CLOSING|CLUSTERDOWN|TRYAGAIN) /;

/** A way to the server. */
export class Link {
  readonly #settings: LinkSettings;
  readonly #events: LinkEvents | undefined;
  // What waits for the connection.
  readonly #waiting = new Set<Order>();
  #connection: Connection;
  #fatal: Error | undefined;
  #lastError: Error | undefined;
  #isClosed = false;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #turn = 0;

  constructor(settings: LinkSettings, events?: LinkEvents) {
    this.#settings = settings;
    this.#events = events;
    this.#connection = this.#connect();
  }

  /** How long it may be silent while a request is under way, in milliseconds. */
  get silenceMaxMs(): number {
    return this.#settings.silenceMaxMs;
  }

  /** Whether a request would leave at once. */
  get isReady(): boolean {
    return this.#connection.isReady;
  }

  /**
   * Sends one request and returns its reply. Throws `Refused`, `ConnectionLost`, `Closed` or the
   * reason of the signal.
   */
  async send(words: readonly Word[], limits: SendLimits): Promise<Reply> {
    const [reply] = await this.#ask([words], String(words[0]), limits);
    if (reply instanceof ErrorReply) throw refusal(reply.message);
    return reply ?? null;
  }

  /** Sends several requests in one piece and returns their replies, which may be refusals. */
  sendAll(requests: readonly (readonly Word[])[], limits: SendLimits): Promise<Reply[]> {
    return this.#ask(requests, String(requests[0]?.[0]), limits);
  }

  /** Sends a transaction and returns the replies of its commands. */
  async transact(commands: readonly (readonly Word[])[], limits: SendLimits): Promise<Reply[]> {
    const all = [["MULTI"], ...commands, ["EXEC"]];
    const replies = await this.#ask(all, "EXEC", limits);
    // What was wrong with a command says more than that there was something.
    for (const reply of replies) if (reply instanceof ErrorReply) throw refusal(reply.message);
    return replies.at(-1) as Reply[];
  }

  /**
   * Ends this side of the connection, so that the server ends what blocks and a reply under way
   * still arrives. If the server has not closed in time, it is closed here.
   */
  endInput(withinMs: number): void {
    if (!this.isReady) return this.destroy();
    this.#isClosed = true;
    this.#connection.endInput();
    this.#timer = setTimeout(() => this.destroy(), withinMs);
  }

  /** Ends the connection at once. Whatever is under way gets no reply. */
  destroy(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const closed = new Closed("the client was closed during the request");
    this.#connection.destroy(closed);
    this.#loseWaiting(closed);
  }

  #connect(): Connection {
    const { addresses } = this.#settings.place;
    const address = addresses[this.#turn % addresses.length] ?? addresses[0];
    const connection = new Connection(this.#settings, address, {
      onReady: () => {
        this.#failures = 0;
        this.#lastError = undefined;
        for (const order of this.#waiting) connection.send(order);
        this.#waiting.clear();
        this.#events?.onReady();
      },
      onEnd: (cause) => {
        this.#events?.onEnd();
        this.#note(cause);
      },
      onPush: this.#events?.onPush,
    });
    return connection;
  }

  // A connection has ended: connects again, to the next address.
  #note(cause: Error): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    this.#lastError = cause;
    if (cause instanceof ErrorReply && !LIVES_BY_RECONNECTING.test(cause.message)) {
      // A wrong password stays wrong, so there is no use in trying again.
      this.#fatal = cause;
      this.#loseWaiting(new Refused(cause.message));
    } else {
      this.#turn++;
      this.#failures++;
      const { longestPauseMs, place } = this.#settings;
      const rounds = this.#failures / place.addresses.length;
      const pauseMs = Number.isInteger(rounds) ? pauseBefore(rounds - 1, longestPauseMs) : 0;
      this.#timer = setTimeout(() => (this.#connection = this.#connect()), pauseMs);
    }
    this.#settings.onError(cause);
  }

  #loseWaiting(error: Error): void {
    for (const order of this.#waiting) order.lose(error);
    this.#waiting.clear();
  }

  async #ask(
    requests: readonly (readonly Word[])[],
    command: string,
    limits: SendLimits,
  ): Promise<Reply[]> {
    const { signal } = limits;
    signal?.throwIfAborted();
    if (this.#isClosed) throw new Closed("the client is closed");
    if (this.#fatal) throw new Refused(this.#fatal.message);
    let clean = (): void => undefined;
    try {
      return await new Promise<Reply[]>((resolve, reject) => {
        const lose = (cause: Error): void => reject(lost(command, cause));
        const order = orderOf(requests, resolve, lose);
        const withdraw = (error: Error): void => {
          this.#waiting.delete(order);
          reject(error);
        };
        const onAbort = (): void => withdraw(signal?.reason as Error);
        signal?.addEventListener("abort", onAbort, { once: true });
        let leaving: NodeJS.Timeout | undefined;
        if (this.isReady) {
          this.#connection.send(order, limits.atOnce);
        } else {
          this.#waiting.add(order);
          const giveUp = (): void => {
            if (this.#waiting.has(order)) withdraw(this.#notSent(command));
          };
          leaving = setTimeout(giveUp, Math.min(limits.leaveWithinMs, TIMER_MS_MAX));
        }
        const stopWatching = this.#watch(order, limits.silenceMs);
        clean = () => {
          clearTimeout(leaving);
          stopWatching();
          signal?.removeEventListener("abort", onAbort);
        };
      });
    } finally {
      clean();
    }
  }

  // Gives up a connection that stays silent while a request is under way, since the machine at its
  // other end may be gone. While a request has not left, nothing is to be heard.
  #watch(order: Order, silenceMs: number): () => void {
    if (silenceMs > TIMER_MS_MAX) return () => undefined;
    let since = performance.now();
    const check = (): void => {
      const connection = this.#connection;
      if (this.#waiting.has(order)) since = performance.now();
      const silentMs = performance.now() - Math.max(since, connection.heardAt);
      if (silentMs >= silenceMs) {
        connection.destroy(new ConnectionLost("the server has fallen silent", true));
      } else {
        timer = setTimeout(check, silenceMs - silentMs);
      }
    };
    let timer = setTimeout(check, silenceMs);
    return () => clearTimeout(timer);
  }

  #notSent(command: string): Error {
    const why = this.#lastError ? `: ${this.#lastError.message}` : "";
    const message = `${command} could not be sent: there is no connection${why}`;
    return new ConnectionLost(message, false, this.#lastError);
  }
}

// The error of a request that had left, or can no longer leave.
function lost(command: string, cause: Error): Error {
  if (cause instanceof Closed || cause instanceof Refused) return cause;
  const message = `the connection ended before the reply to ${command}: ${cause.message}`;
  return new ConnectionLost(message, true, cause);
}

/** Returns a refusal, with that of the step inside if it is one of a transaction. */
export function refusal(text: string, repeated = false): Refused {
  const step = /^EXECABORT (\d+) (.*)$/s.exec(text);
  if (!step) return new Refused(text, { repeated });
  const cause = new Refused(step[2] ?? "", { repeated });
  return new Refused(text, { repeated, position: Number(step[1]) - 1, cause });
}
