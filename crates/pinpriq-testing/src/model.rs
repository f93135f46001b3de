//! A simple model of what the engine must do, which tests compare the engine with.
//!
//! Tasks are kept in maps by number, and each question is answered by looking at all of them. The
//! model follows the pages on the protocol and the concepts. It shares only the types of the
//! engine's interface: commands, replies, records. A lane is a place with a number, and a published
//! task is a plain task. Ids that cannot be predicted (uuids and clock readings) are placeholders
//! until the caller supplies them.
//!
//! There is no disk here: after a restart the model is rebuilt from what survived. There is no
//! randomness either. The engine's random tests, the simulator and the fuzz target `commands`
//! choose the commands and compare the results.

mod ageing;
mod arguments;
mod batches;
mod bindings;
mod bonds;
mod bulk;
mod cancelling;
mod capacity;
mod carrying;
mod disk_room;
mod endings;
mod failure;
mod gate;
mod history;
mod hold;
mod limits;
mod line;
mod looking;
mod members;
mod moving;
mod progress;
mod put;
mod queues;
mod recall;
mod room;
mod schedules;
mod serve;
mod share;
mod shares;
mod survivors;
mod take;
mod tasks;
mod time;
mod transaction;
mod transfer;
mod tubes;
mod turns;
mod unique;
mod waits;
mod within;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pinpriq_proto::command::Command;
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::room::Room;
use pinpriq_proto::schedule::{Calendars, EveryOnly};
use pinpriq_proto::settings::{Paused, Settings};
use pinpriq_proto::shares::ShareRecord;
use pinpriq_proto::task::history::{Clients, How};
use pinpriq_proto::task::{Burial, Bytes, ClientId, LaneName, RequestId, StateKind, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::WindowRecord;

use arguments::{fits, id_fits};
pub use batches::Batch;
use batches::BatchAwaiter;
pub use bindings::{is_placeholder, number_of};
use bonds::Emptied;
use gate::Bucket;
pub use limits::NamedLimit;
use line::Putter;
pub use schedules::Schedule;
use serve::{Subscription, Taker};
pub use survivors::Survivors;
use tasks::{Exit, Tally};
use turns::Turns;
use waits::Awaiter;

/// A reply at once, none yet, or a refusal.
type Answer = Result<Option<Reply>, RefusalKind>;

/// What identifies a place for tasks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// A queue, by its name.
    Queue(Bytes),
    /// A lane, by its number.
    Lane(u64),
}

/// A queue that exists for clients, or a lane.
#[derive(Clone, Debug, Default)]
pub struct Home {
    /// The queue or the topic.
    pub name: Bytes,
    /// What makes it a lane, or none for a queue.
    pub lane: Option<Lane>,
    /// Whether it stays when it is empty.
    pub created: bool,
    /// What clients have set.
    pub settings: Settings,
    /// Which sides are paused.
    pub paused: Paused,
    /// Its tasks by their numbers.
    pub tasks: BTreeMap<u64, TaskRecord>,
    tally: Tally,
    /// The tokens that are left, if its settings have a rate.
    bucket: Option<Bucket>,
    turns: Turns,
}

impl Place {
    /// Where a task is.
    #[must_use]
    pub fn of(task: &TaskRecord) -> Self {
        match &task.lane {
            None => Self::Queue(task.queue.clone()),
            Some(lane) => Self::Lane(lane.number),
        }
    }
}

/// What makes a place a lane.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Its number, and the name of its member.
    pub name: LaneName,
    /// The incarnation of its member.
    pub incarnation: u64,
    /// The number of published tasks that it did not accept.
    pub missed: u64,
}

/// A registered member.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name.
    pub name: Bytes,
    /// How long a sign of life lasts.
    pub lease: Span,
    /// When it ends unless it shows a sign of life.
    pub lease_until: Timestamp,
    /// Future ends of the lease that a later sign of life has postponed. The engine may still check
    /// the member at these moments.
    pub put_off: Vec<Timestamp>,
    /// Whether it has ended. Its lanes are removed later.
    pub ended: bool,
}

/// All queues, lanes and members, and all clients that block on them.
#[derive(Clone, Debug)]
pub struct Model {
    /// What it refuses to exceed.
    pub limits: Limits,
    /// The moment of the latest call.
    pub now: Timestamp,
    /// When the server was started.
    started_at: Timestamp,
    grace: Option<Span>,
    /// See [`Model::set_handed_over`].
    is_handed_over: bool,
    /// Since when tasks are in their state, by number, as far as they have changed it.
    since: BTreeMap<u64, Timestamp>,
    incarnation: u64,
    /// The highest number assigned so far.
    pub last_number: u64,
    last_grant: u64,
    last_burial: Burial,
    last_turn: u64,
    /// All queues and lanes, including those of members that have ended.
    pub homes: BTreeMap<Place, Home>,
    places: BTreeMap<u64, Place>,
    /// Every registered member by its incarnation.
    pub members: BTreeMap<u64, Member>,
    /// Every schedule by its number.
    pub schedules: BTreeMap<u64, Schedule>,
    /// The windows of unique tasks, by number.
    pub windows: BTreeMap<u64, WindowRecord>,
    /// What became of the tasks that have left last, the newest last.
    endings: Vec<endings::Left>,
    /// The rules of their own that shares have, by number.
    pub own_shares: BTreeMap<u64, ShareRecord>,
    /// The limits that several places use together, by number.
    pub named_limits: BTreeMap<u64, NamedLimit>,
    /// Every batch by its number.
    pub batches: BTreeMap<u64, Batch>,
    /// The batches that are done and whose followers have not been freed, in the order in which
    /// they were done.
    fired: Vec<u64>,
    /// The batches that have tasks which are still to be cancelled.
    cancelling: Vec<u64>,
    batch_awaiters: Vec<BatchAwaiter>,
    /// The number of the task that was put last.
    last_put: u64,
    calendars: Arc<dyn Calendars>,
    /// Knows who the clients are.
    clients: Option<Arc<dyn Clients>>,
    /// How an attempt ends that ends now.
    how: How,
    takers: Vec<Taker>,
    awaiters: Vec<Awaiter>,
    putters: Vec<Putter>,
    subscriptions: Vec<Subscription>,
    /// How many tasks each subscriber may still be sent.
    pub credits: BTreeMap<ClientId, u32>,
    /// The subscribers whose pops hold their tasks first.
    holders: BTreeSet<ClientId>,
    /// The tasks of emptied queues, until they are freed and their awaiters are notified.
    emptied: Vec<Emptied>,
    kept: room::Kept,
    /// The figures of queues that have ceased to exist, the oldest first, until when they are kept.
    lingering: Vec<(Bytes, Tally, Timestamp)>,
    totals: Tally,
    bindings: bindings::Bindings,
    /// What the transaction that is being carried out puts off until its end.
    put_off: Option<transaction::PutOff>,
    /// Replies and deliveries to send.
    pub outputs: Vec<Output>,
    /// Nothing is due before this moment.
    quiet_until: Timestamp,
    /// The room that the store has.
    room: Room,
    /// How often the deadline of a task passed, or its holder went away, in each state. The keys
    /// use the words of the table of states.
    pub happened: BTreeMap<(&'static str, StateKind), u64>,
}

impl Model {
    /// A server that is empty and has not started.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            now: Timestamp::ZERO,
            started_at: Timestamp::ZERO,
            grace: None,
            is_handed_over: false,
            since: BTreeMap::new(),
            incarnation: 0,
            last_number: 0,
            last_grant: 0,
            last_burial: Burial::UNKNOWN,
            last_turn: 0,
            homes: BTreeMap::new(),
            places: BTreeMap::new(),
            members: BTreeMap::new(),
            schedules: BTreeMap::new(),
            windows: BTreeMap::new(),
            endings: Vec::new(),
            own_shares: BTreeMap::new(),
            named_limits: BTreeMap::new(),
            batches: BTreeMap::new(),
            fired: Vec::new(),
            cancelling: Vec::new(),
            batch_awaiters: Vec::new(),
            last_put: 0,
            calendars: Arc::new(EveryOnly),
            clients: None,
            how: How::Released,
            takers: Vec::new(),
            awaiters: Vec::new(),
            putters: Vec::new(),
            subscriptions: Vec::new(),
            credits: BTreeMap::new(),
            holders: BTreeSet::new(),
            emptied: Vec::new(),
            kept: room::Kept::default(),
            lingering: Vec::new(),
            totals: Tally::default(),
            bindings: bindings::Bindings::default(),
            put_off: None,
            outputs: Vec::new(),
            quiet_until: Timestamp::ZERO,
            room: Room::Enough,
            happened: BTreeMap::new(),
        }
    }

    /// Lets every lease with a TTR go on after the next start: see `Engine::set_grace`.
    pub const fn set_grace(&mut self, grace: Option<Span>) {
        self.grace = grace;
    }

    /// Lets the next server begin with the tokens that this one leaves, or without them. With a
    /// grace there are none.
    pub const fn set_handed_over(&mut self, is_handed_over: bool) {
        self.is_handed_over = is_handed_over;
    }

    /// Sets what computes the slots of schedules.
    pub fn set_calendars(&mut self, calendars: Arc<dyn Calendars>) {
        self.calendars = calendars;
    }

    /// Carries out a command.
    pub fn apply(
        &mut self,
        now: Timestamp,
        client: ClientId,
        request: RequestId,
        command: &Command<'_>,
    ) {
        self.advance(now);
        match self.answer(client, request, command) {
            Ok(Some(reply)) => self.reply(client, request, reply),
            Ok(None) => {}
            Err(kind) => self.refuse(client, request, kind),
        }
        self.conclude();
    }

    fn answer(&mut self, client: ClientId, request: RequestId, command: &Command<'_>) -> Answer {
        self.room_suffices(command)?;
        match command {
            Command::Put(put) => self.put(client, request, put),
            Command::PutNumbered(put) => self.put_numbered(client, request, put),
            Command::PutBuried { put, reason } => self.put_buried(client, request, put, *reason),
            Command::Reserve(reserve) => self.reserve(client, request, reserve),
            Command::Numbered { number, deed } => self.numbered(client, *number, *deed, None),
            Command::Kick { queue, count } => self.kick(queue, *count),
            Command::Head(queues) => self.head(client, queues),
            Command::Foremost { queue, state } => self.foremost(queue, *state),
            Command::Tubes(queue) => self.tubes(*queue, None),
            Command::LetGo => Ok(Some(self.let_leases_go(client))),
            Command::PutInLine { put, room } => self.put_in_line(client, request, put, *room),
            Command::PutBack(records) => Ok(Some(self.put_back(records))),
            Command::GiveBack(receipts) => Ok(Some(self.give_back(receipts))),
            Command::Share(share) => self.share(client, request, share),
            Command::Take(take) => self.take(client, request, take),
            Command::TakeOne { queue, id, mode } => self.take_one(client, *queue, id, *mode),
            Command::TakeDone { done, take } => self.take_done(client, request, done, take),
            Command::Peek(peek) => self.peek(peek),
            Command::Get { queue, id } => {
                id_fits(id)?;
                let found = self.find(*queue, id)?;
                Ok(Some(self.get(*queue, id, found)))
            }
            Command::Explain { queue, id } => self.explain(*queue, *id),
            Command::Scan(scan) => self.scan(scan),
            Command::Export(export) => self.export(export),
            Command::Import(import) => self.import(import),
            Command::Leases(leases) => self.leases(leases, None),
            Command::Ack(ack) => self.ack(client, ack),
            Command::AckAll { queue, receipts } => Ok(Some(self.ack_all(*queue, receipts))),
            Command::Release(release) => self.release(client, release),
            Command::Bury(bury) => self.bury(client, bury),
            Command::Fail(fail) => self.fail(client, fail),
            Command::Touch(touch) => self.touch(client, touch),
            Command::Start { queue, receipt } => self.start_task(client, *queue, *receipt),
            Command::StartAll { queue, receipts } => Ok(Some(self.start_all(*queue, receipts))),
            Command::Dig(transfer) => self.dig(transfer),
            Command::Plow { queue, count, delay, ttl } => self.plow(*queue, *count, *delay, *ttl),
            Command::Kill { queue, ids } => self.kill(*queue, ids),
            Command::Cancel(cancel) => self.cancel(cancel),
            Command::Switch { transfer, to } => self.switch(transfer, *to),
            Command::Snatch(transfer) => self.snatch(transfer),
            Command::Restart(transfer) => self.restart_task(transfer),
            Command::Update(update) => self.update(client, update),
            Command::Move { from, to, count, state } => self.move_tasks(*from, to, *count, *state),
            Command::Redrive { queue, count } => self.redrive(*queue, *count),
            Command::Bulk(bulk) => self.bulk(bulk, None),
            Command::Await { queue, id, wait, result } => {
                self.wait_for((client, request), (*queue, id), *wait, *result)
            }
            Command::Subscribe { queues, member, selection, mode, recall } => {
                self.subscribe(client, queues, *member, (*selection, *mode), *recall)
            }
            Command::Unsubscribe { queues, member } => self.unsubscribe(client, queues, *member),
            Command::Credit(credits) => self.credit(client, request, *credits),
            Command::Queue(command) => self.administer(command),
            Command::Publish(publish) => self.publish(publish),
            Command::Member(command) => self.tend(command),
            Command::Schedule(command) => self.keep_schedules(command),
            Command::Limit(command) => self.keep_limits(command),
            Command::Batch(command) => self.keep_batches((client, request), command),
            Command::Transaction(steps) => self.transact(client, request, steps),
            Command::Within { names, command } => self.within(client, names, command),
        }
    }

    fn reply(&mut self, client: ClientId, request: RequestId, reply: Reply) {
        self.outputs.push(Output::Reply { client, request, reply });
    }

    fn refuse(&mut self, client: ClientId, request: RequestId, kind: RefusalKind) {
        self.reply(client, request, Reply::Refused(Refusal::new(kind, "")));
    }

    /// Draws the next place in a line. All lines share one counter.
    const fn draw(&mut self) -> u64 {
        self.last_turn += 1;
        self.last_turn
    }
}
