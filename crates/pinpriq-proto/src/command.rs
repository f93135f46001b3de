//! All commands of the engine.
//!
//! Commands borrow their bytes from the decoder. The engine copies what it keeps, once. The words
//! that a protocol uses for them belong to the doors.

mod batch;
mod bulk;
mod on_behalf;
mod parts;
mod put;
mod queue;
mod share;
mod step;
mod tubes;

pub use self::batch::BatchCommand;
pub use self::bulk::{Bulk, BulkChange, Filter};
pub use self::parts::{
    Ack, Amendment, Bury, Cancel, Done, End, Fail, Held, HeldBy, Order, Peek, Release, Selection,
    Sides, Take, TakeMode, Touch, Transfer, Update, Wait,
};
use self::put::of_put;
pub use self::put::{Delay, Put, TimeToLive};
pub use self::queue::QueueCommand;
pub use self::share::Share;
pub use self::step::Step;
use self::step::each_need_of;
pub use self::tubes::{Deed, Reserve};
pub use crate::assign::Assign;
use crate::export::{Export, Import};
use crate::facts::{Anywhere, Called, Destination, Joining, Lanes, Subject};
use crate::fanout::{MemberCommand, Publish};
use crate::limits::MOVED_DEFAULT;
use crate::looking::{Leases, Scan};
use crate::named_limits::LimitCommand;
use crate::names::NamePattern;
pub use crate::names::QueueName;
use crate::rights::Right;
use crate::schedule::ScheduleCommand;
use crate::task::{Receipt, StateKind, TaskRecord};
use crate::time::Span;

/// A request of one client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Command, pinpriq_derive::Letter)]
pub enum Command<'a> {
    /// Puts a task into a queue, which is created if it does not exist.
    #[command(
        needs = of_put(&it, tell), shard = it.destination(), disk = Served, change,
        step = it.wait.is_none(), blocks = it.waits(), care = it.care()
    )]
    #[letter(1)]
    #[request(by_hand = put,
        Spec::new("PUT", Group::Tasks,
            "Puts a task into a queue",
            "the id; with WAIT the id and the outcome; with UNIQUE the id, whether it is new (1 \
             or 0), and with WAIT the outcome; with RESULT the result last")
        .words(&[Word::Key("queue"), Word::One("payload")])
        .options(put::OPTIONS)
    )]
    Put(Put<'a>),
    /// Puts a task into a queue. If the queue is full, the put waits until there is room.
    #[command(
        needs = of_put(&put, tell), shard = put.destination(), disk = Served, change,
        blocks = !room.is_zero() || put.waits(), care = put.care()
    )]
    #[letter(2)]
    PutInLine {
        /// The task.
        put: &'a Put<'a>,
        /// The longest that it waits for room. Zero does not wait.
        room: Span,
    },
    /// Puts a task into a queue that is buried at once. The put has neither a delay nor a unique
    /// key, and does not wait.
    #[command(
        needs = { of_put(put, tell); put.queue.each(Right::Manage, tell) },
        shard = put.destination(), disk = Served, change
    )]
    #[letter(3)]
    PutBuried {
        /// The task.
        put: &'a Put<'a>,
        /// Why it is buried, if that is said.
        #[letter(1)]
        reason: Option<&'a [u8]>,
    },
    /// Puts a task into a queue. The reply is its number.
    #[command(needs = of_put(it, tell), shard = it.destination(), disk = Served, change)]
    #[letter(4)]
    PutNumbered(&'a Put<'a>),
    /// Takes tasks under a lease, or pops them.
    #[command(
        needs(take = it.queues), shard = it.queues, names = Lanes(it.queues, it.member),
        disk = it.mode.on_full_disk(), blocks = it.wait.blocks(), care = it.care()
    )]
    #[letter(5)]
    #[request(by_hand = take,
        Spec::new("TAKE", Group::Tasks,
            "Takes the most urgent tasks under a lease",
            "an array of tasks, empty if there are none")
        .words(&[Word::Queues])
        .options(&[
            options::COUNT, options::WAIT, options::TTR, options::FROM, options::ORDER,
            options::GROUP, options::WITHMETA, options::DONE, options::ID_TAKEN, options::MEMBER,
        ])
    )]
    #[request(by_hand = pop,
        Spec::new("POP", Group::Tasks,
            "Takes the most urgent tasks for good",
            "an array of tasks, empty if there are none")
        .words(&[Word::Queues])
        .options(&[
            options::COUNT, options::WAIT, options::FROM, options::ORDER, options::GROUP,
            options::WITHMETA, options::MEMBER,
        ])
    )]
    Take(Take<'a>),
    /// Takes one task by its id, from R, W or B, whatever its queue holds back. The reply is an
    /// array with it, or an empty one.
    #[command(needs(take = queue, manage = queue), shard = queue, disk = Leases)]
    #[letter(53)]
    TakeOne {
        /// The queue.
        queue: QueueName<'a>,
        /// The id, in its text form.
        id: &'a [u8],
        /// Whose the lease is, and how long. A pop is refused.
        #[letter(1, default = TakeMode::Lease { ttr: None })]
        mode: TakeMode,
    },
    /// Takes the most urgent task of several queues under a lease that is tied to the connection.
    /// The reply is the task, none, or [`Reply::DeadlineSoon`](crate::reply::Reply::DeadlineSoon).
    #[command(
        needs(take = it.queues), shard = it.queues, names = Lanes(it.queues, None),
        disk = Leases, blocks = it.wait.blocks()
    )]
    #[letter(6)]
    Reserve(Reserve<'a>),
    /// Reads the task that a reserve of these queues would take, if there is one. The reply is
    /// [`Reply::Shown`](crate::reply::Reply::Shown), or as that of a reserve.
    #[command(needs(take = it), shard = it, names = Lanes(it, None), disk = Served)]
    #[letter(7)]
    Head(&'a [&'a [u8]]),
    /// Does one engine's part of a take over the queues of several engines.
    #[command(
        needs = it.each_need(tell), shard = it.destination(), names = it.names(),
        disk = it.on_full_disk(), change = it.is_change(), blocks = it.may_block(), care = LongReply
    )]
    #[letter(8)]
    Share(Share<'a>),
    /// Acts on a task by its number. Refused with NOTFOUND if no tube has it, if it is finished, or
    /// if another client holds it.
    #[command(
        needs = Anywhere.each(deed.right(), tell),
        shard = Destination::Everywhere(Joining::Found), names = (), disk = deed.on_full_disk(),
        change = deed.is_change(), within
    )]
    #[letter(9)]
    Numbered {
        /// The number.
        number: u64,
        /// What to do with it.
        deed: Deed,
    },
    /// Makes tasks of a queue ready: buried ones in the order of their burials, or if there is
    /// none, waiting ones in the order in which their delays end. The reply is their number.
    #[command(needs(manage = queue), shard = queue, disk = Refused, change, care = LongWork)]
    #[letter(10)]
    Kick {
        /// The queue.
        queue: &'a [u8],
        /// The most tasks to make ready.
        count: u32,
    },
    /// Reads the task of a queue that a kick would make ready first, among those of one state.
    #[command(needs(look = queue), shard = queue, disk = Served)]
    #[letter(11)]
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
    #[letter(12)]
    Tubes(Option<&'a [u8]>),
    /// Ends all leases of this client that depend on its connection. No task has failed by that.
    #[command(
        needs(), shard = Destination::Everywhere(Joining::Membership), names = (), disk = Served,
        change
    )]
    #[letter(13)]
    LetGo,
    /// Reads tasks and changes nothing.
    #[command(
        needs(look = it.queue), shard = it.queue, disk = Served,
        care = if it.count > 1 { LongReply } else { Plain }
    )]
    #[letter(14)]
    #[request(
        Spec::new("PEEK", Group::Tasks,
            "Shows tasks and changes nothing",
            "an array of tasks, empty if there are none")
        .options(&[
            options::FROM, options::ORDER, options::STATE, options::COUNT, options::WITHMETA,
            options::MEMBER,
        ])
    )]
    Peek(Peek<'a>),
    /// Reads one task.
    #[command(needs(look = queue), shard = queue, disk = Served)]
    #[letter(15)]
    #[request(Spec::new(
        "GET",
        Group::Tasks,
        "Shows one task by its id",
        "a map with all that is known, or null"
    ))]
    Get {
        /// The queue.
        #[key]
        queue: QueueName<'a>,
        /// The id, in its text form.
        #[word]
        id: &'a [u8],
    },
    /// Explains why a task is not handed out, or without an id, which task would be next.
    #[command(needs(look = queue), shard = queue, disk = Served, care = LongWork)]
    #[letter(16)]
    #[request(
        Spec::new("EXPLAIN", Group::Tasks,
            "Tells why a task is not handed out, or which task would be next",
            "a map: id, state, since, reasons")
        .last()
    )]
    Explain {
        /// The queue.
        #[key]
        queue: QueueName<'a>,
        /// The id, in its text form.
        #[letter(1)]
        #[word]
        id: Option<&'a [u8]>,
    },
    /// Reads all tasks of a queue, page by page.
    #[command(needs(look = it.queue), shard = it.queue, disk = Served, care = LongReply)]
    #[letter(17)]
    #[request(
        Spec::new("SCAN", Group::Tasks,
            "Shows all tasks of a queue, page by page",
            "the cursor of the next page (0 after the last) and an array of tasks")
        .options(&[
            options::CURSOR, options::COUNT, options::STATE, options::KEY, options::BATCH_MEANT,
            options::WITHMETA, options::MEMBER,
        ])
        .last()
    )]
    Scan(Scan<'a>),
    /// Reads all that another server needs to go on with a queue, page by page.
    #[command(needs(look = it.queue), shard = it.queue, disk = Served, care = LongReply)]
    #[letter(18)]
    #[request(
        Spec::new("EXPORT", Group::Queues,
            "Shows all that another server needs to go on with a queue, page by page",
            "the cursor of the next page (0 after the last) and an array of records as JSON")
        .last()
    )]
    Export(Export<'a>),
    /// Takes over a record of an export. The reply is the id of a task, and nothing for others.
    #[command(
        needs = it.each_need(tell), shard = it.destination(), names = it.names(), disk = Refused,
        change, audit = it.changed_queue(), within = matches!(it, Import::Schedule(_)),
        care = LongWork
    )]
    #[letter(19)]
    #[request(by_hand,
        Spec::new("IMPORT", Group::Queues,
            "Takes over one record of an export",
            "the id of a task; OK for other records")
        .words(&[Word::Key("queue"), Word::One("record")])
        .options(&[options::PAYLOAD])
        .last()
    )]
    Import(Import<'a>),
    /// Reads the leases of a queue, or of all, page by page.
    #[command(
        needs(look = it.queue), shard = it.destination(), disk = Served,
        within = it.queue.is_none(), care = LongReply
    )]
    #[letter(20)]
    #[request(
        Spec::new("LEASES", Group::Tasks,
            "Shows who holds which task, in one queue or in all, page by page",
            "the cursor of the next page (0 after the last) and an array of maps: queue, member, \
             id, client, name, address, since, until")
        .options(&[options::COUNT, options::CURSOR, options::MEMBER])
        .last()
    )]
    Leases(Leases<'a>),
    /// Finishes a taken task.
    #[command(needs(take = it.held), shard = it.held.queue, disk = Served, change, step)]
    #[letter(21)]
    #[request(by_hand = ack,
        Spec::new("ACK", Group::Tasks,
            "Finishes taken tasks",
            "OK; for several receipts an array of OK or error, one for each")
        .words(&[Word::Key("queue"), Word::HeldOrMore])
        .options(&[
            options::PAYLOAD, options::ZOMBIE, options::COST_SPENT, options::RESULT,
            options::MEMBER,
        ])
        .while_subscribed()
    )]
    Ack(Ack<'a>),
    /// Finishes several taken tasks, each with its own result.
    #[command(needs(take = queue), shard = queue, disk = Served, change, step, care = LongReply)]
    #[letter(22)]
    AckAll {
        /// The queue.
        queue: QueueName<'a>,
        /// Their receipts.
        receipts: &'a [Receipt],
    },
    /// Returns a taken task to the queue.
    #[command(needs(take = it.held), shard = it.held.queue, disk = Refused, change, step)]
    #[letter(23)]
    #[request(
        Spec::new("RELEASE", Group::Tasks,
            "Gives a taken task back to its queue",
            "R, W, or X if its TTL had passed")
        .while_subscribed()
    )]
    Release(Release<'a>),
    /// Sets a taken task aside.
    #[command(needs(take = it.held), shard = it.held.queue, disk = Refused, change, step)]
    #[letter(24)]
    #[request(Spec::new("BURY", Group::Tasks, "Sets a taken task aside", "OK") .while_subscribed())]
    Bury(Bury<'a>),
    /// Ends a lease because its holder could not do the task. The reply is the new state.
    #[command(needs(take = it.held), shard = it.held.queue, disk = Refused, change, step)]
    #[letter(25)]
    #[request(
        Spec::new("FAIL", Group::Tasks,
            "Gives a taken task back because it failed: to be tried again or to be given up",
            "R, W, B, or X if it became a dead letter or its TTL had passed")
        .while_subscribed()
    )]
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
    #[letter(26)]
    TakeDone {
        /// The leases of the tasks to acknowledge, at most [`DONE_MAX`](crate::limits::DONE_MAX).
        done: &'a [Done<'a>],
        /// What to take.
        take: Take<'a>,
    },
    /// Renews or moves the deadline of a lease, or moves the TTL of a ready task. With a lease, it
    /// also tells how far the work has come.
    #[command(
        needs = it.held.queue.each(it.held.right(), tell), shard = it.held.queue, disk = Refused,
        change, step
    )]
    #[letter(27)]
    #[request(
        Spec::new("TOUCH", Group::Tasks,
            "Renews or moves the deadline of a lease, or moves the TTL of a ready task",
            "the new deadline in Unix milliseconds, or null if there is none")
        .while_subscribed()
    )]
    Touch(Touch<'a>),
    /// Starts a task that was delivered, so that it is not called back. Its lease is like any other
    /// from now on, and begins anew.
    #[command(needs(take = queue), shard = queue, disk = Leases, change)]
    #[letter(50)]
    #[request(by_hand = start,
        Spec::new("START", Group::Push,
            "Begins the work on tasks, so that they are not called back, and their leases anew",
            "OK; for several receipts an array of OK or error, one for each")
        .words(&[Word::Key("queue"), Word::Some("receipt")])
        .options(&[options::MEMBER])
        .while_subscribed()
    )]
    Start {
        /// The queue.
        queue: QueueName<'a>,
        /// The receipt of the lease.
        receipt: Receipt,
    },
    /// Starts several tasks that were delivered, each with its own result.
    #[command(needs(take = queue), shard = queue, disk = Leases, change, care = LongReply)]
    #[letter(51)]
    StartAll {
        /// The queue.
        queue: QueueName<'a>,
        /// The receipts of the leases.
        receipts: &'a [Receipt],
    },
    /// Makes a buried task ready or waiting again.
    #[command(needs(manage = it), shard = it.queue, disk = Refused, change, step)]
    #[letter(28)]
    #[request(Spec::new(
        "DIG",
        Group::Tasks,
        "Brings a buried task back",
        "R, W, or X if its TTL had passed"
    ))]
    Dig(Transfer<'a>),
    /// Makes the oldest buried tasks of a queue ready or waiting again.
    #[command(needs(manage = queue), shard = queue, disk = Refused, change, care = LongWork)]
    #[letter(29)]
    #[request(Spec::new(
        "PLOW",
        Group::Tasks,
        "Brings the oldest buried tasks back, all of them without COUNT",
        "how many"
    ).http(Form::Count))]
    #[request(by_hand = kick,
        Spec::new("KICK", Group::Tasks,
            "DIG by id, or PLOW with a count: the words of beanstalkd",
            "as DIG or PLOW")
        .words(&[Word::Key("queue"), Word::CountOrId])
        .options(&[options::MEMBER])
    )]
    Plow {
        /// The queue.
        #[key]
        queue: QueueName<'a>,
        /// The most tasks to bring back; all of them if `None`.
        #[letter(1)]
        #[option]
        count: Option<u64>,
        /// How long they wait first.
        #[letter(2)]
        #[option(default = Span::ZERO)]
        delay: Span,
        /// A new TTL.
        #[letter(3)]
        #[option]
        ttl: Option<Span>,
    },
    /// Removes tasks, whatever their state.
    #[command(
        needs(manage = queue), shard = queue, disk = Served, change, step, audit = queue,
        care = LongWork
    )]
    #[letter(30)]
    #[request(Spec::new(
        "KILL",
        Group::Tasks,
        "Removes tasks in any state, also those that are held",
        "how many"
    ))]
    Kill {
        /// The queue.
        #[key]
        queue: QueueName<'a>,
        /// Their ids.
        #[words(Word::Some("id"))]
        ids: &'a [&'a [u8]],
    },
    /// Ends a task, or if it is taken, asks its holder to stop. The reply is its state, which is
    /// none once it has ended. Finished tasks stay as they are.
    #[command(
        needs(manage = it.queue), shard = it.queue, disk = Served, change, step, audit = it.queue
    )]
    #[letter(52)]
    #[request(
        Spec::new("CANCEL", Group::Tasks,
            "Ends a task, or if it is taken, asks its holder to stop",
            "X; T if its holder is asked; Z or D if it was finished")
        .http(Form::State)
        .last()
    )]
    Cancel(Cancel<'a>),
    /// Moves a task that is not taken into any other state.
    #[command(needs(manage = transfer), shard = transfer.queue, disk = Refused, change, step)]
    #[letter(31)]
    #[request(
        Spec::new("SWITCH", Group::Tasks,
            "Turns a task that is not taken into another state",
            "the state")
        .only(&[options::DELAY, options::TTL, options::MEMBER])
    )]
    Switch {
        /// The task, and its new delay and TTL.
        #[flat]
        transfer: Transfer<'a>,
        /// The new state. T is refused.
        #[word("R|W|B|Z|D")]
        to: StateKind,
    },
    /// Takes a task away from its holder.
    #[command(needs(manage = it), shard = it.queue, disk = Refused, change)]
    #[letter(32)]
    #[request(
        Spec::new("SNATCH", Group::Tasks,
            "Takes a task away from its holder",
            "R, W, or X if its TTL had passed")
        .http(Form::State)
        .only(&[options::DELAY, options::TTL, options::MEMBER])
    )]
    Snatch(Transfer<'a>),
    /// Makes a waiting or finished task ready again, with its attempts at 0.
    #[command(needs(manage = it), shard = it.queue, disk = Refused, change, step)]
    #[letter(33)]
    #[request(
        Spec::new("RESTART", Group::Tasks,
            "Brings a waiting, buried or finished task back as if it had never been taken",
            "R, W, or X if its TTL had passed")
        .http(Form::State)
        .only(&[options::DELAY, options::TTL, options::MEMBER])
    )]
    Restart(Transfer<'a>),
    /// Changes a task in place.
    #[command(
        needs = it.queue.each(it.right(), tell), shard = it.queue, disk = Refused, change, step
    )]
    #[letter(34)]
    #[request(
        Spec::new("UPDATE", Group::Tasks,
            "Changes a task where it is",
            "OK")
        .options(&[
            options::PRIORITY, options::PAYLOAD, options::TTL_OR_NONE, options::RECEIPT,
            options::HEADERS, options::MEMBER,
        ])
    )]
    Update(Update<'a>),
    /// Moves tasks of one state to another queue, the oldest first. The reply is their number.
    #[command(
        needs(manage = from, put = to), shard = Destination::Pair(from.name, to),
        names = (to, from), disk = Refused, change, audit = from, care = LongWork
    )]
    #[letter(35)]
    #[request(Spec::new(
        "MOVE",
        Group::Tasks,
        "Moves tasks of one state to another queue, the oldest first",
        "how many"
    ))]
    Move {
        /// The queue or lane that they leave.
        #[key]
        from: QueueName<'a>,
        /// The queue that they enter.
        #[key]
        to: &'a [u8],
        /// The most tasks to move, at most [`MOVED_MAX`](crate::limits::MOVED_MAX).
        #[option(default = MOVED_DEFAULT)]
        count: u32,
        /// Their state, which stays. T is refused.
        #[option(default = StateKind::Ready)]
        state: StateKind,
    },
    /// Moves ready dead letters back to the queues that they come from, the oldest first. The
    /// reply is their number.
    #[command(
        needs(manage = queue, put = Anywhere), shard = queue, disk = Refused, change, within,
        audit = queue, care = LongWork
    )]
    #[letter(36)]
    #[request(Spec::new(
        "REDRIVE",
        Group::Tasks,
        "Moves ready dead letters back to the queues that they come from",
        "how many"
    ).http(Form::Count))]
    Redrive {
        /// The queue of the dead letters.
        #[key]
        queue: QueueName<'a>,
        /// The most tasks to move, at most [`MOVED_MAX`](crate::limits::MOVED_MAX).
        #[option(default = MOVED_DEFAULT)]
        count: u32,
    },
    /// Does the same with all tasks of a queue that a filter chooses, by seq. The reply tells where
    /// the next page begins, how many tasks were looked at, and how many have changed. A page ends
    /// early after [`CHANGED_BYTES_MAX`](crate::limits::CHANGED_BYTES_MAX) or
    /// [`BULK_STEPS_MAX`](crate::limits::BULK_STEPS_MAX), and where a queue does not accept a task
    /// that is to move there. It is refused if it has changed nothing by then.
    #[command(
        needs = it.each_need(tell), shard = it.destination(), names = (it.target(), it.queue),
        disk = it.on_full_disk(), change, within = matches!(it.change, BulkChange::Redrive),
        audit = it.queue, care = LongWork
    )]
    #[letter(54)]
    #[request(
        Spec::new("BULK", Group::Tasks,
            "Changes all tasks of a queue that a filter chooses, page by page",
            "the cursor of the next page (0 after the last), how many tasks it looked at, and how \
             many have changed")
        .http(Form::Bulk)
        .last()
    )]
    Bulk(Bulk<'a>),
    /// Blocks until a task is finished.
    #[command(needs(look = queue), shard = queue, disk = Served, blocks = wait.blocks())]
    #[letter(37)]
    #[request(
        Spec::new("AWAIT", Group::Tasks,
            "Waits until a task is finished",
            "the outcome (acked, buried, expired, killed, dead, evicted, moved, cancelled, \
             skipped, timeout) and the state; with RESULT the result last")
        .http(Form::Outcome)
        .last()
    )]
    Await {
        /// The queue.
        #[key]
        queue: QueueName<'a>,
        /// The id.
        #[word]
        id: &'a [u8],
        /// How long to block.
        #[option(default = Wait::No)]
        wait: Wait,
        /// Whether the reply tells what has come of the work.
        #[letter(1)]
        #[option(RESULT_WANTED)]
        result: bool,
    },
    /// Starts deliveries of tasks from these queues, one delivery for each credit.
    #[command(
        needs(take = queues), shard = Destination::of_subscription(queues),
        names = Lanes(queues, member), disk = Served, care = Subscription
    )]
    #[letter(38)]
    #[request(by_hand = subscribe,
        Spec::new("SUBSCRIBE", Group::Push,
            "Has tasks delivered, one for each credit",
            "how many subscriptions the connection has")
        .words(&[Word::Queues])
        .options(&[
            options::TTR, options::POP, options::RECALL, options::WITHMETA, options::MEMBER,
        ])
        .while_subscribed()
    )]
    Subscribe {
        /// The queues.
        queues: &'a [&'a [u8]],
        /// If given, the queues are topics, and the lanes of this member in them are meant.
        #[letter(1)]
        member: Option<&'a [u8]>,
        /// What a delivery contains.
        #[letter(2, default = Selection::DEFAULT)]
        selection: Selection,
        /// Whether a delivery is leased or popped.
        #[letter(3, default = TakeMode::Lease { ttr: None })]
        mode: TakeMode,
        /// Whether a delivery can be called back until it is started.
        #[letter(4)]
        recall: bool,
    },
    /// Ends subscriptions: these, or all if none is named.
    #[command(
        needs(take = queues), shard = Destination::of_subscription(queues),
        names = Lanes(queues, member), disk = Served, care = LongWork
    )]
    #[letter(39)]
    #[request(
        Spec::new("UNSUBSCRIBE", Group::Push,
            "Ends subscriptions, all of them if none is named",
            "how many subscriptions are left")
        .while_subscribed()
    )]
    Unsubscribe {
        /// The queues.
        #[words(Word::AnyQueues)]
        queues: &'a [&'a [u8]],
        /// If given, the queues are topics, and the lanes of this member in them are meant.
        #[letter(1)]
        #[option]
        member: Option<&'a [u8]>,
    },
    /// Allows this number of further deliveries.
    #[command(needs(), shard = Destination::Deliveries, names = (), disk = Served)]
    #[letter(40)]
    #[request(by_hand = credit,
        Spec::new("CREDIT", Group::Push,
            "Grants that many further deliveries",
            "the credit before the deliveries that it sets off")
        .words(&[Word::One("n")])
        .access(Access::Users)
        .while_subscribed()
    )]
    #[request(by_hand = ready,
        Spec::new("READY", Group::Push,
            "Grants one further delivery",
            "the credit before the delivery that it sets off")
        .access(Access::Users)
        .while_subscribed()
    )]
    Credit(u32),
    /// Returns popped tasks whose reply or delivery could not be sent.
    #[command(needs(), shard = Destination::Deliveries, names = (), disk = Served, change)]
    #[letter(41)]
    PutBack(&'a [TaskRecord]),
    /// Ends leases of which no consumer knows, since their reply or delivery could not be sent. The
    /// tasks are ready again in their old place. This is no sign of life of a member.
    #[command(needs(), shard = Destination::Deliveries, names = (), disk = Served, change)]
    #[letter(42)]
    GiveBack(&'a [Receipt]),
    /// Administers a queue.
    #[command(inner)]
    #[letter(43)]
    Queue(QueueCommand<'a>),
    /// Puts one task into each lane of a topic.
    #[command(
        needs(put = it.topic), shard = it.topic, names = Called("topic", it.topic),
        disk = Served, change, step, care = OwnTime
    )]
    #[letter(44)]
    #[request(
        Spec::new("PUBLISH", Group::FanOut,
            "Puts one task into each lane of a topic",
            "how many lanes")
        .last()
    )]
    Publish(Publish<'a>),
    /// Joins, beats, leaves, or lists members.
    #[command(inner)]
    #[letter(45)]
    Member(MemberCommand<'a>),
    /// Sets, shows, pauses, fires or drops schedules.
    #[command(inner)]
    #[letter(46)]
    Schedule(ScheduleCommand<'a>),
    /// Makes, changes, shows, lists or removes limits that several queues use together.
    #[command(inner)]
    #[letter(49)]
    Limit(LimitCommand<'a>),
    /// Makes, closes, shows, lists, cancels, awaits or forgets batches.
    #[command(inner)]
    #[letter(55)]
    Batch(BatchCommand<'a>),
    /// Carries out these steps in their order, all or none, at one moment. At most
    /// [`TRANSACTION_STEPS_MAX`](crate::limits::TRANSACTION_STEPS_MAX) of them.
    #[command(
        needs = each_need_of(it, tell), shard = Destination::Steps, names = (), disk = Served,
        change, care = OwnTime
    )]
    #[letter(47)]
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
        needs = command.each_need(tell),
        // The engine refuses what cannot be kept so, and that must not be in a letter.
        shard = if command.can_be_within() { command.destination() } else { Destination::Steps },
        names = (),
        disk = Served, change = command.is_change(), care = LongReply
    )]
    #[letter(48)]
    Within {
        /// The names, at most [`WITHIN_NAMES_MAX`](crate::limits::WITHIN_NAMES_MAX).
        names: &'a [NamePattern<'a>],
        /// The command.
        command: &'a Self,
    },
}

macro_rules! inner {
    ($($variant:ident($inner:ident)),*) => {$(
        impl<'a> From<$inner<'a>> for Command<'a> {
            fn from(inner: $inner<'a>) -> Self {
                Self::$variant(inner)
            }
        }
    )*};
}

inner!(
    Bulk(Bulk),
    Queue(QueueCommand),
    Member(MemberCommand),
    Schedule(ScheduleCommand),
    Limit(LimitCommand),
    Batch(BatchCommand)
);
