// How replies become typed objects.
import { PinpriqError } from "./errors.js";
import { metaOf, type TaskMeta } from "./meta.js";
import { MapBytes, type Reply } from "./resp.js";

/** Ready, taken, waiting, buried, and Z and D: finished and kept. */
export type State = "R" | "T" | "W" | "B" | "Z" | "D";

/** A state, or X: the task has left the queue. */
export type StateOrGone = State | "X";

/** How a task ended, or `timeout` if it has not ended in time. */
export type Outcome =
  | "acked" | "buried" | "expired" | "killed" | "dead" | "evicted" | "moved" | "cancelled"
  | "skipped" | "timeout";

/** Where a dead letter comes from. Moments are Unix milliseconds. */
export interface Origin {
  readonly queue: string;
  readonly id: string;
  readonly putAt: number;
  readonly attempts: number;
  readonly failures: number;
  readonly at: number;
}

/** An attempt of a task that has ended. Moments are Unix milliseconds. */
export interface Attempt {
  readonly client: number | null;
  /** The name of the client that had the task, if it had one. */
  readonly name: string | null;
  readonly address: string | null;
  readonly takenAt: number;
  readonly endedAt: number;
  readonly how: "acked" | "released" | "failed" | "buried" | "expired" | "closed" | "snatched";
  /** Why, if the worker has said that. */
  readonly reason: string | null;
}

/** A task as it came. */
export interface RawTask {
  readonly queue: string;
  readonly member: string | null;
  readonly id: string;
  readonly receipt: string | null;
  readonly bytes: Buffer;
  /** How often it has failed, if that is known. */
  readonly failures: number | undefined;
  readonly priority: number | undefined;
  /** The moment of its put. */
  readonly putAt: number | undefined;
  /** How often it was taken, this time included. */
  readonly attempts: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** What an attempt before has left, if that is known. */
  readonly checkpoint: Buffer | undefined;
  /** What has come of the work, if that is known. */
  readonly result: Buffer | undefined;
  /** The other fields, decoded when they are read. */
  readonly meta: TaskMeta | undefined;
}

/** A map of a reply. */
export type ReplyMap = { [key: string]: Reply };

/** Returns a reply as text. */
export function textOf(reply: Reply | undefined): string {
  if (typeof reply === "string") return reply;
  if (Buffer.isBuffer(reply)) return reply.toString("utf8");
  if (typeof reply === "number") return String(reply);
  throw unexpected(reply);
}

/** Whether a reply is the word yes. A server that knows none says nothing. */
export function isYes(reply: Reply | undefined): boolean {
  return reply !== undefined && reply !== null && textOf(reply) === "yes";
}

/** Returns a reply as text, or null. */
export function textOrNull(reply: Reply | undefined): string | null {
  return reply === null || reply === undefined ? null : textOf(reply);
}

/** Returns a number, or the word none, or null. */
export function ownNumber(reply: Reply | undefined): number | "none" | null {
  if (reply === null || reply === undefined) return null;
  return typeof reply === "number" ? reply : "none";
}

/** Returns a reply as a number. */
export function numberOf(reply: Reply | undefined): number {
  if (typeof reply === "number") return reply;
  throw unexpected(reply);
}

/** Returns a reply as a number, or null. */
export function numberOrNull(reply: Reply | undefined): number | null {
  return reply === null || reply === undefined ? null : numberOf(reply);
}

/** Returns a reply as bytes. */
export function bytesOf(reply: Reply | undefined): Buffer {
  if (Buffer.isBuffer(reply)) return reply;
  if (typeof reply === "string") return Buffer.from(reply);
  throw unexpected(reply);
}

/** Returns a reply as bytes, or undefined. */
export function bytesIfAny(reply: Reply | undefined): Buffer | undefined {
  return reply === null || reply === undefined ? undefined : bytesOf(reply);
}

/** Returns a reply as a list. */
export function listOf(reply: Reply | undefined): Reply[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected(reply);
}

/** Returns a reply as a map. */
export function mapOf(reply: Reply | undefined): ReplyMap {
  if (reply instanceof MapBytes) return reply.whole();
  const isMap = typeof reply === "object" && reply !== null && !Array.isArray(reply);
  if (isMap && !Buffer.isBuffer(reply) && !(reply instanceof Error)) return reply;
  throw unexpected(reply);
}

/** Returns a map of texts. One that is not there is empty. */
export function textsOf(reply: Reply | undefined): Record<string, string> {
  if (reply === undefined) return {};
  const pairs = Object.entries(mapOf(reply)).map(([name, value]) => [name, textOf(value)]);
  return Object.fromEntries(pairs) as Record<string, string>;
}

/** Returns names. What came without them has none. */
export function namesOf(reply: Reply | undefined): string[] {
  return Array.isArray(reply) ? reply.map(textOf) : [];
}

/** Returns a task, which is a list of four or a map. */
export function taskOf(reply: Reply): RawTask {
  if (!Array.isArray(reply)) {
    return reply instanceof MapBytes ? new TaskOfMap(reply) : taskOfMap(mapOf(reply));
  }
  const [queue, id, receipt, payload] = reply;
  return {
    queue: textOf(queue),
    member: null,
    id: textOf(id),
    receipt: textOrNull(receipt),
    bytes: bytesOf(payload),
    failures: undefined,
    priority: undefined,
    putAt: undefined,
    attempts: undefined,
    headers: {},
    checkpoint: undefined,
    result: undefined,
    meta: undefined,
  };
}

// A task with all that is known of it.
class TaskOfMap implements RawTask {
  readonly #map: MapBytes;
  #meta: TaskMeta | undefined;
  readonly queue: string;
  readonly id: string;
  readonly receipt: string | null;
  readonly bytes: Buffer;

  constructor(map: MapBytes) {
    this.#map = map;
    this.queue = textOf(map.text("queue"));
    this.id = textOf(map.text("id"));
    this.receipt = map.text("receipt") ?? null;
    this.bytes = bytesOf(map.blob("payload"));
  }

  get member(): string | null {
    return this.#map.text("member") ?? null;
  }

  get failures(): number | undefined {
    return this.#map.number("failures");
  }

  get priority(): number | undefined {
    return this.#map.number("priority");
  }

  get putAt(): number | undefined {
    return this.#map.number("put_at");
  }

  get attempts(): number | undefined {
    return this.#map.number("attempts");
  }

  get headers(): Record<string, string> {
    return textsOf(this.#map.member("headers"));
  }

  get checkpoint(): Buffer | undefined {
    return this.#map.blob("checkpoint");
  }

  get result(): Buffer | undefined {
    return this.#map.blob("result");
  }

  get meta(): TaskMeta {
    return (this.#meta ??= metaOf(this.#map.whole()));
  }
}

function taskOfMap(map: ReplyMap): RawTask {
  const meta = metaOf(map);
  return {
    queue: textOf(map["queue"]),
    member: textOrNull(map["member"]),
    id: textOf(map["id"]),
    receipt: textOrNull(map["receipt"]),
    bytes: bytesOf(map["payload"]),
    failures: numberOf(map["failures"]),
    priority: numberOrNull(map["priority"]) ?? undefined,
    putAt: numberOf(map["put_at"]),
    attempts: meta.attempts,
    headers: meta.headers,
    checkpoint: bytesIfAny(map["checkpoint"]),
    result: bytesIfAny(map["result"]),
    meta,
  };
}

/** Returns attempts. A task that came without them has none. */
export function attemptsOf(reply: Reply | undefined): Attempt[] {
  if (!Array.isArray(reply)) return [];
  return reply.map((item) => {
    const map = mapOf(item);
    return {
      client: numberOrNull(map["client"]),
      name: textOrNull(map["name"]),
      address: textOrNull(map["address"]),
      takenAt: numberOf(map["taken_at"]),
      endedAt: numberOf(map["ended_at"]),
      how: textOf(map["how"]) as Attempt["how"],
      reason: textOrNull(map["reason"]),
    };
  });
}

/** Returns where a dead letter comes from. */
export function originOf(map: ReplyMap): Origin | null {
  const queue = textOrNull(map["origin_queue"]);
  if (queue === null) return null;
  return {
    queue,
    id: textOf(map["origin_id"]),
    putAt: numberOf(map["origin_put_at"]),
    attempts: numberOf(map["origin_attempts"]),
    failures: numberOf(map["origin_failures"]),
    at: numberOf(map["origin_at"]),
  };
}

/** A map, a list or a single value, with texts instead of bytes. */
export type Plain = null | number | string | Plain[] | { [key: string]: Plain };

/** Returns any reply with texts instead of bytes, and names such as `put_at` as `putAt`. */
export function plainOf(reply: Reply): Plain {
  if (reply === null || typeof reply === "number") return reply;
  if (typeof reply === "string" || Buffer.isBuffer(reply)) return textOf(reply);
  if (Array.isArray(reply)) return reply.map(plainOf);
  const entries = Object.entries(mapOf(reply));
  return Object.fromEntries(entries.map(([name, value]) => [camelCase(name), plainOf(value)]));
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function unexpected(reply: unknown): PinpriqError {
  return new PinpriqError(`the server sent an unexpected reply: ${String(reply)}`);
}
