//! The server without sockets and without a runtime: whoever drives it decides what happens when.
//!
//! Shard, exchanges, outboxes and doors are those of the server. What the runtime does there is
//! done here by [`Simulation::run`]: whoever's bell has rung gets a turn, and nobody else does, so
//! that a bell that is forgotten is noticed. Bytes go in and out by [`Simulation::feed`] and
//! [`Simulation::drain`], in pieces of any size. Not here: sockets, accepting, lingering after a
//! cut, signals, and the log.

use std::collections::BTreeMap;
use std::future::Future as _;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use pinpriq_engine::task::ClientId;
use pinpriq_engine::time::Timestamp;
use pinpriq_store::{Durable, StoreError};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::config::{Durability, Limits, PinpriqOptions};
use crate::exchange::{Exchange, Step};
use crate::front::pinpriq::PinpriqDoor;
use crate::front::resp::RespDoor;
use crate::shard::{Session, Shard};

pub use crate::shard::{Asked, Witness};

/// The protocol that a client speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Door {
    /// The founding protocol.
    Pinpriq,
    /// RESP.
    Resp,
}

/// What a simulated server can be told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What it says that a reply means. What it does mean is the store's business.
    pub durability: Durability,
    /// What the pinpriq door makes of the open points of its protocol.
    pub pinpriq: PinpriqOptions,
    /// The bounds.
    pub limits: Limits,
}

/// A server whose clients and clock are somebody's to move.
pub struct Simulation {
    shard: Rc<Shard>,
    options: Options,
    clients: BTreeMap<ClientId, Talk>,
    /// When the timer will go off.
    armed: Option<Timestamp>,
    stopping: bool,
    cut_off: bool,
}

enum Talk {
    Pinpriq(Exchange<PinpriqDoor>),
    Resp(Exchange<RespDoor>),
}

/// Does the same with either door.
macro_rules! with {
    ($talk:expr, $exchange:ident => $body:expr) => {
        match $talk {
            Talk::Pinpriq($exchange) => $body,
            Talk::Resp($exchange) => $body,
        }
    };
}

impl Simulation {
    /// A server over what was opened. The witness, if there is one, sees what the engine is asked.
    #[must_use]
    pub fn new(
        durable: Durable,
        options: Options,
        clock: Rc<dyn Clock>,
        witness: Option<Rc<dyn Witness>>,
    ) -> Self {
        let shard = Shard::new(durable, options.durability, clock, Arc::new(Notify::new()));
        if let Some(witness) = witness {
            shard.watch(witness);
        }
        let armed = shard.arm_timer();
        let (stopping, cut_off) = (false, false);
        Self { shard, options, clients: BTreeMap::new(), armed, stopping, cut_off }
    }

    /// A client connects.
    pub fn connect(&mut self, door: Door) -> ClientId {
        let name = match door {
            Door::Pinpriq => "pinpriq",
            Door::Resp => "resp",
        };
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let (client, session) = self.shard.connect(name, peer);
        let limits = self.options.limits;
        let (shard, own) = (self.shard.clone(), session.clone());
        let who = (client, session);
        let talk = match door {
            Door::Pinpriq => {
                let door =
                    PinpriqDoor::new(shard.clone(), own, client, self.options.pinpriq, limits);
                Talk::Pinpriq(Exchange::new(shard, limits, peer, who, door))
            }
            Door::Resp => {
                let door = RespDoor::new(shard.clone(), own, client, limits);
                Talk::Resp(Exchange::new(shard, limits, peer, who, door))
            }
        };
        self.clients.insert(client, talk);
        self.go_on(client);
        client
    }

    /// Whether the client's connection is still there.
    #[must_use]
    pub fn is_connected(&self, client: ClientId) -> bool {
        self.clients.contains_key(&client)
    }

    /// Whether anything that the client sends would be read now.
    #[must_use]
    pub fn reads_from(&self, client: ClientId) -> bool {
        let Some(talk) = self.clients.get(&client) else { return false };
        with!(talk, exchange => exchange.wants_read())
    }

    /// Bytes of a client arrive and are read at once. Not to be called while nothing is read from
    /// it, and with no more than 64 KiB at a time.
    pub fn feed(&mut self, client: ClientId, bytes: &[u8]) {
        if let Some(talk) = self.clients.get_mut(&client) {
            with!(talk, exchange => exchange.take_in(bytes));
            self.go_on(client);
        }
    }

    /// The client sends nothing more, but goes on reading.
    pub fn end_input(&mut self, client: ClientId) {
        if let Some(talk) = self.clients.get_mut(&client) {
            with!(talk, exchange => exchange.end_input());
            self.go_on(client);
        }
    }

    /// How many bytes wait for the client.
    #[must_use]
    pub fn waiting_bytes(&self, client: ClientId) -> usize {
        self.session(client).map_or(0, |session| session.outbox.borrow().encoded_bytes())
    }

    /// The client's side takes up to `most` bytes of its answers. Answers how many there were.
    pub fn drain(&mut self, client: ClientId, most: usize, out: &mut Vec<u8>) -> usize {
        let Some(session) = self.session(client) else { return 0 };
        let count = {
            let outbox = session.outbox.borrow();
            let bytes = outbox.unwritten();
            let count = bytes.len().min(most);
            out.extend_from_slice(&bytes[..count]);
            count
        };
        if count > 0 {
            if let Some(talk) = self.clients.get(&client) {
                with!(talk, exchange => exchange.written(count));
            }
            self.go_on(client);
        }
        count
    }

    /// The connection breaks.
    pub fn cut(&mut self, client: ClientId) {
        if let Some(talk) = self.clients.remove(&client) {
            with!(talk, exchange => exchange.leave());
        }
    }

    /// Gives everybody a turn whose bell has rung, until it is quiet.
    pub fn run(&mut self) {
        loop {
            let mut quiet = true;
            if has_rung(self.shard.timer_bell()) {
                self.armed = self.shard.arm_timer();
            }
            let clients: Vec<ClientId> = self.clients.keys().copied().collect();
            for client in clients {
                if self.session(client).is_some_and(|session| session.bell.hush()) {
                    quiet = false;
                    self.go_on(client);
                }
            }
            if quiet {
                return;
            }
        }
    }

    /// The store has something to tell.
    pub fn wake_store(&mut self) {
        self.shard.turn();
    }

    /// When something will be due by itself.
    #[must_use]
    pub fn due(&mut self) -> Option<Timestamp> {
        let frames = self.clients.values_mut();
        let frames = frames.filter_map(|talk| with!(talk, it => it.frame_deadline()));
        frames.chain(self.armed).min()
    }

    /// Does what is due by the clock.
    pub fn tick(&mut self) {
        let now = self.shard.clock().now();
        let late: Vec<ClientId> = self
            .clients
            .iter_mut()
            .filter_map(|(client, talk)| {
                let deadline = with!(talk, exchange => exchange.frame_deadline());
                deadline.filter(|at| *at <= now).map(|_| *client)
            })
            .collect();
        for client in late {
            if let Some(talk) = self.clients.get_mut(&client) {
                with!(talk, exchange => exchange.frame_is_late());
            }
            self.go_on(client);
        }
        if has_rung(self.shard.timer_bell()) {
            self.armed = self.shard.arm_timer();
        }
        if self.armed.is_some_and(|at| at <= now) {
            self.shard.fire_timer();
            self.armed = self.shard.arm_timer();
        }
    }

    /// Has the server stop in order: nobody is read from any more, and what was answered is sent.
    pub fn stop(&mut self) {
        self.stopping = true;
        for client in self.clients.keys().copied().collect::<Vec<_>>() {
            self.go_on(client);
        }
    }

    /// Ends an orderly stop: those who did not take their answers are cut off, and everything is
    /// made durable.
    pub fn finish(&mut self) -> Result<(), StoreError> {
        self.cut_off = true;
        for client in self.clients.keys().copied().collect::<Vec<_>>() {
            self.go_on(client);
        }
        self.shard.finish()
    }

    /// Looks at the engine and its store.
    pub fn inspect<T>(&self, look: impl FnOnce(&Durable) -> T) -> T {
        self.shard.inspect(look)
    }

    fn session(&self, client: ClientId) -> Option<Rc<Session>> {
        self.clients.get(&client).map(|talk| with!(talk, exchange => exchange.session.clone()))
    }

    /// What a connection does until it would have to wait.
    fn go_on(&mut self, client: ClientId) {
        let Some(talk) = self.clients.get_mut(&client) else { return };
        let (stopping, cut_off) = (self.stopping, self.cut_off);
        let over = with!(talk, exchange => go_on(exchange, stopping, cut_off));
        if over {
            self.cut(client);
        }
    }
}

/// Answers whether the connection is over.
fn go_on<D: crate::connection::Door>(
    exchange: &mut Exchange<D>,
    stopping: bool,
    cut_off: bool,
) -> bool {
    loop {
        exchange.session.bell.hush();
        if exchange.session.is_killed() {
            return true;
        }
        let ends = exchange.ends_by_failure();
        exchange.encode();
        if ends || cut_off {
            return true;
        }
        match exchange.proceed(stopping) {
            Step::Again => {}
            Step::Await => return false,
            Step::Over => return true,
        }
    }
}

/// Whether a bell has rung since it was looked at last.
fn has_rung(bell: &Notify) -> bool {
    let rung = pin!(bell.notified());
    rung.poll(&mut Context::from_waker(Waker::noop())) != Poll::Pending
}
