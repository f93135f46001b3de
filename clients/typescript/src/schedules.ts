// Schedules: tasks that the server puts again and again.
import type { Caller } from "./caller.js";
import * as commands from "./commands.js";
import type { Abortable, Rest } from "./options.js";
import type { Queue } from "./queue.js";
import { bytesOf, mapOf, numberOf, numberOrNull, textOf, textOrNull } from "./replies.js";

/** When a schedule is due, and which tasks it puts. Give either `everyMs` or `cron`. */
export type ScheduleOptions = Rest<commands.ScheduleSetOptions>;

/** What a schedule does and has done. Moments are Unix milliseconds. */
export interface ScheduleInfo {
  /** Where its tasks go. */
  readonly queue: string;
  /** The payload of its tasks, as bytes. */
  readonly bytes: Buffer;
  /** The distance between two slots; null with `cron`. */
  readonly everyMs: number | null;
  /** The first slot, if one was given. */
  readonly at: number | null;
  /** The expression, or null with `everyMs`. */
  readonly cron: string | null;
  /** Its time zone; null is UTC. */
  readonly zone: string | null;
  /** What is put for slots that passed while the server was down. */
  readonly onMissed: "one" | "all" | "none";
  /** Whether a slot is left out while the task of the slot before is unfinished. */
  readonly overlap: "allow" | "skip";
  /** Whether it lets its slots pass. */
  readonly isPaused: boolean;
  /** How many tasks it has put. */
  readonly fired: number;
  /** How many slots have put none. */
  readonly missed: number;
  /** The id of its last task. */
  readonly lastId: string | null;
  /** The last slot that put a task. */
  readonly lastSlot: number | null;
  /** The next slot. */
  readonly nextAt: number;
}

/** The schedules of a server. Their names are unique in the server. */
export class Schedules {
  readonly #caller: Caller;

  /** @internal */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * Sets a schedule, or changes all of it but its figures and its pause. Returns the next slot in
   * Unix milliseconds. Refused with `BADARG` if it is never due, and with `CROSSSHARD` if its queue
   * lives in another shard.
   */
  async set<T>(
    schedule: string,
    queue: Queue<T>,
    payload: T,
    options: ScheduleOptions,
  ): Promise<number> {
    const words = commands.scheduleSet(schedule, queue.name, queue.codec.encode(payload), options);
    return numberOf(await this.#caller.ask(words, options));
  }

  /** Tells what a schedule does and has done. Refused with `NOTFOUND` if there is none. */
  async show(schedule: string, options: Abortable = {}): Promise<ScheduleInfo> {
    const map = mapOf(await this.#caller.ask(commands.scheduleShow(schedule), options));
    return {
      queue: textOf(map["queue"]),
      bytes: bytesOf(map["payload"]),
      everyMs: numberOrNull(map["every"]),
      at: numberOrNull(map["at"]),
      cron: textOrNull(map["cron"]),
      zone: textOrNull(map["zone"]),
      onMissed: textOf(map["on_missed"]) as ScheduleInfo["onMissed"],
      overlap: textOf(map["overlap"]) as ScheduleInfo["overlap"],
      isPaused: textOf(map["paused"]) === "yes",
      fired: numberOf(map["fired"]),
      missed: numberOf(map["missed"]),
      lastId: textOrNull(map["last_id"]),
      lastSlot: numberOrNull(map["last_slot"]),
      nextAt: numberOf(map["next_at"]),
    };
  }

  /** Goes through the names of the schedules, in order. */
  async *list(
    options: Abortable & { prefix?: string } = {},
  ): AsyncGenerator<string, void, undefined> {
    const words = commands.scheduleList({ prefix: options.prefix });
    for await (const name of this.#caller.pages(words, options)) yield textOf(name);
  }

  /** Lets slots pass without a task. Refused with `NOTFOUND` if there is no such schedule. */
  async pause(schedule: string, options: Abortable = {}): Promise<void> {
    await this.#caller.ask(commands.schedulePause(schedule), options);
  }

  /** Ends a pause. Refused with `NOTFOUND` if there is no such schedule. */
  async resume(schedule: string, options: Abortable = {}): Promise<void> {
    await this.#caller.ask(commands.scheduleResume(schedule), options);
  }

  /** Removes a schedule; its tasks stay. Returns false if there is none. */
  async drop(schedule: string, options: Abortable = {}): Promise<boolean> {
    return (await this.#caller.ask(commands.scheduleDrop(schedule), options)) === 1;
  }

  /**
   * Puts a task of a schedule now, and returns its id. It is sent once, and refused as a put would
   * be.
   */
  async fire(schedule: string, options: Abortable = {}): Promise<string> {
    return textOf(await this.#caller.change(commands.scheduleFire(schedule), options));
  }
}
