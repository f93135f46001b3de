//! What commands about several queues, and about tasks that only their number names, say.

use super::Wait;
use crate::facts::Disk;
use crate::rights::Right;
use crate::time::Span;

/// See [`Command::Reserve`](super::Command::Reserve).
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct Reserve<'a> {
    /// The queues. Of their first tasks, the one with the lowest priority is taken; of equal ones
    /// the one that was put first. Without any, only the end of a lease or of the wait is awaited.
    pub queues: &'a [&'a [u8]],
    /// How long to block for a task.
    #[letter(1, default = Wait::No)]
    pub wait: Wait,
    /// Whether the client waits in another engine at the same time, where it is counted.
    #[letter(2)]
    pub is_echo: bool,
}

impl<'a> Reserve<'a> {
    /// Returns a reserve of one engine.
    #[must_use]
    pub const fn new(queues: &'a [&'a [u8]], wait: Wait) -> Self {
        Self { queues, wait, is_echo: false }
    }
}

/// What to do with a task that only its number names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Deed {
    /// Reads it.
    #[letter(1)]
    Read,
    /// Takes it from R, W or B under a lease that is tied to the connection, also if its queue is
    /// paused or holds its tasks back.
    #[letter(2)]
    Take,
    /// Acknowledges it if this client holds it. Removes it from R, W or B.
    #[letter(3)]
    Delete,
    /// Releases it, held by this client.
    #[letter(4)]
    Release {
        /// Its new priority.
        priority: i64,
        /// How long it stays waiting first.
        delay: Span,
    },
    /// Buries it, held by this client.
    #[letter(5)]
    Bury {
        /// Its new priority.
        priority: i64,
    },
    /// Renews its lease, held by this client.
    #[letter(6)]
    Touch,
    /// Makes it ready, from B or W.
    #[letter(7)]
    Kick,
}

impl Deed {
    /// Returns the right that it needs. The right to take a task includes the right to end it.
    pub(super) const fn right(self) -> Right {
        match self {
            Self::Read => Right::Look,
            Self::Kick => Right::Manage,
            Self::Take | Self::Delete | Self::Release { .. } | Self::Bury { .. } | Self::Touch => {
                Right::Take
            }
        }
    }

    /// Returns what it needs of a disk, as the command that does the same with an id.
    pub(super) const fn on_full_disk(self) -> Disk {
        match self {
            Self::Read | Self::Delete => Disk::Served,
            Self::Take => Disk::Leases,
            Self::Release { .. } | Self::Bury { .. } | Self::Touch | Self::Kick => Disk::Refused,
        }
    }

    pub(super) const fn is_change(self) -> bool {
        !matches!(self, Self::Read | Self::Take)
    }
}
