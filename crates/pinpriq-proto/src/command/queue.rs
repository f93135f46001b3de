//! The commands that administer queues.

use super::{QueueName, Sides};
use crate::facts::{Anywhere, Destination, Joining};
use crate::settings::{Assignment, destination_of, each_need_of};
use crate::time::Span;

/// The commands that administer queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Command)]
pub enum QueueCommand<'a> {
    /// Creates a queue that exists even when it is empty.
    #[command(
        needs = each_need_of(queue, settings, tell), shard = destination_of(queue, settings),
        names = queue, disk = Refused, change, audit = queue, care = LongWork
    )]
    Create {
        /// Its name.
        queue: &'a [u8],
        /// The settings that differ from the defaults.
        settings: &'a [Assignment<'a>],
    },
    /// Changes settings. An unknown queue is created, an unknown lane is not.
    #[command(
        needs = each_need_of(queue.name, settings, tell),
        shard = destination_of(queue.name, settings), names = queue, disk = Refused, change,
        audit = queue, care = LongWork
    )]
    Set {
        /// Its name.
        queue: QueueName<'a>,
        /// What changes.
        settings: &'a [Assignment<'a>],
    },
    /// Returns the settings.
    #[command(needs(look = it), shard = it, disk = Served, care = LongWork)]
    Show(QueueName<'a>),
    /// Lists the names of queues, in order.
    #[command(
        needs(look = Anywhere), shard = Destination::Everywhere(Joining::Names(count)),
        names = (), disk = Served, within, care = LongReply
    )]
    List {
        /// Only names that begin with this.
        prefix: &'a [u8],
        /// Only names after this one.
        after: Option<&'a [u8]>,
        /// The most names to return.
        count: usize,
    },
    /// Removes all tasks.
    #[command(needs(manage = it), shard = it, disk = Served, change, audit = it, care = LongWork)]
    Truncate(QueueName<'a>),
    /// Removes all tasks, the settings and the pause.
    #[command(needs(manage = it), shard = it, disk = Served, change, audit = it, care = LongWork)]
    Drop(&'a [u8]),
    /// Pauses sides of a queue.
    #[command(
        needs(manage = queue), shard = queue, disk = Refused, change, audit = queue, care = LongWork
    )]
    Pause {
        /// Its name.
        queue: QueueName<'a>,
        /// Which sides.
        sides: Sides,
        /// How long, if it ends by itself.
        length: Option<Span>,
    },
    /// Pauses the output of a queue for this long, or ends that pause if it is `None`.
    #[command(
        needs(manage = queue), shard = queue, change, audit = queue, care = LongWork,
        disk = if length.is_some() { Refused } else { Served }
    )]
    Hold {
        /// Its name.
        queue: &'a [u8],
        /// How long.
        length: Option<Span>,
        /// Whether a queue that does not exist is made. Otherwise it is refused.
        makes: bool,
    },
    /// Ends the pause of sides of a queue.
    #[command(
        needs(manage = queue), shard = queue, disk = Served, change, audit = queue, care = LongWork
    )]
    Resume {
        /// Its name.
        queue: QueueName<'a>,
        /// Which sides.
        sides: Sides,
    },
    /// Returns the figures of one queue, or of all queues together.
    #[command(
        needs(look = it), names = it, disk = Served, within = it.is_none(), care = LongWork,
        shard = it.map_or(Destination::Everywhere(Joining::Figures), Destination::from)
    )]
    Stats(Option<QueueName<'a>>),
}
