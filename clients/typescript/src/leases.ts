// Keeps the leases of a worker alive.
import type { Caller } from "./caller.js";
import { isRefused } from "./errors.js";
import type { Job } from "./job.js";
import { TIMER_MS_MAX } from "./reconnecting.js";

/** Tells a handler when its job is no longer the worker's. */
export class Control {
  #controller: AbortController | undefined;
  #end: { reason: unknown } | undefined;

  /** Whether that has happened. */
  get isAborted(): boolean {
    return this.#end !== undefined;
  }

  /** What a handler can wait for. It is made when it is asked for, since few handlers do. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#end) this.#controller.abort(this.#end.reason);
    }
    return this.#controller.signal;
  }

  /** Tells that it has happened. */
  abort(reason: unknown): void {
    this.#end ??= { reason };
    this.#controller?.abort(reason);
  }
}

/** A job that a worker holds. */
export interface Held<T> {
  readonly job: Job<T>;
  readonly control: Control;
  renewedAt: number;
}

/** Renews all leases at a third of their time, and tells which are lost. */
export class LeaseKeeper<T> {
  readonly #caller: Caller;
  readonly #ttrMs: number;
  readonly #held = new Map<Job<T>, Held<T>>();
  readonly #onRenewed: (job: Job<T>) => void;
  readonly #onLost: (held: Held<T>, error: unknown) => void;
  readonly #timer: NodeJS.Timeout;

  constructor(
    caller: Caller,
    ttrMs: number,
    onRenewed: (job: Job<T>) => void,
    onLost: (held: Held<T>, error: unknown) => void,
  ) {
    this.#caller = caller;
    this.#ttrMs = ttrMs;
    this.#onRenewed = onRenewed;
    this.#onLost = onLost;
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
      if (isOver || isRefused(error, "STALE", "NOTFOUND")) {
        this.#held.delete(job);
        this.#onLost(held, error);
      }
    }
  }
}
