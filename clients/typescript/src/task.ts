// A task that is shown, or that was popped: it has no lease.
import type { Codec } from "./codec.js";
import type { RawTask } from "./replies.js";
import type { TaskMeta } from "./meta.js";
import { decodedResult, type WithResult } from "./results.js";

/** A task without a lease. It has a result if it is finished and its queue keeps it. */
export interface Task<T, R = unknown> extends WithResult<R> {
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

/** Returns a task whose payload and result are decoded when they are read. */
export function taskWithPayload<T, R>(
  task: RawTask,
  codec: Codec<T>,
  resultCodec: Codec<R>,
): Task<T, R> {
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
    get result() {
      return decodedResult(task.result, resultCodec);
    },
    get resultBytes() {
      return task.result;
    },
  };
}
