//! Changes: what must be made durable.
//!
//! A batch of changes is atomic and ordered. [`crate::Engine::restore`] applies the changes again.
//! A change states the outcome, not the command. So applying the same change twice does no harm,
//! and a store may write the whole record of a task again anywhere.

use crate::details::{Detail, DetailKind};
pub use crate::place::Place;
use crate::schedule::{Course, Plan};
use crate::settings::{Paused, Settings};
use crate::task::{Bytes, LaneName, Progress, TaskId, TaskRecord, Terms};
use crate::time::{Span, Timestamp};

/// One durable fact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A task of a queue or a lane as it is now, whole: it was put, put back or given a new
    /// payload, or the store moved its record. Replaces everything known under its number.
    Task(Box<TaskRecord>),
    /// The new progress of a known task. Its payload, key and id stay.
    Moved(Box<Moved>),
    /// A task was taken. This is the only change that no reply waits for.
    Granted(Granted),
    /// The task of this number was removed.
    Gone(u64),
    /// The current settings of a queue. From now on the queue exists even when it is empty, unless
    /// only its pause keeps it.
    Queue(Box<QueueRecord>),
    /// A queue lost its settings and its pause. Its tasks stay.
    QueueGone(Bytes),
    /// All tasks of a queue were removed at once.
    Emptied(Bytes),
    /// A publication, with those of its copies that are as they were put, in rising order of their
    /// numbers. Each of these is ready, has the publication's priority and deadline, and its number
    /// as its id and seq. Replaces everything known under the numbers of these copies. Other copies
    /// of the publication stay as they are.
    Published(Box<Publication>, Vec<Copied>),
    /// A lane exists, with these settings.
    Lane(Box<LaneRecord>),
    /// The lane of this number was removed with all its tasks.
    LaneGone(u64),
    /// All tasks of the lane of this number were removed at once.
    LaneEmptied(u64),
    /// A member is registered, or has ended and waits for its lanes to be cleaned.
    Member(Box<MemberRecord>),
    /// The member of this incarnation is no longer registered.
    MemberGone(u64),
    /// A schedule as it is now, whole. Replaces everything known under its number.
    Schedule(Box<ScheduleRecord>),
    /// How far a known schedule has come. Its plan stays. The task of a slot and the change that
    /// says that the slot is done are in one batch.
    ScheduleMoved(Box<ScheduleMoved>),
    /// The schedule of this number was removed.
    ScheduleGone(u64),
    /// A detail as it is now, whole. Replaces the one of its kind and number.
    Detail(Box<Detail>),
    /// The detail of this kind and number is forgotten.
    DetailGone(DetailKind, u64),
}

/// The new progress of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The number of the task.
    pub number: u64,
    /// The progress. A lease in it has no holder.
    pub progress: Progress,
}

/// A lease that was granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// The number of the task.
    pub number: u64,
    /// The grant's incarnation.
    pub incarnation: u64,
    /// The grant's serial number.
    pub serial: u64,
    /// When the lease ends. Without a deadline it ends with the server.
    pub deadline: Option<Timestamp>,
    /// The agreed time to release.
    pub ttr: Option<Span>,
    /// How often the task was taken, including this time.
    pub attempts: u32,
}

/// A queue without its tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueRecord {
    /// Its name.
    pub name: Bytes,
    /// Whether it was created, so that it exists even when empty.
    pub created: bool,
    /// Its settings.
    pub settings: Settings,
    /// Its pause.
    pub paused: Paused,
}

/// One task for all lanes of a topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Publication {
    /// The number of its first copy, which is also the number of the publication.
    pub first: u64,
    /// The number of its last copy. All numbers in between are its copies too.
    pub last: u64,
    /// When it was published.
    pub put_at: Timestamp,
    /// What every copy was put with.
    pub terms: Terms,
    /// The priority that every copy was put with.
    pub priority: Option<i64>,
    /// Its deadline.
    pub expires_at: Option<Timestamp>,
    /// What every copy carries.
    pub payload: Bytes,
}

/// One copy of a publication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copied {
    /// The number of the task.
    pub number: u64,
    /// The number of the lane.
    pub lane: u64,
}

/// A lane without its tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaneRecord {
    /// Its number, never used for another lane.
    pub number: u64,
    /// The topic.
    pub topic: Bytes,
    /// The incarnation of the member that has the lane.
    pub member: u64,
    /// Its settings.
    pub settings: Settings,
    /// Its pause.
    pub paused: Paused,
}

/// A registered member. The time of its last sign of life is not kept: no member could show one
/// while the server was down, so every member has its whole lease again after a start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberRecord {
    /// Distinguishes it from every other member that has or had its name.
    pub incarnation: u64,
    /// Its name.
    pub name: Bytes,
    /// How long it lives without a sign of life.
    pub lease: Span,
    /// Whether it has ended, so that its lanes must be cleaned.
    pub ended: bool,
}

/// A schedule.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct ScheduleRecord {
    /// Distinguishes it from every other schedule that has or had its name.
    pub number: u64,
    /// Its name.
    pub name: Bytes,
    /// What was decided about it.
    pub plan: Plan,
    /// How far it has come.
    pub course: Course,
}

/// How far a schedule has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleMoved {
    /// The number of the schedule.
    pub number: u64,
    /// How far it has come.
    pub course: Course,
}

/// The facts about the whole shard that every batch carries along.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// The incarnation that made the batch.
    pub incarnation: u64,
    /// The moment of the batch. After a restart the clock never starts before the latest of these.
    pub now: Timestamp,
    /// The highest number that any task has had.
    pub last_number: u64,
}

/// A record that a store can be asked to write again, and that the engine can be asked about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RecordKey {
    /// The task of this number.
    Task(u64),
    /// The settings and pause of the queue of this name.
    Queue(Bytes),
    /// The publication whose first copy has this number.
    Published(u64),
    /// The lane of this number.
    Lane(u64),
    /// The member of this incarnation.
    Member(u64),
    /// The schedule of this number.
    Schedule(u64),
    /// The detail of this kind and number.
    Detail(DetailKind, u64),
}

impl Publication {
    /// The task record of one copy as it was put. The copy shares terms and payload.
    #[must_use]
    pub fn copy(&self, copied: Copied) -> TaskRecord {
        TaskRecord {
            number: copied.number,
            queue: Bytes::default(),
            lane: Some(LaneName::numbered(copied.lane)),
            id: TaskId::Number(copied.number),
            put_at: self.put_at,
            terms: Terms::default(),
            progress: Progress {
                expires_at: self.expires_at,
                ..Progress::fresh(copied.number, self.priority)
            },
            past: None,
            payload: Bytes::default(),
            away: None,
            shared: true,
        }
    }
}

impl Change {
    /// Says how a detail is now.
    #[must_use]
    pub fn detail(record: impl Into<Detail>) -> Self {
        Self::Detail(Box::new(record.into()))
    }

    /// The key of the record that this change carries, if the store keeps a place for it.
    #[must_use]
    pub fn key(&self) -> Option<RecordKey> {
        match self {
            Self::Task(record) => Some(RecordKey::Task(record.number)),
            Self::Queue(record) => Some(RecordKey::Queue(record.name.clone())),
            Self::Published(record, _) => Some(RecordKey::Published(record.first)),
            Self::Lane(record) => Some(RecordKey::Lane(record.number)),
            Self::Member(record) => Some(RecordKey::Member(record.incarnation)),
            Self::Schedule(record) => Some(RecordKey::Schedule(record.number)),
            Self::Detail(detail) => Some(RecordKey::Detail(detail.kind(), detail.number())),
            Self::Moved(_)
            | Self::Granted(_)
            | Self::Gone(_)
            | Self::QueueGone(_)
            | Self::Emptied(_)
            | Self::LaneGone(_)
            | Self::LaneEmptied(_)
            | Self::MemberGone(_)
            | Self::ScheduleMoved(_)
            | Self::ScheduleGone(_)
            | Self::DetailGone(..) => None,
        }
    }
}
