//! The commands that administer queues.

use super::{QueueName, Sides};
use crate::facts::{Anywhere, Destination, Joining};
use crate::limits::PAGE_DEFAULT;
use crate::names::NamesPage;
use crate::settings::{Assignment, destination_of, each_need_of};
use crate::shares::ShareChange;
use crate::time::Span;

/// The commands that administer queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Command, pinpriq_derive::Letter)]
pub enum QueueCommand<'a> {
    /// Creates a queue that exists even when it is empty.
    #[command(
        needs = each_need_of(queue, settings, tell), shard = destination_of(queue, settings),
        names = queue, disk = Refused, change, audit = queue, care = LongWork
    )]
    #[letter(1)]
    #[request(
        Spec::new("QUEUE", Group::Queues,
            "Makes a queue that exists even when it is empty",
            "OK")
        .sub("CREATE")
    )]
    Create {
        /// Its name.
        #[key]
        queue: &'a [u8],
        /// The settings that differ from the defaults.
        #[words(Word::AnySettings, with = settings)]
        settings: &'a [Assignment<'a>],
    },
    /// Changes settings. An unknown queue is created, an unknown lane is not.
    #[command(
        needs = each_need_of(queue.name, settings, tell),
        shard = destination_of(queue.name, settings), names = queue, disk = Refused, change,
        audit = queue, care = LongWork
    )]
    #[letter(2)]
    #[request(
        Spec::new("QUEUE", Group::Queues,
            "Changes settings of a queue, which is created if need be",
            "OK")
        .sub("SET")
    )]
    Set {
        /// Its name.
        #[key]
        queue: QueueName<'a>,
        /// What changes.
        #[words(Word::Settings, with = settings)]
        settings: &'a [Assignment<'a>],
    },
    /// Returns the settings.
    #[command(needs(look = it), shard = it, disk = Served, care = LongWork)]
    #[letter(3)]
    #[request(
        Spec::new("QUEUE", Group::Queues,
            "Tells the settings of a queue",
            "a map")
        .sub("SHOW")
    )]
    Show(#[key("queue")] QueueName<'a>),
    /// Lists the names of queues, in order.
    #[command(
        needs(look = Anywhere), shard = Destination::Everywhere(Joining::Names(it.count)),
        names = (), disk = Served, within, care = LongReply
    )]
    #[letter(4)]
    #[request(
        Spec::new("QUEUE", Group::Queues,
            "Tells the names of the queues, page by page",
            "the cursor of the next page (0 after the last) and the names in order")
        .sub("LIST")
    )]
    List(NamesPage<'a>),
    /// Removes all tasks.
    #[command(needs(manage = it), shard = it, disk = Served, change, audit = it, care = LongWork)]
    #[letter(5)]
    #[request(
        Spec::new("QUEUE", Group::Queues,
            "Removes all tasks of a queue",
            "how many")
        .sub("TRUNCATE")
        .http(Form::Count)
    )]
    Truncate(#[key("queue")] QueueName<'a>),
    /// Removes all tasks, the settings and the pause.
    #[command(needs(manage = it), shard = it, disk = Served, change, audit = it, care = LongWork)]
    #[letter(6)]
    #[request(
        Spec::new("QUEUE", Group::Queues,
            "Removes a queue with its tasks, settings and pause",
            "how many tasks it had")
        .sub("DROP")
    )]
    Drop(#[key("queue")] &'a [u8]),
    /// Pauses sides of a queue.
    #[command(
        needs(manage = queue), shard = queue, disk = Refused, change, audit = queue, care = LongWork
    )]
    #[letter(7)]
    #[request(
        Spec::new("QUEUE", Group::Queues,
            "Pauses a queue for puts, for takes, or for both, for good or for a while",
            "OK")
        .sub("PAUSE")
    )]
    Pause {
        /// Its name.
        #[key]
        queue: QueueName<'a>,
        /// Which sides.
        #[word("IN|OUT", default = Sides::Both)]
        sides: Sides,
        /// How long the pause lasts; without it until it is ended.
        #[letter(1)]
        #[option(FOR)]
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
    #[request(Spec::new("QUEUE", Group::Queues, "Ends a pause", "OK") .sub("RESUME"))]
    Resume {
        /// Its name.
        #[key]
        queue: QueueName<'a>,
        /// Which sides.
        #[word("IN|OUT", default = Sides::Both)]
        sides: Sides,
    },
    /// Gives a share of a queue rules of its own. An unknown queue is created.
    #[command(
        needs(manage = queue), shard = queue, disk = Refused, change, audit = queue, care = LongWork
    )]
    #[letter(11)]
    #[request(
        Spec::new("QUEUE", Group::Queues,
            "Changes weight, limit and rate of one share of a queue, which is created if need be",
            "OK")
        .sub("SHARE")
    )]
    Share {
        /// Its name.
        #[key]
        queue: &'a [u8],
        /// The share. May be empty.
        #[word]
        share: &'a [u8],
        /// What changes.
        #[letter(1, default = ShareChange::default())]
        #[flat]
        change: ShareChange,
    },
    /// Returns the shares of a queue that have tasks or rules of their own.
    #[command(needs(look = queue), shard = queue, disk = Served, care = LongReply)]
    #[letter(12)]
    #[request(
        Spec::new("QUEUE", Group::Queues,
            "Shows the shares of a queue with their rules and figures, page by page",
            "the cursor of the next page (0 after the last) and an array of maps: share, weight, \
             limit, rate, ready, taken, waited_ms, oldest_ready_ms, acked, failed")
        .sub("SHARES")
    )]
    Shares {
        /// Its name.
        #[key]
        queue: QueueName<'a>,
        /// The most shares to return, at most [`LOOKED_MAX`](crate::limits::LOOKED_MAX).
        #[option(default = PAGE_DEFAULT)]
        count: u32,
        /// Only shares whose names are not before this one.
        #[letter(1)]
        #[option(CURSOR, with = cursors::name)]
        from: Option<&'a [u8]>,
        /// Whether those come first that wait longest.
        #[letter(2)]
        #[option(TOP)]
        top: bool,
    },
    /// Returns the figures of one queue, or of all queues together.
    #[command(
        needs(look = it), names = it, disk = Served, within = it.is_none(), care = LongWork,
        shard = it.map_or(Destination::Everywhere(Joining::Figures), Destination::from)
    )]
    #[letter(10)]
    #[request(Spec::new(
        "STATS",
        Group::Queues,
        "Tells the figures of a queue, or of all together",
        "a map"
    ))]
    Stats(#[key("queue")] Option<QueueName<'a>>),
}
