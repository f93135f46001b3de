//! Looking at the figures of many queues, page by page, and hearing which queues come and go.
//!
//! Nothing here changes a queue, and no client asks for it: the monitor of the server does.

use std::sync::Arc;

use crate::task::Bytes;

/// A queue or a lane, in the order of a survey: queues by name, then lanes by number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Surveyed {
    /// The number and the member of the lane, if it is one.
    pub lane: Option<(u64, Bytes)>,
    /// The name of the queue or topic.
    pub queue: Bytes,
}

/// A page of a survey.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SurveyPage {
    /// Queues and lanes that exist, in order.
    pub names: Vec<Surveyed>,
    /// What the next page comes after, if there is one.
    pub next: Option<Surveyed>,
}

/// What became of a queue. Lanes are left out: the comings and goings of members are theirs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueNews {
    /// The name of the queue.
    pub queue: Bytes,
    /// What became of it.
    pub what: QueueChange,
}

/// Says whether a queue of this name is in use, although it may not exist.
pub type IsInUse = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// See [`QueueNews`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueChange {
    /// It came to exist: it was created, or its first task came.
    Came,
    /// It ceased to exist.
    Went,
    /// One of its sides was paused.
    Paused,
    /// One of its sides was resumed.
    Resumed,
    /// Its settings were changed.
    Set,
}
