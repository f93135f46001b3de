//! All commands of the engine.
//!
//! Commands borrow their bytes from the decoder. The engine copies what it keeps, once. The words
//! that a protocol uses for them belong to the doors.

mod put;
mod queue;
mod share;
mod tubes;

pub use self::put::{Delay, Put, TimeToLive};
pub use self::queue::QueueCommand;
pub use self::share::Share;
pub use self::tubes::{Deed, Reserve};
use crate::export::{Export, Import};
use crate::facts::{Anywhere, Called, Care, Destination, Disk, Joining, Lanes, Named, Subject};
use crate::fanout::{MemberCommand, Publish};
use crate::looking::{Leases, Scan};
use crate::names::NamePattern;
pub use crate::names::QueueName;
use crate::refusal::Refusal;
use crate::rights::{Need, Right};
use crate::schedule::ScheduleCommand;
use crate::task::{Receipt, StateKind, TaskRecord};
use crate::time::Span;

/// A request of one client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Command)]
pub enum Command<'a> {
    /// Puts a task into a queue, which is created if it does not exist.
    #[command(
        needs = of_put(&it, tell), shard = it.queue, disk = Served, change,
        step = it.wait.is_none(), blocks = it.waits(), care = it.care()
    )]
    Put(Put<'a>),
    /// Puts a task into a queue. If the queue is full, the put waits until there is room.
    #[command(
        needs = of_put(&put, tell), shard = put.queue, disk = Served, change,
        blocks = !room.is_zero() || put.waits(), care = put.care()
    )]
    PutInLine {
        /// The task.
        put: Put<'a>,
        /// The longest that it waits for room. Zero does not wait.
        room: Span,
    },
    /// Puts a task into a queue that is buried at once. The put has neither a delay nor a unique
    /// key, and does not wait.
    #[command(
        needs = { of_put(put, tell); put.queue.each(Right::Manage, tell) }, shard = put.queue,
        disk = Served, change
    )]
    PutBuried {
        /// The task.
        put: &'a Put<'a>,
        /// Why it is buried, if that is said.
        reason: Option<&'a [u8]>,
    },
    /// Puts a task into a queue. The reply is its number.
    #[command(needs = of_put(it, tell), shard = it.queue, disk = Served, change)]
    PutNumbered(&'a Put<'a>),
    /// Takes tasks under a lease, or pops them.
    #[command(
        needs(take = it.queues), shard = it.queues, names = Lanes(it.queues, it.member),
        disk = it.mode.on_full_disk(), blocks = it.wait.blocks(), care = it.care()
    )]
    Take(Take<'a>),
    /// Takes the most urgent task of several queues under a lease that is tied to the connection.
    /// The reply is the task, none if the time is up, or
    /// [`Reply::DeadlineSoon`](crate::reply::Reply::DeadlineSoon).
    #[command(
        needs(take = it.queues), shard = it.queues, names = Lanes(it.queues, None),
        disk = Leases, blocks = it.wait.blocks()
    )]
    Reserve(Reserve<'a>),
    /// Reads the task that a reserve of these queues would take, which may be none at all. The
    /// reply is [`Reply::Shown`](crate::reply::Reply::Shown) with one task or none, or
    /// [`Reply::DeadlineSoon`](crate::reply::Reply::DeadlineSoon).
    #[command(needs(take = it), shard = it, names = Lanes(it, None), disk = Served)]
    Head(&'a [&'a [u8]]),
    /// Does one engine's part of a take over the queues of several engines.
    #[command(
        needs = it.each_need(tell), shard = it.destination(), names = it.names(),
        disk = it.on_full_disk(), change = it.is_change(), blocks = it.may_block(), care = LongReply
    )]
    Share(Share<'a>),
    /// Acts on a task that only its number names. Refused with NOTFOUND if there is no such task in
    /// a queue whose name can be that of a tube, if it is finished, or if another client holds it.
    #[command(
        needs = Anywhere.each(deed.right(), tell),
        shard = Destination::Everywhere(Joining::Found), names = (), disk = deed.on_full_disk(),
        change = deed.is_change(), within
    )]
    Numbered {
        /// The number.
        number: u64,
        /// What to do with it.
        deed: Deed,
    },
    /// Makes tasks of a queue ready: buried ones in the order in which they were buried, or if
    /// there is none, waiting ones in the order in which their delays end. The reply is their
    /// number.
    #[command(needs(manage = queue), shard = queue, disk = Refused, change, care = LongWork)]
    Kick {
        /// The queue.
        queue: &'a [u8],
        /// The most tasks to make ready.
        count: u32,
    },
    /// Reads the task of a queue that a kick would make ready first, among those of one state.
    #[command(needs(look = queue), shard = queue, disk = Served)]
    Foremost {
        /// The queue.
        queue: &'a [u8],
        /// W or B.
        state: StateKind,
    },
    /// Describes one queue, or all, if their names can be those of tubes.
    #[command(
        needs(look = it),
        shard = it.map_or(Destination::Everywhere(Joining::Tubes), Destination::Queue),
        names = it, disk = Served, within = it.is_none(), care = LongWork
    )]
    Tubes(Option<&'a [u8]>),
    /// Ends all leases of this client that depend on its connection. No task has failed by that.
    #[command(
        needs(), shard = Destination::Everywhere(Joining::Membership), names = (), disk = Served,
        change
    )]
    LetGo,
    /// Reads tasks and changes nothing.
    #[command(
        needs(look = it.queue), shard = it.queue, disk = Served,
        care = if it.count > 1 { LongReply } else { Plain }
    )]
    Peek(Peek<'a>),
    /// Reads one task.
    #[command(needs(look = queue), shard = queue, disk = Served)]
    Get {
        /// The queue.
        queue: QueueName<'a>,
        /// The id, in its text form.
        id: &'a [u8],
    },
    /// Explains why a task is not handed out, or without an id, which task would be next.
    #[command(needs(look = queue), shard = queue, disk = Served, care = LongWork)]
    Explain {
        /// The queue.
        queue: QueueName<'a>,
        /// The id, in its text form.
        id: Option<&'a [u8]>,
    },
    /// Reads all tasks of a queue, page by page.
    #[command(needs(look = it.queue), shard = it.queue, disk = Served, care = LongReply)]
    Scan(Scan<'a>),
    /// Reads all that another server needs to go on with a queue, page by page.
    #[command(needs(look = it.queue), shard = it.queue, disk = Served, care = LongReply)]
    Export(Export<'a>),
    /// Takes over a record of an export. The reply is the id of a task, and nothing for others.
    #[command(
        needs = it.each_need(tell), shard = it.destination(), names = it.names(), disk = Refused,
        change, audit = it.changed_queue(), within = matches!(it, Import::Schedule(_)),
        care = LongWork
    )]
    Import(Import<'a>),
    /// Reads the leases of a queue, or of all, page by page.
    #[command(
        needs(look = it.queue), shard = it.destination(), names = it.queue, disk = Served,
        within = it.queue.is_none(), care = LongReply
    )]
    Leases(Leases<'a>),
    /// Finishes a taken task.
    #[command(needs(take = it.held), shard = it.held.queue, disk = Served, change, step)]
    Ack(Ack<'a>),
    /// Finishes several taken tasks, each with its own result.
    #[command(needs(take = queue), shard = queue, disk = Served, change, step, care = LongReply)]
    AckAll {
        /// The queue.
        queue: QueueName<'a>,
        /// Their receipts.
        receipts: &'a [Receipt],
    },
    /// Returns a taken task to the queue.
    #[command(needs(take = it.held), shard = it.held.queue, disk = Refused, change, step)]
    Release(Release<'a>),
    /// Sets a taken task aside.
    #[command(needs(take = held), shard = held.queue, disk = Refused, change, step)]
    Bury {
        /// The task.
        held: Held<'a>,
        /// A new payload, if any.
        payload: Option<&'a [u8]>,
        /// The reason, if one is given.
        reason: Option<&'a [u8]>,
    },
    /// Ends a lease because its holder could not do the task. The reply is the new state.
    #[command(needs(take = it.held), shard = it.held.queue, disk = Refused, change, step)]
    Fail(Fail<'a>),
    /// Acknowledges tasks and takes others, in one step. If any of the tasks cannot be
    /// acknowledged, or the take is refused, nothing happens. The acks stand while the take blocks
    /// and whatever becomes of it.
    #[command(
        needs(take = done, take = take.queues), shard = Destination::Done,
        names = (Lanes(&[], take.member), (done, Lanes(take.queues, None))),
        disk = take.mode.on_full_disk(), change, blocks = take.wait.blocks(),
        care = take.care()
    )]
    TakeDone {
        /// The leases of the tasks to acknowledge, at most [`DONE_MAX`](crate::limits::DONE_MAX).
        done: &'a [Done<'a>],
        /// What to take.
        take: Take<'a>,
    },
    /// Renews or moves the deadline of a lease, or moves the TTL of a ready task.
    #[command(
        needs = held.queue.each(held.right(), tell), shard = held.queue, disk = Refused, change,
        step
    )]
    Touch {
        /// The task.
        held: Held<'a>,
        /// How far to move the deadline. Without it a lease gets its TTR again from now.
        by: Option<Span>,
    },
    /// Makes a buried task ready or waiting again.
    #[command(needs(manage = it), shard = it.queue, disk = Refused, change, step)]
    Dig(Transfer<'a>),
    /// Makes the oldest buried tasks of a queue ready or waiting again.
    #[command(needs(manage = queue), shard = queue, disk = Refused, change, care = LongWork)]
    Plow {
        /// The queue.
        queue: QueueName<'a>,
        /// The most tasks to bring back; all of them if `None`.
        count: Option<u64>,
        /// How long they wait first.
        delay: Span,
        /// A new TTL.
        ttl: Option<Span>,
    },
    /// Removes tasks, whatever their state.
    #[command(
        needs(manage = queue), shard = queue, disk = Served, change, step, audit = queue,
        care = LongWork
    )]
    Kill {
        /// The queue.
        queue: QueueName<'a>,
        /// Their ids.
        ids: &'a [&'a [u8]],
    },
    /// Moves a task that is not taken into any other state.
    #[command(needs(manage = transfer), shard = transfer.queue, disk = Refused, change, step)]
    Switch {
        /// The task, and its new delay and TTL.
        transfer: Transfer<'a>,
        /// The new state. T is refused.
        to: StateKind,
    },
    /// Takes a task away from its holder.
    #[command(needs(manage = it), shard = it.queue, disk = Refused, change)]
    Snatch(Transfer<'a>),
    /// Makes a waiting or finished task ready again, with its attempts at 0.
    #[command(needs(manage = it), shard = it.queue, disk = Refused, change, step)]
    Restart(Transfer<'a>),
    /// Changes a task in place.
    #[command(
        needs = it.queue.each(it.right(), tell), shard = it.queue, disk = Refused, change, step
    )]
    Update(Update<'a>),
    /// Moves tasks of one state to another queue, the oldest first. The reply is their number.
    #[command(
        needs(manage = from, put = to), shard = Destination::Pair(from.name, to),
        names = (to, from), disk = Refused, change, audit = from, care = LongWork
    )]
    Move {
        /// The queue or lane that they leave.
        from: QueueName<'a>,
        /// The queue that they enter.
        to: &'a [u8],
        /// The most tasks to move, at most [`MOVED_MAX`](crate::limits::MOVED_MAX).
        count: u32,
        /// Their state, which stays. T is refused.
        state: StateKind,
    },
    /// Moves ready dead letters back to the queues that they come from, the oldest first. The
    /// reply is their number.
    #[command(
        needs(manage = queue, put = Anywhere), shard = queue, disk = Refused, change, within,
        audit = queue, care = LongWork
    )]
    Redrive {
        /// The queue of the dead letters.
        queue: QueueName<'a>,
        /// The most tasks to move, at most [`MOVED_MAX`](crate::limits::MOVED_MAX).
        count: u32,
    },
    /// Blocks until a task is finished.
    #[command(needs(look = queue), shard = queue, disk = Served, blocks = wait.blocks())]
    Await {
        /// The queue.
        queue: QueueName<'a>,
        /// The id.
        id: &'a [u8],
        /// How long to block.
        wait: Wait,
    },
    /// Starts deliveries of tasks from these queues, one delivery for each credit.
    #[command(
        needs(take = queues), shard = Destination::of_subscription(queues),
        names = Lanes(queues, member), disk = Served, care = Subscription
    )]
    Subscribe {
        /// The queues.
        queues: &'a [&'a [u8]],
        /// If given, the queues are topics, and the lanes of this member in them are meant.
        member: Option<&'a [u8]>,
        /// What a delivery contains.
        selection: Selection,
        /// Whether a delivery is leased or popped.
        mode: TakeMode,
    },
    /// Ends subscriptions: these, or all if none is named.
    #[command(
        needs(take = queues), shard = Destination::of_subscription(queues),
        names = Lanes(queues, member), disk = Served, care = LongWork
    )]
    Unsubscribe {
        /// The queues.
        queues: &'a [&'a [u8]],
        /// If given, the queues are topics, and the lanes of this member in them are meant.
        member: Option<&'a [u8]>,
    },
    /// Allows this number of further deliveries.
    #[command(needs(), shard = Destination::Deliveries, names = (), disk = Served)]
    Credit(u32),
    /// Returns popped tasks whose reply or delivery could not be sent completely.
    #[command(needs(), shard = Destination::Deliveries, names = (), disk = Served, change)]
    PutBack(&'a [TaskRecord]),
    /// Ends leases whose reply or delivery could not be sent completely, so that no consumer knows
    /// of them. The tasks are ready again in their old place. This is no sign of life of a member.
    #[command(needs(), shard = Destination::Deliveries, names = (), disk = Served, change)]
    GiveBack(&'a [Receipt]),
    /// Administers a queue.
    #[command(inner)]
    Queue(QueueCommand<'a>),
    /// Puts one task into each lane of a topic.
    #[command(
        needs(put = it.topic), shard = it.topic, names = Called("topic", it.topic),
        disk = Served, change, step, care = OwnTime
    )]
    Publish(Publish<'a>),
    /// Joins, beats, leaves, or lists members.
    #[command(inner)]
    Member(MemberCommand<'a>),
    /// Sets, shows, pauses, fires or drops schedules.
    #[command(inner)]
    Schedule(ScheduleCommand<'a>),
    /// Carries out these steps in their order, all or none, at one moment. At most
    /// [`TRANSACTION_STEPS_MAX`](crate::limits::TRANSACTION_STEPS_MAX) of them.
    #[command(
        needs = each_need_of(it, tell), shard = Destination::Steps, names = (), disk = Served,
        change, care = OwnTime
    )]
    Transaction(&'a [Step<'a>]),
    /// Carries out a command as if only the queues and topics that match one of these names were
    /// there, or refuses it with NOPERM. An empty list matches nothing. A lane counts as its topic,
    /// and a schedule as its queue. Only the commands for which [`Command::can_be_within`] holds
    /// can be kept within names.
    ///
    /// Lists and pages show only what matches. Figures are added up over the queues and topics that
    /// match, which costs a step for each of them, and leave out what can no longer be known about
    /// queues that have ceased to exist. A schedule or a member is left alone if its queue, or one
    /// of its topics, does not match. A schedule that is not there is refused in the same words.
    /// Nothing is redriven if one of the dead letters comes from a queue that does not match.
    #[command(
        needs = command.each_need(tell), shard = command.destination_within(), names = (),
        disk = Served, change = command.is_change(), care = LongReply
    )]
    Within {
        /// The names, at most [`WITHIN_NAMES_MAX`](crate::limits::WITHIN_NAMES_MAX).
        names: &'a [NamePattern<'a>],
        /// The command.
        command: &'a Self,
    },
}

/// A step of a [`Command::Transaction`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<'a> {
    /// Carries out a command. If it is refused, nothing of the transaction has happened. Only the
    /// commands for which [`Command::is_step`] holds can be steps.
    Command(Command<'a>),
    /// Changes nothing, and is answered with [`Reply::Done`](crate::reply::Reply::Done).
    Nothing,
    /// Is refused with BADARG and this sentence: its arguments are no command.
    Bad(&'a str),
}

/// See [`Command::Take`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Take<'a> {
    /// The queues, tried in this order.
    pub queues: &'a [&'a [u8]],
    /// If given, the queues are topics, and the lanes of this member in them are meant.
    pub member: Option<&'a [u8]>,
    /// The most tasks, or groups, to take.
    pub count: u32,
    /// How long to block for the first.
    pub wait: Wait,
    /// Which tasks.
    pub selection: Selection,
    /// Whether to lease or pop them.
    pub mode: TakeMode,
}

/// A lease whose task is done, see [`Command::TakeDone`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done<'a> {
    /// The queue of the task, or the topic of its lane.
    pub queue: &'a [u8],
    /// The proof of the lease.
    pub receipt: Receipt,
}

/// Whether what is taken is leased.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakeMode {
    /// Taken under a lease, with this TTR if given.
    Lease {
        /// The time to release.
        ttr: Option<Span>,
    },
    /// Taken under a lease that no connection holds: only its receipt proves it. It certainly has a
    /// deadline.
    Unheld {
        /// The time to release.
        ttr: Option<Span>,
        /// The time to release if neither the take, the task nor its queue names one.
        otherwise: Span,
    },
    /// Taken and acknowledged in one step.
    Pop,
}

impl TakeMode {
    /// A pop leaves nothing on the disk but its end.
    const fn on_full_disk(self) -> Disk {
        match self {
            Self::Pop => Disk::Served,
            Self::Lease { .. } | Self::Unheld { .. } => Disk::Leases,
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Not at all.
    No,
    /// At most this long.
    For(Span),
    /// Without end.
    Forever,
}

/// Which tasks of a queue are chosen. Order and grouping are part of the request, not of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selection {
    /// The end to start from.
    pub from: End,
    /// The order within one priority.
    pub order: Order,
    /// Whether the tasks with the same key are included.
    pub group: bool,
    /// Whether to skip tasks with a payload over [`crate::limits::NARROW_PAYLOAD_BYTES_MAX`].
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
    /// Which tasks. Groups are not followed.
    pub selection: Selection,
    /// If given, reads the tasks of that state in order of their seq, instead of those that a take
    /// would choose. For R these come first, and then those without priority, the newest first.
    pub state: Option<StateKind>,
    /// The most tasks to read.
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
    /// The id alone, on the connection that holds the lease.
    Id(&'a [u8]),
}

/// See [`Command::Ack`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack<'a> {
    /// The task.
    pub held: Held<'a>,
    /// A new payload, for a task that is kept.
    pub payload: Option<&'a [u8]>,
    /// Keeps the task as a zombie for this long, whatever the queue's setting.
    pub zombie: Option<Span>,
}

/// See [`Command::Release`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release<'a> {
    /// The task.
    pub held: Held<'a>,
    /// How long it stays waiting first.
    pub delay: Span,
    /// What else changes.
    pub amendment: Amendment<'a>,
    /// Whether it goes behind all other tasks of its priority.
    pub tail: bool,
}

/// See [`Command::Fail`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fail<'a> {
    /// The task.
    pub held: Held<'a>,
    /// Why it failed, if that is said.
    pub reason: Option<&'a [u8]>,
    /// How long it waits before it is ready again. Without it, as long as the queue's back-off
    /// says.
    pub delay: Option<Span>,
    /// A new payload, if any.
    pub payload: Option<&'a [u8]>,
}

/// A move of a task, named by its id, into another state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer<'a> {
    /// The queue.
    pub queue: QueueName<'a>,
    /// The id.
    pub id: &'a [u8],
    /// How long it stays waiting first. On a switch to Z, how long it stays there.
    pub delay: Span,
    /// What else changes.
    pub amendment: Amendment<'a>,
}

/// What changes together with a transition. Either both happen or neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Amendment<'a> {
    /// A new payload.
    pub payload: Option<&'a [u8]>,
    /// A new priority.
    pub priority: Assign<Option<i64>>,
    /// A new TTL, counted from now, or no TTL.
    pub ttl: Assign<Option<Span>>,
}

/// A value that may be replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Assign<T> {
    /// The value stays.
    #[default]
    Keep,
    /// The value becomes this.
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
    /// The proof, if the task is taken and this connection does not hold the lease.
    pub receipt: Option<Receipt>,
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

impl<'a> Command<'a> {
    /// Where this goes if it is kept within names. The engine refuses what cannot be kept so, and
    /// that must not be in a letter.
    fn destination_within(&self) -> Destination<'a> {
        if self.can_be_within() { self.destination() } else { Destination::Steps }
    }
}

impl<'a> Destination<'a> {
    /// Without queues, all subscriptions are meant.
    const fn of_subscription(queues: &'a [&'a [u8]]) -> Self {
        if queues.is_empty() { Self::Deliveries } else { Self::Queues(queues) }
    }
}

/// Tells what a put needs. With `WAIT`, the reply says what became of the task.
fn of_put<'c>(put: &Put<'c>, tell: &mut dyn FnMut(Need<'c>)) {
    put.queue.each(Right::Put, tell);
    if put.wait.is_some() {
        put.queue.each(Right::Look, tell);
    }
}

fn each_need_of<'c>(steps: &'c [Step<'c>], tell: &mut dyn FnMut(Need<'c>)) {
    for step in steps {
        if let Step::Command(command) = step {
            command.each_need(tell);
        }
    }
}

impl Held<'_> {
    /// Returns the right to touch it. By its id alone, a task can be touched that is not taken.
    const fn right(&self) -> Right {
        match self.by {
            HeldBy::Receipt(_) => Right::Take,
            HeldBy::Id(_) => Right::Manage,
        }
    }
}

impl Update<'_> {
    const fn right(&self) -> Right {
        if self.receipt.is_some() { Right::Take } else { Right::Manage }
    }
}

impl Take<'_> {
    #[inline]
    const fn care(&self) -> Care {
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
