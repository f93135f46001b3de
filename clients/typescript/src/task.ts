// A task that is shown, or that was popped: it has no lease.
import type { Codec } from "./codec.js";
import type { RawTask } from "./replies.js";
import type { TaskMeta } from "./meta.js";

/** A task without a lease. */
export interface Task<T> {
  /** The queue, or the topic for a task in a lane. */
  readonly queue: string;
  /** The name of the task within its queue. */
  readonly id: string;
  /** The payload. Reading it throws `BadPayload` if the bytes are not what the codec expects. */
  readonly payload: T;
  /** The payload as it came. */
  readonly bytes: Buffer;
  /** What an attempt has left for the next one, if one has. A pop tells it only with `withMeta`. */
  readonly checkpoint: Buffer | undefined;
  /** What else the server knows. A pop tells it only with `withMeta`. */
  readonly meta: TaskMeta | undefined;
}

/** Returns a task whose payload is decoded when it is read. */
export function taskWithPayload<T>(task: RawTask, codec: Codec<T>): Task<T> {
  const { queue, id, bytes } = task;
  return {
    queue,
    id,
    bytes,
    get checkpoint() {
      return task.checkpoint;
    },
    get meta() {
      return task.meta;
    },
    get payload() {
      return codec.decode(bytes);
    },
  };
}
