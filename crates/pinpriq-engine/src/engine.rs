//! The engine: the only entrance to the queues of one shard.
//!
//! The caller passes each command together with the current time. Afterwards it asks for the
//! changes to make durable, the outputs to send once they are durable, and the moment at which
//! [`Engine::handle_timeout`] must be called. The engine reads no clock, touches no file or socket,
//! draws no random number and starts no thread: the same calls give the same results.
//!
//! Each command is carried out in the module named after it. Only `step.rs` moves a task.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::fanout::members::Members;
use crate::fanout::publications::Publications;
use crate::issued::Issued;
use crate::memory::accounts::Accounts;
use crate::memory::batches::Batches;
use crate::memory::consumers::Consumers;
use crate::memory::deadlines::{Deadlines, Due};
use crate::memory::discarded::Discarded;
use crate::memory::endings::Endings;
use crate::memory::named_limits::NamedLimits;
use crate::memory::own_shares::OwnShares;
use crate::memory::packed::Unsaved;
use crate::memory::queues::Queues;
use crate::memory::schedules::Schedules;
use crate::memory::slots::{QueueSlot, Slot};
use crate::memory::tallies::Tallies;
use crate::memory::tasks::Tasks;
use crate::memory::undo::UndoLog;
use crate::memory::windows::Windows;
use crate::operations::arguments::check_names;
use crate::report::Report;
use pinpriq_proto::carried::Carried;
use pinpriq_proto::change::{Change, Header, Place, RecordKey};
use pinpriq_proto::command::Command;
use pinpriq_proto::limits::{BYTES_PER_TIMEOUT, Limits, STEPS_PER_TIMEOUT, put_bytes};
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::room::{Room, Shortage};
use pinpriq_proto::schedule::{Calendars, EveryOnly};
use pinpriq_proto::stats::Counters;
use pinpriq_proto::task::history::Clients;
use pinpriq_proto::task::{Bytes, ClientId, Farewell, RequestId, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};

/// The result of a command: a reply, `None` if the request waits, or a refusal.
pub(crate) type Answered = Result<Option<Reply>, Refusal>;

/// All queues of one shard.
#[derive(Debug)]
pub struct Engine {
    pub(crate) limits: Limits,
    /// See [`Engine::new`].
    pub(crate) seed: u64,
    pub(crate) now: Timestamp,
    /// The moment of [`Engine::start`].
    pub(crate) started_at: Timestamp,
    /// See [`Engine::set_grace`].
    pub(crate) grace: Option<Span>,
    /// See [`Engine::set_carried`].
    pub(crate) carried: Option<Box<Carried>>,
    pub(crate) issued: Issued,
    pub(crate) tasks: Tasks,
    pub(crate) queues: Queues,
    pub(crate) deadlines: Deadlines,
    pub(crate) consumers: Consumers,
    pub(crate) members: Members,
    pub(crate) publications: Publications,
    pub(crate) schedules: Schedules,
    /// What became of the tasks that have left last.
    pub(crate) endings: Endings,
    /// The windows of unique tasks.
    pub(crate) windows: Windows,
    /// The rules of their own that shares have.
    pub(crate) own_shares: OwnShares,
    /// The limits that several queues use together.
    pub(crate) named_limits: NamedLimits,
    /// Tasks that are followed together.
    pub(crate) batches: Batches,
    /// Whether any task has had an account, or any batch was there. Otherwise nothing of either is
    /// forgotten with a task.
    pub(crate) has_marks: bool,
    /// While the engine is restored, numbers for the batches that tasks name.
    pub(crate) restored_batches: BTreeMap<Bytes, u64>,
    /// Computes the slots of schedules.
    pub(crate) calendars: Arc<dyn Calendars>,
    /// Knows who the clients are, if somebody does.
    pub(crate) clients: Option<Arc<dyn Clients>>,
    /// For which account tasks were put.
    pub(crate) accounts: Accounts,
    /// Tasks of emptied queues whose memory has not been freed yet.
    pub(crate) discarded: VecDeque<Discarded>,
    /// The queues whose shares are followed.
    pub(crate) tallied: BTreeSet<QueueSlot>,
    /// Tallies that have ended, until they are freed.
    pub(crate) former_tallies: VecDeque<Box<Tallies>>,
    /// The tasks that have to make room for the one that is being put into a bounded queue. Each
    /// such put notes its own first.
    pub(crate) in_the_way: Vec<Slot>,
    /// The payloads of the tasks that have moved to another queue since this was reset, in bytes.
    pub(crate) relocated_bytes: u64,
    /// Queues in which tasks became ready while a consumer waits.
    pub(crate) unserved: Vec<QueueSlot>,
    pub(crate) report: Report,
    pub(crate) outputs: VecDeque<Output>,
    /// Figures over all queues.
    pub(crate) totals: Counters,
    /// Memory that tasks, queues, members, lanes and schedules occupy, estimated. During a restore
    /// it counts only what [`Limits::memory_bytes`] needs.
    pub(crate) bytes: u64,
    /// During a restore, the queue of the last task, with the allocation of its name.
    pub(crate) restored_last: Option<(Bytes, QueueSlot)>,
    /// Tasks that were put into tubes.
    pub(crate) tube_puts: u64,
    /// Leases of tasks of tubes that have reached their deadline.
    pub(crate) tube_timeouts: u64,
    /// The buckets of keys and shares that are not full.
    pub(crate) buckets: usize,
    /// What the store has room for.
    pub(crate) room: Room,
    /// Why the store has not enough room, if it has not.
    pub(crate) shortage: Shortage,
    /// How to undo what the transaction that is being carried out has done so far.
    pub(crate) undo: Option<Box<UndoLog>>,
    /// The request that is being carried out, until it has its reply.
    asking: Option<(ClientId, RequestId)>,
}

/// The result of applying a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// The reply is among the outputs.
    Answered,
    /// The reply is among the outputs. It is a refusal of this kind.
    Refused(RefusalKind),
    /// The request is blocked. Its reply comes later.
    Waits,
}

impl Engine {
    /// Creates an empty engine. Pass it what a store kept with [`Engine::restore`], then call
    /// [`Engine::start`].
    ///
    /// `seed` makes generated uuids differ from those of other servers. It also prevents clients
    /// from choosing keys that cost more than others. Draw it at random.
    #[must_use]
    pub fn new(limits: Limits, seed: u64) -> Self {
        Self {
            limits,
            seed,
            now: Timestamp::ZERO,
            started_at: Timestamp::ZERO,
            grace: None,
            carried: None,
            issued: Issued::default(),
            tasks: Tasks::new(seed),
            queues: Queues::new(&limits),
            deadlines: Deadlines::default(),
            consumers: Consumers::default(),
            members: Members::default(),
            publications: Publications::default(),
            schedules: Schedules::default(),
            endings: Endings::new(limits.endings_max),
            windows: Windows::default(),
            own_shares: OwnShares::default(),
            named_limits: NamedLimits::default(),
            batches: Batches::default(),
            has_marks: false,
            restored_batches: BTreeMap::new(),
            calendars: Arc::new(EveryOnly),
            clients: None,
            accounts: Accounts::default(),
            discarded: VecDeque::new(),
            tallied: BTreeSet::new(),
            former_tallies: VecDeque::new(),
            in_the_way: Vec::new(),
            relocated_bytes: 0,
            unserved: Vec::new(),
            report: Report::new(),
            restored_last: None,
            outputs: VecDeque::new(),
            totals: Counters::default(),
            bytes: 0,
            tube_puts: 0,
            tube_timeouts: 0,
            buckets: 0,
            room: Room::Enough,
            shortage: Shortage::Space,
            undo: None,
            asking: None,
        }
    }

    /// Sets what computes the slots of schedules, before [`Engine::start`]. Without it, only
    /// schedules with a fixed distance are known.
    pub fn set_calendars(&mut self, calendars: Arc<dyn Calendars>) {
        self.calendars = calendars;
    }

    /// Sets what knows who the clients are. Without it, attempts are noted by the number of their
    /// client alone.
    pub fn set_clients(&mut self, clients: Arc<dyn Clients>) {
        self.clients = Some(clients);
    }

    /// What knows who the clients are.
    #[must_use]
    pub const fn clients(&self) -> Option<&Arc<dyn Clients>> {
        self.clients.as_ref()
    }

    /// Lets every lease with a TTR go on for a while after [`Engine::start`]: at least for its TTR
    /// or for `grace`, whichever is shorter. For an engine that takes over from another server that
    /// has not ended in order, whose clients had no server meanwhile. Set it before the start.
    pub const fn set_grace(&mut self, grace: Span) {
        self.grace = Some(grace);
    }

    /// Carries out one command of one client at the moment `now`.
    ///
    /// [`Engine::poll_output`] then returns the reply, unless the request waits, and after it the
    /// deliveries that the command caused. The returned value says what happened too. It is for
    /// doors that have no words for a refusal, or that hold back the requests behind one that
    /// waits. Costs O(log n) in the number of tasks for each task that the command moves.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call. A lease would outlive its deadline.
    pub fn apply(
        &mut self,
        now: Timestamp,
        client: ClientId,
        request: RequestId,
        command: &Command<'_>,
    ) -> Applied {
        self.advance(now);
        self.asking = Some((client, request));
        let answered = check_names(command)
            .and_then(|()| self.check_store(command))
            .and_then(|()| self.dispatch(client, request, command));
        let refused = answered.as_ref().err().map(|refusal| refusal.kind);
        match answered {
            Ok(Some(reply)) => self.reply(client, request, reply),
            Ok(None) => {}
            Err(refusal) => self.reply(client, request, Reply::Refused(refusal)),
        }
        self.conclude();
        match (refused, self.asking.take()) {
            (Some(kind), _) => Applied::Refused(kind),
            (None, None) => Applied::Answered,
            (None, Some(_)) => Applied::Waits,
        }
    }

    /// Forgets a client whose connection has ended. Its blocked requests, subscriptions and credit
    /// are removed, and its leases without a deadline end: those that it knew of have failed.
    pub fn disconnect(&mut self, now: Timestamp, client: ClientId, farewell: Farewell<'_>) {
        self.move_clock(now);
        // Before anything that is due now is handed out, so that no task goes to a dead client.
        self.forget_client(client, farewell);
        self.fire_due();
        self.end_tied(client, farewell);
        self.conclude();
    }

    /// Replies to every blocked request of a client as if its time were up.
    pub fn end_waits(&mut self, now: Timestamp, client: ClientId) {
        self.advance(now);
        self.time_out_client(client);
        self.conclude();
    }

    /// Fires what is due, cleans some lanes of members that have ended, and frees some of the
    /// memory of emptied queues.
    ///
    /// Handles at most [`STEPS_PER_TIMEOUT`] deadlines, cleaning steps and freed tasks each. If
    /// more is due, [`Engine::poll_timeout`] returns a moment that has come already, and the caller
    /// can serve others in between.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.advance(now);
        self.clean_lanes(STEPS_PER_TIMEOUT);
        self.free_discarded(STEPS_PER_TIMEOUT);
        self.conclude();
    }

    /// Returns the latest moment at which [`Engine::handle_timeout`] must be called, if there is
    /// one.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let is_idle = self.discarded.is_empty()
            && self.former_tallies.is_empty()
            && self.members.ended.is_empty()
            && !self.consumers.putters.have_vacancies()
            && !self.batches.have_work();
        if is_idle { self.deadlines.next() } else { Some(self.now) }
    }

    /// Returns the next output to send. It must not be sent before the changes reported up to now
    /// are durable. Only a granted lease is an exception.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The output that [`Engine::poll_output`] returns next.
    #[must_use]
    #[inline]
    pub fn peek_output(&self) -> Option<&Output> {
        self.outputs.front()
    }

    /// Stops reporting changes. Use it if no store keeps them.
    pub const fn stop_reporting(&mut self) {
        self.report.stop();
    }

    /// Moves the changes reported since the last call to the end of `changes`. They form one atomic
    /// unit, in this order.
    pub fn take_changes(&mut self, changes: &mut Vec<Change>) {
        self.report.take_changes(changes);
    }

    /// Whether, since the last call, a task has changed in a way that a later take of other tasks
    /// could notice: it became ready other than by a put, or it was ready and did not become taken.
    /// The end of a taken task concerns only its holder, and a new task shows only in the take that
    /// returns it.
    pub const fn take_stirred(&mut self) -> bool {
        self.report.take_stirred()
    }

    /// Moves the places that are no longer needed to the end of `places`.
    pub fn take_obsolete(&mut self, places: &mut Vec<Place>) {
        self.report.take_obsolete(places);
    }

    /// The facts that every batch carries along.
    #[must_use]
    pub const fn header(&self) -> Header {
        let (incarnation, last_number) = (self.issued.incarnation(), self.issued.last());
        Header { incarnation, now: self.now, last_number }
    }

    /// Records where the store keeps the record that a change carried.
    pub fn placed(&mut self, change: &Change, place: Place) {
        let known = match change {
            Change::Task(record) => {
                self.bring_back_payload(record);
                return self.place_task(record.number, place);
            }
            Change::Queue(record) => self
                .queues
                .find(&record.name)
                .filter(|slot| self.queues[*slot].recorded)
                .map(|slot| &mut self.queues[slot].place),
            Change::Lane(record) => {
                self.queues.find_lane(record.number).map(|slot| &mut self.queues[slot].place)
            }
            Change::Published(record, _) => {
                self.publications.find(record.first).map(|published| &mut published.place)
            }
            Change::Member(record) => {
                let member = self.members.registered.get_mut(&record.incarnation);
                member.map(|member| &mut member.place)
            }
            Change::Schedule(record) => self.schedules.place_of(record.number),
            Change::Detail(detail) => self.details(detail.kind()).place_of(detail.number()),
            Change::Moved(_)
            | Change::Granted(_)
            | Change::Gone(_)
            | Change::QueueGone(_)
            | Change::Emptied(_)
            | Change::LaneGone(_)
            | Change::LaneEmptied(_)
            | Change::MemberGone(_)
            | Change::ScheduleMoved(_)
            | Change::ScheduleGone(_)
            | Change::DetailGone(..) => None,
        };
        let former = match known {
            Some(known) => known.replace(place),
            None => Some(place),
        };
        self.report.give_up(former);
    }

    /// Reports a record again, as it is now, if it is still at `place`. The store calls this before
    /// it gives up that place.
    pub fn rewrite(&mut self, key: &RecordKey, place: Place) {
        match key {
            RecordKey::Task(number) => {
                let Some(slot) = self.live(*number) else { return };
                if self.tasks[slot].place() == Some(place) {
                    self.mark(slot, Unsaved::Whole);
                    self.save();
                }
            }
            RecordKey::Queue(name) => {
                if let Some(slot) = self.queues.find(name) {
                    self.rewrite_queue(slot, place);
                }
            }
            RecordKey::Lane(number) => {
                if let Some(slot) = self.queues.find_lane(*number) {
                    self.rewrite_queue(slot, place);
                }
            }
            RecordKey::Published(first) => self.rewrite_publication(*first, place),
            RecordKey::Detail(kind, number) => self.rewrite_detail(*kind, *number, place),
            RecordKey::Member(incarnation) => {
                let member = self.members.registered.get(incarnation);
                if let Some(member) = member.filter(|member| member.place == Some(place)) {
                    self.report.add(Change::Member(Box::new(member.record(*incarnation))));
                }
            }
            RecordKey::Schedule(number) => self.rewrite_schedule(*number, place),
        }
    }

    fn rewrite_queue(&mut self, slot: QueueSlot, place: Place) {
        if self.queues[slot].place == Some(place) {
            self.report.add(self.queues[slot].record());
        }
    }

    /// Brings the payload of a task back into memory if it was left in the store, since its record
    /// is written again. The new place cannot be read before its batch is written, and the old one
    /// is about to go. So the payload stays in memory until it is left in the store again.
    fn bring_back_payload(&mut self, record: &TaskRecord) {
        if !self.leaves_payloads() {
            return;
        }
        if let Some(slot) = self.tasks.find(record.number) {
            self.bytes += self.tasks.bring_back_payload(slot, &record.payload);
        }
    }

    fn place_task(&mut self, number: u64, place: Place) {
        let former = match self.tasks.find(number) {
            Some(slot) => self.tasks[slot].replace_place(Some(place)),
            None => Some(place),
        };
        self.report.give_up(former);
    }

    /// Returns the moment of the latest call.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether growing [`Engine::bytes`] by `bytes` would be refused with BUSY now.
    #[must_use]
    pub fn is_busy_for(&self, bytes: u64) -> bool {
        self.room > Room::Enough || self.bytes.saturating_add(bytes) > self.limits.bytes_max
    }

    /// Whether a put of a task with `content` bytes of payload, key and given id would be refused
    /// with BUSY now.
    #[must_use]
    #[inline]
    pub fn is_busy_for_put(&self, queue: &[u8], content: usize) -> bool {
        // Usually there is room for a new queue too, so no lookup is needed.
        self.is_busy_for(put_bytes(queue.len(), content))
            && self.is_busy_for(self.growth_by_put(self.queues.find(queue), queue, content))
    }

    /// The number of bytes that count against [`Limits::bytes_max`] now.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns [`Limits::bytes_max`].
    #[must_use]
    pub const fn bytes_max(&self) -> u64 {
        self.limits.bytes_max
    }

    /// The number of bytes that count against [`Limits::waiting_bytes_max`] now.
    #[must_use]
    pub const fn waiting_bytes(&self) -> u64 {
        self.consumers.bytes
    }

    /// Whether payloads may have been left in the store.
    #[must_use]
    pub const fn leaves_payloads(&self) -> bool {
        self.limits.memory_bytes.is_some()
    }

    /// The number of tasks whose payload was left in the store. Costs O(n): for tests and checks
    /// only.
    #[must_use]
    pub fn payloads_left(&self) -> usize {
        self.tasks.slots().filter(|slot| self.tasks[*slot].payload().is_none()).count()
    }

    /// The numbers of the tasks whose payload was left in the store, and where it is. Costs O(n):
    /// for tests and checks only.
    #[must_use]
    pub fn places_left(&self) -> Vec<(u64, Place)> {
        if !self.leaves_payloads() {
            return Vec::new();
        }
        let tasks = self.tasks.slots().map(|slot| &self.tasks[slot]);
        let left = tasks.filter(|task| task.payload().is_none());
        left.filter_map(|task| Some((task.number(), task.place()?))).collect()
    }

    /// Whether payloads should be left in the store to save memory.
    #[must_use]
    pub fn is_short_of_memory(&self) -> bool {
        self.limits.memory_bytes.is_some_and(|most| self.bytes > most)
    }

    /// Leaves the payload of a task in the store, if the record at `place` is still current.
    /// The receiver of the task has to fetch it: [`pinpriq_proto::task::TaskRecord::away`].
    pub fn leave_payload(&mut self, number: u64, place: Place) {
        let Some(slot) = self.live(number) else { return };
        let task = &self.tasks[slot];
        if task.place() == Some(place) && task.unsaved() != Unsaved::Whole {
            self.bytes -= self.tasks.leave_payload(slot);
        }
    }

    /// The number of subscriptions of a client.
    #[must_use]
    pub fn subscriptions(&self, client: ClientId) -> usize {
        self.consumers.clients.get(&client).map_or(0, |known| known.subscriptions.len())
    }

    /// Figures over all queues.
    #[must_use]
    pub const fn totals(&self) -> &Counters {
        &self.totals
    }

    /// Carries out a command whose names were checked.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the most frequent commands take a shorter way")]
    pub(crate) fn dispatch(
        &mut self,
        client: ClientId,
        request: RequestId,
        command: &Command<'_>,
    ) -> Answered {
        match command {
            Command::Put(put) => self.put(client, request, put),
            Command::Take(take) => self.take(client, request, take),
            Command::Ack(ack) => self.ack(client, ack),
            other => self.dispatch_other(client, request, other),
        }
    }

    /// Like [`Self::dispatch`]. Its list of commands is whole.
    #[inline(never)]
    fn dispatch_other(
        &mut self,
        client: ClientId,
        request: RequestId,
        command: &Command<'_>,
    ) -> Answered {
        match *command {
            Command::Put(ref put) => self.put(client, request, put),
            Command::PutInLine { put, room } => self.put_in_line(client, request, put, room),
            Command::PutBack(records) => Ok(Some(self.put_back(records))),
            Command::GiveBack(receipts) => Ok(Some(self.give_back(receipts))),
            Command::Take(ref take) | Command::TakeDone { ref take, .. } => {
                if let Command::TakeDone { done, .. } = command {
                    self.finish_done(client, done, take)?;
                }
                self.take(client, request, take)
            }
            Command::TakeOne { queue, id, mode } => self.take_one(client, queue, id, mode),
            Command::Reserve(ref reserve) => self.reserve(client, request, reserve),
            Command::Head(queues) => self.head(client, queues),
            Command::Share(ref share) => self.share(client, request, share),
            Command::Numbered { number, deed } => self.numbered(client, number, deed, None),
            Command::PutNumbered(put) => self.put_numbered(client, request, put),
            Command::PutBuried { put, reason } => self.put_buried(client, request, put, reason),
            Command::Kick { queue, count } => Ok(Some(self.kick(queue, count))),
            Command::Foremost { queue, state } => Ok(Some(self.foremost(queue, state))),
            Command::Tubes(queue) => Ok(Some(self.tubes(queue, None))),
            Command::LetGo => Ok(Some(self.let_leases_go(client))),
            Command::Peek(ref peek) => self.peek(peek),
            Command::Get { queue, id } => self.get(queue, id),
            Command::Explain { queue, id } => self.explain(queue, id),
            Command::Scan(ref scan) => self.scan(scan),
            Command::Export(ref export) => self.export(export),
            Command::Import(ref import) => self.import(import),
            Command::Leases(ref leases) => self.leases(leases, None),
            Command::Ack(ref ack) => self.ack(client, ack),
            Command::AckAll { queue, receipts } => Ok(Some(self.ack_all(client, queue, receipts))),
            Command::Release(ref release) => self.release(client, release),
            Command::Bury(ref bury) => self.bury(client, bury),
            Command::Fail(ref fail) => self.fail_held(client, fail),
            Command::Touch(ref touch) => self.touch(client, touch),
            Command::Start { queue, receipt } => {
                self.start_task(client, queue, receipt)?;
                Ok(Some(Reply::Done))
            }
            Command::StartAll { queue, receipts } => {
                Ok(Some(self.start_all(client, queue, receipts)))
            }
            Command::Dig(ref transfer) => self.dig(client, transfer),
            Command::Plow { queue, count, delay, ttl } => self.plow(queue, count, delay, ttl),
            Command::Kill { queue, ids } => self.kill(client, queue, ids),
            Command::Cancel(ref it) => self.cancel(client, it),
            Command::Switch { ref transfer, to } => self.switch(client, transfer, to),
            Command::Snatch(ref transfer) => self.snatch(client, transfer),
            Command::Restart(ref transfer) => self.restart(client, transfer),
            Command::Update(ref update) => self.update(client, update),
            Command::Move { from, to, count, state } => self.move_tasks(from, to, count, state),
            Command::Redrive { queue, count } => self.redrive(queue, count, None),
            Command::Bulk(ref bulk) => self.bulk(bulk, None),
            Command::Await { queue, id, wait, result } => {
                self.wait_for(client, request, (queue, id), wait, result)
            }
            Command::Subscribe { queues, member, selection, mode, recall } => {
                self.subscribe(client, queues, member, (selection, mode), recall)
            }
            Command::Unsubscribe { queues, member } => self.unsubscribe(client, queues, member),
            Command::Credit(credits) => self.credit(client, request, credits),
            Command::Queue(command) => self.administer(command),
            Command::Publish(ref publish) => self.publish(publish),
            Command::Member(command) => self.tend(command),
            Command::Schedule(command) => self.keep_schedules(&command),
            Command::Limit(command) => self.keep_limits(command),
            Command::Batch(command) => self.keep_batches(client, request, command),
            Command::Transaction(steps) => self.transact(client, request, steps),
            Command::Within { names, command } => self.within(client, names, command),
        }
    }

    /// Moves time forward to `now`, fires what has become due, and serves the tasks that became
    /// ready.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        self.move_clock(now);
        self.fire_due();
    }

    fn move_clock(&mut self, now: Timestamp) {
        assert!(now >= self.now, "time went back from {} to {now}", self.now);
        self.now = now;
        self.queues.forget_lingering(now);
    }

    /// Fires what has become due, and serves the tasks that became ready.
    #[inline]
    pub(crate) fn fire_due(&mut self) {
        self.relocated_bytes = 0;
        if self.deadlines.has_due(self.now) {
            self.fire_all_due();
        }
        // Consumers that wait already come before the client of this call.
        self.serve_all();
    }

    #[inline(never)]
    fn fire_all_due(&mut self) {
        let mut slot_bytes = 0;
        while let Some(queue) = self.deadlines.pop_queue(self.now) {
            self.note_token(queue);
        }
        for _ in 0..STEPS_PER_TIMEOUT {
            match self.deadlines.pop_due(self.now) {
                None => break,
                Some(Due::Task(number)) => self.fire(number),
                Some(Due::Pause(queue)) => self.end_pause(queue),
                Some(Due::Taker(taker)) => {
                    // A taker that is still in line gets what has become ready meanwhile, before it
                    // learns that there is nothing.
                    self.serve_all();
                    self.fire_taker(taker);
                }
                Some(Due::Awaiter(awaiter)) => self.time_out_awaiter(awaiter),
                Some(Due::Putter(putter)) => {
                    // A put that is still in line enters if there is room by now.
                    self.serve_all();
                    self.time_out_putter(putter);
                }
                Some(Due::Member(incarnation)) => self.end_or_rearm_member(incarnation),
                Some(Due::Window(number)) => self.fire_window(number),
                Some(Due::Batch(number)) => self.fire_batch(number),
                Some(Due::Schedule(number)) => {
                    self.fill_vacancies();
                    slot_bytes += self.fire_slot(number) as u64;
                }
            }
            if slot_bytes + self.relocated_bytes >= BYTES_PER_TIMEOUT {
                break;
            }
        }
    }

    /// Ends every call that may have changed something: serves the tasks that became ready, then
    /// reports what the store must know.
    pub(crate) fn conclude(&mut self) {
        if self.batches.were_used() {
            return self.conclude_with_batches();
        }
        self.serve_all();
        self.save();
        self.report.conclude();
    }

    /// Queues a reply.
    pub(crate) fn reply(&mut self, client: ClientId, request: RequestId, reply: Reply) {
        if self.asking == Some((client, request)) {
            self.asking = None;
        }
        self.outputs.push_back(Output::Reply { client, request, reply });
    }
}
