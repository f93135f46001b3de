// The options of commands. Names that end with Ms are whole milliseconds.
import type * as commands from "./commands.js";
import type { Word } from "./words.js";

/** What can be waited for can be given up. The call then throws the reason of the signal. */
export interface Abortable {
  readonly signal?: AbortSignal | undefined;
}

/**
 * The options of a command that callers give: not those that a queue gives itself, and not those
 * that a method has in another form.
 */
export type Rest<O, Other extends string = never> =
  Omit<O, "payload" | "member" | "withMeta" | "cursor" | "done" | "waitMs" | Other> & Abortable;

/** What can leave something for who takes the task next. */
export interface WithCheckpoint {
  /** How far the work has come, at most 65,536 bytes. An empty one removes it. */
  readonly checkpoint?: Word | undefined;
}

/** How a put is made. */
export interface PutOptions
  extends Rest<commands.PutOptions, "unique" | "state" | "reason" | "result"> {
  /**
   * The unique key. By default each put has one of its own, with a window, so that it can be sent
   * again safely. False sends none; then a put whose reply is lost throws `ConnectionLost`.
   */
  readonly unique?: string | false;
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
export type Selection = Pick<commands.TakeOptions, "from" | "order">;

/** How a pop is made. `group` takes whole groups, so that `count` is about groups. */
export interface PopOptions extends Rest<commands.PopOptions, "count"> {
  /** How long to wait for a task. Infinity: for ever. 0, the default: not at all. */
  readonly waitMs?: number;
  /** Asks for all that is known of each task. */
  readonly withMeta?: boolean;
}

/** How a take is made. */
export interface TakeOptions extends PopOptions, Rest<commands.TakeOptions, "count" | "ttrMs"> {
  /**
   * How long the lease lasts unless it is touched. By default that of the `Queue`, which is 60,000
   * unless told otherwise. Null: that of the task, else of the queue, else as long as the
   * connection.
   */
  readonly ttrMs?: number | null;
}

/** How brought-back tasks come. */
export type ComeBack = Rest<commands.RestartOptions>;

/** How a task is acknowledged. */
export interface AckOptions<T, R = unknown>
  extends Rest<commands.AckOptions, "zombieMs" | "result"> {
  /** What has come of the work, for who waits for the task or looks at it later. */
  readonly result?: R | undefined;
  /** Another payload, where the queue keeps finished tasks. */
  readonly payload?: T | undefined;
  /** How long the finished task stays. */
  readonly keepMs?: number | undefined;
}

/** Which side a pause is about: puts, takes, or both. */
export type Side = "in" | "out" | "both";
