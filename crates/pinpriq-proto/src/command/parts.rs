//! What commands have in common: which tasks, which lease, how long to wait, what changes.

use crate::assign::Assign;
use crate::facts::{Care, Disk, Named, Subject};
use crate::names::QueueName;
use crate::refusal::Refusal;
use crate::rights::{Need, Right};
use crate::task::{Receipt, StateKind};
use crate::time::Span;

/// See [`Command::Take`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct Take<'a> {
    /// The queues, tried in this order.
    pub queues: &'a [&'a [u8]],
    /// If given, the queues are topics, and the lanes of this member in them are meant.
    #[letter(1)]
    pub member: Option<&'a [u8]>,
    /// The most tasks, or groups, to take.
    #[letter(2, default = 1)]
    pub count: u32,
    /// How long to block for the first.
    #[letter(3, default = Wait::No)]
    pub wait: Wait,
    /// Which tasks.
    #[letter(4, default = Selection::DEFAULT)]
    pub selection: Selection,
    /// Whether to lease or pop them.
    #[letter(5, default = TakeMode::Lease { ttr: None })]
    pub mode: TakeMode,
}

/// A lease whose task is done, see [`Command::TakeDone`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct Done<'a> {
    /// The queue of the task, or the topic of its lane.
    pub queue: &'a [u8],
    /// The proof of the lease.
    pub receipt: Receipt,
    /// What has come of the work, if that is said.
    #[letter(1)]
    pub result: Option<&'a [u8]>,
}

/// Whether what is taken is leased.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum TakeMode {
    /// Taken under a lease, with this TTR if given.
    #[letter(1)]
    Lease {
        /// The time to release.
        #[letter(1)]
        ttr: Option<Span>,
    },
    /// Taken under a lease that no connection holds: only its receipt proves it. It certainly has a
    /// deadline.
    #[letter(2)]
    Unheld {
        /// The time to release.
        #[letter(1)]
        ttr: Option<Span>,
        /// The time to release if neither the take, the task nor its queue names one.
        otherwise: Span,
    },
    /// Taken and acknowledged in one step.
    #[letter(3)]
    Pop,
}

impl TakeMode {
    /// A pop leaves nothing on the disk but its end.
    pub(super) const fn on_full_disk(self) -> Disk {
        match self {
            Self::Pop => Disk::Served,
            Self::Lease { .. } | Self::Unheld { .. } => Disk::Leases,
        }
    }

    /// Returns the TTR of a lease of a task that has this one by itself or by its queue.
    #[inline]
    #[must_use]
    pub fn ttr_over(self, of_task: impl FnOnce() -> Option<Span>) -> Option<Span> {
        match self {
            Self::Pop => None,
            Self::Unheld { ttr, otherwise } => ttr.or_else(of_task).or(Some(otherwise)),
            Self::Lease { ttr } => ttr.or_else(of_task),
        }
    }

    /// Returns the TTR that the request names, if it names one.
    #[must_use]
    pub const fn ttr(self) -> Option<Span> {
        match self {
            Self::Lease { ttr } => ttr,
            Self::Unheld { ttr: Some(ttr), .. } => Some(ttr),
            Self::Unheld { ttr: None, otherwise } => Some(otherwise),
            Self::Pop => None,
        }
    }
}

/// How long a blocking command blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Wait {
    /// Not at all.
    #[letter(1)]
    No,
    /// At most this long.
    #[letter(2)]
    For(Span),
    /// Without end.
    #[letter(3)]
    Forever,
}

/// Which tasks of a queue are chosen. Order and grouping are part of the request, not of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct Selection {
    /// The end to start from.
    #[letter(1, default = End::Min)]
    pub from: End,
    /// The order within one priority.
    #[letter(2, default = Order::Oldest)]
    pub order: Order,
    /// Whether the tasks with the same key are included.
    #[letter(3)]
    pub group: bool,
    /// Whether to skip tasks with a payload over [`crate::limits::NARROW_PAYLOAD_BYTES_MAX`].
    #[letter(4)]
    pub narrow: bool,
}

/// An end of the queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, pinpriq_derive::Letter)]
pub enum End {
    /// The lowest priority number, the most urgent.
    Min = 0,
    /// The highest priority number.
    Max = 1,
}

/// An order within one priority.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, pinpriq_derive::Letter)]
pub enum Order {
    /// First in, first out.
    Oldest = 0,
    /// Last in, first out.
    Newest = 1,
}

/// See [`Command::Peek`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Peek<'a> {
    /// The queue.
    #[key]
    pub queue: QueueName<'a>,
    /// Which tasks. Groups are not followed.
    #[letter(1, default = Selection::DEFAULT)]
    #[flat]
    pub selection: Selection,
    /// If given, reads the tasks of that state in order of their seq, instead of those that a take
    /// would choose. For R these come first, and then those without priority, the newest first.
    #[letter(2)]
    #[option]
    pub state: Option<StateKind>,
    /// The most tasks to read.
    #[option(default = 1)]
    pub count: u32,
}

/// How the holder of a lease names its task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct Held<'a> {
    /// The queue.
    pub queue: QueueName<'a>,
    /// The proof.
    pub by: HeldBy<'a>,
}

/// The proof that a holder shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum HeldBy<'a> {
    /// The receipt of the lease.
    #[letter(1)]
    Receipt(Receipt),
    /// The id alone, on the connection that holds the lease.
    #[letter(2)]
    Id(&'a [u8]),
}

/// See [`Command::Ack`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct Ack<'a> {
    /// The task.
    pub held: Held<'a>,
    /// A new payload, for a task that is kept.
    #[letter(1)]
    pub payload: Option<&'a [u8]>,
    /// Keeps the task as a zombie for this long, whatever the queue's setting.
    #[letter(2)]
    pub zombie: Option<Span>,
    /// What the task did cost, if that is said.
    #[letter(3)]
    pub cost: Option<u32>,
    /// What has come of the work, if that is said.
    #[letter(4)]
    pub result: Option<&'a [u8]>,
}

/// See [`Command::Release`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Release<'a> {
    /// The task.
    #[flat]
    pub held: Held<'a>,
    /// How long it stays waiting first.
    #[letter(1)]
    #[option(default = Span::ZERO)]
    pub delay: Span,
    /// What else changes.
    #[letter(2)]
    #[flat]
    pub amendment: Amendment<'a>,
    /// Whether it goes behind all other tasks of its priority.
    #[letter(3)]
    #[option]
    pub tail: bool,
    /// What the task did cost, if that is said.
    #[letter(4)]
    #[option(COST_SPENT)]
    pub cost: Option<u32>,
    /// How far the work has come, for who takes it next. Empty removes what is known.
    #[letter(5)]
    #[option]
    pub checkpoint: Option<&'a [u8]>,
}

/// See [`Command::Bury`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Bury<'a> {
    /// The task.
    #[flat]
    pub held: Held<'a>,
    /// A new payload, if any.
    #[letter(1)]
    #[option]
    pub payload: Option<&'a [u8]>,
    /// The reason, if one is given.
    #[letter(2)]
    #[option]
    pub reason: Option<&'a [u8]>,
    /// What the task did cost, if that is said.
    #[letter(3)]
    #[option(COST_SPENT)]
    pub cost: Option<u32>,
}

/// See [`Command::Cancel`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Cancel<'a> {
    /// The queue.
    #[key]
    pub queue: QueueName<'a>,
    /// The id, in its text form.
    #[word]
    pub id: &'a [u8],
    /// Why, for its holder. Without it, that of an earlier request stays.
    #[letter(1)]
    #[option]
    pub reason: Option<&'a [u8]>,
    /// How long its lease lasts at most, from now. Without it, that of an earlier request stays.
    #[letter(2)]
    #[option]
    pub grace: Option<Span>,
}

/// See [`Command::Fail`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Fail<'a> {
    /// The task.
    #[flat]
    pub held: Held<'a>,
    /// Why it failed, if that is said.
    #[letter(1)]
    #[option]
    pub reason: Option<&'a [u8]>,
    /// How long it waits before it is ready again. Without it, as long as the queue's back-off
    /// says.
    #[letter(2)]
    #[option]
    pub delay: Option<Span>,
    /// A new payload, if any.
    #[letter(3)]
    #[option]
    pub payload: Option<&'a [u8]>,
    /// What the task did cost, if that is said.
    #[letter(4)]
    #[option(COST_SPENT)]
    pub cost: Option<u32>,
    /// How far the work has come, for who takes it next. Empty removes what is known.
    #[letter(5)]
    #[option]
    pub checkpoint: Option<&'a [u8]>,
}

/// See [`Command::Touch`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Touch<'a> {
    /// The task.
    #[flat]
    pub held: Held<'a>,
    /// How much the deadline moves, instead of a whole lease from now.
    #[letter(1)]
    #[option]
    pub by: Option<Span>,
    /// How far the work has come, for people. Empty removes what is known.
    #[letter(2)]
    #[option]
    pub progress: Option<&'a [u8]>,
    /// How far the work has come, for who takes it next. Empty removes what is known.
    #[letter(3)]
    #[option]
    pub checkpoint: Option<&'a [u8]>,
}

/// A move of a task, named by its id, into another state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Transfer<'a> {
    /// The queue.
    #[key]
    pub queue: QueueName<'a>,
    /// The id.
    #[word]
    pub id: &'a [u8],
    /// How long it stays waiting first. On a switch to Z, how long it stays there.
    #[letter(1)]
    #[option(default = Span::ZERO)]
    pub delay: Span,
    /// What else changes.
    #[letter(2)]
    #[flat]
    pub amendment: Amendment<'a>,
}

/// What changes together with a transition. Either both happen or neither.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter, pinpriq_derive::Arguments,
)]
pub struct Amendment<'a> {
    /// A new TTL, counted from now, or no TTL.
    #[letter(3)]
    #[option(with = reading::new_ttl)]
    pub ttl: Assign<Option<Span>>,
    /// A new priority.
    #[letter(2)]
    #[option]
    pub priority: Assign<Option<i64>>,
    /// A new payload.
    #[letter(1)]
    #[option]
    pub payload: Option<&'a [u8]>,
}

impl<'a> Ack<'a> {
    /// An ack without options.
    #[must_use]
    pub const fn new(held: Held<'a>) -> Self {
        Self { held, payload: None, zombie: None, cost: None, result: None }
    }
}

impl<'a> Release<'a> {
    /// A release without options.
    #[must_use]
    pub const fn new(held: Held<'a>) -> Self {
        let (delay, amendment) = (Span::ZERO, Amendment::NONE);
        Self { held, delay, amendment, tail: false, cost: None, checkpoint: None }
    }
}

impl<'a> Bury<'a> {
    /// A bury without options.
    #[must_use]
    pub const fn new(held: Held<'a>) -> Self {
        Self { held, payload: None, reason: None, cost: None }
    }
}

impl<'a> Fail<'a> {
    /// A fail without options.
    #[must_use]
    pub const fn new(held: Held<'a>) -> Self {
        Self { held, reason: None, delay: None, payload: None, cost: None, checkpoint: None }
    }
}

impl<'a> Touch<'a> {
    /// A touch without options.
    #[must_use]
    pub const fn new(held: Held<'a>) -> Self {
        Self { held, by: None, progress: None, checkpoint: None }
    }
}

impl Amendment<'_> {
    /// Nothing changes.
    pub const NONE: Self = Self { ttl: Assign::Keep, priority: Assign::Keep, payload: None };
}

/// See [`Command::Update`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Update<'a> {
    /// The queue.
    #[key]
    pub queue: QueueName<'a>,
    /// The id.
    #[word]
    pub id: &'a [u8],
    /// What changes.
    #[letter(1)]
    #[flat]
    pub amendment: Amendment<'a>,
    /// The proof, if the task is taken and this connection does not hold the lease.
    #[letter(2)]
    #[option]
    pub receipt: Option<Receipt>,
    /// Headers in place of all that it has, as [`crate::task::headers::encode`] writes them.
    #[letter(3)]
    #[option(HEADERS, with = reading::all_headers)]
    pub headers: Option<&'a [u8]>,
}

/// Sides of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Sides {
    /// Puts.
    Input = 0,
    /// Takes, pops and deliveries.
    Output = 1,
    /// Both.
    Both = 2,
}

impl<'a> Update<'a> {
    /// An update that changes nothing yet, of a task that is not taken or held by who asks.
    #[must_use]
    pub fn new(queue: impl Into<QueueName<'a>>, id: &'a [u8]) -> Self {
        let amendment = Amendment::NONE;
        Self { queue: queue.into(), id, amendment, receipt: None, headers: None }
    }
}

impl Selection {
    /// The selection of the pinpriq wire: the newest task of the most urgent priority, with its
    /// group, and nothing that this wire cannot carry.
    pub const PINPRIQ: Self =
        Self { from: End::Min, order: Order::Newest, group: true, narrow: true };

    /// The default selection of every other door: the oldest task of the most urgent priority,
    /// alone.
    pub const DEFAULT: Self =
        Self { from: End::Min, order: Order::Oldest, group: false, narrow: false };
}

impl<'c> Subject<'c> for &'c [Done<'c>] {
    fn each(&self, right: Right, tell: &mut dyn FnMut(Need<'c>)) {
        self.iter().for_each(|done| done.queue.each(right, tell));
    }
}

impl<'c> Subject<'c> for Held<'c> {
    fn each(&self, right: Right, tell: &mut dyn FnMut(Need<'c>)) {
        self.queue.each(right, tell);
    }
}

impl<'c> Subject<'c> for Transfer<'c> {
    fn each(&self, right: Right, tell: &mut dyn FnMut(Need<'c>)) {
        self.queue.each(right, tell);
    }
}

impl<'c> Named<'c> for &'c [Done<'c>] {
    fn check(&self) -> Result<(), Refusal> {
        self.iter().try_for_each(|done| done.queue.check())
    }

    fn name(&self) -> Option<&'c [u8]> {
        self.first().map(|done| done.queue)
    }
}

impl Held<'_> {
    /// Returns the right to touch it. By its id alone, a task can be touched that is not taken.
    pub(super) const fn right(&self) -> Right {
        match self.by {
            HeldBy::Receipt(_) => Right::Take,
            HeldBy::Id(_) => Right::Manage,
        }
    }
}

impl Update<'_> {
    pub(super) const fn right(&self) -> Right {
        if self.receipt.is_some() { Right::Take } else { Right::Manage }
    }
}

impl Take<'_> {
    #[inline]
    pub(super) const fn care(&self) -> Care {
        match self.selection.group {
            _ if self.count > 1 => Care::LongReply,
            true => Care::Group,
            false => Care::Plain,
        }
    }
}

impl Wait {
    /// Whether this can block at all.
    #[must_use]
    pub fn blocks(self) -> bool {
        !matches!(self, Self::No | Self::For(Span::ZERO))
    }
}

impl<'a> Transfer<'a> {
    /// A transfer without delay that changes nothing else.
    #[must_use]
    pub fn new(queue: impl Into<QueueName<'a>>, id: &'a [u8]) -> Self {
        Self { queue: queue.into(), id, delay: Span::ZERO, amendment: Amendment::NONE }
    }
}
