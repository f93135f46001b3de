//! The commands that administer queues.

use super::{QueueName, Sides};
use crate::facts::{Anywhere, Destination, Joining};
use crate::settings::{Assignment, destination_of, each_need_of};
use crate::time::Span;

/// The commands that administer queues.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Debug,
    pinpriq_derive::Command,
    pinpriq_derive::Kinds,
    pinpriq_derive::Letter,
)]
pub enum QueueCommand<'a> {
    /// Creates a queue that exists even when it is empty.
    #[command(
        needs = each_need_of(queue, settings, tell), shard = destination_of(queue, settings),
        names = queue, disk = Refused, change, audit = queue, care = LongWork
    )]
    #[letter(1)]
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
    #[letter(2)]
    Set {
        /// Its name.
        queue: QueueName<'a>,
        /// What changes.
        settings: &'a [Assignment<'a>],
    },
    /// Returns the settings.
    #[command(needs(look = it), shard = it, disk = Served, care = LongWork)]
    #[letter(3)]
    Show(QueueName<'a>),
    /// Lists the names of queues, in order.
    #[command(
        needs(look = Anywhere), shard = Destination::Everywhere(Joining::Names(count)),
        names = (), disk = Served, within, care = LongReply
    )]
    #[letter(4)]
    List {
        /// Only names that begin with this.
        prefix: &'a [u8],
        /// Only names after this one.
        #[letter(1)]
        after: Option<&'a [u8]>,
        /// The most names to return.
        count: usize,
    },
    /// Removes all tasks.
    #[command(needs(manage = it), shard = it, disk = Served, change, audit = it, care = LongWork)]
    #[letter(5)]
    Truncate(QueueName<'a>),
    /// Removes all tasks, the settings and the pause.
    #[command(needs(manage = it), shard = it, disk = Served, change, audit = it, care = LongWork)]
    #[letter(6)]
    Drop(&'a [u8]),
    /// Pauses sides of a queue.
    #[command(
        needs(manage = queue), shard = queue, disk = Refused, change, audit = queue, care = LongWork
    )]
    #[letter(7)]
    Pause {
        /// Its name.
        queue: QueueName<'a>,
        /// Which sides.
        sides: Sides,
        /// How long, if it ends by itself.
        #[letter(1)]
        length: Option<Span>,
    },
    /// Pauses the output of a queue for this long, or ends that pause if it is `None`.
    #[command(
        needs(manage = queue), shard = queue, change, audit = queue, care = LongWork,
        disk = if length.is_some() { Refused } else { Served }
    )]
    #[letter(8)]
    Hold {
        /// Its name.
        queue: &'a [u8],
        /// How long.
        #[letter(1)]
        length: Option<Span>,
        /// Whether a queue that does not exist is made. Otherwise it is refused.
        #[letter(2)]
        makes: bool,
    },
    /// Ends the pause of sides of a queue.
    #[command(
        needs(manage = queue), shard = queue, disk = Served, change, audit = queue, care = LongWork
    )]
    #[letter(9)]
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
    #[letter(10)]
    Stats(Option<QueueName<'a>>),
}
