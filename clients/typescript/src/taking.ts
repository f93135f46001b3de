// Takes and pops, from one queue or several.
import type { Caller } from "./caller.js";
import * as commands from "./commands.js";
import { PinpriqError } from "./errors.js";
import type { Reply } from "./resp.js";
import type { PopOptions, TakeOptions } from "./options.js";
import { listOf, type RawTask, taskOf } from "./replies.js";
import type { Words } from "./words.js";

// The longest that one request blocks. A connection whose other end is gone without a word is
// noticed in about that time, and each request is a sign of life of a member.
const BLOCK_MS = 20_000;

/** Where tasks come from: queues, or topics of one member. */
export interface Place {
  readonly queues: readonly string[];
  readonly member: string | null;
}

/** Takes tasks under a lease. The result is empty if there are none in time. */
export async function take(
  caller: Caller,
  place: Place,
  count: number,
  options: TakeOptions,
): Promise<RawTask[]> {
  const given = { ...chosen(place, count, options), ttrMs: options.ttrMs ?? undefined };
  const words = commands.take(place.queues, given);
  const release = async (reply: Reply): Promise<void> => {
    await Promise.all(listOf(reply).map((task) => giveBack(caller, taskOf(task))));
  };
  return waitForTasks(caller, words, options, { isRepeatable: true, onLateReply: release });
}

/** Takes tasks for good. */
export function pop(
  caller: Caller,
  place: Place,
  count: number,
  options: PopOptions,
): Promise<RawTask[]> {
  const words = commands.pop(place.queues, chosen(place, count, options));
  return waitForTasks(caller, words, options, {});
}

/** Gives a task back that will not be worked on. That its lease has ended already is fine. */
export async function giveBack(caller: Caller, task: RawTask): Promise<void> {
  const words = commands.release(task.queue, task.receipt ?? "");
  await caller.ask(words, { retryForMs: 1_000 }).catch(() => undefined);
}

/** What the words of a take are made of. */
function chosen(place: Place, count: number, options: PopOptions): commands.PopOptions {
  const { waitMs: _, signal: __, ...rest } = options;
  const member = place.member ?? undefined;
  return { ...rest, count: count === 1 ? undefined : count, member };
}

async function waitForTasks(
  caller: Caller,
  words: Words,
  { waitMs = 0, signal }: PopOptions,
  sending: { isRepeatable?: boolean; onLateReply?: (reply: Reply) => Promise<void> },
): Promise<RawTask[]> {
  if (Number.isNaN(waitMs)) throw new PinpriqError("waitMs is no number");
  const waitUntil = performance.now() + waitMs;
  for (;;) {
    const blocksMs = Math.ceil(Math.max(Math.min(waitUntil - performance.now(), BLOCK_MS), 0));
    const request = blocksMs > 0 ? [...words.list, "WAIT", String(blocksMs)] : words.list;
    const { reply } = await caller.call(request, { ...sending, blocksMs, signal });
    const tasks = listOf(reply).map(taskOf);
    if (tasks.length > 0 || performance.now() >= waitUntil) return tasks;
  }
}
