// How to wait, and how long before another try.

const FIRST_PAUSE_MS = 50;

/** The longest time that a timer of Node can have. A longer one would be over at once. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * Returns the pause before a try in milliseconds: twice as long each time, up to a bound, less a
 * random part of up to a quarter, so that clients that failed together do not come together.
 */
export function pauseBefore(tryNumber: number, longestMs: number): number {
  const pause = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(tryNumber, 20), longestMs);
  return Math.ceil(pause * (1 - Math.random() / 4));
}

/** Waits this long, or throws the reason of the signal. */
export function pause(timeMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, Math.min(timeMs, TIMER_MS_MAX));
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
