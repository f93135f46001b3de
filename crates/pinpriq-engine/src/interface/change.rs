//! Changes: what must be made durable, as the engine reports it.
//!
//! A batch of changes is atomic and ordered; [`crate::Engine::restore`] folds them back. A change
//! states the outcome, not the command, so folding the same one twice does no harm, and a store
//! may write the whole record of a task again wherever it likes.

use crate::settings::{Paused, Settings};
use crate::task::{Bytes, LaneName, Progress, TaskId, TaskRecord, Terms};
use crate::time::{Span, Timestamp};

/// One durable fact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A task of a queue or a lane as it is now, whole: it was put, put back, given a new payload,
    /// or its record was moved by the store. Replaces whatever was known under its number.
    Task(Box<TaskRecord>),
    /// A task that is known already now stands like this; payload, key and id stay.
    Moved(Box<Moved>),
    /// A task was taken. The one change that no reply waits for.
    Granted(Granted),
    /// The task of this number is gone.
    Gone(u64),
    /// A queue now has these settings; from now on it exists even when it is empty, unless only
    /// its pause keeps it.
    Queue(Box<QueueRecord>),
    /// A queue lost its settings and its pause. Its tasks are not touched.
    QueueGone(Bytes),
    /// All tasks of a queue are gone at once.
    Emptied(Bytes),
    /// What was published, with those of its copies that stand as they were put, by rising
    /// numbers. Each is ready, has the publication's priority and deadline, and its number as its
    /// id and seq. Replaces whatever was known under the numbers of these copies; any others of
    /// its copies are not touched.
    Published(Box<Publication>, Vec<Copied>),
    /// A lane is there, with these settings.
    Lane(Box<LaneRecord>),
    /// The lane of this number is gone, and all its tasks with it.
    LaneGone(u64),
    /// All tasks of the lane of this number are gone at once.
    LaneEmptied(u64),
    /// A member is registered, or has ended and waits for its lanes to be cleaned.
    Member(Box<MemberRecord>),
    /// The member of this incarnation is not registered any more.
    MemberGone(u64),
}

/// Where a task stands now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The number of the task.
    pub number: u64,
    /// Without the holder of a lease.
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
    /// When the lease ends; without a deadline it ends with the server.
    pub deadline: Option<Timestamp>,
    /// The time to release that was agreed.
    pub ttr: Option<Span>,
    /// How often the task was taken, this time included.
    pub attempts: u32,
}

/// A queue apart from its tasks.
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

/// One message to all lanes of a topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Publication {
    /// The number of its first copy, which is also its own.
    pub first: u64,
    /// The number of its last copy. Those in between are all its copies, too.
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
    /// The number of the lane that it is in.
    pub lane: u64,
}

/// A lane apart from its tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaneRecord {
    /// Its number, never used for another.
    pub number: u64,
    /// The topic.
    pub topic: Bytes,
    /// The incarnation of the member whose lane it is.
    pub member: u64,
    /// Its settings.
    pub settings: Settings,
    /// Its pause.
    pub paused: Paused,
}

/// A registered member. When it showed its last sign of life is not kept: nobody could give one
/// while the server was down, so every member has its whole lease again after a start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberRecord {
    /// Tells it from every other that has or had its name.
    pub incarnation: u64,
    /// Its name.
    pub name: Bytes,
    /// How long it lives without a sign of life.
    pub lease: Span,
    /// Whether it has ended, so that its lanes are to be cleaned.
    pub ended: bool,
}

/// The facts about the whole shard that every batch carries along.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// The incarnation that made the batch.
    pub incarnation: u64,
    /// The moment of the batch: the clock never starts before the latest of these.
    pub now: Timestamp,
    /// The highest number that any task has had.
    pub last_number: u64,
}

/// Where a store keeps the record of a task or queue.
///
/// The store hands it out, the engine keeps it with the task and hands it back when that record
/// is no longer needed. The engine never looks inside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// Which of the store's volumes; for the journal, the number of a segment.
    pub volume: u32,
    /// Where in it.
    pub offset: u32,
    /// How many bytes, at least one. A place of none is forgotten at once.
    pub length: u32,
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
}

impl Publication {
    /// One of its copies as it was put, which shares terms and payload.
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
            payload: Bytes::default(),
            away: None,
            shared: true,
        }
    }
}

impl Change {
    /// The key of the record that this change carries, if it is one that the store keeps a place
    /// for.
    #[must_use]
    pub fn key(&self) -> Option<RecordKey> {
        match self {
            Self::Task(record) => Some(RecordKey::Task(record.number)),
            Self::Queue(record) => Some(RecordKey::Queue(record.name.clone())),
            Self::Published(record, _) => Some(RecordKey::Published(record.first)),
            Self::Lane(record) => Some(RecordKey::Lane(record.number)),
            Self::Member(record) => Some(RecordKey::Member(record.incarnation)),
            Self::Moved(_)
            | Self::Granted(_)
            | Self::Gone(_)
            | Self::QueueGone(_)
            | Self::Emptied(_)
            | Self::LaneGone(_)
            | Self::LaneEmptied(_)
            | Self::MemberGone(_) => None,
        }
    }
}
