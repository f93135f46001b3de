// Batches: tasks that are followed together, and what is done when none of them is left.
import { randomUUID } from "node:crypto";
import type { Caller } from "./caller.js";
import * as commands from "./commands.js";
import { isRefused } from "./errors.js";
import { reasonOf } from "./failing.js";
import type { Abortable, PutOptions, PutResult, Rest } from "./options.js";
import type { Queue } from "./queue.js";
import { listOf, numberOf, plainOf, textOf } from "./replies.js";
import { escaped, logToStderr } from "./telling.js";

/** How a batch is opened. */
export type BatchOpenOptions = Rest<commands.BatchOpenOptions>;

/** How far a batch is. Moments are Unix milliseconds. */
export interface BatchInfo {
  readonly name: string;
  /** A closed one has all its tasks. It is done once none of them is pending. */
  readonly state: "open" | "closed" | "done";
  /** How many tasks have been in it. */
  readonly total: number;
  /** How many of them have not ended. */
  readonly pending: number;
  /** How many of those are buried. */
  readonly buried: number;
  /** How many were acknowledged. */
  readonly acked: number;
  /** How many have ended otherwise. */
  readonly failed: number;
  /** How many tasks wait for it. */
  readonly waiting: number;
  readonly openedAt: number;
  readonly doneAt: number | null;
}

/**
 * A batch of tasks. It is done as soon as it is closed and none of its tasks is left. Then the
 * tasks that wait for it can be taken, such as those of `putAfter`. It costs nothing to have one.
 */
export class Batch {
  readonly #caller: Caller;
  /** Whether nobody else has its name, so that it is safe to open it again. */
  readonly #isOwn: boolean;
  /** Its name. */
  readonly name: string;

  /** @internal */
  constructor(caller: Caller, name: string | undefined) {
    this.#caller = caller;
    this.#isOwn = name === undefined;
    this.name = name ?? randomUUID();
  }

  /**
   * Opens this batch, has a function put its tasks, and closes it. If the function throws, the
   * tasks are cancelled instead, which needs the right `manage`. Returns what the function returns.
   */
  async fill<V>(
    put: (batch: Batch) => Promise<V> | V,
    options: BatchOpenOptions = {},
  ): Promise<V> {
    await this.open(options);
    let value: V;
    try {
      value = await put(this);
    } catch (error) {
      await this.cancel({ reason: reasonOf(error) }).catch((failure: unknown) => {
        // What the function threw says more than that.
        const why = escaped(reasonOf(failure));
        logToStderr(`the batch ${escaped(this.name)} was not cancelled: ${why}`);
      });
      throw error;
    }
    await this.close();
    return value;
  }

  /**
   * Puts a task of this batch. The first one makes the batch, if it is not open yet. A closed one
   * takes more as long as it is not done, so a task of it may add others. A duplicate is in no
   * batch. Refused with `WRONGSTATE` if the batch is done.
   */
  put<T, R>(
    queue: Queue<T, R>,
    payload: T,
    options: Omit<PutOptions, "batch"> = {},
  ): Promise<PutResult> {
    return queue.put(payload, { ...options, batch: this.name });
  }

  // It is not called `then`, since whatever has that is taken for a promise.
  /**
   * Puts a task that waits until this batch is done. With `onlyIf: "acked"` it is skipped if a task
   * of the batch has failed, and with `"failed"` if none has. A delay counts from the end of the
   * batch, and `after` names further batches. The task gets no results of the others by itself.
   * Refused with `NOTFOUND` if the batch is not there.
   */
  putAfter<T, R>(queue: Queue<T, R>, payload: T, options: PutOptions = {}): Promise<PutResult> {
    return queue.put(payload, { ...options, after: [this.name, ...(options.after ?? [])] });
  }

  /** Makes it before its first task. Refused with `EXISTS` if there is one, also if it is done. */
  async open(options: BatchOpenOptions = {}): Promise<void> {
    const { list } = commands.batchOpen(this.name, options);
    try {
      await this.#caller.call(list, { isRepeatable: this.#isOwn, signal: options.signal });
    } catch (error) {
      // This is the one that was opened when the first reply was lost.
      if (!(this.#isOwn && isRefused(error, "EXISTS") && error.repeated)) throw error;
    }
  }

  /** Says that it has all its tasks. Returns how many are pending. Closing again returns 0. */
  async close(options: Abortable = {}): Promise<number> {
    return numberOf(await this.#caller.ask(commands.batchClose(this.name), options));
  }

  /** Tells how far it is. Refused with `NOTFOUND` if there is none. */
  async show(options: Abortable = {}): Promise<BatchInfo> {
    const reply = await this.#caller.ask(commands.batchShow(this.name), options);
    return plainOf(reply) as unknown as BatchInfo;
  }

  /**
   * Closes it and cancels its pending tasks. Returns how many they are. Holders of its tasks are
   * asked to stop, for `graceMs` at most.
   */
  async cancel(options: Rest<commands.BatchCancelOptions> = {}): Promise<number> {
    return numberOf(await this.#caller.ask(commands.batchCancel(this.name, options), options));
  }

  /**
   * Has the server forget it, which it does by itself after a while. Returns false if there is
   * none. Refused with `WRONGSTATE` if it is not done.
   */
  async drop(options: Abortable = {}): Promise<boolean> {
    return (await this.#caller.ask(commands.batchDrop(this.name), options)) === 1;
  }

  /**
   * Waits until it is done, and tells how far it is. The outcome is `timeout` after `waitMs`, where
   * Infinity is for ever. Refused with `NOTFOUND` if there is none.
   */
  async awaitEnd(
    options: Abortable & { waitMs?: number } = {},
  ): Promise<BatchInfo & { readonly outcome: "done" | "timeout" }> {
    const blocksMs = options.waitMs ?? 0;
    const words = commands.batchAwait(this.name, { waitMs: blocksMs });
    const { signal } = options;
    const [outcome, shown] = listOf(await this.#caller.ask(words, { signal, blocksMs }));
    const info = plainOf(shown ?? null) as unknown as BatchInfo;
    return { ...info, outcome: textOf(outcome) as "done" | "timeout" };
  }
}
