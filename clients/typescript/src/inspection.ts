// The types of what EXPLAIN and LEASES tell.
import type { Plain, State } from "./replies.js";

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
  /** In how many milliseconds it is handed out if all goes on as in the last minute, or null. */
  readonly etaMs: number | null;
  /** The same if it goes as in the best five seconds of that minute, and as in the worst. */
  readonly etaLow: number | null;
  readonly etaHigh: number | null;
}

/** How many tasks a bulk change was about: those that have changed, and all it looked at. */
export interface Changed {
  readonly changed: number;
  readonly looked: number;
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
  /** How far the work has come, if its holder has said that. */
  readonly progress: string | null;
}
