// The settings of queues: how they are written and read.
import type { SettingsChange } from "./options.js";
import { numberOrNull, type ReplyMap, textOf, textOrNull } from "./replies.js";
import type { Words } from "./words.js";

/**
 * The settings of a queue, as they are; `SettingsChange` tells what each means. Null is none.
 * Moments are Unix milliseconds: a pause without one has no end.
 */
export interface Settings {
  readonly ids: "sequence" | "time64" | "uuid" | "given";
  readonly ttlMs: number | null;
  readonly ttrMs: number | null;
  readonly afterAck: "delete" | "keep" | "zombie";
  readonly zombieMs: number | null;
  readonly capacity: number | null;
  readonly capacityBytes: number | null;
  readonly overflow: "refuse" | "evict";
  readonly attempts: number | null;
  readonly backoffMs: number | null;
  readonly backoffMaxMs: number | null;
  readonly deadLetter: string | null;
  readonly onExpiry: "delete" | "deadletter";
  readonly limit: number | null;
  readonly rate: { readonly count: number; readonly perMs: number } | null;
  readonly releaseFails: boolean;
  readonly paused: "none" | "in" | "out" | "both";
  readonly pausedInUntil: number | null;
  readonly pausedOutUntil: number | null;
}

/** Adds the settings that a change names. */
export function addSettings(words: Words, change: SettingsChange): Words {
  const values: Record<string, string | number | null | undefined> = {
    IDS: change.ids,
    TTL: change.ttlMs,
    TTR: change.ttrMs,
    AFTERACK: change.afterAck,
    ZOMBIE: change.zombieMs,
    CAPACITY: change.capacity,
    CAPACITYBYTES: change.capacityBytes,
    OVERFLOW: change.overflow,
    ATTEMPTS: change.attempts,
    BACKOFF: change.backoffMs,
    BACKOFFMAX: change.backoffMaxMs,
    DEADLETTER: change.deadLetter,
    ONEXPIRY: change.onExpiry,
    LIMIT: change.limit,
    RATE: change.rate ? `${change.rate.count}/${change.rate.perMs}` : change.rate,
    RELEASEFAILS: change.releaseFails === undefined ? undefined : onOff(change.releaseFails),
  };
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) words.add(name, value === null ? "none" : String(value));
  }
  return words;
}

/** Returns the settings that `QUEUE SHOW` tells. */
export function settingsOf(map: ReplyMap): Settings {
  const rate = textOrNull(map["rate"])?.split("/").map(Number);
  return {
    ids: textOf(map["ids"]) as Settings["ids"],
    ttlMs: numberOrNull(map["ttl"]),
    ttrMs: numberOrNull(map["ttr"]),
    afterAck: textOf(map["afterack"]) as Settings["afterAck"],
    zombieMs: numberOrNull(map["zombie"]),
    capacity: numberOrNull(map["capacity"]),
    capacityBytes: numberOrNull(map["capacitybytes"]),
    overflow: textOf(map["overflow"]) as Settings["overflow"],
    attempts: numberOrNull(map["attempts"]),
    backoffMs: numberOrNull(map["backoff"]),
    backoffMaxMs: numberOrNull(map["backoffmax"]),
    deadLetter: textOrNull(map["deadletter"]),
    onExpiry: textOf(map["onexpiry"]) as Settings["onExpiry"],
    limit: numberOrNull(map["limit"]),
    rate: rate ? { count: rate[0] ?? 0, perMs: rate[1] ?? 0 } : null,
    releaseFails: textOf(map["releasefails"]) === "on",
    paused: textOf(map["paused"]) as Settings["paused"],
    pausedInUntil: numberOrNull(map["paused_in_until"]),
    pausedOutUntil: numberOrNull(map["paused_out_until"]),
  };
}

function onOff(isOn: boolean): string {
  return isOn ? "on" : "off";
}
