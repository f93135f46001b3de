// Keeps the leases of a worker alive, and tells with the renewals how far the work has come.
import { isRefused } from "./errors.js";
import { TELL_MS } from "./headway.js";
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

/**
 * Renews all leases at a third of their time, and those of jobs with something to tell within a
 * second. Tells which cannot be renewed any more.
 */
export class LeaseKeeper<T> {
  readonly #ttrMs: number;
  readonly #held = new Map<Job<T>, Held<T>>();
  readonly #onRenewed: (job: Job<T>) => void;
  readonly #onEnd: (held: Held<T>, error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #soon: NodeJS.Timeout | undefined;

  constructor(
    ttrMs: number,
    onRenewed: (job: Job<T>) => void,
    onEnd: (held: Held<T>, error: unknown) => void,
  ) {
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

  /** Renews the lease of a job that has something to tell, soon. */
  tellSoon(job: Job<T>): void {
    if (this.#held.has(job)) this.#tellIn(TELL_MS);
  }

  /** Ends all renewals. */
  stop(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
    this.#held.clear();
  }

  #renewAll(): void {
    for (const held of this.#held.values()) void this.#renew(held);
  }

  #tellIn(ms: number): void {
    this.#soon ??= setTimeout(() => this.#tellAll(), ms);
  }

  #tellAll(): void {
    this.#soon = undefined;
    for (const held of this.#held.values()) {
      const inMs = held.job.newsInMs;
      if (inMs === 0) void this.#renew(held);
      else if (inMs !== undefined) this.#tellIn(inMs);
    }
  }

  async #renew(held: Held<T>): Promise<void> {
    const { job } = held;
    const askedAt = performance.now();
    try {
      await job.renew(this.#ttrMs / 3);
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
    } finally {
      // What was noted meanwhile, and what the server had no room for.
      if (job.newsInMs !== undefined) this.tellSoon(job);
    }
  }
}
