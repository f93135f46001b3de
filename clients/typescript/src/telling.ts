// The lines that a worker writes about what it does.
import type { Job } from "./job.js";
import type { StateOrGone } from "./replies.js";

/** Writes one line about a worker. */
export type Log = (line: string) => void;

/** Writes a line to stderr. */
export function logToStderr(line: string): void {
  process.stderr.write(`pinpriq: ${line}\n`);
}

/** Returns a text that no terminal takes for a command. */
export function escaped(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`;
  });
}

/** Says which job it is. */
export function nameOf<T>(job: Job<T>): string {
  return `task ${escaped(job.id)} of ${escaped(job.queue)}`;
}

/** Says that a job has failed, and what happens next. */
export function failureLine<T>(
  job: Job<T>,
  reason: string,
  next: { state: StateOrGone; delayMs: number | undefined; deadLetter: string | null },
): string {
  const attempts = job.meta?.attempts ?? 1;
  const what = `${nameOf(job)}: ${escaped(reason)}, attempt ${attempts}`;
  switch (next.state) {
    case "B":
      return `${what}: buried`;
    case "X":
      if (next.deadLetter === null) return `${what}: it has left the queue`;
      return `${what}: moved to ${escaped(next.deadLetter)}, as a dead letter`;
    case "W":
      if (next.delayMs === undefined) return `${what}: comes back after the back-off of its queue`;
      return `${what}: comes back in ${next.delayMs} ms`;
    default:
      return `${what}: comes back at once`;
  }
}

/** Calls a hook of the program. Its fault is written, and ends neither the work nor the process. */
export function callHook<A>(hook: ((about: A) => unknown) | undefined, about: A, log: Log): void {
  const blame = (error: unknown): void => {
    try {
      log(`a hook of the program threw: ${escaped(hookReason(error))}`);
    } catch {
      // The log itself is broken, and there is nowhere else to report it.
    }
  };
  try {
    const returned = hook?.(about);
    if (returned instanceof Promise) returned.catch(blame);
  } catch (error) {
    blame(error);
  }
}

function hookReason(error: unknown): string {
  try {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } catch {
    return "something that has no text";
  }
}
