//! Unique tasks: what a put says about others like it, and what it learns about them.
//!
//! When a put meets a duplicate is decided in `operations/unique.rs`.

use crate::limits::UNIQUE_OVERHEAD_BYTES;
use crate::outcome::Outcome;
use crate::task::{Bytes, TaskId};
use crate::time::{Span, Timestamp};

/// The longest unique key, in bytes. The shortest has one.
pub const UNIQUE_BYTES_MAX: usize = 255;

/// What a window counts against [`crate::limits::Limits::bytes_max`] in addition to its queue, its
/// key and an id that was given. An estimate.
pub const WINDOW_OVERHEAD_BYTES: u64 = 256;

/// What makes a task unique among those of its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct Unique<'a> {
    /// Puts into one queue with an equal key are duplicates, as long as the task of the first is
    /// ready, taken, waiting or buried.
    pub key: &'a [u8],
    /// For how long after this put others are duplicates too, whatever becomes of its task.
    #[letter(1)]
    pub window: Option<Span>,
    /// What happens if this put is a duplicate.
    #[letter(2)]
    pub on_duplicate: OnDuplicate,
}

/// What happens to a put that meets a duplicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub enum OnDuplicate {
    /// Nothing changes. The reply names the first task.
    #[default]
    Keep = 0,
    /// It is refused.
    Reject = 1,
    /// The first task becomes what this put says.
    Replace = 2,
}

/// The reply to a put of a unique task.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct PutUnique {
    /// The id of the task: of the new one, or of the first.
    pub id: TaskId,
    /// Whether it is a new task.
    #[letter(1)]
    pub new: bool,
    /// How it ended, if the put waits for that.
    #[letter(2, default = Awaited::No)]
    pub awaited: Awaited,
}

/// How a task ended for a put that may wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Awaited {
    /// The put did not wait.
    #[letter(1)]
    No,
    /// The task has left its queue, and it is not known how.
    #[letter(2)]
    Unknown,
    /// It ended like this, or not in time.
    #[letter(3)]
    Known(Outcome),
}

/// A time in which puts with a key are duplicates, whatever becomes of the first task.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct WindowRecord {
    /// The number of the first task.
    pub number: u64,
    /// The queue into which it was put.
    pub queue: Bytes,
    /// The unique key.
    pub key: Bytes,
    /// Its id.
    pub id: TaskId,
    /// The end of the window.
    pub until: Timestamp,
}

impl OnDuplicate {
    /// All of them, with the word for each.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Keep, "keep"), (Self::Reject, "reject"), (Self::Replace, "replace")];
}

impl Unique<'_> {
    /// What a put occupies because of it: the key, and the window. The queue's name has `queue`
    /// bytes, and an id `id` bytes if one is given.
    #[must_use]
    pub fn bytes(&self, queue: usize, id: usize) -> usize {
        let window = self.window.map_or(0, |_| window_bytes(queue, self.key.len(), id));
        self.key.len() + UNIQUE_OVERHEAD_BYTES + usize::try_from(window).unwrap_or(usize::MAX)
    }
}

impl WindowRecord {
    /// What the window occupies.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let id = if let TaskId::Given(id) = &self.id { id.len() } else { 0 };
        window_bytes(self.queue.len(), self.key.len(), id)
    }
}

/// What a window of a queue with a name of `queue` bytes occupies, with a key of `key` bytes, and
/// an id of which `id` bytes were given.
#[must_use]
pub const fn window_bytes(queue: usize, key: usize, id: usize) -> u64 {
    WINDOW_OVERHEAD_BYTES + (queue + key + id) as u64
}
