// What EXPLAIN and LEASES tell, as typed objects.
import {
  listOf, mapOf, numberOrNull, type Plain, plainOf, type ReplyMap, type State, textOf, textOrNull,
} from "./replies.js";

/** One reason why a task is not handed out. */
export interface Reason {
  /** Such as `delayed`, `taken`, `paused`, `behind` or `next`. */
  readonly code: string;
  /** What belongs to the code, such as `until` or `atLeast`. */
  readonly [detail: string]: Plain;
}

/** Why a task is not handed out. */
export interface Explanation {
  /** The task, or null if none can be chosen. */
  readonly id: string | null;
  readonly state: State | null;
  /** Since when it is in this state, in Unix milliseconds; null if that is not known. */
  readonly since: number | null;
  readonly reasons: readonly Reason[];
}

/** Who holds a task. Moments are Unix milliseconds. */
export interface Lease {
  readonly queue: string;
  readonly member: string | null;
  readonly id: string;
  /** The number of the connection. Null after a restart of the server. */
  readonly client: number | null;
  readonly name: string | null;
  readonly address: string | null;
  readonly door: string | null;
  readonly since: number | null;
  /** When it ends; null if it lasts as long as the connection. */
  readonly until: number | null;
}

/** Returns what EXPLAIN tells. */
export function explanationOf(map: ReplyMap): Explanation {
  return {
    id: textOrNull(map["id"]),
    state: textOrNull(map["state"]) as State | null,
    since: numberOrNull(map["since"]),
    reasons: listOf(map["reasons"]).map((reason) => plainOf(mapOf(reason)) as unknown as Reason),
  };
}

/** Returns one lease. */
export function leaseOf(map: ReplyMap): Lease {
  return {
    queue: textOf(map["queue"]),
    member: textOrNull(map["member"]),
    id: textOf(map["id"]),
    client: numberOrNull(map["client"]),
    name: textOrNull(map["name"]),
    address: textOrNull(map["address"]),
    door: textOrNull(map["door"]),
    since: numberOrNull(map["since"]),
    until: numberOrNull(map["until"]),
  };
}
