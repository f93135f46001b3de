//! All bounds of the engine, with the reasons for their values.
//!
//! A request that would exceed a bound is refused. The bounds of sockets and buffers are in the
//! server.

use crate::time::Span;

/// The longest queue name and the longest key, in bytes: the pinpriq wire gives their length in two
/// bytes.
pub const NAME_BYTES_MAX: usize = 65_535;

/// The largest number that a setting can have: clients are shown it as a signed number.
pub const SETTING_MAX: u64 = i64::MAX as u64;

/// The longest payload that the pinpriq wire can carry, in bytes. That door skips tasks with a
/// longer one.
pub const NARROW_PAYLOAD_BYTES_MAX: usize = 65_535;

/// The longest id that a caller may give, in bytes.
pub const ID_BYTES_MAX: usize = 255;

/// The most attempts of one task that its put can ask for, unless it asks for no end.
pub const ATTEMPTS_MAX: u32 = u32::MAX - 2;

/// The longest back-off of one task, in milliseconds: some 49 days.
pub const BACKOFF_MS_MAX: u32 = u32::MAX - 1;

/// The length of the longest share. The shortest has one byte.
pub const SHARE_BYTES_MAX: usize = 255;

/// The most headers of a task.
pub const HEADERS_MAX: usize = 16;

/// The length of the longest name of a header, in bytes. The shortest has one byte.
pub const HEADER_NAME_BYTES_MAX: usize = 64;

/// The length of the longest value of a header, in bytes.
pub const HEADER_BYTES_MAX: usize = 1_024;

/// The most bytes of all names and values of the headers of a task.
pub const HEADERS_BYTES_MAX: usize = 4_096;

/// The longest reason of a failure or a burial, in bytes.
pub const REASON_BYTES_MAX: usize = 1_024;

/// The longest text that a holder gives for the progress of its task, in bytes.
pub const PROGRESS_BYTES_MAX: usize = 256;

/// The most attempts that a task keeps after their end.
pub const HISTORY_MAX: u8 = 20;

/// What an attempt of a task counts, in bytes, without its texts.
pub const ATTEMPT_OVERHEAD_BYTES: usize = 128;

/// The most bytes that are kept of the reason of an attempt.
pub const ATTEMPT_REASON_BYTES_MAX: usize = 200;

/// The most bytes of the address of an attempt.
pub const ATTEMPT_ADDRESS_BYTES_MAX: usize = 64;

/// The largest checkpoint of a task, in bytes.
pub const CHECKPOINT_BYTES_MAX: usize = 65_536;

/// What is remembered of tasks that have left occupies at most this many bytes.
pub const ENDINGS_BYTES_MAX: usize = 16 << 20;

/// What is remembered of a task that has left, in bytes, without its texts.
pub const ENDING_OVERHEAD_BYTES: usize = 48;

/// The most bytes that are remembered of the reason of a task that has left.
pub const ENDING_REASON_BYTES_MAX: usize = 100;

/// The most tasks that one request moves to another queue.
pub const MOVED_MAX: u32 = 10_000;

/// The most tasks that one bulk request changes.
pub const CHANGED_MAX: u32 = 10_000;

/// The most tasks that a bulk request changes if it does not say how many.
pub const CHANGED_DEFAULT: u32 = 1_000;

/// As soon as the payloads that a bulk request has moved have this many bytes, it ends.
pub const CHANGED_BYTES_MAX: u64 = 1 << 20;

/// The most bytes of a pattern.
pub const PATTERN_BYTES_MAX: usize = 1_024;

/// What a bulk request may do, in steps of a task that it looks at: some 5 ms of work.
pub const BULK_STEPS_MAX: usize = 20_000;

/// What the change of a task counts as.
pub const STEPS_PER_CHANGE: usize = 4;

/// The most tasks or leases on a page that a look returns.
pub const LOOKED_MAX: u32 = 1_000;

/// As soon as the names on a page of names or leases have this many bytes, the page is full.
pub const LOOKED_BYTES_MAX: usize = 1 << 20;

/// The most tasks and queues that one look goes through.
pub const LOOKED_STEPS_MAX: usize = 20_000;

/// The most tasks that an imported schedule may have put, and the most slots that it may have
/// missed. It can go on counting for ever.
pub const FIRED_MAX: u64 = 1 << 53;

/// As soon as the payloads on a page of an export have this many bytes, the page is full.
pub const EXPORTED_BYTES_MAX: usize = 1 << 20;

/// Up to this number, an explanation counts exactly how many tasks come before one.
pub const BEHIND_MAX: usize = 10_000;

/// The most tasks in one reply, since the pinpriq wire counts them in two bytes.
pub const TASKS_PER_ANSWER_MAX: usize = 65_535;

/// The most tasks that one take acknowledges.
pub const DONE_MAX: usize = 100;

/// The most steps of one transaction.
pub const TRANSACTION_STEPS_MAX: usize = 1_000;

/// The most lanes that one transaction publishes into, over all topics. All of them are visited in
/// one step.
pub const TRANSACTION_COPIES_MAX: usize = 10_000;

/// The most names that one command is kept within.
pub const WITHIN_NAMES_MAX: usize = 1_000;

/// The most deadlines that one call of [`crate::Engine::handle_timeout`] fires, and the most tasks
/// of emptied queues that it frees. A mass expiry therefore never stalls other work.
pub const STEPS_PER_TIMEOUT: usize = 4_096;

/// What a task counts against [`Limits::bytes_max`], in addition to its payload, its key, the id
/// that it was given, the reason why it failed, the queue and id that it comes from, the name of
/// the schedule that has put it, and its unique key. This covers its record, its places in the
/// indexes, and the overhead of the allocator. An estimate.
pub const TASK_OVERHEAD_BYTES: u64 = 128;

/// What a task with a given id counts in addition to the id: it is in an allocation and an index of
/// its own. An estimate.
pub const GIVEN_ID_OVERHEAD_BYTES: usize = 64;

/// What a task with a unique key counts in addition to the key. An estimate.
pub const UNIQUE_OVERHEAD_BYTES: usize = 128;

/// What a dead letter counts in addition to the names of what it was, and to what any task counts:
/// what is kept of it is in allocations of its own. An estimate.
pub const ORIGIN_OVERHEAD_BYTES: usize = 160;

/// What a queue counts in addition to its name and the names in its settings, from its first task,
/// its creation or its settings to its end. An estimate.
pub const QUEUE_OVERHEAD_BYTES: u64 = 1_024;

/// What a lane counts in addition to the name of its topic. An estimate.
pub const LANE_OVERHEAD_BYTES: u64 = 1_024;

/// What a member counts in addition to its name and its lanes. An estimate.
pub const MEMBER_OVERHEAD_BYTES: u64 = 512;

/// What a schedule counts in addition to its name and everything that clients have said about it.
/// An estimate.
pub const SCHEDULE_OVERHEAD_BYTES: u64 = 1_024;

/// As soon as the payloads that one call moves by itself have this many bytes, what else is due
/// waits for the next call: slots of schedules, dead letters, puts that have waited for room. So a
/// batch of changes stays small, however much has come due while the process was held up.
pub const BYTES_PER_TIMEOUT: u64 = 16 << 20;

/// The most bytes that queues which have ceased to exist may occupy while their figures are kept.
pub const LINGERING_BYTES_MAX: u64 = 16 << 20;

/// What a blocked request or a subscription counts against [`Limits::waiting_bytes_max`]. In
/// addition, each queue that it waits for counts as much as a queue with a task, even if other
/// consumers wait for that queue too. An estimate.
pub const WAIT_OVERHEAD_BYTES: u64 = 256;

/// Within this time of the end of a tied lease, its holder is not made to wait for another task.
pub const DEADLINE_MARGIN: Span = Span::from_ms(1_000);

/// A ready task with a priority below this one counts as urgent where tubes are shown.
pub const URGENT_BELOW: i64 = 1_024;

/// The most priorities for which the figures of a queue tell the number of tasks.
pub const PRIORITIES_MAX: usize = 32;

/// What a queue with a name of this many bytes counts.
#[must_use]
pub const fn queue_bytes(name: usize) -> u64 {
    QUEUE_OVERHEAD_BYTES + name as u64
}

/// What a given id of this many bytes counts. An id of no bytes is none.
#[must_use]
pub const fn given_id_bytes(id: usize) -> usize {
    if id == 0 { 0 } else { id + GIVEN_ID_OVERHEAD_BYTES }
}

/// The most that a put can need: a task with `content` bytes of payload, key and given id that is
/// the first of a queue with a name of `name` bytes.
#[must_use]
pub const fn put_bytes(name: usize, content: usize) -> u64 {
    queue_bytes(name) + TASK_OVERHEAD_BYTES + content as u64
}

/// The bounds that can be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The largest payload, in bytes. The default is 1 MiB: larger things belong in a separate
    /// store, with their address in the task.
    pub payload_bytes_max: usize,
    /// The most bytes that all tasks, queues, members and lanes together may occupy, including
    /// their names and bookkeeping. What would need more is refused with BUSY. Everything that
    /// makes room still works.
    pub bytes_max: u64,
    /// The most bytes that all blocked requests and subscriptions together may occupy, including
    /// the names of their queues. What would need more is refused with BUSY. This bound is separate
    /// so that consumers can still come when tasks occupy all they may.
    pub waiting_bytes_max: u64,
    /// The number of bytes that all tasks together may occupy before payloads are left in the
    /// store, if there is such a bound. Only tasks of queues can leave their payload there.
    /// Bookkeeping always stays in memory.
    pub memory_bytes: Option<u64>,
    /// The most takes, pops and awaits that one connection may have blocked at the same time.
    pub waits_per_client_max: usize,
    /// The most queues in one blocking take, and the most subscriptions of one connection. Both
    /// cost a step for each queue when they are served.
    pub queues_per_client_max: usize,
    /// How long the figures of a queue are kept after it has ceased to exist. Zero forgets them at
    /// once.
    pub queue_linger: Span,
    /// The most windows of unique tasks that may outlive their tasks. A put that would open another
    /// one is refused with BUSY meanwhile.
    pub unique_max: u64,
    /// Of how many tasks that have left it is remembered what became of them. The oldest are
    /// forgotten first, also when what is remembered reaches [`ENDINGS_BYTES_MAX`].
    pub endings_max: usize,
    /// The most batches. For another one, one that is done is forgotten, the oldest first. If none
    /// is done, it is refused with BUSY.
    pub batches_max: usize,
    /// How long a batch is remembered after it was done.
    pub batch_retain: Span,
    /// After how long without pending tasks and changes a batch that is not done is given up.
    pub batch_abandon: Span,
    /// The most lanes of one topic. One more is refused with BUSY. All copies of a publication
    /// enter in one step, which this bounds.
    pub topic_lanes_max: usize,
    /// The most queues whose figures are kept like that. The oldest are forgotten first.
    pub lingering_queues_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes_max: 1 << 20,
            bytes_max: u64::MAX,
            waiting_bytes_max: u64::MAX,
            memory_bytes: None,
            waits_per_client_max: 1_024,
            queues_per_client_max: 1_024,
            queue_linger: Span::from_ms(600_000),
            unique_max: 1_000_000,
            endings_max: 100_000,
            batches_max: 100_000,
            batch_retain: Span::from_ms(3_600_000),
            batch_abandon: Span::from_ms(86_400_000),
            topic_lanes_max: 10_000,
            lingering_queues_max: 10_000,
        }
    }
}

/// How many tasks a request moves that says nothing else.
pub const MOVED_DEFAULT: u32 = 1_000;

/// The number of tasks, leases or records on a page if the request names none.
pub const PAGE_DEFAULT: u32 = 100;

/// The number of names on a page if the request names none.
pub const NAMES_DEFAULT: usize = 100;

/// The most names on a page.
pub const NAMES_MAX: usize = 10_000;
