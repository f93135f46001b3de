// Transactions: several commands at one moment, all or none.
import type { Batch } from "./batches.js";
import * as commands from "./commands.js";
import type { Job } from "./job.js";
import type { AckOptions, PutOptions } from "./options.js";
import type { PublishOptions, Topic } from "./fanout.js";
import type { Queue } from "./queue.js";
import { headersForLater } from "./tracing.js";
import type { Words } from "./words.js";

/** How a put of a transaction is made. It cannot wait. */
export type StepPutOptions = Omit<PutOptions, "roomMs" | "signal">;

/**
 * Collects the commands of a transaction. Nothing happens until the function that was given to
 * `client.transaction` returns. A put has no unique key unless you give one.
 */
export class Transaction {
  /** @internal */
  readonly commands: (readonly (string | Uint8Array)[])[] = [];

  /** Acknowledges a job. `result` says what has come of the work. */
  ack<T, R>(job: Job<T, R>, options: Omit<AckOptions<T, R>, "signal"> = {}): this {
    return this.#add(job.ackWords(options));
  }

  /** Says that a job failed. */
  fail<T>(job: Job<T>, reason?: string): this {
    return this.#add(commands.fail(job.queue, job.receipt, { reason }));
  }

  /** Gives a job back. */
  release<T>(job: Job<T>, options: { delayMs?: number } = {}): this {
    return this.#add(commands.release(job.queue, job.receipt, options));
  }

  /** Puts a task. Its reply is the id. */
  put<T>(queue: Queue<T>, payload: T, options: StepPutOptions = {}): this {
    const { unique, windowMs, onDuplicate, ...rest } = options;
    const keys = typeof unique === "string" ? { unique, windowMs, onDuplicate } : {};
    const bytes = queue.codec.encode(payload);
    const headers = headersForLater({ what: "put", to: queue.name }, options.headers);
    return this.#add(commands.put(queue.name, bytes, { ...rest, ...keys, headers }));
  }

  /** Publishes a task. Its reply is the number of lanes. */
  publish<T>(topic: Topic<T>, payload: T, options: Omit<PublishOptions, "signal"> = {}): this {
    const bytes = topic.codec.encode(payload);
    const headers = headersForLater({ what: "publish", to: topic.name }, options.headers);
    return this.#add(commands.publish(topic.name, bytes, { ...options, headers }));
  }

  /** Removes tasks in any state. Its reply is how many there were. */
  kill<T>(queue: Queue<T>, ...ids: string[]): this {
    return this.#add(commands.kill(queue.name, ids));
  }

  /** Ends a task, or asks its holder to stop. Its reply is the state. */
  cancel<T>(
    queue: Queue<T>,
    id: string,
    options: Omit<commands.CancelOptions, "member"> = {},
  ): this {
    const { reason, graceMs } = options;
    return this.#add(commands.cancel(queue.name, id, { reason, graceMs }));
  }

  /** Makes a batch before its first task. */
  openBatch(batch: Batch, options: commands.BatchOpenOptions = {}): this {
    return this.#add(commands.batchOpen(batch.name, { ttlMs: options.ttlMs }));
  }

  /** Says that a batch has all its tasks. Its reply is how many are pending. */
  closeBatch(batch: Batch): this {
    return this.#add(commands.batchClose(batch.name));
  }

  /** Forgets a batch that is done. Its reply is 1, or 0 if there is none. */
  dropBatch(batch: Batch): this {
    return this.#add(commands.batchDrop(batch.name));
  }

  #add(words: Words): this {
    this.commands.push(words.list);
    return this;
  }
}
