//! What one engine is asked for when a take names queues of several engines.

use super::{Done, Take};
use crate::task::Receipt;

/// See [`Command::Share`](super::Command::Share).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Share<'a> {
    /// Acknowledges tasks, and reads the task that a take would take first. The reply is
    /// [`Reply::Shown`](crate::reply::Reply::Shown) with one task or none, without its payload. If
    /// an ack is refused, nothing is acknowledged.
    Look {
        /// The tasks to acknowledge first.
        done: &'a [Done<'a>],
        /// The take, of which the wait does not matter. It may name no queue.
        take: Take<'a>,
    },
    /// Takes tasks as soon as there are any. A pop takes them under a lease that ends with the
    /// connection, and that is no failure then: [`Share::Pop`] pops them, and
    /// [`Command::GiveBack`](super::Command::GiveBack) returns them.
    Wait {
        /// The take.
        take: Take<'a>,
        /// Whether the client waits in another engine at the same time, where it is counted.
        is_echo: bool,
    },
    /// Pops what a [`Share::Wait`] has taken for a pop. The reply is
    /// [`Reply::Tasks`](crate::reply::Reply::Tasks) with those of which the lease has not ended.
    Pop(&'a [Receipt]),
}

impl Share<'_> {
    /// Whether it is there to change something, even if nobody waits for a task.
    #[must_use]
    pub const fn is_change(&self) -> bool {
        match self {
            Self::Look { done, .. } => !done.is_empty(),
            Self::Wait { .. } => false,
            Self::Pop(_) => true,
        }
    }
}
