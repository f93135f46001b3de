// The words of every command, with their types. The methods of queues use
// these functions. Printed from the server's table of commands by
// `cargo test -p pinpriq-proto printed`.
import { type SettingsChange, settingsWords } from "./settings.js";
import { type Headers, type Held, type Moment, type Word, Words } from "./words.js";

/** The options of commands. Each command has some of them. */
export interface Options {
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
  /** Only tasks in this state. */
  readonly state?: "R" | "W" | "T" | "B" | "Z" | "D" | undefined;
  /** Why, for people who look at the task later; at most 1,024 bytes. */
  readonly reason?: string | undefined;
  /** On whose behalf the task runs, for fair turns and limits: its key unless it is given. */
  readonly share?: Word | undefined;
  /** What the task did cost, for rates, instead of the cost of its put. */
  readonly cost?: number | undefined;
  /** Short values by name that travel with the payload, such as a trace; at most 16. */
  readonly headers?: Headers | undefined;
  /** The task waits until RESTART frees it, or TAKE with its ID, or CANCEL ends it. */
  readonly held?: boolean | undefined;
  /** How often the task may fail before it is given up, instead of what its queue says. */
  readonly attempts?: number | bigint | null | undefined;
  /** How long the task waits after its first failure, instead of what its queue says. */
  readonly backoffMs?: number | null | undefined;
  /** The longest that the task waits after a failure, instead of what its queue says. */
  readonly backoffMaxMs?: number | undefined;
  /** What has come of the work is part of the answer, as its last element. */
  readonly result?: boolean | undefined;
  /** Only pending tasks of this batch. */
  readonly batch?: string | undefined;
  /** Batches that have to be done before the task can be taken; at most 16. */
  readonly after?: readonly string[] | undefined;
  /**
   * Whether the task is skipped after AFTER: never (done, the default), if a task of those batches
   * has failed (acked), or if none has (failed).
   */
  readonly onlyIf?: "done" | "acked" | "failed" | undefined;
  /** At most this many. */
  readonly count?: number | undefined;
  /** From which end of the priorities, MIN unless it is given. */
  readonly from?: "min" | "max" | undefined;
  /** Which task goes first among those of one priority. */
  readonly order?: "oldest" | "newest" | undefined;
  /** Whole groups of tasks with one key, so that COUNT counts groups. */
  readonly group?: boolean | undefined;
  /** All that is known of each task. */
  readonly withMeta?: boolean | undefined;
  /**
   * Tasks to acknowledge in the same step, each by its queue and receipt, and RESULT after them.
   */
  readonly done?: readonly (readonly [string, string])[] | undefined;
  /** The member whose lane is meant; the queue is the topic then. */
  readonly member?: string | undefined;
  /** Another payload. */
  readonly payload?: Word | undefined;
  /** How long the finished task stays. */
  readonly zombieMs?: number | undefined;
  /** Behind all others of its priority, instead of its old place. */
  readonly tail?: boolean | undefined;
  /**
   * How far the work has come, for who takes it next; at most 65,536 bytes, and empty removes it.
   */
  readonly checkpoint?: string | undefined;
  /** How much the deadline moves, instead of a whole lease from now. */
  readonly byMs?: number | undefined;
  /**
   * How far the work has come, for people who look at it; at most 256 bytes, until the lease ends.
   */
  readonly progress?: string | undefined;
  /** The receipt, which a taken task needs. */
  readonly receipt?: string | undefined;
  /** Where the page begins: 0, or the cursor that came with the page before. */
  readonly cursor?: string | undefined;
  /** How long the holder of the task may go on at most, from now. */
  readonly graceMs?: number | undefined;
  /** Bring them back as if they had never been taken. */
  readonly restart?: boolean | undefined;
  /** End them, or if they are taken, ask their holders to stop. */
  readonly cancel?: boolean | undefined;
  /** Remove them, also those that are held. */
  readonly kill?: boolean | undefined;
  /** Move ready dead letters back to the queues that they come from. */
  readonly redrive?: boolean | undefined;
  /** Move them to this queue, in the state that they have. */
  readonly move?: string | undefined;
  /** Only tasks with a priority from the first to the second. */
  readonly priorities?: readonly [number, number] | undefined;
  /** Only tasks that were put at least this long ago. */
  readonly olderMs?: number | undefined;
  /** Only tasks that have failed at least this often. */
  readonly failures?: number | undefined;
  /** Only tasks with a header of this name whose value matches. */
  readonly header?: readonly [string, string] | undefined;
  /** Count the tasks, and change nothing. */
  readonly dry?: boolean | undefined;
  /** Tasks are delivered for good. */
  readonly pop?: boolean | undefined;
  /** A task is called back for a more urgent one until it is started. */
  readonly recall?: boolean | undefined;
  /** How long the member lives without a sign of life. */
  readonly leaseMs?: number | undefined;
  /** The moment from which the task is not delivered to members. */
  readonly deadline?: Moment | undefined;
  /** Only names that begin with this. */
  readonly prefix?: string | undefined;
  /** How long the pause lasts; without it until it is ended. */
  readonly forMs?: number | undefined;
  /** How much the share gets of a fair queue compared with others, from 1 (the default) to 1000. */
  readonly weight?: number | undefined;
  /**
   * How many tasks of the share may be taken at once: a number, none, or default, as for others.
   */
  readonly limit?: string | undefined;
  /**
   * How many tasks of the share are handed out in a time: n/ms, none, or default, as for others.
   */
  readonly rate?: string | undefined;
  /** Those that wait longest first, at most 100 and without a cursor. */
  readonly top?: boolean | undefined;
  /** How many tasks may be taken at once: a number, or none. */
  readonly max?: string | undefined;
  /** The time from one slot to the next, at least 100 ms. */
  readonly everyMs?: number | undefined;
  /** Minute, hour, day of month, month and day of week, or a word such as @daily. */
  readonly cron?: string | undefined;
  /** The IANA time zone of CRON, such as Europe/Berlin; UTC unless it is given. */
  readonly zone?: string | undefined;
  /** What is put for slots missed while the server was down: one task (the default), all, none. */
  readonly missed?: "one" | "all" | "none" | undefined;
  /**
   * Whether a slot puts a task while the last one is unfinished: allow (the default), or skip it.
   */
  readonly overlap?: "allow" | "skip" | undefined;
}

/** What adds each option to a request. */
const SEND: {
  readonly [Name in keyof Required<Options>]: (words: Words, value: Options[Name]) => Words;
} = {
  key: (words, value) => words.option("KEY", value),
  priority: (words, value) => words.numberOrNone("PRIORITY", value),
  delayMs: (words, value) => words.span("DELAY", value),
  at: (words, value) => words.moment("AT", value),
  ttlMs: (words, value) => words.span("TTL", value),
  ttrMs: (words, value) => words.span("TTR", value),
  id: (words, value) => words.option("ID", value),
  waitMs: (words, value) => words.span("WAIT", value),
  roomMs: (words, value) => words.span("ROOM", value),
  unique: (words, value) => words.option("UNIQUE", value),
  windowMs: (words, value) => words.span("WINDOW", value),
  onDuplicate: (words, value) => words.option("ONDUP", value),
  state: (words, value) => words.option("STATE", value),
  reason: (words, value) => words.reason("REASON", value),
  share: (words, value) => words.option("SHARE", value),
  cost: (words, value) => words.number("COST", value),
  headers: (words, value) => words.headers("HEADERS", value),
  held: (words, value) => words.flag("HELD", value),
  attempts: (words, value) => words.numberOrNone("ATTEMPTS", value),
  backoffMs: (words, value) => words.spanOrNone("BACKOFF", value),
  backoffMaxMs: (words, value) => words.span("BACKOFFMAX", value),
  result: (words, value) => words.flag("RESULT", value),
  batch: (words, value) => words.option("BATCH", value),
  after: (words, value) => words.counted("AFTER", value),
  onlyIf: (words, value) => words.option("IF", value),
  count: (words, value) => words.number("COUNT", value),
  from: (words, value) => words.option("FROM", value),
  order: (words, value) => words.option("ORDER", value),
  group: (words, value) => words.flag("GROUP", value),
  withMeta: (words, value) => words.flag("WITHMETA", value),
  done: (words, value) => words.pairs("DONE", value),
  member: (words, value) => words.option("MEMBER", value),
  payload: (words, value) => words.option("PAYLOAD", value),
  zombieMs: (words, value) => words.span("ZOMBIE", value),
  tail: (words, value) => words.flag("TAIL", value),
  checkpoint: (words, value) => words.option("CHECKPOINT", value),
  byMs: (words, value) => words.span("BY", value),
  progress: (words, value) => words.option("PROGRESS", value),
  receipt: (words, value) => words.option("RECEIPT", value),
  cursor: (words, value) => words.option("CURSOR", value),
  graceMs: (words, value) => words.span("GRACE", value),
  restart: (words, value) => words.flag("RESTART", value),
  cancel: (words, value) => words.flag("CANCEL", value),
  kill: (words, value) => words.flag("KILL", value),
  redrive: (words, value) => words.flag("REDRIVE", value),
  move: (words, value) => words.option("MOVE", value),
  priorities: (words, value) => words.two("PRIORITIES", value),
  olderMs: (words, value) => words.span("OLDER", value),
  failures: (words, value) => words.number("FAILURES", value),
  header: (words, value) => words.two("HEADER", value),
  dry: (words, value) => words.flag("DRY", value),
  pop: (words, value) => words.flag("POP", value),
  recall: (words, value) => words.flag("RECALL", value),
  leaseMs: (words, value) => words.span("LEASE", value),
  deadline: (words, value) => words.moment("DEADLINE", value),
  prefix: (words, value) => words.option("PREFIX", value),
  forMs: (words, value) => words.span("FOR", value),
  weight: (words, value) => words.number("WEIGHT", value),
  limit: (words, value) => words.option("LIMIT", value),
  rate: (words, value) => words.option("RATE", value),
  top: (words, value) => words.flag("TOP", value),
  max: (words, value) => words.option("MAX", value),
  everyMs: (words, value) => words.span("EVERY", value),
  cron: (words, value) => words.option("CRON", value),
  zone: (words, value) => words.option("ZONE", value),
  missed: (words, value) => words.option("MISSED", value),
  overlap: (words, value) => words.option("OVERLAP", value),
};

/** Adds the options of these names. */
function send<Name extends keyof Options>(
  words: Words,
  given: Pick<Options, Name>,
  names: readonly Name[],
): Words {
  for (const name of names) SEND[name](words, given[name]);
  return words;
}

/** The options that a list names. */
type Of<List extends readonly (keyof Options)[]> = Pick<Options, List[number]>;

const PUT = [
  "key", "priority", "delayMs", "at", "ttlMs", "ttrMs", "id", "waitMs", "roomMs", "unique",
  "windowMs", "onDuplicate", "reason", "share", "headers", "held", "attempts", "backoffMs",
  "backoffMaxMs", "result", "after", "onlyIf",
] as const;
/** The options of `PUT`. */
export type PutOptions = Of<typeof PUT> & {
  /** The task is buried at once. */
  readonly state?: "B" | undefined;
  /** What a take costs: rates and turns count it, 1 unless it is given. */
  readonly cost?: number | undefined;
  /** The batch that the task is in, which is made if there is none. */
  readonly batch?: string | undefined;
};

/**
 * Puts a task into a queue. The reply: the id; with WAIT the id and the outcome; with UNIQUE the
 * id, whether it is new (1 or 0), and with WAIT the outcome; with RESULT the result last.
 */
export function put(queue: string, payload: Word, options: PutOptions = {}): Words {
  return send(new Words("PUT", queue, payload), options, PUT)
    .option("STATE", options.state)
    .number("COST", options.cost)
    .option("BATCH", options.batch);
}

const TAKE = [
  "count", "waitMs", "ttrMs", "from", "order", "group", "withMeta", "done", "member",
] as const;
/** The options of `TAKE`. */
export type TakeOptions = Of<typeof TAKE> & {
  /** This task alone, from R, W or B, past pauses, limits, rates, keys and shares. */
  readonly id?: string | undefined;
};

/**
 * Takes the most urgent tasks under a lease. The reply: an array of tasks, empty if there are
 * none.
 */
export function take(queues: readonly string[], options: TakeOptions = {}): Words {
  return send(new Words("TAKE").queues(queues), options, TAKE).option("ID", options.id);
}

const POP = ["count", "waitMs", "from", "order", "group", "withMeta", "member"] as const;
/** The options of `POP`. */
export type PopOptions = Of<typeof POP>;

/** Takes the most urgent tasks for good. The reply: an array of tasks, empty if there are none. */
export function pop(queues: readonly string[], options: PopOptions = {}): Words {
  return send(new Words("POP").queues(queues), options, POP);
}

const PEEK = ["from", "order", "state", "count", "withMeta", "member"] as const;
/** The options of `PEEK`. */
export type PeekOptions = Of<typeof PEEK>;

/** Shows tasks and changes nothing. The reply: an array of tasks, empty if there are none. */
export function peek(queue: string, options: PeekOptions = {}): Words {
  return send(new Words("PEEK", queue), options, PEEK);
}

const GET = ["member"] as const;
/** The options of `GET`. */
export type GetOptions = Of<typeof GET>;

/** Shows one task by its id. The reply: a map with all that is known, or null. */
export function get(queue: string, id: string, options: GetOptions = {}): Words {
  return send(new Words("GET", queue, id), options, GET);
}

const ACK = ["payload", "zombieMs", "cost", "member"] as const;
/** The options of `ACK`. */
export type AckOptions = Of<typeof ACK> & {
  /** What has come of the work, for who waits for the task or looks at it later. */
  readonly result?: string | undefined;
};

/**
 * Finishes taken tasks. The reply: OK; for several receipts an array of OK or error, one for each.
 */
export function ack(
  queue: string,
  held: Held | readonly string[],
  options: AckOptions = {},
): Words {
  return send(new Words("ACK", queue).held(held), options, ACK).option("RESULT", options.result);
}

const RELEASE = [
  "delayMs", "ttlMs", "priority", "payload", "tail", "cost", "checkpoint", "member",
] as const;
/** The options of `RELEASE`. */
export type ReleaseOptions = Of<typeof RELEASE>;

/** Gives a taken task back to its queue. The reply: R, W, or X if its TTL had passed. */
export function release(queue: string, held: Held, options: ReleaseOptions = {}): Words {
  return send(new Words("RELEASE", queue).held(held), options, RELEASE);
}

const BURY = ["payload", "reason", "cost", "member"] as const;
/** The options of `BURY`. */
export type BuryOptions = Of<typeof BURY>;

/** Sets a taken task aside. The reply: OK. */
export function bury(queue: string, held: Held, options: BuryOptions = {}): Words {
  return send(new Words("BURY", queue).held(held), options, BURY);
}

const FAIL = ["reason", "delayMs", "payload", "cost", "checkpoint", "member"] as const;
/** The options of `FAIL`. */
export type FailOptions = Of<typeof FAIL>;

/**
 * Gives a taken task back because it failed: to be tried again or to be given up. The reply: R, W,
 * B, or X if it became a dead letter or its TTL had passed.
 */
export function fail(queue: string, held: Held, options: FailOptions = {}): Words {
  return send(new Words("FAIL", queue).held(held), options, FAIL);
}

const TOUCH = ["byMs", "progress", "checkpoint", "member"] as const;
/** The options of `TOUCH`. */
export type TouchOptions = Of<typeof TOUCH>;

/**
 * Renews or moves the deadline of a lease, or moves the TTL of a ready task. The reply: the new
 * deadline in Unix milliseconds, or null if there is none.
 */
export function touch(queue: string, held: Held, options: TouchOptions = {}): Words {
  return send(new Words("TOUCH", queue).held(held), options, TOUCH);
}

const DIG = ["delayMs", "ttlMs", "priority", "payload", "member"] as const;
/** The options of `DIG`. */
export type DigOptions = Of<typeof DIG>;

/** Brings a buried task back. The reply: R, W, or X if its TTL had passed. */
export function dig(queue: string, id: string, options: DigOptions = {}): Words {
  return send(new Words("DIG", queue, id), options, DIG);
}

const PLOW = ["count", "delayMs", "ttlMs", "member"] as const;
/** The options of `PLOW`. */
export type PlowOptions = Of<typeof PLOW>;

/** Brings the oldest buried tasks back, all of them without COUNT. The reply: how many. */
export function plow(queue: string, options: PlowOptions = {}): Words {
  return send(new Words("PLOW", queue), options, PLOW);
}

const KICK = ["member"] as const;
/** The options of `KICK`. */
export type KickOptions = Of<typeof KICK>;

/** DIG by id, or PLOW with a count: the words of beanstalkd. The reply: as DIG or PLOW. */
export function kick(
  queue: string,
  count: number | { readonly id: string },
  options: KickOptions = {},
): Words {
  return send(new Words("KICK", queue).held(count), options, KICK);
}

const KILL = ["member"] as const;
/** The options of `KILL`. */
export type KillOptions = Of<typeof KILL>;

/** Removes tasks in any state, also those that are held. The reply: how many. */
export function kill(queue: string, ids: readonly string[], options: KillOptions = {}): Words {
  return send(new Words("KILL", queue, ...ids), options, KILL);
}

const SWITCH = ["delayMs", "ttlMs", "member"] as const;
/** The options of `SWITCH`. */
export type SwitchCommandOptions = Of<typeof SWITCH>;

/** Turns a task that is not taken into another state. The reply: the state. */
export function switchCommand(
  queue: string,
  id: string,
  to: "R" | "W" | "B" | "Z" | "D",
  options: SwitchCommandOptions = {},
): Words {
  return send(new Words("SWITCH", queue, id, to), options, SWITCH);
}

const SNATCH = ["delayMs", "ttlMs", "member"] as const;
/** The options of `SNATCH`. */
export type SnatchOptions = Of<typeof SNATCH>;

/** Takes a task away from its holder. The reply: R, W, or X if its TTL had passed. */
export function snatch(queue: string, id: string, options: SnatchOptions = {}): Words {
  return send(new Words("SNATCH", queue, id), options, SNATCH);
}

const RESTART = ["delayMs", "ttlMs", "member"] as const;
/** The options of `RESTART`. */
export type RestartOptions = Of<typeof RESTART>;

/**
 * Brings a waiting, buried or finished task back as if it had never been taken. The reply: R, W,
 * or X if its TTL had passed.
 */
export function restart(queue: string, id: string, options: RestartOptions = {}): Words {
  return send(new Words("RESTART", queue, id), options, RESTART);
}

const UPDATE = ["priority", "payload", "receipt", "headers", "member"] as const;
/** The options of `UPDATE`. */
export type UpdateOptions = Of<typeof UPDATE> & {
  /** How long the task lives from now unless it is taken. */
  readonly ttlMs?: number | null | undefined;
};

/** Changes a task where it is. The reply: OK. */
export function update(queue: string, id: string, options: UpdateOptions = {}): Words {
  return send(new Words("UPDATE", queue, id), options, UPDATE).spanOrNone("TTL", options.ttlMs);
}

const MOVE = ["count", "state", "member"] as const;
/** The options of `MOVE`. */
export type MoveOptions = Of<typeof MOVE>;

/** Moves tasks of one state to another queue, the oldest first. The reply: how many. */
export function move(queue: string, to: string, options: MoveOptions = {}): Words {
  return send(new Words("MOVE", queue, to), options, MOVE);
}

const REDRIVE = ["count", "member"] as const;
/** The options of `REDRIVE`. */
export type RedriveOptions = Of<typeof REDRIVE>;

/** Moves ready dead letters back to the queues that they come from. The reply: how many. */
export function redrive(queue: string, options: RedriveOptions = {}): Words {
  return send(new Words("REDRIVE", queue), options, REDRIVE);
}

const EXPLAIN = ["member"] as const;
/** The options of `EXPLAIN`. */
export type ExplainOptions = Of<typeof EXPLAIN>;

/**
 * Tells why a task is not handed out, or which task would be next. The reply: a map: id, state,
 * since, reasons.
 */
export function explain(queue: string, id?: string, options: ExplainOptions = {}): Words {
  return send(new Words("EXPLAIN", queue).maybe(id), options, EXPLAIN);
}

const SCAN = ["cursor", "count", "state", "key", "batch", "withMeta", "member"] as const;
/** The options of `SCAN`. */
export type ScanOptions = Of<typeof SCAN>;

/**
 * Shows all tasks of a queue, page by page. The reply: the cursor of the next page (0 after the
 * last) and an array of tasks.
 */
export function scan(queue: string, options: ScanOptions = {}): Words {
  return send(new Words("SCAN", queue), options, SCAN);
}

const LEASES = ["count", "cursor", "member"] as const;
/** The options of `LEASES`. */
export type LeasesOptions = Of<typeof LEASES>;

/**
 * Shows who holds which task, in one queue or in all, page by page. The reply: the cursor of the
 * next page (0 after the last) and an array of maps: queue, member, id, client, name, address,
 * since, until.
 */
export function leases(queue?: string, options: LeasesOptions = {}): Words {
  return send(new Words("LEASES").maybe(queue), options, LEASES);
}

const CANCEL = ["reason", "graceMs", "member"] as const;
/** The options of `CANCEL`. */
export type CancelOptions = Of<typeof CANCEL>;

/**
 * Ends a task, or if it is taken, asks its holder to stop. The reply: X; T if its holder is asked;
 * Z or D if it was finished.
 */
export function cancel(queue: string, id: string, options: CancelOptions = {}): Words {
  return send(new Words("CANCEL", queue, id), options, CANCEL);
}

const BULK = [
  "restart", "cancel", "kill", "redrive", "move", "state", "key", "batch", "priorities", "olderMs",
  "failures", "header", "count", "cursor", "dry", "member",
] as const;
/** The options of `BULK`. */
export type BulkOptions = Of<typeof BULK> & {
  /** Give them this priority. */
  readonly priority?: number | bigint | null | undefined;
  /** Let those that are ready or delayed wait this long from now. */
  readonly delayMs?: number | undefined;
  /** Only tasks of this share. */
  readonly share?: Word | undefined;
  /** Only tasks whose reason matches: * stands for anything, and \ takes the next byte as it is. */
  readonly reason?: string | undefined;
};

/**
 * Changes all tasks of a queue that a filter chooses, page by page. The reply: the cursor of the
 * next page (0 after the last), how many tasks it looked at, and how many have changed.
 */
export function bulk(queue: string, options: BulkOptions = {}): Words {
  return send(new Words("BULK", queue), options, BULK)
    .numberOrNone("PRIORITY", options.priority)
    .span("DELAY", options.delayMs)
    .option("SHARE", options.share)
    .reason("REASON", options.reason);
}

const AWAIT = ["waitMs", "result", "member"] as const;
/** The options of `AWAIT`. */
export type AwaitCommandOptions = Of<typeof AWAIT>;

/**
 * Waits until a task is finished. The reply: the outcome (acked, buried, expired, killed, dead,
 * evicted, moved, cancelled, skipped, timeout) and the state; with RESULT the result last.
 */
export function awaitCommand(queue: string, id: string, options: AwaitCommandOptions = {}): Words {
  return send(new Words("AWAIT", queue, id), options, AWAIT);
}

const START = ["member"] as const;
/** The options of `START`. */
export type StartOptions = Of<typeof START>;

/**
 * Begins the work on tasks, so that they are not called back, and their leases anew. The reply:
 * OK; for several receipts an array of OK or error, one for each.
 */
export function start(
  queue: string,
  receipts: readonly string[],
  options: StartOptions = {},
): Words {
  return send(new Words("START", queue, ...receipts), options, START);
}

const SUBSCRIBE = ["ttrMs", "pop", "recall", "withMeta", "member"] as const;
/** The options of `SUBSCRIBE`. */
export type SubscribeOptions = Of<typeof SUBSCRIBE>;

/**
 * Has tasks delivered, one for each credit. The reply: how many subscriptions the connection has.
 */
export function subscribe(queues: readonly string[], options: SubscribeOptions = {}): Words {
  return send(new Words("SUBSCRIBE").queues(queues), options, SUBSCRIBE);
}

const UNSUBSCRIBE = ["member"] as const;
/** The options of `UNSUBSCRIBE`. */
export type UnsubscribeOptions = Of<typeof UNSUBSCRIBE>;

/** Ends subscriptions, all of them if none is named. The reply: how many subscriptions are left. */
export function unsubscribe(
  queues: readonly string[] = [],
  options: UnsubscribeOptions = {},
): Words {
  return send(new Words("UNSUBSCRIBE").anyQueues(queues), options, UNSUBSCRIBE);
}

/**
 * Grants that many further deliveries. The reply: the credit before the deliveries that it sets
 * off.
 */
export function credit(n: number): Words {
  return new Words("CREDIT", String(n));
}

/** Grants one further delivery. The reply: the credit before the delivery that it sets off. */
export function ready(): Words {
  return new Words("READY");
}

const JOIN = ["leaseMs"] as const;
/** The options of `JOIN`. */
export type JoinOptions = Of<typeof JOIN>;

/**
 * Gives a member a lane in a topic, and registers it if need be. The reply: the incarnation of the
 * member.
 */
export function join(topic: string, member: string, options: JoinOptions = {}): Words {
  return send(new Words("JOIN", topic, member), options, JOIN);
}

const BEAT = ["leaseMs"] as const;
/** The options of `BEAT`. */
export type BeatOptions = Of<typeof BEAT>;

/** Gives a sign of life, which begins the lease of a member anew. The reply: OK. */
export function beat(member: string, options: BeatOptions = {}): Words {
  return send(new Words("BEAT", member), options, BEAT);
}

/**
 * Ends a lane of a member; without a topic the member and all its lanes. The reply: how many lanes
 * ended.
 */
export function leave(topic: string | undefined, member: string): Words {
  return new Words("LEAVE").maybe(topic).add(member);
}

const PUBLISH = ["key", "share", "headers", "priority", "deadline", "ttlMs"] as const;
/** The options of `PUBLISH`. */
export type PublishOptions = Of<typeof PUBLISH> & {
  /** What a take costs: rates and turns count it, 1 unless it is given. */
  readonly cost?: number | undefined;
};

/** Puts one task into each lane of a topic. The reply: how many lanes. */
export function publish(topic: string, payload: Word, options: PublishOptions = {}): Words {
  return send(new Words("PUBLISH", topic, payload), options, PUBLISH).number("COST", options.cost);
}

/**
 * Tells the members of a topic. The reply: an array of maps: member, incarnation, lease_until,
 * ready, taken.
 */
export function members(topic: string): Words {
  return new Words("MEMBERS", topic);
}

/** Makes a queue that exists even when it is empty. The reply: OK. */
export function queueCreate(queue: string, settings: SettingsChange = {}): Words {
  return new Words("QUEUE", "CREATE", queue, ...settingsWords(settings));
}

const QUEUE_SET = ["member"] as const;
/** The options of `QUEUE SET`. */
export type QueueSetOptions = Of<typeof QUEUE_SET>;

/** Changes settings of a queue, which is created if need be. The reply: OK. */
export function queueSet(
  queue: string,
  settings: SettingsChange,
  options: QueueSetOptions = {},
): Words {
  return send(new Words("QUEUE", "SET", queue, ...settingsWords(settings)), options, QUEUE_SET);
}

const QUEUE_SHOW = ["member"] as const;
/** The options of `QUEUE SHOW`. */
export type QueueShowOptions = Of<typeof QUEUE_SHOW>;

/** Tells the settings of a queue. The reply: a map. */
export function queueShow(queue: string, options: QueueShowOptions = {}): Words {
  return send(new Words("QUEUE", "SHOW", queue), options, QUEUE_SHOW);
}

const QUEUE_LIST = ["prefix", "count", "cursor"] as const;
/** The options of `QUEUE LIST`. */
export type QueueListOptions = Of<typeof QUEUE_LIST>;

/**
 * Tells the names of the queues, page by page. The reply: the cursor of the next page (0 after the
 * last) and the names in order.
 */
export function queueList(options: QueueListOptions = {}): Words {
  return send(new Words("QUEUE", "LIST"), options, QUEUE_LIST);
}

const QUEUE_TRUNCATE = ["member"] as const;
/** The options of `QUEUE TRUNCATE`. */
export type QueueTruncateOptions = Of<typeof QUEUE_TRUNCATE>;

/** Removes all tasks of a queue. The reply: how many. */
export function queueTruncate(queue: string, options: QueueTruncateOptions = {}): Words {
  return send(new Words("QUEUE", "TRUNCATE", queue), options, QUEUE_TRUNCATE);
}

/** Removes a queue with its tasks, settings and pause. The reply: how many tasks it had. */
export function queueDrop(queue: string): Words {
  return new Words("QUEUE", "DROP", queue);
}

const QUEUE_PAUSE = ["forMs", "member"] as const;
/** The options of `QUEUE PAUSE`. */
export type QueuePauseOptions = Of<typeof QUEUE_PAUSE>;

/** Pauses a queue for puts, for takes, or for both, for good or for a while. The reply: OK. */
export function queuePause(
  queue: string,
  side?: "in" | "out",
  options: QueuePauseOptions = {},
): Words {
  return send(new Words("QUEUE", "PAUSE", queue).maybe(side), options, QUEUE_PAUSE);
}

const QUEUE_RESUME = ["member"] as const;
/** The options of `QUEUE RESUME`. */
export type QueueResumeOptions = Of<typeof QUEUE_RESUME>;

/** Ends a pause. The reply: OK. */
export function queueResume(
  queue: string,
  side?: "in" | "out",
  options: QueueResumeOptions = {},
): Words {
  return send(new Words("QUEUE", "RESUME", queue).maybe(side), options, QUEUE_RESUME);
}

const QUEUE_SHARE = ["weight", "limit", "rate"] as const;
/** The options of `QUEUE SHARE`. */
export type QueueShareOptions = Of<typeof QUEUE_SHARE>;

/**
 * Changes weight, limit and rate of one share of a queue, which is created if need be. The reply:
 * OK.
 */
export function queueShare(queue: string, share: string, options: QueueShareOptions = {}): Words {
  return send(new Words("QUEUE", "SHARE", queue, share), options, QUEUE_SHARE);
}

const QUEUE_SHARES = ["count", "cursor", "top", "member"] as const;
/** The options of `QUEUE SHARES`. */
export type QueueSharesOptions = Of<typeof QUEUE_SHARES>;

/**
 * Shows the shares of a queue with their rules and figures, page by page. The reply: the cursor of
 * the next page (0 after the last) and an array of maps: share, weight, limit, rate, ready, taken,
 * waited_ms, oldest_ready_ms, acked, failed.
 */
export function queueShares(queue: string, options: QueueSharesOptions = {}): Words {
  return send(new Words("QUEUE", "SHARES", queue), options, QUEUE_SHARES);
}

const STATS = ["member"] as const;
/** The options of `STATS`. */
export type StatsOptions = Of<typeof STATS>;

/** Tells the figures of a queue, or of all together. The reply: a map. */
export function stats(queue?: string, options: StatsOptions = {}): Words {
  return send(new Words("STATS").maybe(queue), options, STATS);
}

const LIMIT_SET = ["max"] as const;
/** The options of `LIMIT SET`. */
export type LimitSetOptions = Of<typeof LIMIT_SET> & {
  /** What the tasks that are handed out may cost in a time: n/ms, or none. */
  readonly rate?: string | undefined;
};

/** Makes a limit that several queues use together, or changes it. The reply: OK. */
export function limitSet(limit: string, options: LimitSetOptions = {}): Words {
  return send(new Words("LIMIT", "SET", limit), options, LIMIT_SET).option("RATE", options.rate);
}

/**
 * Tells what a limit allows, and how much of that is in use. The reply: a map: max, rate, taken,
 * tokens, open_at, queues, closed_ms.
 */
export function limitShow(limit: string): Words {
  return new Words("LIMIT", "SHOW", limit);
}

const LIMIT_LIST = ["prefix", "count", "cursor"] as const;
/** The options of `LIMIT LIST`. */
export type LimitListOptions = Of<typeof LIMIT_LIST>;

/**
 * Tells the names of the limits, page by page. The reply: the cursor of the next page (0 after the
 * last) and the names in order.
 */
export function limitList(options: LimitListOptions = {}): Words {
  return send(new Words("LIMIT", "LIST"), options, LIMIT_LIST);
}

/** Removes a limit that no queue uses. The reply: 1, or 0 if there is none. */
export function limitDrop(limit: string): Words {
  return new Words("LIMIT", "DROP", limit);
}

const EXPORT = ["cursor", "count"] as const;
/** The options of `EXPORT`. */
export type ExportCommandOptions = Of<typeof EXPORT>;

/**
 * Shows all that another server needs to go on with a queue, page by page. The reply: the cursor
 * of the next page (0 after the last) and an array of records as JSON.
 */
export function exportCommand(queue: string, options: ExportCommandOptions = {}): Words {
  return send(new Words("EXPORT", queue), options, EXPORT);
}

const IMPORT = ["payload"] as const;
/** The options of `IMPORT`. */
export type ImportCommandOptions = Of<typeof IMPORT>;

/** Takes over one record of an export. The reply: the id of a task; OK for other records. */
export function importCommand(
  queue: string,
  record: string,
  options: ImportCommandOptions = {},
): Words {
  return send(new Words("IMPORT", queue, record), options, IMPORT);
}

const SCHEDULE_SET = [
  "everyMs", "cron", "zone", "key", "priority", "ttlMs", "ttrMs", "missed", "overlap", "share",
  "headers", "attempts", "backoffMs", "backoffMaxMs",
] as const;
/** The options of `SCHEDULE SET`. */
export type ScheduleSetOptions = Of<typeof SCHEDULE_SET> & {
  /** A moment that is a slot; the others lie whole distances from it. */
  readonly at?: Moment | undefined;
  /** What a take costs: rates and turns count it, 1 unless it is given. */
  readonly cost?: number | undefined;
};

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
  return send(new Words("SCHEDULE", "SET", schedule, queue, payload), options, SCHEDULE_SET)
    .moment("AT", options.at)
    .number("COST", options.cost);
}

/** Tells what a schedule does and what it has done. The reply: a map. */
export function scheduleShow(schedule: string): Words {
  return new Words("SCHEDULE", "SHOW", schedule);
}

const SCHEDULE_LIST = ["prefix", "count", "cursor"] as const;
/** The options of `SCHEDULE LIST`. */
export type ScheduleListOptions = Of<typeof SCHEDULE_LIST>;

/**
 * Tells the names of the schedules, page by page. The reply: the cursor of the next page (0 after
 * the last) and the names in order.
 */
export function scheduleList(options: ScheduleListOptions = {}): Words {
  return send(new Words("SCHEDULE", "LIST"), options, SCHEDULE_LIST);
}

/** Lets slots pass without a task. The reply: OK. */
export function schedulePause(schedule: string): Words {
  return new Words("SCHEDULE", "PAUSE", schedule);
}

/** Ends a pause of a schedule. The reply: OK. */
export function scheduleResume(schedule: string): Words {
  return new Words("SCHEDULE", "RESUME", schedule);
}

/** Removes a schedule; its tasks stay. The reply: 1, or 0 if there is none. */
export function scheduleDrop(schedule: string): Words {
  return new Words("SCHEDULE", "DROP", schedule);
}

/** Puts a task of a schedule now, also while it is paused. The reply: the id. */
export function scheduleFire(schedule: string): Words {
  return new Words("SCHEDULE", "FIRE", schedule);
}

const BATCH_OPEN = [] as const;
/** The options of `BATCH OPEN`. */
export type BatchOpenOptions = Of<typeof BATCH_OPEN> & {
  /** How long the batch has to be done, or else it is done as failed. */
  readonly ttlMs?: number | undefined;
};

/** Makes a batch that has no tasks yet. The reply: OK. */
export function batchOpen(batch: string, options: BatchOpenOptions = {}): Words {
  return send(new Words("BATCH", "OPEN", batch), options, BATCH_OPEN).span("TTL", options.ttlMs);
}

/**
 * Says that a batch has all its tasks: it is done once none is pending. The reply: how many are
 * pending.
 */
export function batchClose(batch: string): Words {
  return new Words("BATCH", "CLOSE", batch);
}

/**
 * Tells how far a batch is. The reply: a map: name, state (open, closed, done), total, pending,
 * buried, acked, failed, waiting, opened_at, done_at.
 */
export function batchShow(batch: string): Words {
  return new Words("BATCH", "SHOW", batch);
}

const BATCH_LIST = ["prefix", "count", "cursor"] as const;
/** The options of `BATCH LIST`. */
export type BatchListOptions = Of<typeof BATCH_LIST>;

/**
 * Tells the names of the batches, page by page. The reply: the cursor of the next page (0 after
 * the last) and the names in order.
 */
export function batchList(options: BatchListOptions = {}): Words {
  return send(new Words("BATCH", "LIST"), options, BATCH_LIST);
}

const BATCH_CANCEL = ["reason", "graceMs"] as const;
/** The options of `BATCH CANCEL`. */
export type BatchCancelOptions = Of<typeof BATCH_CANCEL>;

/** Closes a batch and cancels all its tasks that are pending. The reply: how many were pending. */
export function batchCancel(batch: string, options: BatchCancelOptions = {}): Words {
  return send(new Words("BATCH", "CANCEL", batch), options, BATCH_CANCEL);
}

/** Forgets a batch that is done. The reply: 1, or 0 if there is none. */
export function batchDrop(batch: string): Words {
  return new Words("BATCH", "DROP", batch);
}

const BATCH_AWAIT = ["waitMs"] as const;
/** The options of `BATCH AWAIT`. */
export type BatchAwaitOptions = Of<typeof BATCH_AWAIT>;

/** Waits until a batch is done. The reply: done or timeout, and a map as from BATCH SHOW. */
export function batchAwait(batch: string, options: BatchAwaitOptions = {}): Words {
  return send(new Words("BATCH", "AWAIT", batch), options, BATCH_AWAIT);
}
