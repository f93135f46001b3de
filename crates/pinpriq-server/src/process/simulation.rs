//! The server without sockets and without a runtime: the caller decides what happens when.
//!
//! Shards, clients, outboxes, doors and letters are those of the server. [`Simulation::run`]
//! replaces the runtime: it only runs those whose bell has rung, so that a forgotten bell is
//! noticed. Bytes go in and out by [`Simulation::feed`] and [`Simulation::drain`], in pieces of any
//! size. Sockets, accepting, lingering after a cut, signals, threads, and the log are not
//! simulated.

mod mind;
pub mod node;

use std::collections::BTreeMap;
use std::future::Future as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use pinpriq_proto::letters::{decode_output, encode_output};
use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::{Durable, StoreError};
use tokio::sync::Notify;

use crate::clients::about::as_guest;
use crate::clients::contacts::Contacts;
use crate::clock::Clock;
use crate::config::{DoorName, Durability, Limits, PinpriqOptions};
use crate::doors::{self, DoorOptions, beanstalkd};
use crate::home::client::{Client, Step};
use crate::home::desk::receive_news;
use crate::host::guest::Guest;
use crate::host::shard::Shard;
use crate::letters::letter::{Errand, Letter, Piece};
use crate::letters::mailbox::{Mailbox, Post};
use crate::session::Session;
use crate::session::kept::Kept;
use crate::sharding::Sharding;

pub use crate::host::shard::{Asked, Witness};

/// The address of all clients.
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// The configuration of a simulated server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What the server says that a reply promises. What it really promises depends on the store.
    pub durability: Durability,
    /// How the pinpriq door settles the open points of its protocol.
    pub pinpriq: PinpriqOptions,
    /// The bounds.
    pub limits: Limits,
}

/// A server whose clients and clock the caller moves.
pub struct Simulation {
    shards: Vec<Place>,
    options: Options,
    clients: BTreeMap<ClientId, (usize, Client)>,
    beanstalkd: Arc<beanstalkd::Shared>,
    kept: Arc<Kept>,
    stopping: bool,
    cut_off: bool,
}

/// One shard and what belongs to its thread.
struct Place {
    shard: Rc<Shard>,
    /// When the timer will fire.
    armed: Option<Timestamp>,
    guests: BTreeMap<ClientId, Guest>,
    /// Whether its letters are kept from it.
    is_deaf: bool,
}

impl Simulation {
    /// Returns a server with one shard over an opened store. The witness, if any, sees what the
    /// engine is asked.
    #[must_use]
    pub fn new(
        durable: Durable,
        options: Options,
        clock: &Rc<dyn Clock>,
        witness: Option<Rc<dyn Witness>>,
    ) -> Self {
        Self::of_shards(vec![(durable, witness)], options, clock)
    }

    /// Returns a server with a shard over each of these stores, each with its witness if it has
    /// one.
    #[must_use]
    pub fn of_shards(
        opened: Vec<(Durable, Option<Rc<dyn Witness>>)>,
        options: Options,
        clock: &Rc<dyn Clock>,
    ) -> Self {
        let boxes: Arc<[Mailbox]> = opened.iter().map(|_| Mailbox::default()).collect();
        let contacts = Arc::<Contacts>::default();
        let beanstalkd = Arc::<beanstalkd::Shared>::default();
        let shards = opened.into_iter().enumerate().map(|(own, (mut durable, witness))| {
            if witness.is_none() {
                // A witness compares with a model that knows of no connections.
                let tubes = beanstalkd.clone();
                durable.keep_figures_while(Arc::new(move |tube| tubes.has(tube)));
            }
            let post = (boxes.len() > 1)
                .then(|| Post::new(own, Sharding::Hashed(boxes.len()), boxes.clone()));
            let bell = Arc::new(Notify::new());
            let with_others = (post, contacts.clone());
            let shard = Shard::new(durable, options.durability, clock.clone(), bell, with_others);
            if let Some(witness) = witness {
                shard.watch(witness);
            }
            let armed = shard.arm_timer();
            Place { shard, armed, guests: BTreeMap::new(), is_deaf: false }
        });
        Self {
            shards: shards.collect(),
            options,
            clients: BTreeMap::new(),
            beanstalkd,
            kept: Arc::new(Kept::new(&options.limits)),
            stopping: false,
            cut_off: false,
        }
    }

    /// Connects a client to the first shard.
    pub fn connect(&mut self, door: DoorName) -> ClientId {
        self.connect_to(0, door)
    }

    /// Connects a client to this shard.
    pub fn connect_to(&mut self, home: usize, door: DoorName) -> ClientId {
        let (client, session) = self.shards[home].shard.connect(door, PEER);
        let begun = self.begin(home, (client, session), door);
        self.clients.insert(client, (home, begun));
        self.go_on(client);
        client
    }

    fn begin(&self, home: usize, who: (ClientId, Rc<Session>), door: DoorName) -> Client {
        let Options { pinpriq, limits, .. } = self.options;
        let contacts = self.shards[home].shard.contacts().clone();
        let (beanstalkd, kept) = (self.beanstalkd.clone(), self.kept.clone());
        let (roster, audit) = (None, None);
        let options = DoorOptions { pinpriq, limits, contacts, roster, audit, beanstalkd, kept };
        doors::begin(self.shards[home].shard.clone(), who, (door, PEER), &options)
    }

    /// Returns the client that a witness sees under this name. A client whose connection another
    /// shard has is seen under another name.
    #[must_use]
    pub fn client_at_home(seen: ClientId) -> ClientId {
        ClientId(seen.0 & !as_guest(ClientId(0)).0)
    }

    /// Whether the client's connection is still there.
    #[must_use]
    pub fn is_connected(&self, client: ClientId) -> bool {
        self.clients.contains_key(&client)
    }

    /// Whether bytes that the client sends would be read now.
    #[must_use]
    pub fn reads_from(&self, client: ClientId) -> bool {
        let Some((_, it)) = self.clients.get(&client) else { return false };
        it.wants_read()
    }

    /// Delivers bytes of a client, which are read at once. Must not be called while nothing is read
    /// from the client, nor with more than 64 KiB at a time.
    pub fn feed(&mut self, client: ClientId, bytes: &[u8]) {
        if let Some((_, it)) = self.clients.get_mut(&client) {
            it.take_in(bytes);
            self.go_on(client);
        }
    }

    /// Ends the client's sending side. The client still reads.
    pub fn end_input(&mut self, client: ClientId) {
        if let Some((_, it)) = self.clients.get_mut(&client) {
            it.end_input();
            self.go_on(client);
        }
    }

    /// Returns the number of bytes that wait for the client.
    #[must_use]
    pub fn waiting_bytes(&self, client: ClientId) -> usize {
        self.session(client).map_or(0, |session| session.outbox.borrow().encoded_bytes())
    }

    /// Moves up to `most` bytes of replies to the client's side. Returns their number.
    pub fn drain(&mut self, client: ClientId, most: usize, out: &mut Vec<u8>) -> usize {
        let Some((_, it)) = self.clients.get(&client) else { return 0 };
        if it.holds_back() {
            return 0;
        }
        let session = it.session.clone();
        let count = {
            let outbox = session.outbox.borrow();
            let bytes = outbox.unwritten();
            let count = bytes.len().min(most);
            out.extend_from_slice(&bytes[..count]);
            count
        };
        if count > 0 {
            it.written(count);
            self.go_on(client);
        }
        count
    }

    /// Breaks the connection.
    pub fn cut(&mut self, client: ClientId) {
        if let Some((_, it)) = self.clients.remove(&client) {
            it.leave();
        }
    }

    /// Begins or stops to keep letters from a shard, as if its thread had no time.
    pub fn set_deaf(&mut self, shard: usize, is_deaf: bool) {
        self.shards[shard].is_deaf = is_deaf;
    }

    /// Runs everything whose bell has rung, until all is quiet.
    pub fn run(&mut self) {
        loop {
            let mut quiet = true;
            for at in 0..self.shards.len() {
                let place = &mut self.shards[at];
                if has_rung(place.shard.timer_bell()) {
                    place.armed = place.shard.arm_timer();
                }
                quiet &= !self.read_letters(at);
            }
            let clients: Vec<ClientId> = self.clients.keys().copied().collect();
            for client in clients {
                if self.session(client).is_some_and(|session| session.bell.hush()) {
                    quiet = false;
                    self.go_on(client);
                }
            }
            for place in &mut self.shards {
                quiet &= !place.entertain();
                if let Some(post) = place.shard.post() {
                    quiet &= !post.bell().hush();
                    post.send();
                }
            }
            if quiet {
                return;
            }
        }
    }

    /// Reads the letters to a shard. Returns whether there were any.
    fn read_letters(&mut self, at: usize) -> bool {
        let place = &mut self.shards[at];
        let Some(post) = place.shard.post().filter(|_| !place.is_deaf) else { return false };
        if !has_rung(post.mailbox().bell()) {
            return false;
        }
        for letter in post.mailbox().empty() {
            match letter {
                // There are no sockets, no threads that ask, and no other nodes.
                Letter::Arrival(_)
                | Letter::Inquiry(..)
                | Letter::Host { .. }
                | Letter::HomeGone(_)
                | Letter::UsersChanged => {}
                Letter::News { from, client, mut news, .. } => {
                    news.pieces = news.pieces.into_iter().map(through_bytes).collect();
                    receive_news(&place.shard, client, from, news);
                }
                Letter::Errand { home, client, errand: Errand::Open(manners) } => {
                    let (shard, limits) = (place.shard.clone(), self.options.limits);
                    let guest = Guest::receive(shard, (home, client), limits, manners);
                    place.guests.insert(client, guest);
                }
                Letter::Errand { client, errand, .. } => {
                    if let Some(guest) = place.guests.get_mut(&client) {
                        guest.take(errand);
                    }
                }
            }
        }
        true
    }

    /// Wakes this shard because its store has something to report.
    pub fn wake_store(&mut self, shard: usize) {
        // The call that learns of the end of a write begins to gather. By the next one, what was to
        // be gathered has come.
        self.shards[shard].shard.end_gathering();
    }

    /// Returns when something will be due by itself.
    #[must_use]
    pub fn due(&mut self) -> Option<Timestamp> {
        let frames = self.clients.values_mut();
        let frames = frames.filter_map(|(_, it)| it.frame_deadline());
        frames.chain(self.shards.iter().filter_map(|place| place.armed)).min()
    }

    /// Does what is due by the clock.
    pub fn tick(&mut self) {
        let now = self.shards[0].shard.clock().now();
        let late: Vec<ClientId> = self
            .clients
            .iter_mut()
            .filter_map(|(client, (_, it))| {
                let deadline = it.frame_deadline();
                deadline.filter(|at| *at <= now).map(|_| *client)
            })
            .collect();
        for client in late {
            if let Some((_, it)) = self.clients.get_mut(&client) {
                it.frame_is_late();
            }
            self.go_on(client);
        }
        for place in &mut self.shards {
            if has_rung(place.shard.timer_bell()) {
                place.armed = place.shard.arm_timer();
            }
            if place.armed.is_some_and(|at| at <= now) {
                place.shard.fire_timer();
                place.armed = place.shard.arm_timer();
            }
        }
    }

    /// Does what SIGUSR2 does: the beanstalkd door accepts no more jobs, or accepts them again.
    pub fn drain_jobs(&self) {
        self.beanstalkd.turn_draining();
    }

    /// Starts an orderly stop: nothing more is read from clients, and replies are sent.
    pub fn stop(&mut self) {
        self.stopping = true;
        for client in self.clients.keys().copied().collect::<Vec<_>>() {
            self.go_on(client);
        }
    }

    /// Ends an orderly stop: clients that did not read their replies are cut off, and everything is
    /// made durable.
    pub fn finish(&mut self) -> Result<(), StoreError> {
        self.cut_off = true;
        for client in self.clients.keys().copied().collect::<Vec<_>>() {
            self.go_on(client);
        }
        self.run();
        self.shards.iter().try_for_each(|place| {
            assert!(place.shard.is_deserted(), "guests outlive their connections");
            place.shard.finish()
        })
    }

    /// Calls `look` with the engine of this shard and its store.
    pub fn inspect<T>(&self, shard: usize, look: impl FnOnce(&Durable) -> T) -> T {
        self.shards[shard].shard.inspect(look)
    }

    fn session(&self, client: ClientId) -> Option<Rc<Session>> {
        let (_, it) = self.clients.get(&client)?;
        Some(it.session.clone())
    }

    /// Does what a connection would do until it has to wait.
    fn go_on(&mut self, client: ClientId) {
        let Some((_, it)) = self.clients.get_mut(&client) else { return };
        let (stopping, cut_off) = (self.stopping, self.cut_off);
        match go_on(it, stopping, cut_off) {
            Step::Move(to) => self.move_to(to, client),
            Step::Over => self.cut(client),
            Step::Again | Step::Await => {}
        }
    }

    /// Moves a connection to another shard.
    fn move_to(&mut self, to: usize, client: ClientId) {
        let Some((_, it)) = self.clients.remove(&client) else { return };
        let session = it.session.clone();
        let door = session.about.borrow().door;
        let input = it.move_out();
        let (about, dialect) = (session.about.take(), session.dialect.get());
        let session = self.shards[to].shard.adopt(client, about, dialect);
        let mut begun = self.begin(to, (client, session), door);
        begun.take_over(&input);
        self.clients.insert(client, (to, begun));
        self.go_on(client);
    }
}

impl Place {
    /// Runs each guest whose bell has rung. Returns whether there were any.
    fn entertain(&mut self) -> bool {
        let mut anybody = false;
        self.guests.retain(|_, guest| {
            let has_rung = guest.session().bell.hush();
            anybody |= has_rung;
            let has_gone = has_rung && guest.go_on();
            if has_gone {
                guest.leave();
            }
            !has_gone
        });
        anybody
    }
}

/// Returns the next step once nothing more can be done.
fn go_on(client: &mut Client, stopping: bool, cut_off: bool) -> Step {
    loop {
        client.session.bell.hush();
        if client.session.killed().is_some() {
            return Step::Over;
        }
        let ends = client.ends_by_failure();
        client.encode();
        if ends || cut_off {
            return Step::Over;
        }
        match client.proceed(stopping) {
            Step::Again => {}
            step => return step,
        }
    }
}

/// Passes an output through bytes, as between shards on two machines.
///
/// An output with payloads on a disk cannot travel like this yet, and is passed as it is. So is an
/// output with copies of a publication: a copy that goes back shares its payload with the others
/// only if it is the same in memory.
fn through_bytes(piece: Piece) -> Piece {
    let Piece::Output(mut output, holds) = piece else { return piece };
    if !holds.is_empty() || output.tasks_mut().iter().any(|task| task.lane.is_some()) {
        return Piece::Output(output, holds);
    }
    let mut bytes = Vec::new();
    encode_output(&output, &mut bytes);
    match decode_output(&bytes) {
        Ok(decoded) => {
            assert_eq!(decoded, output, "an output is what it was after its way");
            Piece::Output(decoded, holds)
        }
        Err(malformed) => panic!("{output:?} does not come back: {malformed}"),
    }
}

/// Whether a bell has rung since it was last checked.
fn has_rung(bell: &Notify) -> bool {
    let rung = pin!(bell.notified());
    rung.poll(&mut Context::from_waker(Waker::noop())) != Poll::Pending
}
