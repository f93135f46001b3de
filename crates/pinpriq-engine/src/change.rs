//! Changes: what must be made durable, as the engine reports it.
//!
//! A batch of changes is atomic and ordered; [`crate::Engine::restore`] folds them back. A change
//! states the outcome, not the command, so folding the same one twice does no harm, and a store
//! may write the whole record of a task again wherever it likes.

use crate::settings::{Paused, Settings};
use crate::task::{Bytes, State, TaskRecord};
use crate::time::{Span, Timestamp};

/// One durable fact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A task as it is now, whole: it was put, put back, given a new payload, or its record was
    /// moved by the store. Replaces whatever was known under its number.
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
}

/// Everything about a task that can change without a new payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The number of the task.
    pub number: u64,
    /// See [`TaskRecord::seq`].
    pub seq: u64,
    /// See [`TaskRecord::priority`].
    pub priority: Option<i64>,
    /// See [`TaskRecord::expires_at`].
    pub expires_at: Option<Timestamp>,
    /// See [`TaskRecord::attempts`].
    pub attempts: u32,
    /// See [`TaskRecord::state`]. The holder of a lease is not kept.
    pub state: State,
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
    /// How many bytes.
    pub length: u32,
}

/// A record that a store can be asked to write again, and that the engine can be asked about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RecordKey {
    /// The task of this number.
    Task(u64),
    /// The settings and pause of the queue of this name.
    Queue(Bytes),
}
