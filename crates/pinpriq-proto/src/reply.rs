//! All outputs of the engine.
//!
//! A [`Refusal`] is a correct reply, not an error: the request was understood but could not be
//! granted, and nothing has changed. An output may leave only after the changes that it depends on
//! are durable. The store and the server ensure that.

use std::fmt;
use std::num::NonZeroU64;

use crate::export::Exported;
use crate::fanout::MemberFigures;
use crate::looking::{Explanation, LeasePlace, LeaseShown};
use crate::schedule::ShownSchedule;
use crate::settings::{Paused, Settings};
use crate::stats::Figures;
use crate::task::{Bytes, ClientId, RequestId, StateKind, TaskId, TaskRecord};
use crate::time::{Span, Timestamp};
use crate::unique::PutUnique;

/// Something to be sent to a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// The reply to a request.
    Reply {
        /// The client that made the request.
        client: ClientId,
        /// The request.
        request: RequestId,
        /// The reply.
        reply: Reply,
    },
    /// Tasks for a subscriber: one task, or one group with the selected task first.
    Delivery {
        /// The client that receives them.
        client: ClientId,
        /// The tasks.
        tasks: Vec<TaskRecord>,
        /// Whether they were popped, so that they must be put back if they cannot be sent.
        popped: bool,
    },
}

impl Output {
    /// Returns the tasks in this output; an empty slice if there are none. Does not copy them.
    pub fn tasks_mut(&mut self) -> &mut [TaskRecord] {
        match self {
            Self::Reply {
                reply:
                    Reply::Tasks { tasks, .. } | Reply::Scanned { tasks, .. } | Reply::Shown(tasks),
                ..
            }
            | Self::Delivery { tasks, .. } => tasks,
            Self::Reply { reply: Reply::Exported(exported), .. } => &mut exported.tasks,
            Self::Reply { reply: Reply::Task(Some(task)), .. } => std::slice::from_mut(&mut **task),
            Self::Reply { .. } => &mut [],
        }
    }
}

/// Queues that can be tubes, and what has happened in all that were there since the server has
/// started.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TubesShown {
    /// The queues, in no particular order.
    pub tubes: Vec<TubeShown>,
    /// Tasks that were put.
    pub put: u64,
    /// Leases that have reached their deadline.
    pub timeouts: u64,
    /// Blocked reserves.
    pub reserves: u64,
}

/// A queue that can be a tube, as it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TubeShown {
    /// Its name.
    pub name: Bytes,
    /// Whether it exists. If not, these are the figures that are kept for a while after its end.
    pub exists: bool,
    /// When it came into being, or the server started with it.
    pub came_at: Timestamp,
    /// How many of this shard's queues came into being before it.
    pub came_after: u64,
    /// Tasks present in each state, in the order of [`StateKind::ALL`].
    pub counts: [u64; 6],
    /// Ready tasks with a priority below [`URGENT_BELOW`](crate::limits::URGENT_BELOW).
    pub urgent: u64,
    /// Tasks that entered, without those found at the start.
    pub put: u64,
    /// Tasks that were deleted by their number.
    pub deletes: u64,
    /// Blocked reserves that wait for it.
    pub reserves: u64,
    /// Its pause.
    pub paused: Paused,
    /// How long the pause of its output is in all, if it ends by itself, or since the server has
    /// started.
    pub paused_for: Span,
}

/// The reply to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The request was carried out, and there is nothing to return.
    Done,
    /// The task was put under this id.
    Put(TaskId),
    /// The task was put under this id, and ended like this or not in time.
    PutOutcome(TaskId, Outcome),
    /// The unique task was put, or was there already.
    PutUnique(PutUnique),
    /// The tasks that were read, possibly none.
    Shown(Vec<TaskRecord>),
    /// The tasks that were taken or popped, possibly none.
    Tasks {
        /// The tasks.
        tasks: Vec<TaskRecord>,
        /// Whether they were popped, so that they must be put back if they cannot be sent.
        popped: bool,
    },
    /// There is no task to take, and a lease of the client ends within
    /// [`DEADLINE_MARGIN`](crate::limits::DEADLINE_MARGIN).
    DeadlineSoon,
    /// The queues that can be tubes.
    Tubes(Box<TubesShown>),
    /// The task of the requested id, if there is one.
    Task(Option<Box<TaskRecord>>),
    /// Why a task is not handed out.
    Explained(Box<Explanation>),
    /// A page of the tasks of a queue.
    Scanned {
        /// The tasks, by seq.
        tasks: Vec<TaskRecord>,
        /// The seq after which the next page begins; `None` after the last page.
        next: Option<NonZeroU64>,
    },
    /// A page of an export.
    Exported(Box<Exported>),
    /// A page of leases.
    Leases {
        /// The leases, in the order of their places.
        leases: Vec<LeaseShown>,
        /// The place after which the next page begins; `None` after the last page.
        next: Option<Box<LeasePlace>>,
    },
    /// The new state of the task; `None` if it expired in that step.
    State(Option<StateKind>),
    /// The new deadline or the next slot, if there is one.
    Deadline(Option<Timestamp>),
    /// A count.
    Count(u64),
    /// How the awaited task ended, and its state; `None` if it was removed.
    Outcome(Outcome, Option<StateKind>),
    /// One result for each receipt.
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
    /// Names of queues or schedules, and whether there are more.
    Names {
        /// The names, in order.
        names: Vec<Bytes>,
        /// Whether more follow after the last.
        more: bool,
    },
    /// The figures of a queue, or of all queues together.
    Figures(Box<Figures>),
    /// The member is registered under this incarnation.
    Joined(u64),
    /// The members of a topic, in order of their names.
    Members(Vec<MemberFigures>),
    /// A schedule.
    Schedule(Box<ShownSchedule>),
    /// The steps of the transaction were carried out. One reply for each, none of them a refusal.
    Transaction(Vec<Self>),
    /// The request could not be granted, and nothing has changed.
    Refused(Refusal),
}

/// How a task ended for a client that awaited it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was acknowledged.
    Acked,
    /// It was buried.
    Buried,
    /// Its TTL passed.
    Expired,
    /// It was killed.
    Killed,
    /// It was moved to the queue for dead letters.
    Dead,
    /// It made room for a more urgent task.
    Evicted,
    /// It was moved to another queue by hand.
    Moved,
    /// It did not end in time.
    Timeout,
}

/// A request that could not be granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The kind, for programs.
    pub kind: RefusalKind,
    /// A sentence for people that names the queue, the id and the problem.
    pub sentence: String,
}

/// The kinds of refusals. The first word of a refusal on the wire is [`RefusalKind::word`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RefusalKind {
    /// An argument is not valid.
    BadArgument,
    /// The queue does not exist.
    NoQueue,
    /// The task, the member or the schedule does not exist.
    NotFound,
    /// The id or the queue exists already.
    Exists,
    /// The queue requires ids from the caller.
    IdRequired,
    /// The task is not taken.
    NotTaken,
    /// The task is taken by another connection.
    NotOwner,
    /// The receipt is not of a current lease.
    Stale,
    /// The task is taken.
    Taken,
    /// The state of the task does not allow the operation.
    WrongState,
    /// The payload is too large.
    TooLarge,
    /// The queue is at its capacity.
    Full,
    /// The queue is paused for input.
    Paused,
    /// A bound of the server is reached; try later.
    Busy,
    /// The store failed, so nothing can be changed.
    Store,
    /// The server stops. The engine itself never returns this.
    Closing,
    /// The request needs several shards. The engine itself never returns this.
    CrossShard,
    /// A step of the transaction was refused. The sentence begins with its position, counted from
    /// 1, and the word of its refusal.
    ExecAbort,
    /// The owner of the shard is changing, and the request was not carried out. The engine itself
    /// never returns this.
    TryAgain,
    /// The distributed engine does not answer, and the request was not carried out. The engine
    /// itself never returns this.
    ClusterDown,
    /// The request may have been carried out or not. The engine itself never returns this.
    Unknown,
    /// The user may not do this with this queue or topic.
    NoPerm,
}

impl RefusalKind {
    /// All kinds.
    pub const ALL: [Self; 22] = [
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
        Self::ExecAbort,
        Self::TryAgain,
        Self::ClusterDown,
        Self::Unknown,
        Self::NoPerm,
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
            Self::ExecAbort => "EXECABORT",
            Self::TryAgain => "TRYAGAIN",
            Self::ClusterDown => "CLUSTERDOWN",
            Self::Unknown => "UNKNOWN",
            Self::NoPerm => "NOPERM",
        }
    }
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 8] = [
        Self::Acked,
        Self::Buried,
        Self::Expired,
        Self::Killed,
        Self::Dead,
        Self::Evicted,
        Self::Moved,
        Self::Timeout,
    ];

    /// The stable word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Acked => "acked",
            Self::Buried => "buried",
            Self::Expired => "expired",
            Self::Killed => "killed",
            Self::Dead => "dead",
            Self::Evicted => "evicted",
            Self::Moved => "moved",
            Self::Timeout => "timeout",
        }
    }
}

impl Refusal {
    /// Creates a refusal with its sentence.
    pub fn new(kind: RefusalKind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into() }
    }

    /// The refusal of a blocked request when the server stops.
    #[must_use]
    pub fn closing() -> Self {
        Self::new(RefusalKind::Closing, "the server is stopping")
    }

    /// The refusal of a request that was not carried out because the engine under the cluster has
    /// not answered for over a second.
    #[must_use]
    pub fn cluster_down() -> Self {
        let sentence = "the engine under the cluster does not answer; nothing was carried out";
        Self::new(RefusalKind::ClusterDown, sentence)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.sentence)
    }
}

impl std::error::Error for Refusal {}
