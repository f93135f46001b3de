//! What one engine is asked for when a take names queues of several engines.

use super::{Done, Take};
use crate::facts::{Destination, Disk, Lanes, Subject};
use crate::rights::{Need, Right};
use crate::task::Receipt;

/// See [`Command::Share`](super::Command::Share).
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Share<'a> {
    /// Acknowledges tasks, and reads the task that a take would take first. The reply is
    /// [`Reply::Shown`](crate::reply::Reply::Shown) with one task or none, without its payload. If
    /// an ack is refused, nothing is acknowledged.
    #[letter(1)]
    Look {
        /// The tasks to acknowledge first.
        done: &'a [Done<'a>],
        /// The take, of which the wait does not matter. It may name no queue.
        take: Take<'a>,
    },
    /// Takes tasks as soon as there are any. A pop takes them under a lease that ends with the
    /// connection, and that is no failure then: [`Share::Pop`] pops them, and
    /// [`Command::GiveBack`](super::Command::GiveBack) returns them.
    #[letter(2)]
    Wait {
        /// The take.
        take: Take<'a>,
        /// Whether the client waits in another engine at the same time, where it is counted.
        #[letter(1)]
        is_echo: bool,
    },
    /// Pops what a [`Share::Wait`] has taken for a pop. The reply is
    /// [`Reply::Tasks`](crate::reply::Reply::Tasks) with those of which the lease has not ended.
    #[letter(3)]
    Pop(&'a [Receipt]),
    /// Permits exactly this number of further deliveries, whatever was permitted before. The reply
    /// is [`Reply::Done`](crate::reply::Reply::Done).
    #[letter(4)]
    Permit {
        /// The number of deliveries.
        deliveries: u32,
        /// Whether deliveries that pop hold their tasks first, as a [`Share::Wait`] does.
        #[letter(1)]
        holds: bool,
    },
    /// Reads the task that the subscriptions of the client would be sent next. The reply is that
    /// to a [`Share::Look`].
    #[letter(5)]
    Next,
}

impl<'a> Share<'a> {
    /// Popping what is held asks for nothing new.
    pub(super) fn each_need(&self, tell: &mut dyn FnMut(Need<'a>)) {
        match *self {
            Self::Look { done, take } => {
                done.each(Right::Take, tell);
                take.queues.each(Right::Take, tell);
            }
            Self::Wait { take, .. } => take.queues.each(Right::Take, tell),
            Self::Pop(_) | Self::Permit { .. } | Self::Next => {}
        }
    }

    pub(super) const fn destination(&self) -> Destination<'a> {
        match *self {
            Self::Look { take, .. } | Self::Wait { take, .. } => Destination::Queues(take.queues),
            Self::Pop(_) | Self::Permit { .. } | Self::Next => Destination::Deliveries,
        }
    }

    pub(super) fn names(&self) -> Option<(Lanes<'a>, (&'a [Done<'a>], Lanes<'a>))> {
        let (done, take): (&[Done<'_>], _) = match *self {
            Self::Look { done, take } => (done, take),
            Self::Wait { take, .. } => (&[], take),
            Self::Pop(_) | Self::Permit { .. } | Self::Next => return None,
        };
        Some((Lanes(&[], take.member), (done, Lanes(take.queues, None))))
    }

    pub(super) const fn on_full_disk(&self) -> Disk {
        match *self {
            Self::Look { take, .. } | Self::Wait { take, .. } => take.mode.on_full_disk(),
            Self::Pop(_) | Self::Permit { .. } | Self::Next => Disk::Served,
        }
    }

    pub(super) fn may_block(&self) -> bool {
        matches!(self, Self::Wait { take, .. } if take.wait.blocks())
    }

    /// Whether it is there to change something, even if no client waits for a task.
    #[must_use]
    pub const fn is_change(&self) -> bool {
        match self {
            Self::Look { done, .. } => !done.is_empty(),
            Self::Wait { .. } | Self::Permit { .. } | Self::Next => false,
            Self::Pop(_) => true,
        }
    }
}
