// The public names of the package.
export { Batch, type BatchInfo, type BatchOpenOptions } from "./batches.js";
export { Client, type ClientOptions, type QueueOptions } from "./client.js";
export * as commands from "./commands.js";
export { bytes, type Codec, json, text } from "./codec.js";
export {
  type AnyRefusalKind,
  BadPayload,
  Cancelled,
  Closed,
  ConnectionLost,
  isRefused,
  PinpriqError,
  Refused,
  type RefusalKind,
} from "./errors.js";
export { type JoinOptions, Member, type MemberInfo, type PublishOptions, Topic } from "./fanout.js";
export type { Changed, Explanation, Lease, Reason } from "./inspection.js";
export { Job, type Settlement } from "./job.js";
export { Lane } from "./lane.js";
export type { Reply } from "./resp.js";
export type {
  Abortable,
  AckOptions,
  ComeBack,
  PopOptions,
  PutOptions,
  PutResult,
  Selection,
  Side,
  TakeOptions,
} from "./options.js";
export { Queue } from "./queue.js";
export type { Attempt, Origin, Outcome, Plain, State, StateOrGone } from "./replies.js";
export type { TaskMeta } from "./meta.js";
export { type ScheduleInfo, type ScheduleOptions, Schedules } from "./schedules.js";
export type { WithResult } from "./results.js";
export type { Rate, Settings, SettingsChange } from "./settings.js";
export { type Stoppable, stopOnSignals } from "./signals.js";
export type { Task } from "./task.js";
export { type StepPutOptions, Transaction } from "./transaction.js";
export { type Handler, type Work, Worker, type WorkerEvent, type WorkerOptions } from "./worker.js";
export { type Headers, type Held, type Moment, type Word, Words } from "./words.js";
