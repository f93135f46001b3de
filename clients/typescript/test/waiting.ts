// Ways to wait for events in tests.
import type { WorkerEvent } from "../src/index.js";

/** Collects values, and lets a test wait for those that it wants. */
export class Seen<T> {
  readonly all: T[] = [];
  readonly #waiting = new Set<() => void>();

  /** Adds a value. It can be given as a hook. */
  readonly add = (value: T): void => {
    this.all.push(value);
    for (const check of [...this.#waiting]) check();
  };

  /** Waits until so many values fit, and returns them. */
  until(fits: (value: T) => boolean, count = 1): Promise<T[]> {
    return new Promise((resolve) => {
      const check = (): void => {
        const found = this.all.filter(fits);
        if (found.length < count) return;
        this.#waiting.delete(check);
        resolve(found);
      };
      this.#waiting.add(check);
      check();
    });
  }
}

/** Collects the events of a worker. */
export function events<T>(): Seen<WorkerEvent<T>> {
  return new Seen<WorkerEvent<T>>();
}

/** A promise with its two ends. */
export function latch<T = void>(): { promise: Promise<T>; open: (value: T) => void } {
  let open!: (value: T) => void;
  const promise = new Promise<T>((resolve) => (open = resolve));
  return { promise, open };
}
