// Takes and pops, from one queue or several.
import type { Caller } from "./caller.js";
import { PinpriqError } from "./errors.js";
import type { Reply } from "./resp.js";
import type { PopOptions, TakeOptions } from "./options.js";
import { listOf, type RawTask, taskOf } from "./replies.js";
import { Words } from "./words.js";

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
  const words = selecting("TAKE", place, count, options).span("TTR", options.ttrMs ?? undefined);
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
  return waitForTasks(caller, selecting("POP", place, count, options), options, {});
}

/** Gives a task back that nobody will work on. That its lease has ended already is fine. */
export async function giveBack(caller: Caller, task: RawTask): Promise<void> {
  const words = ["RELEASE", task.queue, task.receipt ?? ""];
  await caller.call(words, { isRepeatable: true, retryForMs: 1_000 }).catch(() => undefined);
}

function selecting(command: string, place: Place, count: number, options: PopOptions): Words {
  const [only] = place.queues;
  const words = new Words(command);
  if (place.queues.length === 1 && only !== undefined) words.add(only);
  else words.add("QUEUES", String(place.queues.length), ...place.queues);
  if (count !== 1) words.number("COUNT", count);
  return words
    .option("FROM", options.from)
    .option("ORDER", options.order)
    .flag("GROUP", options.group)
    .flag("WITHMETA", options.withMeta)
    .option("MEMBER", place.member ?? undefined);
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
