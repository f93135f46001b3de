// One connection to the server, which connects again by itself.
//
// It knows whether a request that got no reply had left, and it never sends a request twice.
import { once } from "node:events";
import type { ConnectionOptions } from "node:tls";
import {
  AbortError,
  ClientClosedError,
  createClient,
  ErrorReply,
  ReconnectStrategyError,
  RESP_TYPES,
  type TypeMapping,
} from "@redis/client";
import { Closed, ConnectionLost, Refused } from "./errors.js";
import { pauseBefore, TIMER_MS_MAX } from "./reconnecting.js";
import type { Word } from "./words.js";

/** A reply as it came: texts and payloads are bytes, status lines are strings. */
export type Reply =
  | null | number | string | Buffer | ErrorReply | Reply[] | { [key: string]: Reply };

/** What all connections of a client have in common. */
export interface LinkSettings {
  readonly url: string;
  readonly name: string | undefined;
  readonly tls: ConnectionOptions | undefined;
  readonly longestPauseMs: number;
  /** How long a connection may be silent while a request is under way that does not block. */
  readonly silenceMaxMs: number;
  readonly onError: (error: Error) => void;
}

const TYPES = { [RESP_TYPES.BLOB_STRING]: Buffer } as TypeMapping;
const LIVES_BY_RECONNECTING = /^(BUSY|CLOSING|CLUSTERDOWN|TRYAGAIN) /;

type Redis = ReturnType<typeof connection>;

function connection(settings: LinkSettings) {
  const isTls = new URL(settings.url).protocol === "rediss:";
  return createClient({
    url: settings.url,
    RESP: 3,
    maintNotifications: "disabled",
    clientInfoTag: "pinpriq",
    commandOptions: { timeout: 0 },
    ...(settings.name === undefined ? {} : { name: settings.name }),
    socket: {
      ...(isTls ? { tls: true as const, ...settings.tls } : {}),
      reconnectStrategy: (retries: number, cause: Error) =>
        // A wrong password stays wrong, so there is no use in trying again.
        cause instanceof ErrorReply && !LIVES_BY_RECONNECTING.test(cause.message)
          ? cause
          : pauseBefore(retries, settings.longestPauseMs),
    },
  });
}

/** A connection to the server. */
export class Link {
  readonly #settings: LinkSettings;
  #redis: Redis;
  #fatal: Error | undefined;
  #isClosed = false;
  #id: Promise<Reply> | undefined;
  #opening: Promise<void> = Promise.resolve();
  // When the server was last heard of.
  #heardAt = 0;

  constructor(settings: LinkSettings) {
    this.#settings = settings;
    this.#redis = this.#connect();
  }

  /** Whether a request would leave at once. */
  get isReady(): boolean {
    return this.#redis.isReady;
  }

  /**
   * Sends one request and returns its reply. Throws `Refused`, `ConnectionLost`, `Closed` or the
   * reason of the signal. A request that has not left within `leaveWithinMs` is withdrawn. If the
   * connection is silent for `silenceMs` meanwhile, another one is made.
   */
  async send(
    words: readonly Word[],
    limits: { leaveWithinMs: number; silenceMs: number; signal?: AbortSignal | undefined },
  ): Promise<Reply> {
    const { signal } = limits;
    signal?.throwIfAborted();
    this.#check();
    const redis = this.#redis;
    const withdrawal = new AbortController();
    const withdraw = (): void => withdrawal.abort();
    const leaving = setTimeout(withdraw, Math.min(limits.leaveWithinMs, TIMER_MS_MAX));
    const stopWatching = this.#watch(redis, limits.silenceMs);
    signal?.addEventListener("abort", withdraw, { once: true });
    try {
      const reply = redis.sendCommand(words.map(argument), {
        typeMapping: TYPES,
        abortSignal: withdrawal.signal,
      }) as Promise<unknown>;
      const came = (await (signal ? orAborted(reply, signal) : reply)) as Reply;
      this.#heardAt = performance.now();
      return came;
    } catch (error) {
      if (signal?.aborted && error === signal.reason) throw error;
      signal?.throwIfAborted();
      throw this.#explain(error, words);
    } finally {
      clearTimeout(leaving);
      stopWatching();
      signal?.removeEventListener("abort", withdraw);
    }
  }

  /** Sends a transaction and returns the replies of its commands, whose texts are strings. */
  async transact(commands: readonly (readonly Word[])[]): Promise<Reply[]> {
    this.#check();
    const multi = this.#redis.multi();
    for (const words of commands) multi.addCommand(words.map(argument));
    try {
      return (await multi.exec()) as unknown as Reply[];
    } catch (error) {
      throw this.#explain(error, ["EXEC"]);
    }
  }

  /** Returns the server's number of this connection, asked once for each connection. */
  connectionId(): Promise<Reply> {
    this.#id ??= this.send(["CLIENT", "ID"], { leaveWithinMs: 5_000, silenceMs: 5_000 });
    this.#id.catch(() => undefined);
    return this.#id;
  }

  /** Waits until the server has let the client in. Throws what `send` throws if it does not. */
  async opened(): Promise<void> {
    await this.#opening;
    this.#check();
  }

  /** Waits until the connection that is there now has ended. */
  async ended(signal: AbortSignal): Promise<void> {
    if (this.isReady) await once(this.#redis, "error", { signal });
  }

  /** Ends the connection at once. Whatever is under way gets no reply. */
  destroy(): void {
    this.#isClosed = true;
    this.#redis.destroy();
  }

  #connect(): Redis {
    const redis = connection(this.#settings);
    redis.on("error", (error: Error) => {
      if (!this.#isClosed) this.#settings.onError(error);
    });
    redis.on("connect", () => {
      // The library lets a connection through that was given up while it came about.
      if (this.#isClosed || redis !== this.#redis) redis.destroy();
    });
    redis.on("ready", () => (this.#heardAt = performance.now()));
    redis.on("reconnecting", () => (this.#id = undefined));
    redis.on("terminated", (error: Error) => {
      this.#fatal = error;
      // Requests that wait for the connection learn it by this.
      redis.destroy();
    });
    // What fails here is told by one of these events.
    this.#opening = redis.connect().then(
      () => undefined,
      () => undefined,
    );
    return redis;
  }

  // Gives up a connection that stays silent while a request is under way. While there is no
  // connection, the request has not left, and nothing is to be heard.
  #watch(redis: Redis, silenceMs: number): () => void {
    if (silenceMs > TIMER_MS_MAX) return () => undefined;
    const calledAt = performance.now();
    const check = (): void => {
      const silentMs = performance.now() - Math.max(calledAt, this.#heardAt);
      if (redis.isReady && silentMs >= silenceMs) this.#replace(redis);
      else timer = setTimeout(check, redis.isReady ? silenceMs - silentMs : silenceMs);
    };
    let timer = setTimeout(check, silenceMs);
    return () => clearTimeout(timer);
  }

  // Makes another connection, since the machine at the other end of this one may be gone.
  #replace(silent: Redis): void {
    if (silent !== this.#redis || this.#isClosed) return;
    this.#id = undefined;
    this.#redis = this.#connect();
    silent.destroy();
  }

  #check(): void {
    if (this.#isClosed) throw new Closed("the client is closed");
    if (this.#fatal) throw this.#refusalOfConnection(this.#fatal);
  }

  #refusalOfConnection(error: Error): Error {
    const cause = error instanceof ReconnectStrategyError ? error.originalError : error;
    const text = cause instanceof Error ? cause.message : String(cause);
    if (cause instanceof ErrorReply) return new Refused(text);
    return new ConnectionLost(`cannot connect: ${text}`, false, error);
  }

  #explain(error: unknown, words: readonly Word[]): Error {
    if (error instanceof ErrorReply) return refusal(error.message);
    if (this.#isClosed) return new Closed("the client was closed during the request");
    if (this.#fatal) return this.#refusalOfConnection(this.#fatal);
    const command = String(words[0]);
    if (error instanceof AbortError || error instanceof ClientClosedError) {
      const message = `${command} could not be sent: there is no connection`;
      return new ConnectionLost(message, false, error);
    }
    return new ConnectionLost(`the connection ended before the reply to ${command}`, true, error);
  }
}

/** Returns a refusal, with that of the step inside if it is one of a transaction. */
export function refusal(text: string, repeated = false): Refused {
  const step = /^EXECABORT (\d+) (.*)$/s.exec(text);
  if (!step) return new Refused(text, { repeated });
  const cause = new Refused(step[2] ?? "", { repeated });
  return new Refused(text, { repeated, position: Number(step[1]) - 1, cause });
}

function argument(word: Word): string | Buffer {
  if (typeof word === "string" || Buffer.isBuffer(word)) return word;
  return Buffer.from(word.buffer, word.byteOffset, word.byteLength);
}

// Settles as the reply does, or rejects once the signal is aborted.
function orAborted<R>(reply: Promise<R>, signal: AbortSignal): Promise<R> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    reply.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
