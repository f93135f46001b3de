//! All outputs of the engine.
//!
//! A [`Refusal`] is a correct reply, not an error: the request was understood but could not be
//! granted, and nothing has changed. An output may leave only after the changes that it depends on
//! are durable. The store and the server ensure that.

use std::num::NonZeroU64;

use crate::batches::BatchShown;
use crate::export::Exported;
use crate::fanout::MemberFigures;
use crate::looking::{Ending, Explanation, LeasePlace, LeaseShown};
use crate::named_limits::LimitShown;
pub use crate::outcome::Outcome;
pub use crate::refusal::{Refusal, RefusalKind};
use crate::schedule::ShownSchedule;
use crate::settings::{Paused, Settings};
use crate::shares::ShareShown;
use crate::stats::Figures;
use crate::task::{Bytes, ClientId, Receipt, RequestId, StateKind, TaskId, TaskRecord};
use crate::time::{Span, Timestamp};
use crate::unique::PutUnique;

/// Something to be sent to a client.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Output {
    /// The reply to a request.
    #[letter(1)]
    Reply {
        /// The client that made the request.
        client: ClientId,
        /// The request.
        request: RequestId,
        /// The reply.
        reply: Reply,
    },
    /// Tasks for a subscriber: one task, or one group with the selected task first.
    #[letter(2)]
    Delivery {
        /// The client that receives them.
        client: ClientId,
        /// The tasks.
        tasks: Vec<TaskRecord>,
        /// Whether they were popped, so that they must be put back if they cannot be sent.
        #[letter(1)]
        popped: bool,
    },
    /// Something that a client has to know about a lease of its own.
    #[letter(3)]
    Notice(Box<Notice>),
}

/// What a client has to know about a lease of its own: a delivery that it had not started was
/// called back, so its lease has ended and its credit is there again, or the task was cancelled.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct Notice {
    /// The client that has the lease.
    pub client: ClientId,
    /// The queue or the topic.
    pub queue: Bytes,
    /// The id of the task.
    pub id: TaskId,
    /// The receipt of the lease.
    pub receipt: Receipt,
    /// The reason, if the task was cancelled.
    #[letter(1)]
    pub cancelled: Option<Bytes>,
}

impl Notice {
    /// Whether it is a delivery that was called back.
    #[must_use]
    pub const fn is_recall(&self) -> bool {
        self.cancelled.is_none()
    }
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
            Self::Reply { .. } | Self::Notice(_) => &mut [],
        }
    }
}

/// Queues that can be tubes, and what has happened in all that were there since the server has
/// started.
#[derive(Clone, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
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
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct TubeShown {
    /// Its name.
    pub name: Bytes,
    /// Whether it exists. If not, these are the figures that are kept for a while after its end.
    #[letter(1)]
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
    #[letter(2)]
    pub paused: Paused,
    /// How long the pause of its output is in all, if it ends by itself, or since the server has
    /// started.
    pub paused_for: Span,
}

/// The reply to a request.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Reply {
    /// The request was carried out, and there is nothing to return.
    #[letter(1)]
    Done,
    /// The task was put under this id.
    #[letter(2)]
    Put(TaskId),
    /// The task was put under this id, and ended like this or not in time.
    #[letter(3)]
    PutOutcome(TaskId, Outcome),
    /// The unique task was put, or was there already.
    #[letter(4)]
    PutUnique(PutUnique),
    /// The tasks that were read, possibly none.
    #[letter(5)]
    Shown(Vec<TaskRecord>),
    /// The tasks that were taken or popped, possibly none.
    #[letter(6)]
    Tasks {
        /// The tasks.
        tasks: Vec<TaskRecord>,
        /// Whether they were popped, so that they must be put back if they cannot be sent.
        #[letter(1)]
        popped: bool,
    },
    /// There is no task to take, and a lease of the client ends within
    /// [`DEADLINE_MARGIN`](crate::limits::DEADLINE_MARGIN).
    #[letter(7)]
    DeadlineSoon,
    /// The queues that can be tubes.
    #[letter(8)]
    Tubes(Box<TubesShown>),
    /// The task of the requested id, if there is one.
    #[letter(9)]
    Task(Option<Box<TaskRecord>>),
    /// The task of the requested id has left: what became of it.
    #[letter(30)]
    Ended(Box<Ending>),
    /// Why a task is not handed out.
    #[letter(10)]
    Explained(Box<Explanation>),
    /// A page of the tasks of a queue.
    #[letter(11)]
    Scanned {
        /// The tasks, by seq.
        tasks: Vec<TaskRecord>,
        /// The seq after which the next page begins; `None` after the last page.
        #[letter(1)]
        next: Option<NonZeroU64>,
    },
    /// A page of a bulk change.
    #[letter(31)]
    Bulked {
        /// The seq after which the next page begins; `None` after the last page.
        #[letter(1)]
        next: Option<NonZeroU64>,
        /// How many tasks it has looked at.
        looked: u64,
        /// How many have changed, or would change.
        changed: u64,
    },
    /// A page of an export.
    #[letter(12)]
    Exported(Box<Exported>),
    /// A page of leases.
    #[letter(13)]
    Leases {
        /// The leases, in the order of their places.
        leases: Vec<LeaseShown>,
        /// The place after which the next page begins; `None` after the last page.
        #[letter(1)]
        next: Option<Box<LeasePlace>>,
    },
    /// The new state of the task; `None` if it expired in that step.
    #[letter(14)]
    State(Option<StateKind>),
    /// The new deadline or the next slot, if there is one.
    #[letter(15)]
    Deadline(Option<Timestamp>),
    /// A count.
    #[letter(16)]
    Count(u64),
    /// How the awaited task ended, and its state; `None` if it was removed.
    #[letter(17)]
    Outcome(Outcome, Option<StateKind>),
    /// One result for each receipt.
    #[letter(18)]
    Acks(Vec<Result<(), Refusal>>),
    /// The settings of a queue.
    #[letter(19)]
    Settings {
        /// The settings.
        settings: Box<Settings>,
        /// The pause.
        #[letter(1)]
        paused: Paused,
        /// Whether it exists even when empty.
        #[letter(2)]
        created: bool,
    },
    /// Names of queues, schedules or limits, and whether there are more.
    #[letter(20)]
    Names {
        /// The names, in order.
        names: Vec<Bytes>,
        /// Whether more follow after the last.
        #[letter(1)]
        more: bool,
    },
    /// The figures of a queue, or of all queues together.
    #[letter(21)]
    Figures(Box<Figures>),
    /// The member is registered under this incarnation.
    #[letter(22)]
    Joined(u64),
    /// The members of a topic, in order of their names.
    #[letter(23)]
    Members(Vec<MemberFigures>),
    /// A schedule.
    #[letter(24)]
    Schedule(Box<ShownSchedule>),
    /// The steps of the transaction were carried out. One reply for each, none of them a refusal.
    #[letter(25)]
    Transaction(Vec<Self>),
    /// A page of the shares of a queue.
    #[letter(27)]
    Shares {
        /// The shares.
        shares: Vec<ShareShown>,
        /// The name with which the next page begins; `None` after the last page.
        #[letter(1)]
        next: Option<Bytes>,
    },
    /// A limit that several queues use together.
    #[letter(28)]
    Limit(Box<LimitShown>),
    /// A batch.
    #[letter(32)]
    Batch(Box<BatchShown>),
    /// A batch that was awaited. It may not be done in time.
    #[letter(33)]
    BatchAwaited(Box<BatchShown>),
    /// An answer about how a task ended, and what has come of the work, if that was said.
    #[letter(29)]
    WithResult {
        /// The answer.
        reply: Box<Self>,
        /// The result.
        #[letter(1)]
        result: Option<Bytes>,
    },
    /// The request could not be granted, and nothing has changed.
    #[letter(26)]
    Refused(Refusal),
}

impl Reply {
    /// The reply without the result that may go with it.
    #[must_use]
    pub fn bare(&self) -> &Self {
        match self {
            Self::WithResult { reply, .. } => reply,
            other => other,
        }
    }
}
