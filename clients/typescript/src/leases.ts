// Keeps the leases of a worker alive.
import type { Caller } from "./caller.js";
import { isRefused } from "./errors.js";
import type { Job } from "./job.js";
import { TIMER_MS_MAX } from "./reconnecting.js";

/** Tells a handler to stop. */
export class Control {
  #controller: AbortController | undefined;
  #told: { reason: unknown } | undefined;
  #isAborted = false;

  /** Whether the job is no longer the worker's, so that nothing is to be settled. */
  get isAborted(): boolean {
    return this.#isAborted;
  }

  /** Whether the handler was told, for this or because the job was cancelled. */
  get isTold(): boolean {
    return this.#told !== undefined;
  }

  /** What a handler can wait for. It is made when it is asked for, since few handlers do. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#told) this.#controller.abort(this.#told.reason);
    }
    return this.#controller.signal;
  }

  /** Tells that the job is not wanted. It is still the worker's. */
  cancel(reason: unknown): void {
    this.#told ??= { reason };
    this.#controller?.abort(reason);
  }

  /** Tells that the job is no longer the worker's. */
  abort(reason: unknown): void {
    this.#isAborted = true;
    this.cancel(reason);
  }
}

/** A job that a worker holds. */
export interface Held<T> {
  readonly job: Job<T>;
  readonly control: Control;
  renewedAt: number;
}

/** Renews all leases at a third of their time, and tells which cannot be renewed any more. */
export class LeaseKeeper<T> {
  readonly #caller: Caller;
  readonly #ttrMs: number;
  readonly #held = new Map<Job<T>, Held<T>>();
  readonly #onRenewed: (job: Job<T>) => void;
  readonly #onEnd: (held: Held<T>, error: unknown) => void;
  readonly #timer: NodeJS.Timeout;

  constructor(
    caller: Caller,
    ttrMs: number,
    onRenewed: (job: Job<T>) => void,
    onEnd: (held: Held<T>, error: unknown) => void,
  ) {
    this.#caller = caller;
    this.#ttrMs = ttrMs;
    this.#onRenewed = onRenewed;
    this.#onEnd = onEnd;
    this.#timer = setInterval(() => this.#renewAll(), Math.min(ttrMs / 3, TIMER_MS_MAX));
  }

  /** Begins to renew a lease that was just granted. */
  hold(job: Job<T>, takenAt: number): Held<T> {
    const held = { job, control: new Control(), renewedAt: takenAt };
    this.#held.set(job, held);
    return held;
  }

  /** Ends the renewal of a lease. */
  drop(job: Job<T>): void {
    this.#held.delete(job);
  }

  /** Ends all renewals. */
  stop(): void {
    clearInterval(this.#timer);
    this.#held.clear();
  }

  #renewAll(): void {
    for (const held of this.#held.values()) void this.#renew(held);
  }

  async #renew(held: Held<T>): Promise<void> {
    const { job } = held;
    const askedAt = performance.now();
    try {
      const words = ["TOUCH", job.queue, job.receipt];
      await this.#caller.call(words, { isRepeatable: true, retryForMs: this.#ttrMs / 3 });
      held.renewedAt = askedAt;
      this.#onRenewed(job);
    } catch (error) {
      // While the server cannot be reached, the lease lasts as long as it was granted for.
      const isOver = performance.now() - held.renewedAt >= this.#ttrMs;
      if (!this.#held.has(job) || job.settlement !== undefined) return;
      if (isOver || isRefused(error, "STALE", "NOTFOUND", "CANCELLED")) {
        this.#held.delete(job);
        this.#onEnd(held, error);
      }
    }
  }
}
