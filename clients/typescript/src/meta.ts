// What the server tells about a task besides its payload. Printed from
// the server's table of fields by `cargo test -p pinpriq-proto printed`.
import {
  type Attempt, attemptsOf, isYes, namesOf, numberOf, numberOrNull, type Origin, originOf,
  ownNumber, type ReplyMap, type State, textOf, textOrNull, textsOf,
} from "./replies.js";

/** What the server knows about a task. Moments are Unix milliseconds. */
export interface TaskMeta {
  /** Its key, if it has one. */
  readonly key: string | null;
  /** On whose behalf it runs, if its put said that. */
  readonly share: string | null;
  /** What a take of it costs. */
  readonly cost: number;
  /** Its priority, if it has one. */
  readonly priority: number | null;
  /** A letter; for `POP` the state before it was popped, R. */
  readonly state: State;
  /** How often it was taken, this time included. */
  readonly attempts: number;
  /** How often it has failed. */
  readonly failures: number;
  /** Why it failed or was buried the last time, perhaps empty. */
  readonly reason: string | null;
  /** Moment of the put. */
  readonly putAt: number;
  /** End of its time to live, if it has one. */
  readonly ttlAt: number | null;
  /** End of its delay, in W. */
  readonly readyAt: number | null;
  /** End of its lease, in T, if the lease has a TTR. */
  readonly leaseUntil: number | null;
  /** End of its stay, in Z. */
  readonly purgeAt: number | null;
  /** Number of the client that has taken it, in T, until the server restarts. */
  readonly client: number | null;
  /** Name of that client, if it has one and is still connected. */
  readonly clientName: string | null;
  /** Address of that client, while it is connected. */
  readonly clientAddress: string | null;
  /** The schedule that has put it, if one has. */
  readonly schedule: string | null;
  /** Moment of the slot for which a schedule has put it. */
  readonly slot: number | null;
  /** Short values by name that its put gave it. */
  readonly headers: Readonly<Record<string, string>>;
  /** Why it was cancelled, perhaps empty, in T until its holder stops. */
  readonly cancelled: string | null;
  /** How far the work has come, for people, in T if its holder has said that. */
  readonly progress: string | null;
  /** How far the work has come, for who takes it next, if a holder has said that. */
  readonly checkpoint: string | null;
  /** The batch it is pending in. */
  readonly batch: string | null;
  /** The batches that have to be done before it, in W. */
  readonly after: readonly string[];
  /** Whether it waits in W until it is freed. */
  readonly held: boolean;
  /** What has come of the work, if it is finished and its holder said that. */
  readonly result: string | null;
  /** How often it may fail before it is given up, if its put said that. */
  readonly attemptsMax: number | "none" | null;
  /** How long it waits after its first failure, if its put said that. */
  readonly backoffMs: number | "none" | null;
  /** The longest that it waits after a failure, if its put said that. */
  readonly backoffMaxMs: number | null;
  /** Its last attempts that have ended, oldest first (`GET`). */
  readonly history: readonly Attempt[];
  /** Where it comes from if it is a dead letter. */
  readonly origin: Origin | null;
}

/** Returns what a map tells about a task. */
export function metaOf(map: ReplyMap): TaskMeta {
  return {
    key: textOrNull(map["key"]),
    share: textOrNull(map["share"]),
    cost: numberOf(map["cost"]),
    priority: numberOrNull(map["priority"]),
    state: textOf(map["state"]) as State,
    attempts: numberOf(map["attempts"]),
    failures: numberOf(map["failures"]),
    reason: textOrNull(map["reason"]),
    putAt: numberOf(map["put_at"]),
    ttlAt: numberOrNull(map["ttl_at"]),
    readyAt: numberOrNull(map["ready_at"]),
    leaseUntil: numberOrNull(map["lease_until"]),
    purgeAt: numberOrNull(map["purge_at"]),
    client: numberOrNull(map["client"]),
    clientName: textOrNull(map["client_name"]),
    clientAddress: textOrNull(map["client_address"]),
    schedule: textOrNull(map["schedule"]),
    slot: numberOrNull(map["slot"]),
    headers: textsOf(map["headers"]),
    cancelled: textOrNull(map["cancelled"]),
    progress: textOrNull(map["progress"]),
    checkpoint: textOrNull(map["checkpoint"]),
    batch: textOrNull(map["batch"]),
    after: namesOf(map["after"]),
    held: isYes(map["held"]),
    result: textOrNull(map["result"]),
    attemptsMax: ownNumber(map["attempts_max"]),
    backoffMs: ownNumber(map["backoff"]),
    backoffMaxMs: numberOrNull(map["backoff_max"]),
    history: attemptsOf(map["history"]),
    origin: originOf(map),
  };
}
