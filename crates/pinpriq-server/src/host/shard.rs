//! A shard: the engine, its store, its clock, and the clients that ask them, on one thread.
//!
//! To carry out commands, call [`Shard::apply`] for each and then [`Shard::turn`] once. Outputs go
//! to the outboxes of their clients together with the position that they wait for. A client is
//! woken when its outbox may be sent. Two tasks, those of `driving`, run what time and the
//! store require. This module knows no protocol, and does not know which clients are guests of
//! other shards.

mod charging;
mod clients;
mod driving;
mod owner;
mod standing;
mod survey;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_engine::Applied;
use pinpriq_proto::command::Command;
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::task::{ClientId, Farewell, RequestId, TaskRecord};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::durable::Durable;
use pinpriq_store::{Position, StoreError};
use tokio::sync::Notify;

use super::notices::Notices;
use super::readers::{Readers, Returned};
use super::spread::Spread;
use crate::access::charges::Charges;
use crate::clients::about::is_guest;
use crate::clients::contacts::Contacts;
use crate::clients::ending::Ending;
use crate::clients::unsent::Unsent;
use crate::clock::Clock;
use crate::config::{DoorName, Durability, Look};
use crate::facts::tally::Tally;
use crate::facts::{Facts, OfServer};
use crate::letters::letter::Part;
use crate::letters::mailbox::{Post, Route};
use crate::session::outbox::{Write, output_bytes};
use crate::session::{Blocked, Session};
use crate::sharding::Sharding;

/// The largest buffer that is kept for the next use.
const SPARE_BYTES_MAX: usize = 256 << 10;

/// How many bytes of old files unread replies may keep on the disk before the slowest client is cut
/// off.
const HELD_BYTES_MAX: u64 = 256 << 20;

/// How many bytes may wait for the disk before no client is read from.
const PENDING_BYTES_MAX: u64 = 64 << 20;

/// Sees everything that the engine is about to be asked, in order. The server has no witness. Tests
/// use one to ask a model the same.
pub trait Witness {
    /// `durable` is about to be asked this at the moment `now`.
    fn sees(&self, now: Timestamp, durable: &Durable, asked: &Asked<'_>);
}

/// What a [`Witness`] sees.
#[derive(Debug)]
pub enum Asked<'a> {
    /// To carry out a command of a client.
    Command(ClientId, RequestId, &'a Command<'a>),
    /// To end the wait of a client's blocked requests as if their time had passed.
    EndWaits(ClientId),
    /// To forget a client, whose connection has ended in this way.
    Disconnect(ClientId, Farewell<'a>),
    /// To do what is due.
    Timeout,
}

/// One engine with its store and its clients.
pub struct Shard {
    state: RefCell<State>,
    witness: OnceCell<Rc<dyn Witness>>,
    durability: Durability,
    started_at: Timestamp,
    tally: Rc<Tally>,
    notices: Notices,
    clock: Rc<dyn Clock>,
    /// The tasks of users, if the server has users.
    charges: OnceCell<RefCell<Charges>>,
    /// What it tells of the server.
    server: OnceCell<OfServer>,
    /// The way to all shards, if there are several.
    post: Option<Post>,
    /// Who the clients of all shards are.
    contacts: Arc<Contacts>,
    /// The moment of everything that is being carried out, if it is fixed.
    moment: Cell<Option<Timestamp>>,
    /// The moment at which time stands for the engine, if it does.
    look: OnceCell<Look>,
    /// The number of turns that have ended.
    turns: Cell<u64>,
    /// Whether anything was carried out since then.
    is_mid_turn: Cell<bool>,
    /// Whether payloads are being read back.
    reads_back: Cell<bool>,
    /// A buffer for the next use.
    spare: Cell<Vec<u8>>,
    /// Rung by the store's own thread.
    store_bell: Arc<Notify>,
    /// Rung when something is due earlier than before.
    timer_bell: Notify,
    /// Rung when the last client has gone.
    deserted_bell: Notify,
    /// Rung when the store has failed.
    failed_bell: Notify,
    /// Whether another process may own the shard without notice.
    may_be_taken_over: bool,
    /// Whether a client was kept waiting because another process may own the shard by now, or
    /// because the engine under the cluster does not answer.
    was_held_up: Cell<bool>,
    /// Rung when a client waits for that engine.
    kept_bell: Notify,
}

struct State {
    durable: Durable,
    sessions: HashMap<ClientId, Rc<Session>, Spread>,
    /// Clients with outputs that wait for a position, in order of the positions.
    waiting: VecDeque<(Position, Rc<Session>)>,
    /// Clients that wait for room, with the task that needs it, if any.
    stalled: Vec<(ClientId, Option<Offered>)>,
    /// The clients and tasks that wait for payloads from the disk.
    readers: Readers,
    /// When the timer will go off.
    armed: Option<Timestamp>,
    /// The number of clients with their connection here.
    connections: usize,
    last_client: u64,
    reported: bool,
}

/// A task that waits for room: the queue that it is for, and the bytes of its payload and key.
type Offered = (Box<[u8]>, usize);

impl Shard {
    pub(crate) fn new(
        durable: Durable,
        durability: Durability,
        clock: Rc<dyn Clock>,
        store_bell: Arc<Notify>,
        (post, contacts): (Option<Post>, Arc<Contacts>),
    ) -> Rc<Self> {
        Rc::new(Self {
            may_be_taken_over: durable.may_be_taken_over(),
            witness: OnceCell::new(),
            durability,
            started_at: clock.now(),
            tally: Rc::default(),
            notices: Notices::default(),
            state: RefCell::new(State {
                durable,
                sessions: HashMap::default(),
                waiting: VecDeque::new(),
                stalled: Vec::new(),
                readers: Readers::default(),
                armed: None,
                connections: 0,
                last_client: 0,
                reported: false,
            }),
            clock,
            charges: OnceCell::new(),
            server: OnceCell::new(),
            post,
            contacts,
            moment: Cell::new(None),
            look: OnceCell::new(),
            turns: Cell::new(0),
            is_mid_turn: Cell::new(false),
            reads_back: Cell::new(false),
            spare: Cell::new(Vec::new()),
            store_bell,
            timer_bell: Notify::new(),
            deserted_bell: Notify::new(),
            failed_bell: Notify::new(),
            was_held_up: Cell::new(false),
            kept_bell: Notify::new(),
        })
    }

    /// Tells this of the server from now on.
    pub(crate) fn tell_of(&self, server: OfServer) {
        drop(self.server.set(server));
    }

    /// Shows everything to a witness from now on. The first witness stays. The figures of a queue
    /// no longer depend on who uses it, since a witness does not know.
    pub fn watch(&self, witness: Rc<dyn Witness>) {
        self.state.borrow_mut().durable.keep_figures_while(Arc::new(|_| false));
        drop(self.witness.set(witness));
    }

    fn tell_witness<'a>(&self, now: Timestamp, state: &State, asked: impl FnOnce() -> Asked<'a>) {
        if let Some(witness) = self.witness.get() {
            witness.sees(now, &state.durable, &asked());
        }
    }

    /// Returns what is counted about its clients.
    pub(crate) const fn tally(&self) -> &Rc<Tally> {
        &self.tally
    }

    /// Returns what it warns about.
    pub(crate) const fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Returns its clock.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Carries out everything in `act` at one moment. Requests that arrived together are carried
    /// out together, and the clock is read once for all of them.
    pub(crate) fn at_one_moment<T>(&self, act: impl FnOnce() -> T) -> T {
        self.moment.set(Some(self.clock.now()));
        let done = act();
        self.moment.set(None);
        done
    }

    /// Returns the current moment for the engine.
    pub(crate) fn now(&self) -> Timestamp {
        self.look.get().map_or_else(|| self.store_time(), |look| look.at)
    }

    /// Returns the moment on the time line for the moment `at` by the wall clock. From now, both
    /// are equally far away.
    pub(crate) fn by_own_time(&self, at: Timestamp) -> Timestamp {
        let ms = at.ms().saturating_add_signed(self.clock.ahead_of_wall());
        Timestamp::from_ms(ms)
    }

    /// Returns the moment on the time line for the moment `at` by the wall clock, as if the two
    /// were whole seconds apart. So equal moments stay equal while time is drawn towards the wall
    /// clock, and are exact as long as the two do not differ much.
    pub(crate) fn by_own_seconds(&self, at: Timestamp) -> Timestamp {
        let ahead = self.clock.ahead_of_wall();
        let ahead_s = ahead.saturating_add(500).div_euclid(1_000);
        let ahead = ahead_s.saturating_mul(1_000);
        Timestamp::from_ms(at.ms().saturating_add_signed(ahead))
    }

    /// Returns an empty buffer, which often has capacity already.
    pub(crate) fn lend_buffer(&self) -> Vec<u8> {
        self.spare.take()
    }

    /// Keeps a buffer for the next use.
    pub(crate) fn keep_buffer(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= SPARE_BYTES_MAX {
            buffer.clear();
            self.spare.set(buffer);
        }
    }

    /// Returns the way to all shards, if there are several.
    pub(crate) const fn post(&self) -> Option<&Post> {
        self.post.as_ref()
    }

    /// Whether a shard has no owner that is known here.
    pub(crate) fn is_nowhere(&self, to: usize) -> bool {
        self.post().is_some_and(|post| post.route(to) == Route::Nowhere)
    }

    /// Returns the number of this shard.
    pub(crate) fn own(&self) -> usize {
        self.post.as_ref().map_or(0, Post::own)
    }

    /// Returns the number of shards.
    pub(crate) fn shards(&self) -> usize {
        self.sharding().shards()
    }

    /// Returns the number of places, of which the shards are the first ones.
    pub(crate) fn places(&self) -> usize {
        self.post.as_ref().map_or(1, Post::places)
    }

    /// Returns how names are divided among the shards.
    pub(crate) fn sharding(&self) -> Sharding {
        self.post.as_ref().map_or(Sharding::Hashed(1), Post::sharding)
    }

    /// Returns the session of a client, unless it has gone.
    pub(crate) fn session(&self, client: ClientId) -> Option<Rc<Session>> {
        self.state.borrow().sessions.get(&client).cloned()
    }

    /// Returns who the clients of all shards are.
    pub(crate) const fn contacts(&self) -> &Arc<Contacts> {
        &self.contacts
    }

    /// Carries out one command and returns what became of it. Its outputs are in the outboxes after
    /// the next [`Shard::turn`].
    #[inline]
    pub(crate) fn apply(
        &self,
        client: ClientId,
        request: RequestId,
        command: &Command<'_>,
    ) -> Applied {
        let now = self.now();
        self.is_mid_turn.set(true);
        let state = &mut *self.state.borrow_mut();
        self.tell_witness(now, state, || Asked::Command(client, request, command));
        state.durable.apply(now, client, request, command)
    }

    /// Notes that the latest request is blocked, so that its reply comes later.
    pub(crate) fn block(&self, session: &Session, blocked: Blocked) {
        // Earlier replies must not be mistaken for its reply.
        self.turn();
        session.block(blocked);
    }

    /// Refuses the blocked request of a client, if it has one. Returns whether it had.
    pub(crate) fn refuse_blocked(client: ClientId, session: &Session, refusal: &Refusal) -> bool {
        let Some(Blocked { request, .. }) = session.unblock() else { return false };
        let mut outbox = session.outbox.borrow_mut();
        let refusal = (Position::default(), refusal.clone());
        outbox.push_refusal((client, request), refusal, session.dialect.get());
        true
    }

    /// Ends the blocked request of a client, if it has one, because the server stops.
    ///
    /// A request that has changed something is refused once the change is durable, since its client
    /// is owed a reply. Any other is not answered: its client finds the connection closed, as after
    /// a crash, and asks again elsewhere.
    pub(crate) fn stop_blocked(&self, client: ClientId, session: &Rc<Session>) {
        let Some(Blocked { request, has_changed }) = session.unblock() else { return };
        let mut outbox = session.outbox.borrow_mut();
        let state = &mut *self.state.borrow_mut();
        // A put that still waits for room has changed nothing.
        let has_changed = has_changed && !state.durable.engine().is_in_line(client, request);
        if !has_changed {
            return outbox.push_lost();
        }
        let after = state.durable.awaited();
        let refusal = (after, Refusal::closing());
        outbox.push_refusal((client, request), refusal, session.dialect.get());
        state.waiting.push_back((after, session.clone()));
    }

    /// Ends the wait of a client's blocked request as if its time had passed.
    pub(crate) fn end_waits(&self, client: ClientId) {
        let now = self.now();
        {
            let state = &mut *self.state.borrow_mut();
            self.tell_witness(now, state, || Asked::EndWaits(client));
            state.durable.end_waits(now, client);
        }
        self.turn();
    }

    /// Adds a reply of a door itself, after all earlier replies.
    pub(crate) fn say(&self, session: &Session, bytes: Vec<u8>) {
        self.turn();
        session.outbox.borrow_mut().push_bytes(bytes);
    }

    /// Adds a long reply of a door, which keeps this many bytes until it is sent.
    pub(crate) fn say_written(&self, session: &Session, write: Write, bytes: usize) {
        self.turn();
        session.outbox.borrow_mut().push_written(write, bytes);
    }

    /// Refuses a request without the engine, after all earlier replies.
    pub(crate) fn say_refusal(
        &self,
        request: (ClientId, RequestId),
        session: &Session,
        refusal: Refusal,
    ) {
        self.turn();
        let (after, dialect) = (Position::default(), session.dialect.get());
        session.outbox.borrow_mut().push_refusal(request, (after, refusal), dialect);
    }

    /// Adds a part of a reply, after all earlier replies and deliveries. `part` is called once they
    /// are there.
    pub(crate) fn say_part(&self, session: &Session, part: impl FnOnce() -> Part) {
        self.turn();
        session.outbox.borrow_mut().push_part(part());
    }

    /// Ends the subscriptions, credit and leases of a client that will ask for nothing more, or
    /// starts again. Its replies are still sent.
    pub(crate) fn retire(&self, client: ClientId, farewell: Farewell<'_>) {
        let now = self.now();
        {
            let state = &mut *self.state.borrow_mut();
            self.tell_witness(now, state, || Asked::Disconnect(client, farewell));
            state.durable.disconnect(now, client, farewell);
        }
        self.turn();
    }

    /// Forgets a client, and takes back what was handed to it and could not be sent. Popped tasks
    /// return to their place, and leases that the client does not know about end.
    pub(crate) fn disconnect(&self, client: ClientId, unsent: Unsent) {
        let now = self.now();
        {
            let state = &mut *self.state.borrow_mut();
            state.sessions.remove(&client);
            if !is_guest(client) {
                state.connections -= 1;
                self.contacts.remove(client);
            }
            let farewell = Farewell::Ended { unsent: &unsent.leases };
            self.tell_witness(now, state, || Asked::Disconnect(client, farewell));
            state.durable.disconnect(now, client, farewell);
            let request = RequestId(0);
            if !unsent.popped.is_empty() {
                let put_back = Command::PutBack(&unsent.popped);
                self.tell_witness(now, state, || Asked::Command(client, request, &put_back));
                state.durable.apply(now, client, request, &put_back);
            }
            if !unsent.popped_away.is_empty() {
                state.readers.bring_back(client, unsent.popped_away);
                self.reads_back.set(true);
            }
            if !unsent.leases.is_empty() {
                let give_back = Command::GiveBack(&unsent.leases);
                self.tell_witness(now, state, || Asked::Command(client, request, &give_back));
                state.durable.apply(now, client, request, &give_back);
            }
            if state.connections == 0 {
                self.deserted_bell.notify_waiters();
            }
        }
        self.turn();
    }

    /// Waits until no connection is left.
    pub(crate) async fn deserted(&self) {
        self.wait_until(|| self.clients() == 0).await;
    }

    /// Waits until neither a connection nor a guest is left.
    pub(crate) async fn emptied(&self) {
        self.wait_until(|| self.is_deserted()).await;
    }

    /// Waits until `is_so`, which is checked when a client or guest leaves.
    async fn wait_until(&self, is_so: impl Fn() -> bool) {
        loop {
            let rung = self.deserted_bell.notified();
            if is_so() {
                return;
            }
            rung.await;
        }
    }

    /// Ends a turn: gives the changes to the store, and the outputs to the clients.
    pub fn turn(&self) {
        self.end_turn();
        if self.reads_back.get() {
            self.read_back();
        }
    }

    /// Requests the payloads that the first reply of a client lacks.
    pub(crate) fn read_for(&self, session: &Rc<Session>) {
        self.state.borrow_mut().readers.add(session);
        self.reads_back.set(true);
        self.read_back();
    }

    /// Continues to read payloads back, and puts tasks back whose payloads are there.
    fn read_back(&self) {
        loop {
            let returned = {
                let state = &mut *self.state.borrow_mut();
                let returned = state.readers.poll(&mut state.durable);
                self.reads_back.set(returned.is_some() || !state.readers.are_idle());
                if let Some(failure) = state.durable.failure().cloned() {
                    state.report(&failure);
                }
                returned
            };
            let Some(Returned { client, tasks }) = returned else { return };
            self.put_back(client, &tasks);
        }
    }

    /// Puts popped tasks back, and ends the turn.
    fn put_back(&self, client: ClientId, tasks: &[TaskRecord]) {
        let now = self.now();
        {
            let state = &mut *self.state.borrow_mut();
            let (request, put_back) = (RequestId(0), Command::PutBack(tasks));
            self.tell_witness(now, state, || Asked::Command(client, request, &put_back));
            state.durable.apply(now, client, request, &put_back);
        }
        self.end_turn();
    }

    fn end_turn(&self) {
        self.carry_on();
        if self.was_held_up.get() {
            self.resume();
        }
    }

    fn carry_on(&self) {
        self.note_charges();
        self.turns.set(self.turns.get() + 1);
        self.is_mid_turn.set(false);
        let now = self.store_time();
        let state = &mut *self.state.borrow_mut();
        let failure = state.durable.commit().and_then(|()| state.durable.drive(now)).err();
        state.route();
        state.release();
        state.wake_stalled();
        if state.durable.held_bytes() > HELD_BYTES_MAX {
            state.cut_off_slowest(|client| self.notices.unread(now, client.0));
        }
        if let Some(failure) = failure {
            state.report(&failure);
            self.failed_bell.notify_one();
        }
        let due = self.due(&state.durable);
        if due.is_some_and(|at| state.armed.is_none_or(|armed| at < armed)) {
            state.armed = due;
            self.timer_bell.notify_one();
        }
    }

    /// Ends the turn if anything was carried out in it.
    pub(crate) fn turn_if_begun(&self) {
        if self.is_mid_turn.get() {
            self.turn();
        }
    }

    /// Returns the number of turns that have ended. Between turns nothing changes that a client may
    /// have to wait for, and outboxes only get gaps for replies of other shards.
    pub(crate) const fn turns(&self) -> u64 {
        self.turns.get()
    }

    /// Returns the position that the store has reached.
    pub(crate) fn reached(&self) -> Position {
        self.state.borrow().durable.reached()
    }

    /// Returns the refusal of every request after the store has failed.
    pub(crate) fn failure(&self) -> Option<Refusal> {
        let state = self.state.borrow();
        let failure = state.durable.failure()?;
        Some(Refusal::new(RefusalKind::Store, failure.to_string()))
    }

    /// Returns the facts about the shard.
    pub(crate) fn facts(&self) -> Facts {
        let now = self.clock.now();
        let (mut clients, mut blocked) = (0, 0);
        let mut counts = self.tally.counts();
        self.each_client(|client, session| {
            let has_connection = !is_guest(client);
            clients += u64::from(has_connection);
            // Clients of HTTP share connections, which are counted as such.
            if has_connection && session.door() != DoorName::Http {
                counts.connections[session.door() as usize] += 1;
            }
            blocked += u64::from(session.is_blocked());
        });
        let facts = Facts {
            shards: 1,
            incarnation: self.inspect(|durable| durable.engine().header()).incarnation,
            uptime: now.since(self.started_at),
            now: self.look.get().map_or(now, |look| look.at),
            look: self.look.get().map(|look| look.at),
            clients,
            blocked,
            durability: self.durability,
            failure: self.failure().map(|failure| failure.sentence),
            figures: self.inspect(Durable::figures),
            counters: self.inspect(|durable| durable.engine().totals().clone()),
            task_bytes: self.inspect(|durable| durable.engine().bytes()),
            task_bytes_max: self.inspect(|durable| durable.engine().bytes_max()),
            counts,
            suspended: self.inspect(|durable| u64::from(durable.is_suspended())),
            logs: self.inspect(|durable| self.log_facts(durable)).into_iter().collect(),
            ..Facts::of_server(self.server.get(), now)
        };
        if self.own() < self.shards() { facts } else { facts.of_home() }
    }

    /// Calls `look` for every client.
    pub(crate) fn each_client(&self, mut look: impl FnMut(ClientId, &Session)) {
        for (client, session) in &self.state.borrow().sessions {
            look(*client, session);
        }
    }

    /// Calls `look` with the engine and its store.
    pub fn inspect<T>(&self, look: impl FnOnce(&Durable) -> T) -> T {
        look(&self.state.borrow().durable)
    }

    /// Whether a request must wait.
    ///
    /// A put, given by its queue and the bytes of payload and key, waits until there is room for
    /// the task in this queue. Any other request waits until the disk has caught up. The client's
    /// bell rings when it is worth another try.
    pub(crate) fn must_wait(&self, client: ClientId, task: Option<(&[u8], usize)>) -> bool {
        let state = &mut *self.state.borrow_mut();
        let waits = match task {
            None => !state.disk_keeps_up(),
            Some((queue, bytes)) => state.durable.engine().is_busy_for_put(queue, bytes),
        };
        if waits && state.sessions.get(&client).is_some_and(|it| !it.stalled.replace(true)) {
            let task = task.map(|(queue, bytes)| (queue.into(), bytes));
            state.stalled.push((client, task));
        }
        waits
    }

    /// Whether there is no room now for a task with this many bytes of payload and key.
    #[inline]
    pub(crate) fn is_busy_for_put(&self, queue: &[u8], bytes: usize) -> bool {
        self.state.borrow().durable.engine().is_busy_for_put(queue, bytes)
    }

    /// Wakes every client, so that it notices that the server stops, or cuts the client off.
    pub fn ring_all(&self) {
        for session in self.state.borrow().sessions.values() {
            session.bell.ring();
        }
    }

    /// Makes everything durable for an orderly stop, and blocks until it is.
    pub fn finish(&self) -> Result<(), StoreError> {
        let now = self.store_time();
        loop {
            let returned = {
                let state = &mut *self.state.borrow_mut();
                // So that the tasks that go back are not all in memory together.
                state.durable.finish(now)?;
                state.readers.wait(&mut state.durable)
            };
            let Some(Returned { client, tasks }) = returned else { break };
            self.put_back(client, &tasks);
        }
        let now = self.store_time();
        self.state.borrow_mut().durable.close(now)
    }
}

impl State {
    /// Moves outputs from the engine to the outboxes of their clients, and rings for the clients
    /// whose outputs need not wait.
    fn route(&mut self) {
        let Self { durable, sessions, waiting, .. } = self;
        let reached = durable.reached();
        // Most outputs of a turn are for one client.
        let mut found: Option<(ClientId, &Rc<Session>)> = None;
        // An output is looked at where it is, and then moved once.
        while let Some((after, output)) = durable.peek_held() {
            let (client, request) = match output {
                Output::Reply { client, request, .. } => (*client, Some(*request)),
                Output::Delivery { client, .. } => (*client, None),
                Output::Notice(notice) => (notice.client, None),
            };
            let same = found.filter(|(other, _)| *other == client);
            found = same.or_else(|| sessions.get(&client).map(|session| (client, session)));
            let Some((_, session)) = found else {
                let lost = carries_popped(output);
                assert!(!lost, "{client:?} was handed tasks after it had gone");
                drop(durable.pop_held());
                continue;
            };
            let bytes = output_bytes(output);
            if let Some(request) = request {
                if session.unblock_request(request) {
                    session.bell.ring();
                }
            } else if let Output::Notice(notice) = output {
                if !session.must_hear(notice) {
                    drop(durable.pop_held());
                    continue;
                }
            } else {
                session.count_delivery();
            }
            let Some((output, holds)) = durable.pop_held() else { return };
            let how = (session.dialect.get(), bytes);
            session.outbox.borrow_mut().push_weighed(after, output, holds, how);
            if after <= reached {
                session.bell.ring();
                continue;
            }
            let last = waiting.back();
            if !last.is_some_and(|(at, last)| *at == after && Rc::ptr_eq(last, session)) {
                waiting.push_back((after, session.clone()));
            }
        }
    }

    /// Rings for the clients whose outputs need no longer wait.
    fn release(&mut self) {
        let reached = self.durable.reached();
        while let Some((after, _)) = self.waiting.front()
            && *after <= reached
            && let Some((_, session)) = self.waiting.pop_front()
        {
            session.bell.ring();
        }
    }

    /// Whether the disk keeps up with the changes. Logs it once in a turn.
    fn disk_keeps_up(&self) -> bool {
        self.durable.pending_bytes() <= PENDING_BYTES_MAX && !self.durable.is_outpaced()
    }

    fn has_room_for(&self, task: Option<(&[u8], usize)>) -> bool {
        let is_busy = |(queue, bytes)| self.durable.engine().is_busy_for_put(queue, bytes);
        self.disk_keeps_up() && !task.is_some_and(is_busy)
    }

    fn wake_stalled(&mut self) {
        // Usually no client waits.
        if self.stalled.is_empty() {
            return;
        }
        let stalled = std::mem::take(&mut self.stalled);
        for (client, task) in stalled {
            let Some(session) = self.sessions.get(&client) else { continue };
            if self.has_room_for(task.as_ref().map(|(queue, bytes)| (&**queue, *bytes))) {
                session.stalled.set(false);
                session.bell.ring();
            } else {
                self.stalled.push((client, task));
            }
        }
    }

    /// Cuts off the client whose replies keep the oldest parts of the journal, since it does not
    /// read them. Called when such parts take up too much of the disk. Popped tasks go back.
    fn cut_off_slowest(&mut self, log: impl FnOnce(ClientId)) {
        let held = self.sessions.iter().filter(|(_, session)| session.killed().is_none());
        let held = held.filter_map(|(client, session)| {
            session.oldest_volume().map(|volume| (volume, *client, session))
        });
        if let Some((_, client, session)) =
            held.min_by_key(|(volume, client, _)| (*volume, *client))
        {
            log(client);
            session.kill(Ending::Unread);
        }
    }

    /// Logs once that the store has failed, and shows it to every connection.
    fn report(&mut self, failure: &StoreError) {
        if self.reported {
            return;
        }
        self.reported = true;
        if let StoreError::Fenced { .. } = failure {
            tracing::warn!("another node owns this shard now");
            return;
        }
        tracing::error!(%failure, "the store has failed: no change is answered from now on");
        for session in self.sessions.values() {
            session.bell.ring();
        }
    }
}

/// Whether tasks would be lost with this output.
fn carries_popped(output: &Output) -> bool {
    let (Output::Delivery { tasks, popped, .. }
    | Output::Reply { reply: Reply::Tasks { tasks, popped }, .. }) = output
    else {
        return false;
    };
    *popped && !tasks.is_empty()
}
