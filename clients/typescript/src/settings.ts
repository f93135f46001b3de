// The settings of queues: how they are sent and read. Printed from
// the server's table of settings by `cargo test -p pinpriq-proto printed`.
import { numberOf, numberOrNull, type ReplyMap, textOf, textOrNull } from "./replies.js";

/** A number of tasks in a number of milliseconds. */
export interface Rate {
  readonly count: number;
  readonly perMs: number;
}

/** The settings of a queue, as they are written. Null sets back to none. */
export interface SettingsChange {
  /** How ids come about. */
  readonly ids?: "sequence" | "time64" | "uuid" | "given";
  /** How long a task lives that says nothing else. */
  readonly ttlMs?: number | null;
  /** How long a lease lasts that says nothing else. */
  readonly ttrMs?: number | null;
  /** What becomes of a task that was acknowledged. */
  readonly afterAck?: "delete" | "keep" | "zombie";
  /** How long a finished task stays. */
  readonly zombieMs?: number;
  /** The most tasks that are not finished; a put beyond it is refused. */
  readonly capacity?: number | null;
  /** How often a task may fail before it is buried or becomes a dead letter. */
  readonly attempts?: number | null;
  /** How long a task waits after its first failure; after each further one, twice as long. */
  readonly backoffMs?: number | null;
  /** The longest that a task waits after a failure. */
  readonly backoffMaxMs?: number;
  /** The queue that gets tasks that have failed too often. */
  readonly deadLetter?: string | null;
  /** What becomes of a task whose TTL has passed. */
  readonly onExpiry?: "delete" | "deadletter";
  /** The most tasks that are taken at once; to others the queue looks empty meanwhile. */
  readonly limit?: number | null;
  /** How many tasks may be taken in a time. */
  readonly rate?: Rate | null;
  /** The most bytes of payloads and keys of tasks that are not finished. */
  readonly capacityBytes?: number | null;
  /** What happens to a put that finds the queue full. */
  readonly overflow?: "refuse" | "evict";
  /** Whether a release is a failure. */
  readonly releaseFails?: boolean;
  /** The highest cost that a task may have. */
  readonly costMax?: number;
  /** Whose turn it is among ready tasks. */
  readonly ranking?: "strict" | "fair" | "ageing";
  /** How many tasks of one key may be taken at once. */
  readonly keyLimit?: number | null;
  /** What the tasks of one key that are taken may cost in a time. */
  readonly keyRate?: Rate | null;
  /** Whether a task that has failed holds back the others of its key. */
  readonly keyHold?: boolean;
  /** How many tasks of one share may be taken at once. */
  readonly shareLimit?: number | null;
  /** What the tasks of one share that are taken may cost in a time. */
  readonly shareRate?: Rate | null;
  /** The most tasks of one share that are not finished; a put beyond it is refused. */
  readonly shareCapacity?: number | null;
  /** The limits that it uses together with other queues. */
  readonly uses?: string | null;
  /** How much later a task goes for each step of its priority, if tasks are ageing. */
  readonly ageingMs?: number | null;
  /** How many shares have metrics of their own: those with most tasks. */
  readonly shareMetrics?: number | null;
  /** How many of its last attempts a task keeps, for people to look at. */
  readonly history?: number;
}

/**
 * The settings of a queue, as they are. Null is none. Moments are Unix milliseconds: a pause
 * without one has no end.
 */
export interface Settings extends Required<Omit<SettingsChange, "zombieMs">> {
  readonly zombieMs: number | null;
  readonly paused: "none" | "in" | "out" | "both";
  readonly pausedInUntil: number | null;
  readonly pausedOutUntil: number | null;
}

/** Returns the settings that a change names, as words. */
export function settingsWords(change: SettingsChange): string[] {
  const values: readonly (readonly [string, string | number | null | undefined])[] = [
    ["IDS", change.ids],
    ["TTL", change.ttlMs],
    ["TTR", change.ttrMs],
    ["AFTERACK", change.afterAck],
    ["ZOMBIE", change.zombieMs],
    ["CAPACITY", change.capacity],
    ["ATTEMPTS", change.attempts],
    ["BACKOFF", change.backoffMs],
    ["BACKOFFMAX", change.backoffMaxMs],
    ["DEADLETTER", change.deadLetter],
    ["ONEXPIRY", change.onExpiry],
    ["LIMIT", change.limit],
    ["RATE", rateWord(change.rate)],
    ["CAPACITYBYTES", change.capacityBytes],
    ["OVERFLOW", change.overflow],
    ["RELEASEFAILS", onOff(change.releaseFails)],
    ["COSTMAX", change.costMax],
    ["RANKING", change.ranking],
    ["KEYLIMIT", change.keyLimit],
    ["KEYRATE", rateWord(change.keyRate)],
    ["KEYHOLD", onOff(change.keyHold)],
    ["SHARELIMIT", change.shareLimit],
    ["SHARERATE", rateWord(change.shareRate)],
    ["SHARECAPACITY", change.shareCapacity],
    ["USES", change.uses],
    ["AGEING", change.ageingMs],
    ["SHAREMETRICS", change.shareMetrics],
    ["HISTORY", change.history],
  ];
  return values.flatMap(([name, value]) => {
    return value === undefined ? [] : [name, value === null ? "none" : String(value)];
  });
}

/** Returns the settings that `QUEUE SHOW` tells. */
export function settingsOf(map: ReplyMap): Settings {
  return {
    ids: textOf(map["ids"]) as Settings["ids"],
    ttlMs: numberOrNull(map["ttl"]),
    ttrMs: numberOrNull(map["ttr"]),
    afterAck: textOf(map["afterack"]) as Settings["afterAck"],
    zombieMs: numberOrNull(map["zombie"]),
    capacity: numberOrNull(map["capacity"]),
    attempts: numberOrNull(map["attempts"]),
    backoffMs: numberOrNull(map["backoff"]),
    backoffMaxMs: numberOf(map["backoffmax"]),
    deadLetter: textOrNull(map["deadletter"]),
    onExpiry: textOf(map["onexpiry"]) as Settings["onExpiry"],
    limit: numberOrNull(map["limit"]),
    rate: rateOf(textOrNull(map["rate"])),
    capacityBytes: numberOrNull(map["capacitybytes"]),
    overflow: textOf(map["overflow"]) as Settings["overflow"],
    releaseFails: textOf(map["releasefails"]) === "on",
    costMax: numberOf(map["costmax"]),
    ranking: textOf(map["ranking"]) as Settings["ranking"],
    keyLimit: numberOrNull(map["keylimit"]),
    keyRate: rateOf(textOrNull(map["keyrate"])),
    keyHold: textOf(map["keyhold"]) === "on",
    shareLimit: numberOrNull(map["sharelimit"]),
    shareRate: rateOf(textOrNull(map["sharerate"])),
    shareCapacity: numberOrNull(map["sharecapacity"]),
    uses: textOrNull(map["uses"]),
    ageingMs: numberOrNull(map["ageing"]),
    shareMetrics: numberOrNull(map["sharemetrics"]),
    history: numberOf(map["history"]),
    paused: textOf(map["paused"]) as Settings["paused"],
    pausedInUntil: numberOrNull(map["paused_in_until"]),
    pausedOutUntil: numberOrNull(map["paused_out_until"]),
  };
}

function onOff(isOn: boolean | undefined): string | undefined {
  return isOn === undefined ? undefined : isOn ? "on" : "off";
}

function rateWord(rate: Rate | null | undefined): string | null | undefined {
  return rate ? `${rate.count}/${rate.perMs}` : rate;
}

function rateOf(word: string | null): Rate | null {
  const [count = 0, perMs = 0] = word?.split("/").map(Number) ?? [];
  return word === null ? null : { count, perMs };
}
