// What becomes of jobs that fail: the queue says so, or else what is usual for all workers of
// pinpriq. The queue counts failures, waits and buries by itself; here it is decided what it is
// told.
import { isRefused } from "./errors.js";
import type { TaskMeta } from "./meta.js";
import type { Settings } from "./settings.js";

/** How often a task may fail where the queue does not say so. */
export const FAILURES_MAX = 5;
const BACKOFF_MS = 1_000;
const DELAY_MS_MAX = 86_400_000;

/** The settings of a queue about tasks that fail. */
export type Policy = Pick<Settings, "attempts" | "backoffMs" | "deadLetter">;

const NO_POLICY: Policy = { attempts: null, backoffMs: null, deadLetter: null };

/**
 * Returns the policy of what `show` asks for. A queue that shows no settings has none. Null means
 * that the server does not answer, and then the queue decides.
 */
export async function policyOf(show: () => Promise<Policy>): Promise<Policy | null> {
  try {
    return await show();
  } catch (error) {
    return isRefused(error) ? NO_POLICY : null;
  }
}

/** Returns the policy of a task whose put may have said something itself. */
export function policyFor(policy: Policy | null, meta: TaskMeta | undefined): Policy | null {
  if (policy === null || meta === undefined) return policy;
  const own = <T>(value: number | "none" | null, none: T, queue: T): number | T =>
    value === "none" ? none : (value ?? queue);
  return {
    ...policy,
    attempts: own(meta.attemptsMax, Infinity, policy.attempts),
    backoffMs: own(meta.backoffMs, 0, policy.backoffMs),
  };
}

/** Whether the worker gives a task up at this failure, since its queue never does. */
export function isGivenUp(policy: Policy | null, failures: number): boolean {
  return policy !== null && policy.attempts === null && failures >= FAILURES_MAX;
}

/** Returns how long a task waits after this failure, or undefined if its queue says so. */
export function backoffMs(policy: Policy | null, failures: number): number | undefined {
  if (policy === null || policy.backoffMs !== null) return undefined;
  return Math.min(BACKOFF_MS * 2 ** Math.max(failures - 1, 0), DELAY_MS_MAX);
}

/** Returns what an error says. Anything can be thrown, also what cannot be made a text. */
export function reasonOf(error: unknown): string {
  try {
    if (error instanceof Error) {
      const { message, name } = error as { message: unknown; name: unknown };
      return String(message) || String(name);
    }
    return String(error);
  } catch {
    return "something was thrown that has no text";
  }
}
