//! Everything that can be asked of the engine.
//!
//! Commands borrow their bytes from whoever decoded them; the engine copies what it keeps, once.
//! Which words a protocol uses for them is the doors' business.

use crate::fanout::{MemberCommand, Publish};
use crate::settings::Assignment;
use crate::task::{Receipt, StateKind, TaskRecord, Terms};
use crate::time::Span;

/// A request of one client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command<'a> {
    /// Puts a task into a queue, which comes into being if need be.
    Put(Put<'a>),
    /// Takes tasks under a lease, or pops them.
    Take(Take<'a>),
    /// Shows tasks and changes nothing.
    Peek(Peek<'a>),
    /// Shows one task.
    Get {
        /// The queue.
        queue: QueueName<'a>,
        /// The id, in its text form.
        id: &'a [u8],
    },
    /// Finishes a taken task.
    Ack(Ack<'a>),
    /// Finishes several taken tasks, each answered on its own.
    AckAll {
        /// The queue.
        queue: QueueName<'a>,
        /// Their receipts.
        receipts: &'a [Receipt],
    },
    /// Gives a taken task back.
    Release(Release<'a>),
    /// Sets a taken task aside.
    Bury {
        /// The task.
        held: Held<'a>,
        /// A new payload, if any.
        payload: Option<&'a [u8]>,
        /// Why.
        reason: &'a [u8],
    },
    /// Renews or moves the deadline of a lease, or moves the TTL of a ready task.
    Touch {
        /// The task.
        held: Held<'a>,
        /// By how much; without it a lease gets its TTR again from now.
        by: Option<Span>,
    },
    /// Brings a buried task back.
    Dig(Transfer<'a>),
    /// Brings the oldest buried tasks of a queue back.
    Plow {
        /// The queue.
        queue: QueueName<'a>,
        /// How many at most; all without it.
        count: Option<u64>,
        /// How long they wait first.
        delay: Span,
        /// A new TTL.
        ttl: Option<Span>,
    },
    /// Removes tasks, whatever their state.
    Kill {
        /// The queue.
        queue: QueueName<'a>,
        /// Their ids.
        ids: &'a [&'a [u8]],
    },
    /// Turns a task that is not taken into any other state.
    Switch {
        /// What, and with which delay and TTL.
        transfer: Transfer<'a>,
        /// Into which state; T is refused.
        to: StateKind,
    },
    /// Takes a task away from its holder.
    Snatch(Transfer<'a>),
    /// Brings a waiting or finished task back with no attempts.
    Restart(Transfer<'a>),
    /// Changes a task in place.
    Update(Update<'a>),
    /// Waits until a task is finished.
    Await {
        /// The queue.
        queue: QueueName<'a>,
        /// The id.
        id: &'a [u8],
        /// How long.
        wait: Wait,
    },
    /// Has tasks of these queues delivered, one delivery for each credit.
    Subscribe {
        /// The queues.
        queues: &'a [&'a [u8]],
        /// The member whose lanes in these topics are meant instead.
        member: Option<&'a [u8]>,
        /// What a delivery is.
        selection: Selection,
        /// Whether it is leased.
        mode: TakeMode,
    },
    /// Ends subscriptions, all of them if none is named.
    Unsubscribe {
        /// The queues.
        queues: &'a [&'a [u8]],
        /// The member whose lanes in these topics are meant instead.
        member: Option<&'a [u8]>,
    },
    /// Grants that many further deliveries.
    Credit(u32),
    /// Brings popped tasks back whose reply or delivery could not be sent whole.
    PutBack(&'a [TaskRecord]),
    /// Ends leases that nobody was told of, since the reply or delivery could not be sent whole:
    /// the tasks are ready again in their place. That is no sign of life of a member.
    GiveBack(&'a [Receipt]),
    /// Looks after a queue.
    Queue(QueueCommand<'a>),
    /// Puts one task into each lane of a topic.
    Publish(Publish<'a>),
    /// Joins, beats, leaves, or tells who is there.
    Member(MemberCommand<'a>),
}

/// Which queue a command is about. A topic and a queue of the same name have nothing to do with
/// each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueName<'a> {
    /// The name of the queue, or of the topic.
    pub name: &'a [u8],
    /// For a lane: whose lane in that topic.
    pub member: Option<&'a [u8]>,
}

/// See [`Command::Put`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Put<'a> {
    /// The queue.
    pub queue: &'a [u8],
    /// What the task carries.
    pub payload: &'a [u8],
    /// What stays with it.
    pub terms: Terms<&'a [u8]>,
    /// Lower is more urgent; none is never selected.
    pub priority: Option<i64>,
    /// How long it waits first.
    pub delay: Span,
    /// Its time to live.
    pub ttl: TimeToLive,
    /// Its id, needed and allowed only where the queue's ids are given.
    pub id: Option<&'a [u8]>,
    /// Whether the reply waits until the task is finished.
    pub wait: Option<Wait>,
}

/// The time to live of a new task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeToLive {
    /// That of the queue.
    Default,
    /// So long.
    For(Span),
    /// As long as it takes.
    Endless,
    /// Just the instant of the put: a consumer who is waiting already gets the task, or nobody.
    Instant,
}

/// See [`Command::Take`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Take<'a> {
    /// The queues, tried in this order.
    pub queues: &'a [&'a [u8]],
    /// The member whose lanes in these topics are meant instead.
    pub member: Option<&'a [u8]>,
    /// How many tasks at most, or groups.
    pub count: u32,
    /// How long to wait for the first.
    pub wait: Wait,
    /// Which tasks.
    pub selection: Selection,
    /// Under a lease or not.
    pub mode: TakeMode,
}

/// Whether what is taken is leased.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakeMode {
    /// Taken under a lease, with this TTR if it is named.
    Lease {
        /// The time to release.
        ttr: Option<Span>,
    },
    /// Taken and acknowledged in one step.
    Pop,
}

/// How long a blocking command waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Not at all.
    No,
    /// So long.
    For(Span),
    /// Without end.
    Forever,
}

/// Which tasks of a queue are chosen. Order and grouping belong to the request, not to the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selection {
    /// From which end.
    pub from: End,
    /// In which order within one priority.
    pub order: Order,
    /// Whether the tasks with the same key come along.
    pub group: bool,
    /// Whether tasks with a payload over
    /// [`crate::limits::NARROW_PAYLOAD_BYTES_MAX`] are passed over.
    pub narrow: bool,
}

/// An end of the queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    /// The lowest priority number, the most urgent.
    Min,
    /// The highest priority number.
    Max,
}

/// An order within one priority.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Order {
    /// First in, first out.
    Oldest,
    /// Last in, first out.
    Newest,
}

/// See [`Command::Peek`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peek<'a> {
    /// The queue.
    pub queue: QueueName<'a>,
    /// Which tasks; a group is not followed.
    pub selection: Selection,
    /// Tasks of that state in order of their seq, instead of those that a take would choose. For R
    /// these come first, and then those without priority, the newest first.
    pub state: Option<StateKind>,
    /// How many at most.
    pub count: u32,
}

/// How the holder of a lease names its task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held<'a> {
    /// The queue.
    pub queue: QueueName<'a>,
    /// The proof.
    pub by: HeldBy<'a>,
}

/// The proof that a holder shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeldBy<'a> {
    /// The receipt of the lease.
    Receipt(Receipt),
    /// The id alone, on the connection that took the task.
    Id(&'a [u8]),
}

/// See [`Command::Ack`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack<'a> {
    /// The task.
    pub held: Held<'a>,
    /// A new payload, for a task that is kept.
    pub payload: Option<&'a [u8]>,
    /// Keeps the task as a zombie for so long, whatever the queue's setting.
    pub zombie: Option<Span>,
}

/// See [`Command::Release`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release<'a> {
    /// The task.
    pub held: Held<'a>,
    /// How long it waits first.
    pub delay: Span,
    /// What else changes.
    pub amendment: Amendment<'a>,
    /// Whether it goes behind all others of its priority.
    pub tail: bool,
}

/// A task that is brought into another state by its id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer<'a> {
    /// The queue.
    pub queue: QueueName<'a>,
    /// The id.
    pub id: &'a [u8],
    /// How long it waits first (or, on a switch to Z, stays).
    pub delay: Span,
    /// What else changes.
    pub amendment: Amendment<'a>,
}

/// What changes together with a transition, or not at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Amendment<'a> {
    /// A new payload.
    pub payload: Option<&'a [u8]>,
    /// A new priority.
    pub priority: Assign<Option<i64>>,
    /// A new TTL, counted from now, or none any more.
    pub ttl: Assign<Option<Span>>,
}

/// A value that may be replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Assign<T> {
    /// It stays.
    #[default]
    Keep,
    /// It becomes this.
    To(T),
}

/// See [`Command::Update`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Update<'a> {
    /// The queue.
    pub queue: QueueName<'a>,
    /// The id.
    pub id: &'a [u8],
    /// What changes.
    pub amendment: Amendment<'a>,
    /// The proof, if the task is taken and this connection did not take it.
    pub receipt: Option<Receipt>,
}

/// What can be asked about queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueCommand<'a> {
    /// Makes a queue that exists even when it is empty.
    Create {
        /// Its name.
        queue: &'a [u8],
        /// Those of its settings that are not the usual ones.
        settings: &'a [Assignment<'a>],
    },
    /// Changes settings; an unknown queue is created, an unknown lane is not.
    Set {
        /// Its name.
        queue: QueueName<'a>,
        /// What changes.
        settings: &'a [Assignment<'a>],
    },
    /// Tells the settings.
    Show(QueueName<'a>),
    /// Tells the names of queues, in order.
    List {
        /// Only names that begin with this.
        prefix: &'a [u8],
        /// Only names after this one.
        after: Option<&'a [u8]>,
        /// How many at most.
        count: usize,
    },
    /// Removes all tasks.
    Truncate(QueueName<'a>),
    /// Removes all tasks, the settings and the pause.
    Drop(&'a [u8]),
    /// Pauses sides of a queue.
    Pause {
        /// Its name.
        queue: QueueName<'a>,
        /// Which sides.
        sides: Sides,
    },
    /// Ends the pause of sides of a queue.
    Resume {
        /// Its name.
        queue: QueueName<'a>,
        /// Which sides.
        sides: Sides,
    },
    /// Tells the figures of one queue, or of all together.
    Stats(Option<QueueName<'a>>),
}

/// Sides of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sides {
    /// Puts.
    Input,
    /// Takes, pops and deliveries.
    Output,
    /// Both.
    Both,
}

impl Selection {
    /// What the pinpriq wire always asks for: the newest of the most urgent, with its group, and
    /// nothing that this wire cannot carry.
    pub const PINPRIQ: Self =
        Self { from: End::Min, order: Order::Newest, group: true, narrow: true };

    /// What every other door asks for unless told otherwise: the oldest of the most urgent, alone.
    pub const DEFAULT: Self =
        Self { from: End::Min, order: Order::Oldest, group: false, narrow: false };
}

impl<'a> From<&'a [u8]> for QueueName<'a> {
    fn from(name: &'a [u8]) -> Self {
        Self { name, member: None }
    }
}

impl Wait {
    /// Whether there is any time to wait.
    #[must_use]
    pub fn blocks(self) -> bool {
        !matches!(self, Self::No | Self::For(Span::ZERO))
    }
}

impl<'a> Put<'a> {
    /// A plain put: priority 0, no key, no delay, the queue's TTL and TTR.
    #[must_use]
    pub const fn new(queue: &'a [u8], payload: &'a [u8]) -> Self {
        Self {
            queue,
            payload,
            terms: Terms::NONE,
            priority: Some(0),
            delay: Span::ZERO,
            ttl: TimeToLive::Default,
            id: None,
            wait: None,
        }
    }
}

impl<'a> Transfer<'a> {
    /// A transfer without delay and with nothing else changed.
    #[must_use]
    pub fn new(queue: impl Into<QueueName<'a>>, id: &'a [u8]) -> Self {
        Self {
            queue: queue.into(),
            id,
            delay: Span::ZERO,
            amendment: Amendment { payload: None, priority: Assign::Keep, ttl: Assign::Keep },
        }
    }
}

impl<T> Assign<T> {
    /// The new value, or `current` if it stays.
    pub fn or(self, current: T) -> T {
        match self {
            Self::Keep => current,
            Self::To(value) => value,
        }
    }
}
