//! Looking at queues: why a task is not handed out, all tasks page by page, and all leases.
//!
//! Nothing here changes anything, and a look is no sign of life of a member.

use crate::facts::{Destination, Joining};
use crate::fields::Value;
use crate::limits::PAGE_DEFAULT;
use crate::names::QueueName;
use crate::outcome::Outcome;
use crate::task::{Bytes, ClientId, StateKind, TaskId};
use crate::time::{Span, Timestamp};

/// See [`Command::Scan`](crate::command::Command::Scan).
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Scan<'a> {
    /// The queue.
    #[key]
    pub queue: QueueName<'a>,
    /// Only tasks whose seq is above this one.
    #[letter(1)]
    #[option(CURSOR, with = cursors::seq)]
    pub after: u64,
    /// The most tasks to return, at most [`LOOKED_MAX`](crate::limits::LOOKED_MAX).
    #[option(default = PAGE_DEFAULT)]
    pub count: u32,
    /// If given, only tasks of this state.
    #[letter(2)]
    #[option]
    pub state: Option<StateKind>,
    /// If given, only tasks with this key.
    #[letter(3)]
    #[option]
    pub key: Option<&'a [u8]>,
    /// If given, only tasks that are pending in this batch.
    #[letter(4)]
    #[option(BATCH_MEANT)]
    pub batch: Option<&'a [u8]>,
}

/// See [`Command::Leases`](crate::command::Command::Leases).
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Leases<'a> {
    /// The queue. Without it, all queues and lanes.
    #[letter(1)]
    #[key]
    pub queue: Option<QueueName<'a>>,
    /// Only leases after this place. For one queue, only its seq counts.
    #[letter(2)]
    #[option(CURSOR, with = cursors::lease)]
    pub after: Option<LeasePlace<&'a [u8]>>,
    /// The most leases to return, at most [`LOOKED_MAX`](crate::limits::LOOKED_MAX).
    #[option(default = PAGE_DEFAULT)]
    pub count: u32,
}

impl<'a> Leases<'a> {
    pub(crate) fn destination(&self) -> Destination<'a> {
        self.queue.map_or(Destination::Everywhere(Joining::Leases(self.count)), Destination::from)
    }
}

/// A place in the order of leases: queues by name, then lanes by number, and within each the tasks
/// by seq. The order is that of the fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, pinpriq_derive::Letter)]
pub struct LeasePlace<B = Bytes> {
    /// The number of the lane, if the task is in one.
    #[letter(1)]
    pub lane: Option<u64>,
    /// The name of the queue or topic.
    pub queue: B,
    /// The seq of the task.
    pub seq: u64,
}

/// A lease, as it is shown to others than its holder.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct LeaseShown {
    /// Where it stands in the order of leases.
    pub place: LeasePlace,
    /// The member that has the lane, if the task is in one.
    #[letter(1)]
    pub member: Option<Bytes>,
    /// The id of the task.
    pub id: TaskId,
    /// The connection that took the task, while it exists.
    #[letter(2)]
    pub holder: Option<ClientId>,
    /// When the task was taken, if that was since the server has started.
    #[letter(3)]
    pub since: Option<Timestamp>,
    /// When the lease ends. Without a deadline it ends with the holder's connection.
    #[letter(4)]
    pub until: Option<Timestamp>,
    /// What its holder has said about how far the work has come.
    #[letter(5)]
    pub progress: Option<Bytes>,
}

/// What a task waits for, or why a queue has no task to hand out.
#[derive(Clone, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct Explanation {
    /// The id of the task; `None` if no task of the queue can be chosen.
    #[letter(1)]
    pub id: Option<TaskId>,
    /// Its state.
    #[letter(2)]
    pub state: Option<StateKind>,
    /// Since when it is in this state, if that was since the server has started.
    #[letter(3)]
    pub since: Option<Timestamp>,
    /// The reasons, in the order of [`Reason`].
    pub reasons: Vec<Reason>,
    /// How long it takes until it is handed out, if the last minute tells.
    #[letter(4)]
    pub eta: Option<Eta>,
}

/// What became of a task that has left its queue.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct Ending {
    /// How it ended.
    pub outcome: Outcome,
    /// When it left.
    pub at: Timestamp,
    /// Why it failed last, if that was said, cut at
    /// [`ENDING_REASON_BYTES_MAX`](crate::limits::ENDING_REASON_BYTES_MAX) bytes.
    #[letter(1)]
    pub reason: Option<Bytes>,
    /// The queue in which it is now, and its id there, if it became a dead letter or was moved.
    #[letter(2)]
    pub became: Option<(Bytes, TaskId)>,
}

/// How long something takes, as far as that can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct Eta {
    /// If all goes on as in the last minute.
    pub mean: Span,
    /// If it goes as in the best five seconds of it.
    pub low: Span,
    /// If it goes as in the worst ones; `None` if nothing went on in these.
    #[letter(1)]
    pub high: Option<Span>,
}

/// One reason why a task is where it is.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Reason {
    /// Its delay has not passed yet.
    #[letter(1)]
    Delayed {
        /// The end of the delay.
        until: Timestamp,
    },
    /// It waits until somebody frees it.
    #[letter(21)]
    Held,
    /// It is taken.
    #[letter(2)]
    Taken {
        /// The connection that took it, while it exists.
        #[letter(1)]
        client: Option<ClientId>,
        /// When it was taken, if that was since the server has started.
        #[letter(2)]
        since: Option<Timestamp>,
        /// When the lease ends, if it has a deadline.
        #[letter(3)]
        until: Option<Timestamp>,
        /// What its holder has said about how far the work has come.
        #[letter(4)]
        progress: Option<Bytes>,
    },
    /// It was buried.
    #[letter(3)]
    Buried {
        /// The reason that was given.
        #[letter(1)]
        reason: Option<Bytes>,
    },
    /// Its TTL has passed, and it leaves as soon as it would be ready.
    #[letter(4)]
    Expired,
    /// The queue is paused for takes.
    #[letter(5)]
    Paused,
    /// As many tasks of the queue are taken as its limit allows.
    #[letter(6)]
    Limit {
        /// The number of tasks that are taken.
        taken: u64,
        /// The limit.
        most: u64,
    },
    /// The queue has handed out as many tasks as its rate allows.
    #[letter(7)]
    Rate {
        /// When the next one may leave.
        next_at: Timestamp,
    },
    /// A limit that the queue uses with others allows no further task.
    #[letter(20)]
    NamedLimit {
        /// Its name.
        name: Bytes,
        /// The number of tasks of its queues that are taken, and its limit, if that is reached.
        #[letter(1)]
        reached: Option<(u64, u64)>,
        /// When it has a token, if only that is missing.
        #[letter(2)]
        open_at: Option<Timestamp>,
    },
    /// It has no priority, so it leaves only with its group.
    #[letter(8)]
    NoPriority,
    /// As many tasks of its key are taken as may be at once.
    #[letter(12)]
    KeyLimit {
        /// The key.
        key: Bytes,
        /// The number of its tasks that are taken.
        taken: u64,
        /// The limit.
        most: u64,
    },
    /// The tasks of its key have cost as much as they may.
    #[letter(13)]
    KeyRate {
        /// The key.
        key: Bytes,
        /// When the next one may leave.
        open_at: Timestamp,
    },
    /// Another task of its key has failed and goes first.
    #[letter(14)]
    KeyHeld {
        /// The key.
        key: Bytes,
        /// The id of the other task.
        by: TaskId,
    },
    /// As many tasks of its share are taken as may be at once.
    #[letter(15)]
    ShareLimit {
        /// The share. May be empty.
        share: Bytes,
        /// The number of its tasks that are taken.
        taken: u64,
        /// The limit.
        most: u64,
    },
    /// The tasks of its share have cost as much as they may.
    #[letter(16)]
    ShareRate {
        /// The share. May be empty.
        share: Bytes,
        /// When the next one may leave.
        open_at: Timestamp,
    },
    /// A batch that it waits for is not done.
    #[letter(23)]
    After {
        /// The batch.
        batch: Bytes,
        /// How many of its tasks have not ended.
        pending: u64,
    },
    /// Other tasks come first.
    #[letter(9)]
    Behind {
        /// Their number, exact if it is below [`BEHIND_MAX`](crate::limits::BEHIND_MAX).
        at_least: u64,
    },
    /// Other tasks come before it in a fair queue, more urgent ones or by the turns of shares.
    #[letter(17)]
    ShareTurn {
        /// The share. May be empty.
        share: Bytes,
        /// Their number, exact if it is below [`BEHIND_MAX`](crate::limits::BEHIND_MAX).
        ahead: u64,
    },
    /// No consumer waits for it.
    #[letter(10)]
    NoConsumer,
    /// It is the next to be handed out.
    #[letter(11)]
    Next,
    /// It has left.
    #[letter(22)]
    Ended(Ending),
}

impl Reason {
    /// The stable word for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Delayed { .. } => "delayed",
            Self::Held => "held",
            Self::After { .. } => "after",
            Self::Taken { .. } => "taken",
            Self::Buried { .. } => "buried",
            Self::Expired => "expired",
            Self::Paused => "paused",
            Self::Limit { .. } => "limit",
            Self::Rate { .. } => "rate",
            Self::NamedLimit { .. } => "named-limit",
            Self::KeyLimit { .. } => "key-limit",
            Self::KeyRate { .. } => "key-rate",
            Self::KeyHeld { .. } => "key-held",
            Self::ShareLimit { .. } => "share-limit",
            Self::ShareRate { .. } => "share-rate",
            Self::NoPriority => "no-priority",
            Self::Behind { .. } => "behind",
            Self::ShareTurn { .. } => "share-turn",
            Self::NoConsumer => "no-consumer",
            Self::Next => "next",
            Self::Ended(_) => "ended",
        }
    }
}

impl Reason {
    /// What it says besides its code.
    #[must_use]
    pub fn details(&self) -> Vec<(&'static str, Value<'_>)> {
        let moment = |at: &Option<Timestamp>| at.map_or(Value::Missing, Value::Moment);
        match self {
            Self::Delayed { until } => vec![("until", Value::Moment(*until))],
            Self::Taken { client, since, until, progress } => {
                let number = |client: ClientId| Value::Number(client.first().0);
                let client = client.map_or(Value::Missing, number);
                let progress = progress.as_ref().map_or(Value::Missing, |it| Value::Bytes(it));
                let (since, until) = (("since", moment(since)), ("until", moment(until)));
                vec![("client", client), since, until, ("progress", progress)]
            }
            Self::Buried { reason } => {
                let given = reason.as_ref();
                vec![("reason", given.map_or(Value::Missing, |given| Value::Bytes(given)))]
            }
            Self::Limit { taken, most } => {
                vec![("taken", Value::Number(*taken)), ("n", Value::Number(*most))]
            }
            Self::Rate { next_at } => vec![("next_at", Value::Moment(*next_at))],
            Self::NamedLimit { name, reached, open_at } => {
                let (taken, most) = reached.unzip();
                let taken = taken.map(|taken| ("taken", Value::Number(taken)));
                let most = most.map(|most| ("n", Value::Number(most)));
                let open_at = open_at.map(|at| ("open_at", Value::Moment(at)));
                let name = ("name", Value::Bytes(name));
                std::iter::once(name).chain(taken).chain(most).chain(open_at).collect()
            }
            Self::KeyLimit { key, taken, most } => {
                let (taken, most) = (Value::Number(*taken), Value::Number(*most));
                vec![("key", Value::Bytes(key)), ("taken", taken), ("n", most)]
            }
            Self::KeyRate { key, open_at } => {
                vec![("key", Value::Bytes(key)), ("open_at", Value::Moment(*open_at))]
            }
            Self::KeyHeld { key, by } => vec![("key", Value::Bytes(key)), ("by", Value::Id(by))],
            Self::ShareLimit { share, taken, most } => {
                let (taken, most) = (Value::Number(*taken), Value::Number(*most));
                vec![("share", Value::Bytes(share)), ("taken", taken), ("n", most)]
            }
            Self::ShareRate { share, open_at } => {
                vec![("share", Value::Bytes(share)), ("open_at", Value::Moment(*open_at))]
            }
            Self::After { batch, pending } => {
                vec![("batch", Value::Bytes(batch)), ("pending", Value::Number(*pending))]
            }
            Self::Behind { at_least } => vec![("at_least", Value::Number(*at_least))],
            Self::ShareTurn { share, ahead } => {
                vec![("share", Value::Bytes(share)), ("ahead", Value::Number(*ahead))]
            }
            Self::Ended(ending) => ending.details(),
            Self::Held
            | Self::Expired
            | Self::Paused
            | Self::NoPriority
            | Self::NoConsumer
            | Self::Next => Vec::new(),
        }
    }
}

impl Ending {
    /// What it says.
    #[must_use]
    pub fn details(&self) -> Vec<(&'static str, Value<'_>)> {
        let Self { outcome, at, reason, became } = self;
        let reason = reason.as_ref().map_or(Value::Missing, |reason| Value::Bytes(reason));
        let became = became.as_ref();
        vec![
            ("outcome", Value::Bytes(outcome.word().as_bytes())),
            ("at", Value::Moment(*at)),
            ("reason", reason),
            ("queue", became.map_or(Value::Missing, |(queue, _)| Value::Bytes(queue))),
            ("id", became.map_or(Value::Missing, |(_, id)| Value::Id(id))),
        ]
    }
}

impl Explanation {
    /// The members that tell when the task is handed out.
    #[must_use]
    pub fn etas(&self) -> [(&'static str, Value<'static>); 3] {
        let span = |span: Option<Span>| span.map_or(Value::Missing, Value::Span);
        [
            ("eta_ms", span(self.eta.map(|eta| eta.mean))),
            ("eta_low", span(self.eta.map(|eta| eta.low))),
            ("eta_high", span(self.eta.and_then(|eta| eta.high))),
        ]
    }
}

impl LeasePlace {
    /// The same place with borrowed bytes.
    #[must_use]
    pub fn borrowed(&self) -> LeasePlace<&[u8]> {
        LeasePlace { lane: self.lane, queue: &self.queue, seq: self.seq }
    }
}
