// The options of commands. Names that end with Ms are whole milliseconds.
import type { Moment } from "./words.js";

/** What can be waited for can be given up. The call then throws the reason of the signal. */
export interface Abortable {
  readonly signal?: AbortSignal | undefined;
}

/** How a put is made. */
export interface PutOptions extends Abortable {
  /** The key of its group. */
  readonly key?: string | Uint8Array;
  /** Lower is more urgent, 0 by default. Null: it leaves only with its group. */
  readonly priority?: number | bigint | null;
  /** How long the task waits until it can be taken. */
  readonly delayMs?: number;
  /** The moment from which the task can be taken, instead of `delayMs`. */
  readonly at?: Moment;
  /** How long it lives unless it is taken. Must be longer than the delay. */
  readonly ttlMs?: number;
  /** How long a lease lasts where the take does not say. */
  readonly ttrMs?: number;
  /** The id, for queues with `ids: "given"` only. */
  readonly id?: string;
  /** How long to wait for room in a full queue. Then it is refused with `FULL`. */
  readonly roomMs?: number;
  /**
   * The unique key. By default each put has one of its own, with a window, so that it can be sent
   * again safely. False sends none; then a put whose reply is lost throws `ConnectionLost`.
   */
  readonly unique?: string | false;
  /**
   * How long the unique key counts after the put, even if the task is finished. Give it with your
   * own key, so that a put that is sent again makes no second task after the first is done.
   */
  readonly windowMs?: number;
  /** What a duplicate does: nothing, a refusal with `EXISTS`, or it replaces the first task. */
  readonly onDuplicate?: "keep" | "reject" | "replace";
}

/** What became of a put. */
export interface PutResult {
  /** The id of the task, or of the first one if this is a duplicate. */
  readonly id: string;
  /** False if a task with this unique key was there already. */
  readonly isNew: boolean;
  /**
   * Whether the put was sent more than once. With a unique key of yours, `isNew: false` may then be
   * about this same put.
   */
  readonly repeated: boolean;
}

/** Which tasks are chosen. */
export interface Selection {
  /** From the lowest number (`min`, the default) or from the highest. */
  readonly from?: "min" | "max";
  /** Which goes first among equals. */
  readonly order?: "oldest" | "newest";
}

/** How a pop is made. */
export interface PopOptions extends Selection, Abortable {
  /** How long to wait for a task. Infinity: for ever. 0, the default: not at all. */
  readonly waitMs?: number;
  /** Takes whole groups, so that `count` is about groups. */
  readonly group?: boolean;
  /** Asks for all that is known of each task. */
  readonly withMeta?: boolean;
}

/** How a take is made. */
export interface TakeOptions extends PopOptions {
  /**
   * How long the lease lasts unless it is touched. By default that of the `Queue`, which is 60,000
   * unless told otherwise. Null: that of the task, else of the queue, else as long as the
   * connection.
   */
  readonly ttrMs?: number | null;
}

/** How brought-back tasks come. */
export interface ComeBack extends Abortable {
  /** How long they wait until they can be taken. */
  readonly delayMs?: number;
  /** How long they live from now, unless they are taken. */
  readonly ttlMs?: number;
}

/** The settings of a queue, as they are written. Null sets back to none. */
export interface SettingsChange {
  /** How ids come about. Can be changed while the queue is empty. */
  readonly ids?: "sequence" | "time64" | "uuid" | "given";
  /** How long a task lives that says nothing else. */
  readonly ttlMs?: number | null;
  /** How long a lease lasts that says nothing else. */
  readonly ttrMs?: number | null;
  /** What becomes of a task that was acknowledged. */
  readonly afterAck?: "delete" | "keep" | "zombie";
  /** How long finished tasks stay. */
  readonly zombieMs?: number;
  /** The most tasks that are not finished. */
  readonly capacity?: number | null;
  /** The most bytes of their payloads and keys. */
  readonly capacityBytes?: number | null;
  /** What happens to a put that finds the queue full. */
  readonly overflow?: "refuse" | "evict";
  /** How often a task may fail. */
  readonly attempts?: number | null;
  /** How long a task waits after its first failure; after each further one, twice as long. */
  readonly backoffMs?: number | null;
  /** The longest that a task waits after a failure. */
  readonly backoffMaxMs?: number;
  /** The queue that gets tasks that have failed too often. */
  readonly deadLetter?: string | null;
  /** What becomes of a task whose time to live has passed. */
  readonly onExpiry?: "delete" | "deadletter";
  /** The most tasks that are taken at once. */
  readonly limit?: number | null;
  /** How many tasks may be taken in a time. */
  readonly rate?: { readonly count: number; readonly perMs: number } | null;
  /** Whether a release is a failure. */
  readonly releaseFails?: boolean;
}

/** Which side a pause is about: puts, takes, or both. */
export type Side = "in" | "out" | "both";
