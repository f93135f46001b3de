//! The lines of a history.
//!
//! These types are the format: `docs/history.md` describes what serde makes of them, and the two
//! change together. Which of them contradict each other is not decided here.

use serde::{Deserialize, Serialize};

/// One line. Moments are microseconds of one monotonic clock, from any beginning.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Record {
    /// A request is about to be sent.
    Invoked {
        /// The moment before its first byte was sent.
        at_us: u64,
        /// The connection. A client that connects anew is another client.
        client: u64,
        /// The number of this request. No other request of the history has it.
        call: u64,
        /// What is asked.
        operation: Operation,
    },
    /// A request was answered, or never will be.
    Answered {
        /// The moment after the last byte of the answer had come.
        at_us: u64,
        /// The number of the request.
        call: u64,
        /// What came of it.
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

/// What a client asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Operation {
    /// Puts a task.
    Put {
        /// The queue.
        queue: String,
        /// The [`digest`](crate::digest) of the payload.
        payload: String,
        /// The id, where the client gives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Lower goes first; none is never selected.
        priority: Option<i64>,
        /// How long it waits.
        #[serde(default, skip_serializing_if = "is_zero")]
        delay_ms: u64,
        /// How long it lives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl_ms: Option<u64>,
        /// How long leases on it last where the take does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttr_ms: Option<u64>,
    },
    /// Takes tasks under a lease.
    Take {
        /// The queue.
        queue: String,
        /// The most tasks.
        count: u64,
        /// How long the leases last. Without it and without that of the task they last as long as
        /// the connection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttr_ms: Option<u64>,
        /// Whether something other than the oldest task of the lowest number was asked for. Then
        /// the order of what came is not looked at.
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
        /// Of the lease.
        receipt: String,
    },
    /// Gives a taken task back.
    Release {
        /// Of the lease.
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
        /// Whether it goes behind its equals.
        #[serde(default, skip_serializing_if = "is_false")]
        tail: bool,
    },
    /// Sets a taken task aside.
    Bury {
        /// Of the lease.
        receipt: String,
    },
    /// Renews a lease.
    Touch {
        /// Of the lease.
        receipt: String,
        /// By how much the deadline moves; without it the lease gets its whole time again.
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
    /// Anything else that changes tasks. From here on only the bytes and the ids of what it may
    /// have changed are looked at.
    Disturb {
        /// The queue.
        queue: String,
        /// The task; without it the whole queue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
}

/// What came of a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// It was carried out: ack, bury, touch, disturb.
    Done,
    /// A task was put.
    Put {
        /// Its id.
        id: String,
    },
    /// Tasks came, perhaps none: take, pop.
    Tasks(Vec<Delivery>),
    /// The task is in this state now, X if it is gone: release, dig.
    Turned(String),
    /// So many tasks were concerned: kill, plow.
    Count(u64),
    /// Nothing was changed; the first word of the refusal.
    Refused(String),
    /// Nobody knows: the connection ended first, or the server itself could not tell.
    Unknown,
}

/// A task as it came.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// Its id.
    pub id: String,
    /// Of the lease; none if it came for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// The [`digest`](crate::digest) of the payload.
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
        /// Which.
        client: u64,
    },
    /// The queue is empty now, in all states.
    Drained {
        /// The queue.
        queue: String,
        /// Whether buried tasks were left where they were.
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
