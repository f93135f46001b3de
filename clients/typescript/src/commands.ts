// The words of every command, with their types. The methods of queues use
// these functions. Printed from the server's table of commands by
// `cargo test -p pinpriq-proto printed`.
import { type SettingsChange, settingsWords } from "./settings.js";
import { type Held, type Moment, type Word, Words } from "./words.js";

/** The options of `PUT`. */
export interface PutOptions {
  /** The key: tasks of a queue with the same key form a group. */
  readonly key?: Word | undefined;
  /** The lower, the more urgent, 0 by default; a task with none leaves only with its group. */
  readonly priority?: number | bigint | null | undefined;
  /** How long the task waits before it can be taken. */
  readonly delayMs?: number | undefined;
  /** The moment from which the task can be taken, instead of a delay. */
  readonly at?: Moment | undefined;
  /** How long the task lives unless it is taken. */
  readonly ttlMs?: number | undefined;
  /** How long a lease of the task lasts unless it is renewed. */
  readonly ttrMs?: number | undefined;
  /** The id, for a queue whose ids are given. */
  readonly id?: string | undefined;
  /** How long to wait; -1 is without end. */
  readonly waitMs?: number | undefined;
  /** How long to wait for room in a full queue. */
  readonly roomMs?: number | undefined;
  /** No second task is put with this key while the first is unfinished. */
  readonly unique?: Word | undefined;
  /** How long the unique key counts after the put, even if the task is finished. */
  readonly windowMs?: number | undefined;
  /**
   * What a duplicate does: keep the first task as it is (the default), be rejected, or replace it.
   */
  readonly onDuplicate?: "keep" | "reject" | "replace" | undefined;
  /** The task is buried at once. */
  readonly state?: "B" | undefined;
  /** Why, for people who look at the task later; at most 1,024 bytes. */
  readonly reason?: string | undefined;
}

/**
 * Puts a task into a queue. The reply: the id; with WAIT the id and the outcome; with UNIQUE the
 * id, whether it is new (1 or 0), and with WAIT the outcome.
 */
export function put(
  queue: string,
  payload: Word,
  options: PutOptions = {},
): Words {
  return new Words("PUT", queue, payload)
    .option("KEY", options.key)
    .numberOrNone("PRIORITY", options.priority)
    .span("DELAY", options.delayMs)
    .moment("AT", options.at)
    .span("TTL", options.ttlMs)
    .span("TTR", options.ttrMs)
    .option("ID", options.id)
    .span("WAIT", options.waitMs)
    .span("ROOM", options.roomMs)
    .option("UNIQUE", options.unique)
    .span("WINDOW", options.windowMs)
    .option("ONDUP", options.onDuplicate)
    .option("STATE", options.state)
    .reason("REASON", options.reason);
}

/** The options of `TAKE`. */
export interface TakeOptions {
  /** At most this many. */
  readonly count?: number | undefined;
  /** How long to wait; -1 is without end. */
  readonly waitMs?: number | undefined;
  /** How long a lease of the task lasts unless it is renewed. */
  readonly ttrMs?: number | undefined;
  /** From which end of the priorities, MIN unless it is given. */
  readonly from?: "min" | "max" | undefined;
  /** Which task goes first among those of one priority. */
  readonly order?: "oldest" | "newest" | undefined;
  /** Whole groups of tasks with one key, so that COUNT counts groups. */
  readonly group?: boolean | undefined;
  /** All that is known of each task. */
  readonly withMeta?: boolean | undefined;
  /** Tasks to acknowledge in the same step, each by its queue and receipt. */
  readonly done?: readonly (readonly [string, string])[] | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/**
 * Takes the most urgent tasks under a lease. The reply: an array of tasks, empty if there are
 * none.
 */
export function take(
  queues: readonly string[],
  options: TakeOptions = {},
): Words {
  return new Words("TAKE")
    .queues(queues)
    .number("COUNT", options.count)
    .span("WAIT", options.waitMs)
    .span("TTR", options.ttrMs)
    .option("FROM", options.from)
    .option("ORDER", options.order)
    .flag("GROUP", options.group)
    .flag("WITHMETA", options.withMeta)
    .pairs("DONE", options.done)
    .option("MEMBER", options.member);
}

/** The options of `POP`. */
export interface PopOptions {
  /** At most this many. */
  readonly count?: number | undefined;
  /** How long to wait; -1 is without end. */
  readonly waitMs?: number | undefined;
  /** From which end of the priorities, MIN unless it is given. */
  readonly from?: "min" | "max" | undefined;
  /** Which task goes first among those of one priority. */
  readonly order?: "oldest" | "newest" | undefined;
  /** Whole groups of tasks with one key, so that COUNT counts groups. */
  readonly group?: boolean | undefined;
  /** All that is known of each task. */
  readonly withMeta?: boolean | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Takes the most urgent tasks for good. The reply: an array of tasks, empty if there are none. */
export function pop(
  queues: readonly string[],
  options: PopOptions = {},
): Words {
  return new Words("POP")
    .queues(queues)
    .number("COUNT", options.count)
    .span("WAIT", options.waitMs)
    .option("FROM", options.from)
    .option("ORDER", options.order)
    .flag("GROUP", options.group)
    .flag("WITHMETA", options.withMeta)
    .option("MEMBER", options.member);
}

/** The options of `PEEK`. */
export interface PeekOptions {
  /** From which end of the priorities, MIN unless it is given. */
  readonly from?: "min" | "max" | undefined;
  /** Which task goes first among those of one priority. */
  readonly order?: "oldest" | "newest" | undefined;
  /** Only tasks in this state. */
  readonly state?: "R" | "W" | "T" | "B" | "Z" | "D" | undefined;
  /** At most this many. */
  readonly count?: number | undefined;
  /** All that is known of each task. */
  readonly withMeta?: boolean | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Shows tasks and changes nothing. The reply: an array of tasks, empty if there are none. */
export function peek(
  queue: string,
  options: PeekOptions = {},
): Words {
  return new Words("PEEK", queue)
    .option("FROM", options.from)
    .option("ORDER", options.order)
    .option("STATE", options.state)
    .number("COUNT", options.count)
    .flag("WITHMETA", options.withMeta)
    .option("MEMBER", options.member);
}

/** The options of `GET`. */
export interface GetOptions {
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Shows one task by its id. The reply: a map with all that is known, or null. */
export function get(
  queue: string,
  id: string,
  options: GetOptions = {},
): Words {
  return new Words("GET", queue, id)
    .option("MEMBER", options.member);
}

/** The options of `ACK`. */
export interface AckOptions {
  /** Another payload. */
  readonly payload?: Word | undefined;
  /** How long the finished task stays. */
  readonly zombieMs?: number | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/**
 * Finishes taken tasks. The reply: OK; for several receipts an array of OK or error, one for each.
 */
export function ack(
  queue: string,
  held: Held | readonly string[],
  options: AckOptions = {},
): Words {
  return new Words("ACK", queue)
    .held(held)
    .option("PAYLOAD", options.payload)
    .span("ZOMBIE", options.zombieMs)
    .option("MEMBER", options.member);
}

/** The options of `RELEASE`. */
export interface ReleaseOptions {
  /** How long the task waits before it can be taken. */
  readonly delayMs?: number | undefined;
  /** How long the task lives unless it is taken. */
  readonly ttlMs?: number | undefined;
  /** The lower, the more urgent, 0 by default; a task with none leaves only with its group. */
  readonly priority?: number | bigint | null | undefined;
  /** Another payload. */
  readonly payload?: Word | undefined;
  /** Behind all others of its priority, instead of its old place. */
  readonly tail?: boolean | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Gives a taken task back to its queue. The reply: R, W, or X if its TTL had passed. */
export function release(
  queue: string,
  held: Held,
  options: ReleaseOptions = {},
): Words {
  return new Words("RELEASE", queue)
    .held(held)
    .span("DELAY", options.delayMs)
    .span("TTL", options.ttlMs)
    .numberOrNone("PRIORITY", options.priority)
    .option("PAYLOAD", options.payload)
    .flag("TAIL", options.tail)
    .option("MEMBER", options.member);
}

/** The options of `BURY`. */
export interface BuryOptions {
  /** Another payload. */
  readonly payload?: Word | undefined;
  /** Why, for people who look at the task later; at most 1,024 bytes. */
  readonly reason?: string | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Sets a taken task aside. The reply: OK. */
export function bury(
  queue: string,
  held: Held,
  options: BuryOptions = {},
): Words {
  return new Words("BURY", queue)
    .held(held)
    .option("PAYLOAD", options.payload)
    .reason("REASON", options.reason)
    .option("MEMBER", options.member);
}

/** The options of `FAIL`. */
export interface FailOptions {
  /** Why, for people who look at the task later; at most 1,024 bytes. */
  readonly reason?: string | undefined;
  /** How long the task waits before it can be taken. */
  readonly delayMs?: number | undefined;
  /** Another payload. */
  readonly payload?: Word | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/**
 * Gives a taken task back because it failed: to be tried again or to be given up. The reply: R, W,
 * B, or X if it became a dead letter or its TTL had passed.
 */
export function fail(
  queue: string,
  held: Held,
  options: FailOptions = {},
): Words {
  return new Words("FAIL", queue)
    .held(held)
    .reason("REASON", options.reason)
    .span("DELAY", options.delayMs)
    .option("PAYLOAD", options.payload)
    .option("MEMBER", options.member);
}

/** The options of `TOUCH`. */
export interface TouchOptions {
  /** How much the deadline moves, instead of a whole lease from now. */
  readonly byMs?: number | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/**
 * Renews or moves the deadline of a lease, or moves the TTL of a ready task. The reply: the new
 * deadline in Unix milliseconds, or null if there is none.
 */
export function touch(
  queue: string,
  held: Held,
  options: TouchOptions = {},
): Words {
  return new Words("TOUCH", queue)
    .held(held)
    .span("BY", options.byMs)
    .option("MEMBER", options.member);
}

/** The options of `DIG`. */
export interface DigOptions {
  /** How long the task waits before it can be taken. */
  readonly delayMs?: number | undefined;
  /** How long the task lives unless it is taken. */
  readonly ttlMs?: number | undefined;
  /** The lower, the more urgent, 0 by default; a task with none leaves only with its group. */
  readonly priority?: number | bigint | null | undefined;
  /** Another payload. */
  readonly payload?: Word | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Brings a buried task back. The reply: R, W, or X if its TTL had passed. */
export function dig(
  queue: string,
  id: string,
  options: DigOptions = {},
): Words {
  return new Words("DIG", queue, id)
    .span("DELAY", options.delayMs)
    .span("TTL", options.ttlMs)
    .numberOrNone("PRIORITY", options.priority)
    .option("PAYLOAD", options.payload)
    .option("MEMBER", options.member);
}

/** The options of `PLOW`. */
export interface PlowOptions {
  /** At most this many. */
  readonly count?: number | undefined;
  /** How long the task waits before it can be taken. */
  readonly delayMs?: number | undefined;
  /** How long the task lives unless it is taken. */
  readonly ttlMs?: number | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Brings the oldest buried tasks back, all of them without COUNT. The reply: how many. */
export function plow(
  queue: string,
  options: PlowOptions = {},
): Words {
  return new Words("PLOW", queue)
    .number("COUNT", options.count)
    .span("DELAY", options.delayMs)
    .span("TTL", options.ttlMs)
    .option("MEMBER", options.member);
}

/** The options of `KICK`. */
export interface KickOptions {
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** DIG by id, or PLOW with a count: the words of beanstalkd. The reply: as DIG or PLOW. */
export function kick(
  queue: string,
  count: number | { readonly id: string },
  options: KickOptions = {},
): Words {
  return new Words("KICK", queue)
    .held(count)
    .option("MEMBER", options.member);
}

/** The options of `KILL`. */
export interface KillOptions {
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Removes tasks in any state, also those that are held. The reply: how many. */
export function kill(
  queue: string,
  ids: readonly string[],
  options: KillOptions = {},
): Words {
  return new Words("KILL", queue, ...ids)
    .option("MEMBER", options.member);
}

/** The options of `SWITCH`. */
export interface SwitchCommandOptions {
  /** How long the task waits before it can be taken. */
  readonly delayMs?: number | undefined;
  /** How long the task lives unless it is taken. */
  readonly ttlMs?: number | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Turns a task that is not taken into another state. The reply: the state. */
export function switchCommand(
  queue: string,
  id: string,
  to: "R" | "W" | "B" | "Z" | "D",
  options: SwitchCommandOptions = {},
): Words {
  return new Words("SWITCH", queue, id, to)
    .span("DELAY", options.delayMs)
    .span("TTL", options.ttlMs)
    .option("MEMBER", options.member);
}

/** The options of `SNATCH`. */
export interface SnatchOptions {
  /** How long the task waits before it can be taken. */
  readonly delayMs?: number | undefined;
  /** How long the task lives unless it is taken. */
  readonly ttlMs?: number | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Takes a task away from its holder. The reply: R, W, or X if its TTL had passed. */
export function snatch(
  queue: string,
  id: string,
  options: SnatchOptions = {},
): Words {
  return new Words("SNATCH", queue, id)
    .span("DELAY", options.delayMs)
    .span("TTL", options.ttlMs)
    .option("MEMBER", options.member);
}

/** The options of `RESTART`. */
export interface RestartOptions {
  /** How long the task waits before it can be taken. */
  readonly delayMs?: number | undefined;
  /** How long the task lives unless it is taken. */
  readonly ttlMs?: number | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/**
 * Brings a waiting, buried or finished task back as if it had never been taken. The reply: R, W,
 * or X if its TTL had passed.
 */
export function restart(
  queue: string,
  id: string,
  options: RestartOptions = {},
): Words {
  return new Words("RESTART", queue, id)
    .span("DELAY", options.delayMs)
    .span("TTL", options.ttlMs)
    .option("MEMBER", options.member);
}

/** The options of `UPDATE`. */
export interface UpdateOptions {
  /** The lower, the more urgent, 0 by default; a task with none leaves only with its group. */
  readonly priority?: number | bigint | null | undefined;
  /** Another payload. */
  readonly payload?: Word | undefined;
  /** How long the task lives from now unless it is taken. */
  readonly ttlMs?: number | null | undefined;
  /** The receipt, which a taken task needs. */
  readonly receipt?: string | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Changes a task where it is. The reply: OK. */
export function update(
  queue: string,
  id: string,
  options: UpdateOptions = {},
): Words {
  return new Words("UPDATE", queue, id)
    .numberOrNone("PRIORITY", options.priority)
    .option("PAYLOAD", options.payload)
    .spanOrNone("TTL", options.ttlMs)
    .option("RECEIPT", options.receipt)
    .option("MEMBER", options.member);
}

/** The options of `MOVE`. */
export interface MoveOptions {
  /** At most this many. */
  readonly count?: number | undefined;
  /** Only tasks in this state. */
  readonly state?: "R" | "W" | "T" | "B" | "Z" | "D" | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Moves tasks of one state to another queue, the oldest first. The reply: how many. */
export function move(
  queue: string,
  to: string,
  options: MoveOptions = {},
): Words {
  return new Words("MOVE", queue, to)
    .number("COUNT", options.count)
    .option("STATE", options.state)
    .option("MEMBER", options.member);
}

/** The options of `REDRIVE`. */
export interface RedriveOptions {
  /** At most this many. */
  readonly count?: number | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Moves ready dead letters back to the queues that they come from. The reply: how many. */
export function redrive(
  queue: string,
  options: RedriveOptions = {},
): Words {
  return new Words("REDRIVE", queue)
    .number("COUNT", options.count)
    .option("MEMBER", options.member);
}

/** The options of `EXPLAIN`. */
export interface ExplainOptions {
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/**
 * Tells why a task is not handed out, or which task would be next. The reply: a map: id, state,
 * since, reasons.
 */
export function explain(
  queue: string,
  id?: string,
  options: ExplainOptions = {},
): Words {
  return new Words("EXPLAIN", queue)
    .maybe(id)
    .option("MEMBER", options.member);
}

/** The options of `SCAN`. */
export interface ScanOptions {
  /** Where the page begins: 0, or the cursor that came with the page before. */
  readonly cursor?: string | undefined;
  /** At most this many. */
  readonly count?: number | undefined;
  /** Only tasks in this state. */
  readonly state?: "R" | "W" | "T" | "B" | "Z" | "D" | undefined;
  /** The key: tasks of a queue with the same key form a group. */
  readonly key?: Word | undefined;
  /** All that is known of each task. */
  readonly withMeta?: boolean | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/**
 * Shows all tasks of a queue, page by page. The reply: the cursor of the next page (0 after the
 * last) and an array of tasks.
 */
export function scan(
  queue: string,
  options: ScanOptions = {},
): Words {
  return new Words("SCAN", queue)
    .option("CURSOR", options.cursor)
    .number("COUNT", options.count)
    .option("STATE", options.state)
    .option("KEY", options.key)
    .flag("WITHMETA", options.withMeta)
    .option("MEMBER", options.member);
}

/** The options of `LEASES`. */
export interface LeasesOptions {
  /** At most this many. */
  readonly count?: number | undefined;
  /** Where the page begins: 0, or the cursor that came with the page before. */
  readonly cursor?: string | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/**
 * Shows who holds which task, in one queue or in all, page by page. The reply: the cursor of the
 * next page (0 after the last) and an array of maps: queue, member, id, client, name, address,
 * since, until.
 */
export function leases(
  queue?: string,
  options: LeasesOptions = {},
): Words {
  return new Words("LEASES")
    .maybe(queue)
    .number("COUNT", options.count)
    .option("CURSOR", options.cursor)
    .option("MEMBER", options.member);
}

/** The options of `AWAIT`. */
export interface AwaitCommandOptions {
  /** How long to wait; -1 is without end. */
  readonly waitMs?: number | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/**
 * Waits until a task is finished. The reply: the outcome (acked, buried, expired, killed, dead,
 * evicted, moved, timeout) and the state.
 */
export function awaitCommand(
  queue: string,
  id: string,
  options: AwaitCommandOptions = {},
): Words {
  return new Words("AWAIT", queue, id)
    .span("WAIT", options.waitMs)
    .option("MEMBER", options.member);
}

/** The options of `SUBSCRIBE`. */
export interface SubscribeOptions {
  /** How long a lease of the task lasts unless it is renewed. */
  readonly ttrMs?: number | undefined;
  /** Tasks are delivered for good. */
  readonly pop?: boolean | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/**
 * Has tasks delivered, one for each credit. The reply: how many subscriptions the connection has.
 */
export function subscribe(
  queues: readonly string[],
  options: SubscribeOptions = {},
): Words {
  return new Words("SUBSCRIBE")
    .queues(queues)
    .span("TTR", options.ttrMs)
    .flag("POP", options.pop)
    .option("MEMBER", options.member);
}

/** The options of `UNSUBSCRIBE`. */
export interface UnsubscribeOptions {
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Ends subscriptions, all of them if none is named. The reply: how many subscriptions are left. */
export function unsubscribe(
  queues: readonly string[] = [],
  options: UnsubscribeOptions = {},
): Words {
  return new Words("UNSUBSCRIBE")
    .anyQueues(queues)
    .option("MEMBER", options.member);
}

/**
 * Grants that many further deliveries. The reply: the credit before the deliveries that it sets
 * off.
 */
export function credit(
  n: number,
): Words {
  return new Words("CREDIT", String(n));
}

/** Grants one further delivery. The reply: the credit before the delivery that it sets off. */
export function ready(
): Words {
  return new Words("READY");
}

/** The options of `JOIN`. */
export interface JoinOptions {
  /** How long the member lives without a sign of life. */
  readonly leaseMs?: number | undefined;
}

/**
 * Gives a member a lane in a topic, and registers it if need be. The reply: the incarnation of the
 * member.
 */
export function join(
  topic: string,
  member: string,
  options: JoinOptions = {},
): Words {
  return new Words("JOIN", topic, member)
    .span("LEASE", options.leaseMs);
}

/** The options of `BEAT`. */
export interface BeatOptions {
  /** How long the member lives without a sign of life. */
  readonly leaseMs?: number | undefined;
}

/** Gives a sign of life, which begins the lease of a member anew. The reply: OK. */
export function beat(
  member: string,
  options: BeatOptions = {},
): Words {
  return new Words("BEAT", member)
    .span("LEASE", options.leaseMs);
}

/**
 * Ends a lane of a member; without a topic the member and all its lanes. The reply: how many lanes
 * ended.
 */
export function leave(
  topic: string | undefined,
  member: string,
): Words {
  return new Words("LEAVE")
    .maybe(topic)
    .add(member);
}

/** The options of `PUBLISH`. */
export interface PublishOptions {
  /** The key: tasks of a queue with the same key form a group. */
  readonly key?: Word | undefined;
  /** The lower, the more urgent, 0 by default; a task with none leaves only with its group. */
  readonly priority?: number | bigint | null | undefined;
  /** The moment from which the task is not delivered to members. */
  readonly deadline?: Moment | undefined;
  /** How long the task lives unless it is taken. */
  readonly ttlMs?: number | undefined;
}

/** Puts one task into each lane of a topic. The reply: how many lanes. */
export function publish(
  topic: string,
  payload: Word,
  options: PublishOptions = {},
): Words {
  return new Words("PUBLISH", topic, payload)
    .option("KEY", options.key)
    .numberOrNone("PRIORITY", options.priority)
    .moment("DEADLINE", options.deadline)
    .span("TTL", options.ttlMs);
}

/**
 * Tells the members of a topic. The reply: an array of maps: member, incarnation, lease_until,
 * ready, taken.
 */
export function members(
  topic: string,
): Words {
  return new Words("MEMBERS", topic);
}

/** Makes a queue that exists even when it is empty. The reply: OK. */
export function queueCreate(
  queue: string,
  settings: SettingsChange = {},
): Words {
  return new Words("QUEUE", "CREATE", queue, ...settingsWords(settings));
}

/** The options of `QUEUE SET`. */
export interface QueueSetOptions {
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Changes settings of a queue, which is created if need be. The reply: OK. */
export function queueSet(
  queue: string,
  settings: SettingsChange,
  options: QueueSetOptions = {},
): Words {
  return new Words("QUEUE", "SET", queue, ...settingsWords(settings))
    .option("MEMBER", options.member);
}

/** The options of `QUEUE SHOW`. */
export interface QueueShowOptions {
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Tells the settings of a queue. The reply: a map. */
export function queueShow(
  queue: string,
  options: QueueShowOptions = {},
): Words {
  return new Words("QUEUE", "SHOW", queue)
    .option("MEMBER", options.member);
}

/** The options of `QUEUE LIST`. */
export interface QueueListOptions {
  /** Only names that begin with this. */
  readonly prefix?: string | undefined;
  /** At most this many. */
  readonly count?: number | undefined;
  /** Where the page begins: 0, or the cursor that came with the page before. */
  readonly cursor?: string | undefined;
}

/**
 * Tells the names of the queues, page by page. The reply: the cursor of the next page (0 after the
 * last) and the names in order.
 */
export function queueList(
  options: QueueListOptions = {},
): Words {
  return new Words("QUEUE", "LIST")
    .option("PREFIX", options.prefix)
    .number("COUNT", options.count)
    .option("CURSOR", options.cursor);
}

/** The options of `QUEUE TRUNCATE`. */
export interface QueueTruncateOptions {
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Removes all tasks of a queue. The reply: how many. */
export function queueTruncate(
  queue: string,
  options: QueueTruncateOptions = {},
): Words {
  return new Words("QUEUE", "TRUNCATE", queue)
    .option("MEMBER", options.member);
}

/** Removes a queue with its tasks, settings and pause. The reply: how many tasks it had. */
export function queueDrop(
  queue: string,
): Words {
  return new Words("QUEUE", "DROP", queue);
}

/** The options of `QUEUE PAUSE`. */
export interface QueuePauseOptions {
  /** How long the pause lasts; without it until it is ended. */
  readonly forMs?: number | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Pauses a queue for puts, for takes, or for both, for good or for a while. The reply: OK. */
export function queuePause(
  queue: string,
  side?: "in" | "out",
  options: QueuePauseOptions = {},
): Words {
  return new Words("QUEUE", "PAUSE", queue)
    .maybe(side)
    .span("FOR", options.forMs)
    .option("MEMBER", options.member);
}

/** The options of `QUEUE RESUME`. */
export interface QueueResumeOptions {
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Ends a pause. The reply: OK. */
export function queueResume(
  queue: string,
  side?: "in" | "out",
  options: QueueResumeOptions = {},
): Words {
  return new Words("QUEUE", "RESUME", queue)
    .maybe(side)
    .option("MEMBER", options.member);
}

/** The options of `STATS`. */
export interface StatsOptions {
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
}

/** Tells the figures of a queue, or of all together. The reply: a map. */
export function stats(
  queue?: string,
  options: StatsOptions = {},
): Words {
  return new Words("STATS")
    .maybe(queue)
    .option("MEMBER", options.member);
}

/** The options of `EXPORT`. */
export interface ExportCommandOptions {
  /** Where the page begins: 0, or the cursor that came with the page before. */
  readonly cursor?: string | undefined;
  /** At most this many. */
  readonly count?: number | undefined;
}

/**
 * Shows all that another server needs to go on with a queue, page by page. The reply: the cursor
 * of the next page (0 after the last) and an array of records as JSON.
 */
export function exportCommand(
  queue: string,
  options: ExportCommandOptions = {},
): Words {
  return new Words("EXPORT", queue)
    .option("CURSOR", options.cursor)
    .number("COUNT", options.count);
}

/** The options of `IMPORT`. */
export interface ImportCommandOptions {
  /** Another payload. */
  readonly payload?: Word | undefined;
}

/** Takes over one record of an export. The reply: the id of a task; OK for other records. */
export function importCommand(
  queue: string,
  record: string,
  options: ImportCommandOptions = {},
): Words {
  return new Words("IMPORT", queue, record)
    .option("PAYLOAD", options.payload);
}

/** The options of `SCHEDULE SET`. */
export interface ScheduleSetOptions {
  /** The time from one slot to the next, at least 100 ms. */
  readonly everyMs?: number | undefined;
  /** A moment that is a slot; the others lie whole distances from it. */
  readonly at?: Moment | undefined;
  /** Minute, hour, day of month, month and day of week, or a word such as @daily. */
  readonly cron?: string | undefined;
  /** The IANA time zone of CRON, such as Europe/Berlin; UTC unless it is given. */
  readonly zone?: string | undefined;
  /** The key: tasks of a queue with the same key form a group. */
  readonly key?: Word | undefined;
  /** The lower, the more urgent, 0 by default; a task with none leaves only with its group. */
  readonly priority?: number | bigint | null | undefined;
  /** How long the task lives unless it is taken. */
  readonly ttlMs?: number | undefined;
  /** How long a lease of the task lasts unless it is renewed. */
  readonly ttrMs?: number | undefined;
  /** What is put for slots missed while the server was down: one task (the default), all, none. */
  readonly missed?: "one" | "all" | "none" | undefined;
  /**
   * Whether a slot puts a task while the last one is unfinished: allow (the default), or skip it.
   */
  readonly overlap?: "allow" | "skip" | undefined;
}

/**
 * Puts a task into a queue again and again, or changes when and which. The reply: the next slot in
 * Unix milliseconds.
 */
export function scheduleSet(
  schedule: string,
  queue: string,
  payload: Word,
  options: ScheduleSetOptions = {},
): Words {
  return new Words("SCHEDULE", "SET", schedule, queue, payload)
    .span("EVERY", options.everyMs)
    .moment("AT", options.at)
    .option("CRON", options.cron)
    .option("ZONE", options.zone)
    .option("KEY", options.key)
    .numberOrNone("PRIORITY", options.priority)
    .span("TTL", options.ttlMs)
    .span("TTR", options.ttrMs)
    .option("MISSED", options.missed)
    .option("OVERLAP", options.overlap);
}

/** Tells what a schedule does and what it has done. The reply: a map. */
export function scheduleShow(
  schedule: string,
): Words {
  return new Words("SCHEDULE", "SHOW", schedule);
}

/** The options of `SCHEDULE LIST`. */
export interface ScheduleListOptions {
  /** Only names that begin with this. */
  readonly prefix?: string | undefined;
  /** At most this many. */
  readonly count?: number | undefined;
  /** Where the page begins: 0, or the cursor that came with the page before. */
  readonly cursor?: string | undefined;
}

/**
 * Tells the names of the schedules, page by page. The reply: the cursor of the next page (0 after
 * the last) and the names in order.
 */
export function scheduleList(
  options: ScheduleListOptions = {},
): Words {
  return new Words("SCHEDULE", "LIST")
    .option("PREFIX", options.prefix)
    .number("COUNT", options.count)
    .option("CURSOR", options.cursor);
}

/** Lets slots pass without a task. The reply: OK. */
export function schedulePause(
  schedule: string,
): Words {
  return new Words("SCHEDULE", "PAUSE", schedule);
}

/** Ends a pause of a schedule. The reply: OK. */
export function scheduleResume(
  schedule: string,
): Words {
  return new Words("SCHEDULE", "RESUME", schedule);
}

/** Removes a schedule; its tasks stay. The reply: 1, or 0 if there is none. */
export function scheduleDrop(
  schedule: string,
): Words {
  return new Words("SCHEDULE", "DROP", schedule);
}

/** Puts a task of a schedule now, also while it is paused. The reply: the id. */
export function scheduleFire(
  schedule: string,
): Words {
  return new Words("SCHEDULE", "FIRE", schedule);
}
