//! A shard: the engine, its store, its clock, and the clients that it serves, on one thread.
//!
//! A connection calls [`Shard::apply`] for each complete command that it has read, and then
//! [`Shard::turn`] once. Outputs go to the outboxes of their clients together with the position
//! that they wait for; whoever's outbox may be sent is woken. The two tasks in `drive` run what
//! time and the store ask for. Nothing here knows a protocol.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_engine::command::Command;
use pinpriq_engine::reply::{Output, RefusalKind, Reply};
use pinpriq_engine::task::{ClientId, RequestId, TaskRecord};
use pinpriq_engine::time::Timestamp;
use pinpriq_store::durable::Durable;
use pinpriq_store::{Position, StoreError};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::outbox::Outbox;

/// How many bytes may wait for the disk before nobody is read from any more.
const PENDING_BYTES_MAX: u64 = 64 << 20;

/// A client's side of the shard: what the shard has for it.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) outbox: RefCell<Outbox>,
    /// Rung when the outbox has something that may be sent, or the client may go on after it was
    /// told to wait.
    pub(crate) bell: Notify,
    /// Whether it stands among those that wait for room.
    stalled: Cell<bool>,
}

impl Session {
    /// Whether the client was told to wait for room, and its bell has not rung since.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.get()
    }
}

/// See the head of this file.
pub(crate) struct Shard {
    state: RefCell<State>,
    clock: Rc<dyn Clock>,
    /// Rung by the store's own thread.
    store_bell: Arc<Notify>,
    /// Rung when something is due earlier than it was.
    timer_bell: Notify,
    /// Rung when the last client has gone.
    deserted_bell: Notify,
}

struct State {
    durable: Durable,
    sessions: HashMap<ClientId, Rc<Session>>,
    /// Clients with outputs that wait for a position, in order of the positions.
    waiting: VecDeque<(Position, ClientId)>,
    /// Clients that wait for room, with the bytes that they wait for.
    stalled: Vec<(ClientId, u64)>,
    /// When the timer will go off.
    armed: Option<Timestamp>,
    last_client: u64,
    reported: bool,
}

impl Shard {
    pub(crate) fn new(durable: Durable, clock: Rc<dyn Clock>, store_bell: Arc<Notify>) -> Rc<Self> {
        Rc::new(Self {
            state: RefCell::new(State {
                durable,
                sessions: HashMap::new(),
                waiting: VecDeque::new(),
                stalled: Vec::new(),
                armed: None,
                last_client: 0,
                reported: false,
            }),
            clock,
            store_bell,
            timer_bell: Notify::new(),
            deserted_bell: Notify::new(),
        })
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Makes a new client known.
    pub(crate) fn connect(&self) -> (ClientId, Rc<Session>) {
        let mut state = self.state.borrow_mut();
        state.last_client += 1;
        let client = ClientId(state.last_client);
        let session = Rc::new(Session::default());
        state.sessions.insert(client, session.clone());
        (client, session)
    }

    /// How many clients there are.
    pub(crate) fn clients(&self) -> usize {
        self.state.borrow().sessions.len()
    }

    /// Carries out one command. What it comes to is in the outboxes after the next
    /// [`Shard::turn`]; that it was refused is told at once.
    pub(crate) fn apply(
        &self,
        client: ClientId,
        request: RequestId,
        command: Command<'_>,
    ) -> Option<RefusalKind> {
        let now = self.clock.now();
        self.state.borrow_mut().durable.apply(now, client, request, command)
    }

    /// Ends the subscriptions, credit and leases of a client that will ask for nothing more. What
    /// it has been answered already is still sent.
    pub(crate) fn retire(&self, client: ClientId) {
        let now = self.clock.now();
        self.state.borrow_mut().durable.disconnect(now, client);
        self.turn();
    }

    /// Forgets a client, and puts back what was popped for it and could not be sent.
    pub(crate) fn disconnect(&self, client: ClientId, unsent: Vec<TaskRecord>) {
        let now = self.clock.now();
        {
            let mut state = self.state.borrow_mut();
            state.sessions.remove(&client);
            state.durable.disconnect(now, client);
            if !unsent.is_empty() {
                state.durable.apply(now, client, RequestId(0), Command::PutBack(unsent));
            }
            if state.sessions.is_empty() {
                self.deserted_bell.notify_waiters();
            }
        }
        self.turn();
    }

    /// Waits until no client is left.
    pub(crate) async fn deserted(&self) {
        loop {
            let rung = self.deserted_bell.notified();
            if self.clients() == 0 {
                return;
            }
            rung.await;
        }
    }

    /// Ends a turn: hands the store what has changed, and the clients what they are answered.
    pub(crate) fn turn(&self) {
        let now = self.clock.now();
        let state = &mut *self.state.borrow_mut();
        let failure = state.durable.commit().and_then(|()| state.durable.drive(now)).err();
        state.route();
        state.release();
        state.wake_stalled();
        if let Some(failure) = failure {
            state.report(&failure);
        }
        let due = state.durable.poll_timeout();
        if due.is_some_and(|at| state.armed.is_none_or(|armed| at < armed)) {
            state.armed = due;
            self.timer_bell.notify_one();
        }
    }

    /// How far the store has come.
    pub(crate) fn reached(&self) -> Position {
        self.state.borrow().durable.reached()
    }

    /// Whether the store has failed, so that no reply can be given any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.borrow().durable.failure().is_some()
    }

    /// Whether a task of so many bytes must wait until there is room for it. If so, the client's
    /// bell rings when it is worth another try.
    pub(crate) fn must_wait(&self, client: ClientId, bytes: usize) -> bool {
        let state = &mut *self.state.borrow_mut();
        let bytes = bytes as u64;
        let waits = !state.has_room_for(bytes);
        if waits && state.sessions.get(&client).is_some_and(|it| !it.stalled.replace(true)) {
            state.stalled.push((client, bytes));
        }
        waits
    }

    /// Wakes every client, so that it sees that the server is stopping or has failed.
    pub(crate) fn ring_all(&self) {
        for session in self.state.borrow().sessions.values() {
            session.bell.notify_one();
        }
    }

    /// Makes everything durable, and blocks until it is.
    pub(crate) fn finish(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        self.state.borrow_mut().durable.finish(now)
    }

    /// Runs what time asks for. Never ends.
    pub(crate) async fn run_timer(&self) {
        loop {
            let due = self.state.borrow().durable.poll_timeout();
            self.state.borrow_mut().armed = due;
            match due {
                Some(at) => {
                    tokio::select! {
                        () = self.clock.until(at) => {}
                        () = self.timer_bell.notified() => continue,
                    }
                    let now = self.clock.now();
                    self.state.borrow_mut().durable.handle_timeout(now);
                    self.turn();
                    // A mass of deadlines is fired in steps; others get their turn in between.
                    tokio::task::yield_now().await;
                }
                None => self.timer_bell.notified().await,
            }
        }
    }

    /// Runs what the store asks for. Never ends.
    pub(crate) async fn run_store(&self) {
        loop {
            self.store_bell.notified().await;
            self.turn();
        }
    }
}

impl State {
    /// Moves outputs from the engine to the outboxes of their clients.
    fn route(&mut self) {
        while let Some((after, output)) = self.durable.poll_output() {
            let (Output::Reply { client, .. } | Output::Delivery { client, .. }) = &output;
            let client = *client;
            let Some(session) = self.sessions.get(&client) else {
                let lost = carries_popped(&output);
                assert!(!lost, "{client:?} was handed tasks after it had gone");
                continue;
            };
            session.outbox.borrow_mut().push(after, output);
            if self.waiting.back() != Some(&(after, client)) {
                self.waiting.push_back((after, client));
            }
        }
    }

    /// Rings for the clients whose outputs have waited long enough.
    fn release(&mut self) {
        let reached = self.durable.reached();
        while let Some((after, client)) = self.waiting.front().copied() {
            if after > reached {
                return;
            }
            self.waiting.pop_front();
            if let Some(session) = self.sessions.get(&client) {
                session.bell.notify_one();
            }
        }
    }

    fn has_room_for(&self, bytes: u64) -> bool {
        self.durable.figures().bytes_pending <= PENDING_BYTES_MAX
            && !self.durable.engine().is_busy_for(bytes)
    }

    fn wake_stalled(&mut self) {
        // Most of the time nobody waits.
        if self.stalled.is_empty() {
            return;
        }
        let stalled = std::mem::take(&mut self.stalled);
        for (client, bytes) in stalled {
            let Some(session) = self.sessions.get(&client) else { continue };
            if self.has_room_for(bytes) {
                session.stalled.set(false);
                session.bell.notify_one();
            } else {
                self.stalled.push((client, bytes));
            }
        }
    }

    /// Says once that the store has failed, and lets every connection see it.
    fn report(&mut self, failure: &StoreError) {
        if self.reported {
            return;
        }
        self.reported = true;
        tracing::error!(%failure, "the store has failed: no change is answered any more");
        for session in self.sessions.values() {
            session.bell.notify_one();
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
