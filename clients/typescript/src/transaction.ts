// Transactions: several commands at one moment, all or none.
import type { Job } from "./job.js";
import type { PutOptions } from "./options.js";
import { putWords } from "./putting.js";
import type { PublishOptions, Topic } from "./fanout.js";
import type { Queue } from "./queue.js";
import { Words } from "./words.js";

/** How a put of a transaction is made. It cannot wait. */
export type StepPutOptions = Omit<PutOptions, "roomMs" | "signal">;

/**
 * Collects the commands of a transaction. Nothing happens until the function that was given to
 * `client.transaction` returns. A put has no unique key unless you give one.
 */
export class Transaction {
  /** @internal */
  readonly commands: (readonly (string | Uint8Array)[])[] = [];

  /** Acknowledges a job. */
  ack<T>(job: Job<T>): this {
    return this.#add(new Words("ACK", job.queue, job.receipt));
  }

  /** Says that a job failed. */
  fail<T>(job: Job<T>, reason?: string): this {
    return this.#add(new Words("FAIL", job.queue, job.receipt).option("REASON", reason));
  }

  /** Gives a job back. */
  release<T>(job: Job<T>, options: { delayMs?: number } = {}): this {
    return this.#add(new Words("RELEASE", job.queue, job.receipt).span("DELAY", options.delayMs));
  }

  /** Puts a task. Its reply is the id. */
  put<T>(queue: Queue<T>, payload: T, options: StepPutOptions = {}): this {
    const words = putWords(queue.name, queue.codec.encode(payload), options);
    if (typeof options.unique === "string") {
      words.add("UNIQUE", options.unique).span("WINDOW", options.windowMs);
      words.option("ONDUP", options.onDuplicate);
    }
    return this.#add(words);
  }

  /** Publishes a task. Its reply is the number of lanes. */
  publish<T>(topic: Topic<T>, payload: T, options: Omit<PublishOptions, "signal"> = {}): this {
    return this.#add(
      new Words("PUBLISH", topic.name, topic.codec.encode(payload))
        .option("KEY", options.key)
        .priority(options.priority)
        .moment("DEADLINE", options.deadline)
        .span("TTL", options.ttlMs),
    );
  }

  /** Removes tasks in any state. Its reply is how many there were. */
  kill<T>(queue: Queue<T>, ...ids: string[]): this {
    return this.#add(new Words("KILL", queue.name, ...ids));
  }

  #add(words: Words): this {
    this.commands.push(words.list);
    return this;
  }
}
