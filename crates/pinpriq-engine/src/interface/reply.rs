//! Everything that the engine answers.
//!
//! A [`Refusal`] is a correct answer, not an error: the request was understood and could not be
//! granted, and nothing has changed. Outputs leave only after the changes that they depend on are
//! durable; seeing to that is the store's and the server's business.

use std::fmt;

use crate::fanout::MemberFigures;
use crate::settings::{Paused, Settings};
use crate::stats::Figures;
use crate::task::{Bytes, ClientId, RequestId, StateKind, TaskId, TaskRecord};
use crate::time::Timestamp;

/// Something to be sent to a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// The answer to a request.
    Reply {
        /// Whose.
        client: ClientId,
        /// To which request.
        request: RequestId,
        /// The answer.
        reply: Reply,
    },
    /// Tasks for a subscriber: one task, or one group with the selected task first.
    Delivery {
        /// To whom.
        client: ClientId,
        /// The tasks.
        tasks: Vec<TaskRecord>,
        /// Whether they were popped, so that they must be put back if they cannot be sent.
        popped: bool,
    },
}

impl Output {
    /// The tasks that it shows, none if it shows none. It costs nothing: they stay where they are.
    pub fn tasks_mut(&mut self) -> &mut [TaskRecord] {
        match self {
            Self::Reply { reply: Reply::Tasks { tasks, .. } | Reply::Shown(tasks), .. }
            | Self::Delivery { tasks, .. } => tasks,
            Self::Reply { reply: Reply::Task(Some(task)), .. } => std::slice::from_mut(&mut **task),
            Self::Reply { .. } => &mut [],
        }
    }
}

/// The answer to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Done, with nothing to tell.
    Done,
    /// The task was put under this id.
    Put(TaskId),
    /// The task was put under this id and then finished, or not in time.
    PutOutcome(TaskId, Outcome),
    /// The tasks that were looked at, none if there were none.
    Shown(Vec<TaskRecord>),
    /// The tasks that were taken or popped, none if there were none.
    Tasks {
        /// The tasks.
        tasks: Vec<TaskRecord>,
        /// Whether they were popped, so that they must be put back if they cannot be sent.
        popped: bool,
    },
    /// The task of that id, if there is one.
    Task(Option<Box<TaskRecord>>),
    /// Where the task stands now; none if it expired in that step.
    State(Option<StateKind>),
    /// The new deadline, if there is any.
    Deadline(Option<Timestamp>),
    /// How many.
    Count(u64),
    /// How the awaited task ended and where it stands; no state if it is gone.
    Outcome(Outcome, Option<StateKind>),
    /// One answer for each receipt.
    Acks(Vec<Result<(), Refusal>>),
    /// The settings of a queue.
    Settings {
        /// The settings.
        settings: Box<Settings>,
        /// The pause.
        paused: Paused,
        /// Whether it exists even when empty.
        created: bool,
    },
    /// Names of queues, and whether there are more.
    Names {
        /// The names, in order.
        names: Vec<Bytes>,
        /// Whether more follow after the last.
        more: bool,
    },
    /// The figures of a queue or of all.
    Figures(Box<Figures>),
    /// The member is registered as this incarnation.
    Joined(u64),
    /// The members of a topic, by name.
    Members(Vec<MemberFigures>),
    /// The request could not be granted, and changed nothing.
    Refused(Refusal),
}

/// How a task ended for somebody who awaited it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was acknowledged.
    Acked,
    /// It was set aside.
    Buried,
    /// Its TTL passed.
    Expired,
    /// It was removed.
    Killed,
    /// It did not end in time.
    Timeout,
}

/// A request that could not be granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Of which kind, for programs.
    pub kind: RefusalKind,
    /// A sentence for people that names the queue, the id and what was wrong.
    pub sentence: String,
}

/// The kinds of refusals. The first word of a refusal on the wire is
/// [`RefusalKind::word`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RefusalKind {
    /// An argument makes no sense.
    BadArgument,
    /// There is no such queue.
    NoQueue,
    /// There is no such task, or no such member.
    NotFound,
    /// The id or the queue is there already.
    Exists,
    /// The queue wants its ids given.
    IdRequired,
    /// The task is not taken.
    NotTaken,
    /// The task is taken by another connection.
    NotOwner,
    /// The receipt is not that of a current lease.
    Stale,
    /// The task is taken.
    Taken,
    /// The task is in a state that does not allow it.
    WrongState,
    /// The payload is too large.
    TooLarge,
    /// The queue is at its capacity.
    Full,
    /// The queue is paused for input.
    Paused,
    /// A bound of the server is reached; try later.
    Busy,
    /// The store failed; nothing can be changed any more.
    Store,
    /// The server stops. The engine itself never refuses so.
    Closing,
    /// What the request is about lives in several shards. The engine itself never refuses so.
    CrossShard,
}

impl RefusalKind {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::BadArgument,
        Self::NoQueue,
        Self::NotFound,
        Self::Exists,
        Self::IdRequired,
        Self::NotTaken,
        Self::NotOwner,
        Self::Stale,
        Self::Taken,
        Self::WrongState,
        Self::TooLarge,
        Self::Full,
        Self::Paused,
        Self::Busy,
        Self::Store,
        Self::Closing,
        Self::CrossShard,
    ];

    /// The stable word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::BadArgument => "BADARG",
            Self::NoQueue => "NOQUEUE",
            Self::NotFound => "NOTFOUND",
            Self::Exists => "EXISTS",
            Self::IdRequired => "IDREQUIRED",
            Self::NotTaken => "NOTTAKEN",
            Self::NotOwner => "NOTOWNER",
            Self::Stale => "STALE",
            Self::Taken => "TAKEN",
            Self::WrongState => "WRONGSTATE",
            Self::TooLarge => "TOOLARGE",
            Self::Full => "FULL",
            Self::Paused => "PAUSED",
            Self::Busy => "BUSY",
            Self::Store => "STORE",
            Self::Closing => "CLOSING",
            Self::CrossShard => "CROSSSHARD",
        }
    }
}

impl Outcome {
    /// The stable word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Acked => "acked",
            Self::Buried => "buried",
            Self::Expired => "expired",
            Self::Killed => "killed",
            Self::Timeout => "timeout",
        }
    }
}

impl Refusal {
    /// A refusal with its sentence.
    pub fn new(kind: RefusalKind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into() }
    }

    /// That of a blocked request when the server stops.
    #[must_use]
    pub fn closing() -> Self {
        Self::new(RefusalKind::Closing, "the server is stopping")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.sentence)
    }
}

impl std::error::Error for Refusal {}
