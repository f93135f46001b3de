//! The lines of a history.
//!
//! These types define the format: `docs/internals/history.md` describes their serde representation,
//! and both change together. Contradictions between lines are not detected here.

use serde::{Deserialize, Serialize};

/// One line. Moments are microseconds of one monotonic clock, counted from any start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Record {
    /// A request is about to be sent.
    Invoked {
        /// The moment before its first byte was sent.
        at_us: u64,
        /// The connection. A client that connects anew is another client.
        client: u64,
        /// The number of this request, unique in the history.
        call: u64,
        /// The request.
        operation: Operation,
    },
    /// A request was answered, or never will be.
    Answered {
        /// The moment after the last byte of the answer was received.
        at_us: u64,
        /// The number of the request.
        call: u64,
        /// Its outcome.
        outcome: Outcome,
    },
    /// Something happened outside of requests.
    Happened {
        /// When.
        at_us: u64,
        /// What.
        event: Event,
    },
}

/// What a client requests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Operation {
    /// Puts a task.
    Put {
        /// The queue.
        queue: String,
        /// The [`digest`](crate::history::digest) of the payload.
        payload: String,
        /// The id, if the client gives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The priority: lower goes first; without one the task is never selected.
        priority: Option<i64>,
        /// How long it waits.
        #[serde(default, skip_serializing_if = "is_zero")]
        delay_ms: u64,
        /// Its time to live.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl_ms: Option<u64>,
        /// How long leases on it last unless the take says otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttr_ms: Option<u64>,
        /// Its key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Its share, if that is not its key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        share: Option<String>,
    },
    /// Takes tasks under a lease.
    Take {
        /// The queue.
        queue: String,
        /// The most tasks.
        count: u64,
        /// How long the leases last. If neither this nor the task says, they last as long as the
        /// connection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttr_ms: Option<u64>,
        /// Whether something other than the oldest task of the lowest priority number was asked
        /// for. If so, the order of the delivered tasks is not checked.
        #[serde(default, skip_serializing_if = "is_false")]
        otherwise_ordered: bool,
    },
    /// Takes tasks for good.
    Pop {
        /// The queue.
        queue: String,
        /// The most tasks.
        count: u64,
        /// As for a take.
        #[serde(default, skip_serializing_if = "is_false")]
        otherwise_ordered: bool,
    },
    /// Finishes a taken task.
    Ack {
        /// The receipt of the lease.
        receipt: String,
    },
    /// Gives a taken task back.
    Release {
        /// The receipt of the lease.
        receipt: String,
        /// How long the task waits.
        #[serde(default, skip_serializing_if = "is_zero")]
        delay_ms: u64,
        /// A new time to live.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl_ms: Option<u64>,
        /// A new priority.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<i64>,
        /// Whether it goes behind tasks of equal priority.
        #[serde(default, skip_serializing_if = "is_false")]
        tail: bool,
    },
    /// Sets a taken task aside.
    Bury {
        /// The receipt of the lease.
        receipt: String,
    },
    /// Gives a taken task back because it failed. The [`Operation::Policy`] of its queue says what
    /// becomes of it.
    Fail {
        /// The receipt of the lease.
        receipt: String,
        /// How long the task waits. Without it the policy says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
    },
    /// Renews a lease.
    Touch {
        /// The receipt of the lease.
        receipt: String,
        /// How far the deadline moves. Without it the lease gets its whole time again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by_ms: Option<u64>,
    },
    /// Removes one task.
    Kill {
        /// The queue.
        queue: String,
        /// The task.
        id: String,
    },
    /// Brings one buried task back.
    Dig {
        /// The queue.
        queue: String,
        /// The task.
        id: String,
        /// Whether a priority, a delay or a time to live was given with it.
        #[serde(default, skip_serializing_if = "is_false")]
        changed: bool,
    },
    /// Brings buried tasks back.
    Plow {
        /// The queue.
        queue: String,
    },
    /// Moves ready tasks to another queue, the oldest first, where they have new ids.
    Move {
        /// The queue that they leave.
        from: String,
        /// The queue that they enter.
        to: String,
        /// The most tasks.
        count: u64,
    },
    /// Says what becomes of tasks of a queue that fail: because a client says so, because a lease
    /// reaches its deadline, or because the connection of a lease without one ends. It replaces
    /// what was said of that queue before.
    Policy {
        /// The queue.
        queue: String,
        /// How often a task may fail. Without it, as often as it likes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempts: Option<u64>,
        /// How long a task waits after its first failure, less a part of up to a quarter; after
        /// each further one twice as long.
        #[serde(default, skip_serializing_if = "is_zero")]
        backoff_ms: u64,
        /// The longest wait after a failure.
        #[serde(default = "an_hour", skip_serializing_if = "is_an_hour")]
        backoff_max_ms: u64,
        /// The queue for tasks that have failed too often. Without it they are buried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dead_letter: Option<String>,
    },
    /// Says how many tasks of a queue may be taken at once, and what holds others back. It replaces
    /// what was said of that before.
    Limits {
        /// The queue.
        queue: String,
        /// The most of the queue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
        /// The most of one key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_limit: Option<u64>,
        /// The most of one share.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        share_limit: Option<u64>,
        /// Whether a task that has failed, or was released with a delay, holds back the others of
        /// its key.
        #[serde(default, skip_serializing_if = "is_false")]
        key_hold: bool,
        /// Whether shares take turns.
        #[serde(default, skip_serializing_if = "is_false")]
        fair: bool,
        /// The named limit that its tasks count for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uses: Option<String>,
    },
    /// Says how many tasks of all queues that use a named limit may be taken at once. It replaces
    /// what was said of that before.
    NamedLimit {
        /// Its name.
        name: String,
        /// The most, or none for any number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
    /// Several operations, of which all happen at one moment or none: put, ack, release, bury,
    /// fail, touch, kill, dig and disturb.
    Transaction {
        /// The operations, in their order.
        operations: Vec<Self>,
    },
    /// Anything else that changes tasks. From here on only the payloads and the ids of what it may
    /// have changed are checked.
    Disturb {
        /// The queue.
        queue: String,
        /// The task, or none for the whole queue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
}

/// The outcome of a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// It was carried out: ack, bury, touch, policy, limits, named limit, disturb.
    Done,
    /// A task was put.
    Put {
        /// Its id.
        id: String,
    },
    /// These tasks were delivered, perhaps none: take, pop.
    Tasks(Vec<Delivery>),
    /// The task is in this state now, or X if it is gone: release, fail, dig. A dead letter is gone
    /// from its queue too.
    Turned(String),
    /// This many tasks were affected: kill, plow, move.
    Count(u64),
    /// All operations of a transaction were carried out, with these outcomes.
    Transaction(Vec<Self>),
    /// Nothing was changed. The first word of the refusal.
    Refused(String),
    /// Unknown: the connection ended first, or the server itself could not tell.
    Unknown,
}

/// A task as it was delivered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// Its id.
    pub id: String,
    /// The receipt of the lease, or none if it was popped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// The [`digest`](crate::history::digest) of the payload.
    pub payload: String,
}

/// What happened outside of requests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// The server is about to be ended, or was found to have ended.
    ServerKilled,
    /// The server accepts connections.
    ServerStarted,
    /// A client is about to close its connection, or found it closed.
    ConnectionClosed {
        /// Which client.
        client: u64,
    },
    /// The queue is empty now, in all states.
    Drained {
        /// The queue.
        queue: String,
        /// Whether buried tasks were left in it.
        #[serde(default, skip_serializing_if = "is_false")]
        buried_stay: bool,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_false(truth: &bool) -> bool {
    !*truth
}

/// The longest wait after a failure, unless a policy says otherwise.
const fn an_hour() -> u64 {
    3_600_000
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_an_hour(ms: &u64) -> bool {
    *ms == an_hour()
}
