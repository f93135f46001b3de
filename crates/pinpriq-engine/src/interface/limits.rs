//! Every bound of the engine, with the reason for its value.
//!
//! Reaching a bound is a refusal, never a surprise. The bounds of sockets and buffers are the
//! server's.

/// The longest queue name and the longest key, in bytes: what two length bytes on the pinpriq
/// wire can say.
pub const NAME_BYTES_MAX: usize = 65_535;

/// The longest payload that the pinpriq wire can carry. A longer one stays where it is when that
/// door selects.
pub const NARROW_PAYLOAD_BYTES_MAX: usize = 65_535;

/// The longest id that a caller may give.
pub const ID_BYTES_MAX: usize = 255;

/// The most tasks in one answer, since the pinpriq wire counts them in two bytes.
pub const TASKS_PER_ANSWER_MAX: usize = 65_535;

/// The most deadlines that one call of [`crate::Engine::handle_timeout`] fires, and the most
/// tasks of an emptied queue that it frees, so that a mass expiry never stalls other work.
pub const STEPS_PER_TIMEOUT: usize = 4_096;

/// What a task counts against [`Limits::bytes_max`] besides its payload, its key, the id that it
/// was given and the reason why it is buried: its record and its places in the indexes, the
/// allocator's share included. An estimate.
pub const TASK_OVERHEAD_BYTES: u64 = 128;

/// What a queue counts besides its name, from its first task, its creation or its settings to its
/// end. An estimate.
pub const QUEUE_OVERHEAD_BYTES: u64 = 1_024;

/// What a lane counts besides the name of its topic. An estimate.
pub const LANE_OVERHEAD_BYTES: u64 = 1_024;

/// What a member counts besides its name and its lanes. An estimate.
pub const MEMBER_OVERHEAD_BYTES: u64 = 512;

/// What a blocked request, and a subscription, counts against [`Limits::waiting_bytes_max`]. Each
/// queue that it waits for counts as much as a queue with a task besides, whoever else waits for
/// it. An estimate.
pub const WAIT_OVERHEAD_BYTES: u64 = 256;

/// What a queue with a name of this many bytes counts.
#[must_use]
pub const fn queue_bytes(name: usize) -> u64 {
    QUEUE_OVERHEAD_BYTES + name as u64
}

/// The most that a put can need: that of a task with `content` bytes of payload, key and given id
/// as the first of a queue with a name of this many bytes.
#[must_use]
pub const fn put_bytes(name: usize, content: usize) -> u64 {
    queue_bytes(name) + TASK_OVERHEAD_BYTES + content as u64
}

/// The bounds that can be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The largest payload, in bytes. 1 MiB unless changed: larger things belong in a store of
    /// their own, with their address in the task.
    pub payload_bytes_max: usize,
    /// The most bytes that all tasks, queues, members and lanes together may occupy, their names
    /// and their bookkeeping included. What would need more is refused with BUSY, while everything
    /// that makes room still works.
    pub bytes_max: u64,
    /// The most bytes that all blocked requests and subscriptions together may occupy, the names
    /// of their queues included. What would need more is refused with BUSY. It is a bound of its
    /// own, so that consumers can come while tasks occupy all that they may.
    pub waiting_bytes_max: u64,
    /// How many bytes all tasks together may occupy before payloads are left in the store, if
    /// there is such a bound. Only tasks of queues can leave theirs; bookkeeping always stays.
    pub memory_bytes: Option<u64>,
    /// The most takes, pops and awaits that one connection may have blocked at a time.
    pub waits_per_client_max: usize,
    /// The most queues in one blocking take, and the most subscriptions of one connection: both
    /// cost a step for each queue when they are served.
    pub queues_per_client_max: usize,
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
        }
    }
}
