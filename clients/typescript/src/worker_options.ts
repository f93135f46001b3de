// How a worker is made, and what it tells while it works.
import type { Cancelled } from "./errors.js";
import type { Job } from "./job.js";
import type { Selection } from "./options.js";
import type { StateOrGone } from "./replies.js";
import type { Log } from "./telling.js";

/** What a handler knows besides its job. */
export interface Work {
  /**
   * Is aborted when the lease is lost, or when the worker was stopped and the grace time is over.
   * What the handler does from then on does not count. With a `Cancelled` as reason, the task was
   * cancelled: the job is released if the handler throws, and acknowledged if it returns.
   */
  readonly signal: AbortSignal;
}

/**
 * Works on one job. If it returns, the job is acknowledged; if it throws, the job fails with the
 * message of the error as reason. What it returns is the result of the task, and undefined is none.
 * A result that cannot be sent is left out, with the event `trouble`. It may settle the job itself;
 * then what it returns does not count. A job whose payload cannot be read is buried, since no later
 * try can read it.
 */
export type Handler<T, R = unknown> = (
  job: Job<T, R>,
  work: Work,
) => Promise<R | void> | R | void;

/** How a worker works. */
export interface WorkerOptions<T> extends Selection {
  /** How many jobs are worked on at once. 1 by default. */
  readonly concurrency?: number;
  /**
   * How many jobs are taken ahead, 1 at most of a fair queue. 0 by default. The server calls them
   * back for more urgent ones until they begin, unless `from` or `order` is given. One that is
   * called back as it begins may run twice.
   */
  readonly prefetch?: number;
  /** How long a lease lasts, in milliseconds. It is renewed at a third. That of the lane else. */
  readonly ttrMs?: number;
  /** How long jobs have to finish after a stop, in milliseconds. 30,000 by default. */
  readonly graceMs?: number;
  /** Stops the worker when it is aborted. */
  readonly signal?: AbortSignal;
  /**
   * Returns after how many milliseconds a failed job comes back, instead of the back-off of the
   * queue. Where the queue has none, it is a second, twice as long after each further failure.
   */
  readonly failDelayMs?: (job: Job<T>, error: unknown) => number | undefined;
  /** Called for each event. */
  readonly trace?: (event: WorkerEvent<T>) => void;
  /**
   * Writes a line when the worker starts and stops, about each job that fails or is cancelled, and
   * about troubles. By default they go to stderr. Null writes none.
   */
  readonly log?: Log | null;
  /**
   * Runs around each job, such as what its logger has to know, and within its span if the program
   * traces. It must call `run` and await it. A job that was not run fails.
   */
  readonly around?: (job: Job<T>, run: () => Promise<void>) => Promise<void>;
}

/** What happens in a worker. */
export type WorkerEvent<T> =
  | { readonly type: "taken" | "started" | "renewed"; readonly job: Job<T> }
  /** The job is acknowledged on the server, with its result unless there was trouble about it. */
  | { readonly type: "acked"; readonly job: Job<T> }
  /** The handler threw, and the server knows. B: it is buried. X: it has left the queue. */
  | {
      readonly type: "failed";
      readonly job: Job<T>;
      readonly error: unknown;
      readonly state: StateOrGone;
    }
  /** The server has called back a job that had not begun, for a more urgent one. */
  | { readonly type: "recalled"; readonly job: Job<T> }
  /** The task was cancelled. What becomes of the job is told too. */
  | { readonly type: "cancelled"; readonly job: Job<T>; readonly error: Cancelled }
  /** The job was given back because the worker stops, or has left since it was cancelled. */
  | { readonly type: "released"; readonly job: Job<T> }
  /** The handler has settled the job itself. */
  | { readonly type: "settled"; readonly job: Job<T> }
  /** Another worker may have the job now. */
  | { readonly type: "leaseLost"; readonly job: Job<T>; readonly error: unknown }
  /** Something went wrong, and the worker goes on. */
  | { readonly type: "trouble"; readonly error: unknown; readonly job?: Job<T> }
  | { readonly type: "stopping" | "stopped" };
