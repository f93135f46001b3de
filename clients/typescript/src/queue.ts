// A queue: what can be put into it, and what concerns it as a whole.
import type { Caller } from "./caller.js";
import * as commands from "./commands.js";
import { Lane, type LaneSettings } from "./lane.js";
import type { Abortable, PutOptions, PutResult, Rest } from "./options.js";
import { bytesIfAny, listOf, numberOf, type Outcome, textOf, textOrNull } from "./replies.js";
import type { Reply } from "./resp.js";
import { type WithResult, withResult } from "./results.js";
import { OwnKeys } from "./putting.js";
import type { SettingsChange } from "./settings.js";
import { type Sending, sendTraced, tracerOfProgram } from "./tracing.js";
import type { Headers } from "./words.js";

/** What became of a put, and of its task if that was waited for. */
interface Sent {
  readonly put: PutResult;
  readonly outcome: Outcome | null;
  readonly result: Buffer | undefined;
}

/**
 * A queue with payloads of one type, and results of another. It costs nothing to have one; the
 * first put creates it.
 */
export class Queue<T, R = unknown> extends Lane<T, R> {
  readonly #keys: OwnKeys;

  /** @internal */
  constructor(caller: Caller, keys: OwnKeys, name: string, settings: LaneSettings<T, R>) {
    super(caller, name, null, settings);
    this.#keys = keys;
  }

  /**
   * Puts a task, and returns when the server has it on disk. It is sent again after a lost reply,
   * and makes one task all the same. Refused with `FULL`, `PAUSED`, `EXISTS`, `IDREQUIRED`, `BUSY`
   * and, for a duplicate with `onDuplicate: "replace"`, with `TAKEN`.
   */
  async put(payload: T, options: PutOptions = {}): Promise<PutResult> {
    return (await this.#put(payload, options, undefined)).put;
  }

  /** Puts many tasks without waiting for one reply before the next. Each may be refused alone. */
  putMany(payloads: Iterable<T>, options: Omit<PutOptions, "id"> = {}): Promise<PutResult[]> {
    const tracer = tracerOfProgram();
    if (!tracer) return Promise.all(Array.from(payloads, (payload) => this.put(payload, options)));
    const all = [...payloads];
    const sendAll = async (headers: Headers | undefined): Promise<PutResult[]> => {
      const given = { ...options, headers };
      const sent = await Promise.all(all.map((payload) => this.#send(payload, given, undefined)));
      return sent.map(({ put }) => put);
    };
    return sendTraced(tracer, this.#sending(all.length), options.headers, sendAll);
  }

  /**
   * Puts a task and waits until it has ended, for `waitMs` at most; Infinity is for ever. The
   * result is what has come of the work. The outcome is null if the put was repeated and the task
   * had ended by then. A delay is refused with `BADARG`.
   */
  async putAndAwait(
    payload: T,
    options: Omit<PutOptions, "delayMs" | "at"> & { waitMs: number },
  ): Promise<PutResult & { outcome: Outcome | null } & WithResult<R>> {
    const { put, outcome, result } = await this.#put(payload, options, options.waitMs);
    return withResult({ ...put, outcome }, result, this.resultCodec);
  }

  /**
   * Puts a task that is buried at once, for what comes from another system. It has no unique key,
   * so it is sent once.
   */
  async putBuried(
    payload: T,
    options: Rest<
      commands.PutOptions,
      "unique" | "windowMs" | "onDuplicate" | "state" | "result"
    > = {},
  ): Promise<string> {
    const send = async (headers: Headers | undefined): Promise<string> => {
      const given = { ...options, headers, state: "B" } as const;
      const words = commands.put(this.name, this.codec.encode(payload), given);
      return textOf(await this.change(words, options));
    };
    const tracer = tracerOfProgram();
    if (!tracer) return send(options.headers);
    return sendTraced(tracer, this.#sending(), options.headers, send, (id) => id);
  }

  /** Creates the queue, so that it exists while empty. Refused with `EXISTS` if it was created. */
  async create(settings: SettingsChange = {}, options: Abortable = {}): Promise<void> {
    const words = commands.queueCreate(this.name, settings);
    await this.change(words, options);
  }

  /**
   * Removes the queue with its tasks, settings and pause. Returns how many tasks it had. Refused
   * with `NOQUEUE` if it does not exist.
   */
  async drop(options: Abortable = {}): Promise<number> {
    return numberOf(await this.change(commands.queueDrop(this.name), options));
  }

  /** Goes through all that another server needs to go on with this queue, as lines of JSON. */
  async *exportRecords(options: Abortable = {}): AsyncGenerator<string, void, undefined> {
    for await (const record of this.pages(commands.exportCommand(this.name), options)) {
      yield textOf(record);
    }
  }

  /**
   * Takes over one record of an export. Returns the id of a task, and null for another record.
   * Refused with `EXISTS` where a task or schedule of it is there already.
   */
  async importRecord(record: string, options: Abortable = {}): Promise<string | null> {
    const reply = await this.change(commands.importCommand(this.name, record), options);
    return reply === "OK" ? null : textOf(reply);
  }

  #put(payload: T, options: PutOptions, waitMs: number | undefined): Promise<Sent> {
    const tracer = tracerOfProgram();
    if (!tracer) return this.#send(payload, options, waitMs);
    const send = (headers: Headers | undefined): Promise<Sent> =>
      this.#send(payload, { ...options, headers }, waitMs);
    return sendTraced(tracer, this.#sending(), options.headers, send, ({ put }) => put.id);
  }

  #sending(count?: number): Sending {
    return { what: "put", to: this.name, server: this.caller.server, count };
  }

  async #send(payload: T, options: PutOptions, waitMs: number | undefined): Promise<Sent> {
    const blocksMs = (options.roomMs ?? 0) + (waitMs ?? 0);
    const { unique, signal, ...rest } = options;
    // Only a key of the caller's meets duplicates.
    const own = { unique: this.#keys.next(), windowMs: this.#keys.windowMs(blocksMs) };
    const none = { unique: undefined, windowMs: undefined };
    const keys =
      typeof unique === "string"
        ? { unique }
        : { ...(unique === false ? none : own), onDuplicate: undefined };
    const given = { ...rest, ...keys, waitMs, result: waitMs !== undefined };
    const words = commands.put(this.name, this.codec.encode(payload), given);
    if (unique === false) {
      const reply = (await this.caller.call(words.list, { blocksMs, signal })).reply;
      const [id, ...end] = Array.isArray(reply) ? reply : [reply];
      return sent({ id: textOf(id), isNew: true, repeated: false }, end);
    }
    const sending = { isRepeatable: true, blocksMs, signal };
    const { reply, repeated } = await this.caller.call(words.list, sending);
    const [id, isNew, ...end] = listOf(reply);
    // No other put has the key that was made for this one.
    return sent({ id: textOf(id), isNew: unique === undefined || isNew === 1, repeated }, end);
  }
}

function sent(put: PutResult, [outcome, result]: Reply[]): Sent {
  return { put, outcome: textOrNull(outcome) as Outcome | null, result: bytesIfAny(result) };
}
