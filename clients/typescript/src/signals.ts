// Stops workers in order when the process is asked to end.

/** What can be stopped. */
export interface Stoppable {
  stop(): Promise<void>;
}

/**
 * Waits for SIGTERM or SIGINT, and then stops the workers. Resolves when all have stopped, so that
 * the program can close its client and end. A second signal ends the process at once, as it would
 * without this. If `until` is aborted, it stops the workers without a signal.
 */
export async function stopOnSignals(
  workers: Stoppable | readonly Stoppable[],
  options: { signals?: readonly NodeJS.Signals[]; until?: AbortSignal } = {},
): Promise<void> {
  const names = options.signals ?? ["SIGTERM", "SIGINT"];
  const { until } = options;
  await new Promise<void>((resolve) => {
    const go = (): void => {
      for (const name of names) process.off(name, go);
      until?.removeEventListener("abort", go);
      resolve();
    };
    for (const name of names) process.on(name, go);
    until?.addEventListener("abort", go, { once: true });
    if (until?.aborted) go();
  });
  const all = Array.isArray(workers) ? (workers as readonly Stoppable[]) : [workers as Stoppable];
  await Promise.all(all.map((worker) => worker.stop()));
}
