// The client: where a program begins.
import { hostname } from "node:os";
import type { ConnectionOptions } from "node:tls";
import { placeOf } from "./addresses.js";
import { Batch } from "./batches.js";
import { Caller } from "./caller.js";
import { type Codec, json } from "./codec.js";
import * as commands from "./commands.js";
import { PinpriqError } from "./errors.js";
import { Topic } from "./fanout.js";
import { Job } from "./job.js";
import type { LaneSettings } from "./lane.js";
import type { LinkSettings } from "./link.js";
import type { Abortable, TakeOptions } from "./options.js";
import { OwnKeys } from "./putting.js";
import { Queue } from "./queue.js";
import { type Plain, plainOf, textOf } from "./replies.js";
import type { Reply } from "./resp.js";
import { Schedules } from "./schedules.js";
import { take } from "./taking.js";
import { callHook, logToStderr } from "./telling.js";
import { Transaction } from "./transaction.js";
import { type Word, Words } from "./words.js";

const RETRY_FOR_MS = 30_000;
const LONGEST_PAUSE_MS = 5_000;
const SILENCE_MAX_MS = 15_000;
const TTR_MS = 60_000;
const USUAL_URL = "pinpriq://127.0.0.1:7251";

/** How a client behaves. */
export interface ClientOptions {
  /**
   * The name of its connections, as `LEASES` and `CLIENT LIST` show it. By default that of the
   * machine and the number of the process.
   */
  readonly name?: string;
  /** The options of TLS for `pinpriqs://`, such as `ca`, `cert` and `key`. */
  readonly tls?: ConnectionOptions;
  /**
   * For how long a request is tried, in milliseconds: it waits for a connection, and is sent again
   * where that does no harm. 30,000 by default.
   */
  readonly retryForMs?: number;
  /** The longest pause between two tries to connect, in milliseconds. 5,000 by default. */
  readonly reconnectPauseMaxMs?: number;
  /**
   * How long the server may be silent while a request waits for its reply, beyond the time that it
   * blocks, in milliseconds. Then another connection is made. 15,000 by default.
   */
  readonly silenceMaxMs?: number;
  /** Called for each lost connection. The client connects again by itself. */
  readonly onConnectionError?: (error: Error) => void;
}

/** How a queue or a topic is used. */
export interface QueueOptions<T, R = unknown> {
  /** How payloads become bytes. JSON by default. */
  readonly codec?: Codec<T>;
  /** How results become bytes. As payloads by default. */
  readonly resultCodec?: Codec<R>;
  /**
   * How long a lease lasts where the take does not say, in milliseconds. 60,000 by default. Null
   * leaves it to the task, else to the queue, else the lease lasts as long as the connection.
   */
  readonly ttrMs?: number | null;
}

/**
 * A client of a pinpriq server. It connects when it is made, and connects again whenever the
 * connection is lost. Requests wait for the connection.
 */
export class Client implements AsyncDisposable {
  readonly #caller: Caller;
  readonly #keys: OwnKeys;

  /** The schedules of the server. */
  readonly schedules: Schedules;

  /**
   * Makes a client for a server, such as `pinpriq://127.0.0.1:7251`. `pinpriqs:` is encrypted, and
   * `redis:` and `rediss:` mean the same. A user and a password or token go before the host. With
   * several servers, such as the nodes of a cluster in `pinpriq://a:7251,b:7251`, it connects to
   * the first one that it reaches. Throws if the URL makes no sense.
   */
  constructor(url = USUAL_URL, options: ClientOptions = {}) {
    const retryForMs = options.retryForMs ?? RETRY_FOR_MS;
    const settings: LinkSettings = {
      place: placeOf(url),
      name: options.name ?? `${hostname()}-${process.pid}`,
      tls: options.tls,
      longestPauseMs: options.reconnectPauseMaxMs ?? LONGEST_PAUSE_MS,
      silenceMaxMs: options.silenceMaxMs ?? SILENCE_MAX_MS,
      onError: (error) => callHook(options.onConnectionError, error, logToStderr),
    };
    this.#caller = new Caller(settings, retryForMs);
    this.#keys = new OwnKeys(retryForMs);
    this.schedules = new Schedules(this.#caller);
  }

  /**
   * Makes a client and waits until it has spoken to the server. Throws `ConnectionLost` if it does
   * not within `retryForMs`, and `Refused` if the server does not let it in.
   */
  static async connect(url?: string, options: ClientOptions & Abortable = {}): Promise<Client> {
    const client = new Client(url, options);
    try {
      await client.ping(options);
      return client;
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  /**
   * Returns a queue. Its payloads are of type T, and the results of its tasks of type R, in JSON
   * unless a codec says otherwise.
   */
  queue<T, R = unknown>(name: string, options: QueueOptions<T, R> = {}): Queue<T, R> {
    return new Queue(this.#caller, this.#keys, name, laneSettings(options));
  }

  /** Returns a topic. */
  topic<T, R = unknown>(name: string, options: QueueOptions<T, R> = {}): Topic<T, R> {
    return new Topic(this.#caller, name, laneSettings(options));
  }

  /**
   * Takes up to `count` jobs from several queues, which are tried in this order. If they live in
   * several shards, the most urgent of what these would hand over first comes.
   */
  async takeFrom<T, R>(
    queues: readonly Queue<T, R>[],
    options: TakeOptions & { count?: number } = {},
  ): Promise<Job<T, R>[]> {
    const [first] = queues;
    if (first === undefined) throw new PinpriqError("takeFrom needs a queue");
    const place = { queues: queues.map(({ name }) => name), member: null };
    const ttrMs = options.ttrMs === undefined ? first.ttrMs : options.ttrMs;
    const tasks = await take(this.#caller, place, options.count ?? 1, { ...options, ttrMs });
    const byName = new Map(queues.map((queue) => [queue.name, queue]));
    return tasks.map((task) => new Job(byName.get(task.queue) ?? first, task));
  }

  /**
   * Carries out several commands at one moment, all or none. Returns their replies in order.
   * Refused with `EXECABORT`, where `position` tells the command and `cause` is its refusal. It is
   * sent once: `ConnectionLost` means that it is unknown whether it happened.
   */
  async transaction(collect: (transaction: Transaction) => unknown): Promise<Plain[]> {
    const transaction = new Transaction();
    const collected = collect(transaction);
    if (collected instanceof Promise) {
      throw new PinpriqError("a transaction collects its commands without waiting for anything");
    }
    return (await this.#caller.transact(transaction.commands)).map(plainOf);
  }

  /**
   * Returns a batch: tasks that are followed together. Without a name it gets a random one. On a
   * server with several shards, give a name with the part in braces of its queues, such as
   * `{films}-4711` for the queues `films` and `{films}-join`; others are refused with `CROSSSHARD`.
   */
  batch(name?: string): Batch {
    return new Batch(this.#caller, name);
  }

  /** Goes through the names of the batches, in order. */
  async *batchNames(
    options: Abortable & { prefix?: string } = {},
  ): AsyncGenerator<string, void, undefined> {
    const words = commands.batchList({ prefix: options.prefix });
    for await (const name of this.#caller.pages(words, options)) yield textOf(name);
  }

  /** Goes through the names of the queues, in order. */
  async *queueNames(
    options: Abortable & { prefix?: string } = {},
  ): AsyncGenerator<string, void, undefined> {
    const words = commands.queueList({ prefix: options.prefix });
    for await (const name of this.#caller.pages(words, options)) yield textOf(name);
  }

  /** Returns the figures of all queues and lanes together. */
  async stats(options: Abortable = {}): Promise<{ [name: string]: Plain }> {
    return plainOf(await this.#caller.ask(commands.stats(), options)) as { [name: string]: Plain };
  }

  /** Waits for a sign of the server. */
  async ping(options: Abortable = {}): Promise<void> {
    await this.#caller.ask(new Words("PING"), options);
  }

  /**
   * Sends any command, once, and returns its reply: bytes are Buffers, maps are objects. It must
   * not block, since other requests share the connection.
   */
  async command(words: readonly Word[], options: Abortable = {}): Promise<Reply> {
    return this.#caller.change(new Words(...words), options);
  }

  /** Ends all connections. What blocks throws `Closed`. Stop workers first. */
  close(): Promise<void> {
    return this.#caller.close();
  }

  /** Ends all connections, as `close()` does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function laneSettings<T, R>(options: QueueOptions<T, R>): LaneSettings<T, R> {
  const codec = options.codec ?? json<T>();
  return {
    codec,
    // Which types a codec knows, the program says.
    resultCodec: options.resultCodec ?? (codec as unknown as Codec<R>),
    ttrMs: options.ttrMs === undefined ? TTR_MS : options.ttrMs,
  };
}
