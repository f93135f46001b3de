//! A node of a cluster without sockets, threads and a runtime: the caller moves its clocks, carries
//! what it says to other nodes, and decides when anything happens.
//!
//! The home, the hosts, the exchange between nodes, the doors, and what decides about shards are
//! those of the server.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinpriq_cluster::ownership::{HostEnd, Order, Ownership, OwnershipOptions};
use pinpriq_cluster::{Addresses, Counters, Instance, Meta, NodeRecord, Registry, View};
use pinpriq_proto::limits::Limits as EngineLimits;
use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::durable::{Durable, Loading};
use pinpriq_store::ledger::{Ledger, LedgerOptions, LedgerStore, Term, Watermark, Window, Writer};
use pinpriq_store::shards::first_number;
use pinpriq_store::{MemoryStore, StoreError};
use tokio::sync::Notify;

use super::mind::{Mind, Thought};
use super::{Options, PEER, go_on, has_rung};
use crate::calendars::Calendars;
use crate::clock::Clock;
use crate::cluster::clocks::ClockWatch;
use crate::cluster::exchange::{Carrier, Exchange};
use crate::cluster::memory::Memory;
use crate::cluster::terms::{end_of, lowest_term_at, window_ms};
use crate::config::{DoorName, Durability};
use crate::doors::{self, DoorOptions};
use crate::error::ServeError;
use crate::home::client::{Client, Step};
use crate::host::guest::Guest;
use crate::host::shard::Shard;
use crate::letters::letter::{Errand, Home, HostNews, Letter};
use crate::letters::mailbox::Post;
use crate::process::serving::Common;
use crate::sharding::Sharding;
use crate::stop::Stop;

pub use super::mind::Remembers;
pub use crate::cluster::exchange::End;

/// What a node is made of.
pub struct Parts {
    /// Its name.
    pub name: String,
    /// Where it says that it listens.
    pub addresses: Addresses,
    /// Which run of it.
    pub instance: Instance,
    /// Draws instances that were not drawn before.
    pub draw: Box<dyn FnMut() -> Instance + Send>,
    /// Its registry.
    pub registry: Box<dyn Registry>,
    /// Opens the log of a shard.
    pub ledger: Box<dyn Fn(u16, Writer) -> Box<dyn Ledger>>,
    /// Its wall clock and its time line. Each host has a time line of its own from this moment on.
    pub clock: Box<dyn Fn(Timestamp) -> Rc<dyn Clock>>,
    /// What its wall clock says.
    pub wall: Box<dyn Fn() -> Timestamp>,
    /// Its steady clock, in milliseconds.
    pub steady_ms: Arc<AtomicU64>,
    /// How many shards the cluster has.
    pub shards: u16,
    /// The time to live of its session.
    pub session_ttl_ms: u64,
    /// From which it draws.
    pub seed: u64,
    /// What it remembers its cluster with, if it does.
    pub remembers: Option<Remembers>,
}

/// See the start of this file.
pub struct Node {
    parts: Parts,
    options: Options,
    common: Arc<Common>,
    home: Rc<Shard>,
    exchange: Rc<Exchange>,
    ownership: Ownership,
    hosts: BTreeMap<usize, Host>,
    /// The highest term that each shard had here.
    terms: BTreeMap<usize, u64>,
    clients: BTreeMap<ClientId, Client>,
    bodies: Queue<(End, Vec<u8>)>,
    heard: Queue<(usize, HostNews)>,
    /// The instances of the other nodes, as the registry shows them.
    peers: Vec<Instance>,
    gave_up: Option<String>,
    clocks: ClockWatch,
    mind: Option<Mind>,
    /// The host whose failure is faced, and how it has ended.
    faced: Option<(u16, HostEnd)>,
    /// What was handled last of what the registry shows, and when.
    heeded: (Option<Meta>, u64),
    /// Why nothing is served.
    halted: Option<String>,
    /// What was decided and not done yet.
    orders: VecDeque<Order>,
    ended: Option<ServeError>,
}

/// A shard that is served.
struct Host {
    shard: Rc<Shard>,
    armed: Option<Timestamp>,
    guests: BTreeMap<(Home, ClientId), Guest>,
    is_released: bool,
}

struct Bodies(Queue<(End, Vec<u8>)>);

/// A queue with an end at both sides.
type Queue<T> = Rc<RefCell<VecDeque<T>>>;

impl Carrier for Bodies {
    fn send(&self, to: End, body: &[u8]) {
        self.0.borrow_mut().push_back((to, body.to_vec()));
    }
}

impl Node {
    /// Starts a node that serves nothing yet.
    ///
    /// # Panics
    /// If it cannot start, which is a bug.
    #[must_use]
    pub fn start(mut parts: Parts, options: Options) -> Self {
        let shards = usize::from(parts.shards);
        let common = Common::of_cluster(shards, Stop::default(), <_>::default());
        let now = (parts.wall)();
        let durable = empty_engine(now, parts.seed);
        let post = Post::new(shards, Sharding::Slotted(shards), common.boxes.clone());
        let home = Shard::new(
            durable,
            options.durability,
            (parts.clock)(now),
            Arc::new(Notify::new()),
            (Some(post.with_routes()), Arc::default()),
        );
        let bodies = Queue::default();
        let heard = Queue::default();
        let tell = {
            let heard = heard.clone();
            move |shard: usize, news: &HostNews| {
                heard.borrow_mut().push_back((shard, news.clone()));
            }
        };
        let carrier = Box::new(Bodies(bodies.clone()));
        let exchange = Exchange::new(home.clone(), carrier, Box::new(tell));
        let (mind, ended) = mind(&parts);
        let record = NodeRecord {
            instance: parts.instance,
            name: parts.name.clone(),
            data: mind.as_ref().map_or(0, Mind::data),
            addresses: parts.addresses.clone(),
            ..NodeRecord::default()
        };
        let ownership_options = OwnershipOptions::new(parts.session_ttl_ms, parts.shards);
        let registry = std::mem::replace(&mut parts.registry, Box::new(Nothing));
        let draw = std::mem::replace(&mut parts.draw, Box::new(Instance::default));
        let ownership = Ownership::new(registry, record, ownership_options, draw);
        let clocks = ClockWatch::new(parts.session_ttl_ms);
        Self {
            parts,
            options,
            common,
            home,
            exchange,
            ownership,
            hosts: BTreeMap::new(),
            terms: BTreeMap::new(),
            clients: BTreeMap::new(),
            bodies,
            heard,
            peers: Vec::new(),
            gave_up: None,
            clocks,
            mind,
            faced: None,
            heeded: (None, 0),
            halted: None,
            orders: VecDeque::new(),
            ended,
        }
    }

    /// Whether it has found its cluster, so that clients may connect.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.ended.is_none() && self.mind.as_ref().is_none_or(|it| !it.opens())
    }

    /// Why the process has ended by itself, if it has.
    #[must_use]
    pub const fn ended(&self) -> Option<&ServeError> {
        self.ended.as_ref()
    }

    /// Why it serves nothing, if the engine was rolled back.
    #[must_use]
    pub fn halted(&self) -> Option<&str> {
        self.halted.as_deref()
    }

    /// Writes the watermarks that are due to its data directory.
    pub fn write_watermarks(&self) {
        if let Some(watermarks) = self.mind.as_ref().and_then(Mind::watermarks) {
            watermarks.write_due();
        }
    }

    /// The watermark of a log that a crash of the machine leaves. None if it was not read before.
    #[must_use]
    pub fn kept_watermark(&self, shard: u16) -> Option<Watermark> {
        self.mind.as_ref().and_then(Mind::watermarks).and_then(|it| it.kept(shard))
    }

    /// Which run of the node this is, as it tells the registry.
    #[must_use]
    pub fn instance(&self) -> Instance {
        self.ownership.node().instance
    }

    /// The other nodes, as the registry shows them. Links should lead to these.
    #[must_use]
    pub fn peers(&self) -> &[Instance] {
        &self.peers
    }

    /// The shards that are served, with their terms.
    #[must_use]
    pub fn serves(&self) -> Vec<(usize, u64)> {
        let term = |host: &Host| host.shard.inspect(|it| it.engine().header().incarnation);
        self.hosts.iter().map(|(shard, host)| (*shard, term(host))).collect()
    }

    /// Whether a shard that is served may say anything at the moment.
    #[must_use]
    pub fn may_speak(&self, shard: usize) -> bool {
        self.hosts.get(&shard).is_some_and(|host| {
            host.shard.inspect(|it| !it.is_suspended() && it.failure().is_none())
        })
    }

    /// Calls `look` with the engine of a shard that is served, and its store.
    pub fn inspect<T>(&self, shard: usize, look: impl FnOnce(&Durable) -> T) -> Option<T> {
        self.hosts.get(&shard).map(|host| host.shard.inspect(look))
    }

    /// What the registry has shown last.
    #[must_use]
    pub const fn view(&self) -> &View {
        self.ownership.view()
    }

    /// What has happened to its shards so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.ownership.counters()
    }

    /// Why the process has to end, if it has to.
    #[must_use]
    pub fn gave_up(&self) -> Option<&str> {
        self.gave_up.as_deref()
    }

    /// Begins to hand everything over, for an orderly end.
    pub fn drain(&mut self) {
        self.ownership.drain();
    }

    /// Whether everything was handed over.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.ownership.is_drained() && self.hosts.is_empty()
    }

    /// Ends the session, after everything was handed over.
    pub fn leave(&mut self) {
        self.ownership.leave();
    }

    /// Connects a client.
    pub fn connect(&mut self, door: DoorName) -> ClientId {
        let (client, session) = self.home.connect(door, PEER);
        let Options { pinpriq, limits, .. } = self.options;
        let contacts = self.home.contacts().clone();
        let (beanstalkd, roster, audit) = (Arc::default(), None, None);
        let kept = Arc::default();
        let options = DoorOptions { pinpriq, limits, contacts, roster, audit, beanstalkd, kept };
        let who = (client, session);
        let begun = doors::begin(self.home.clone(), who, (door, PEER), &options);
        self.clients.insert(client, begun);
        self.go_on(client);
        client
    }

    /// Whether the client's connection is still there.
    #[must_use]
    pub fn is_connected(&self, client: ClientId) -> bool {
        self.clients.contains_key(&client)
    }

    /// Whether bytes that the client sends would be read now.
    #[must_use]
    pub fn reads_from(&self, client: ClientId) -> bool {
        self.clients.get(&client).is_some_and(Client::wants_read)
    }

    /// Delivers bytes of a client, which are read at once. Must not be called while nothing is read
    /// from the client, nor with more than 64 KiB at a time.
    pub fn feed(&mut self, client: ClientId, bytes: &[u8]) {
        if let Some(it) = self.clients.get_mut(&client) {
            it.take_in(bytes);
            self.go_on(client);
        }
    }

    /// Moves the bytes of replies to the client's side.
    pub fn drain_replies(&mut self, client: ClientId, out: &mut Vec<u8>) {
        let Some(it) = self.clients.get(&client) else { return };
        let count = {
            let outbox = it.session.outbox.borrow();
            out.extend_from_slice(outbox.unwritten());
            outbox.unwritten().len()
        };
        if count > 0 {
            it.written(count);
            self.go_on(client);
        }
    }

    /// Breaks the connection of a client.
    pub fn cut(&mut self, client: ClientId) {
        if let Some(it) = self.clients.remove(&client) {
            it.leave();
        }
    }

    /// Returns what is to be carried to other nodes, in order.
    pub fn take_bodies(&mut self) -> Vec<(End, Vec<u8>)> {
        self.bodies.borrow_mut().drain(..).collect()
    }

    /// Hears a body. Returns false if the link must end.
    pub fn hear(&mut self, from: End, body: &[u8]) -> bool {
        self.exchange.hear(from, body)
    }

    /// Notes that a link to another node is there.
    pub fn link_up(&mut self, node: Instance) {
        self.exchange.link_up(node.0);
    }

    /// Notes that a link to another node has ended.
    pub fn link_down(&mut self, node: Instance) {
        self.forget(End::To(node.0));
        self.exchange.link_down(node.0);
    }

    /// Notes a link from another node.
    pub fn asker_came(&mut self, link: u64) {
        self.exchange.asker_came(link);
    }

    /// Notes that a link from another node has ended.
    pub fn asker_gone(&mut self, link: u64) {
        self.forget(End::From(link));
        self.exchange.asker_gone(link);
    }

    /// What was to be carried over a link that has ended is lost. The next link does not carry it.
    fn forget(&self, end: End) {
        self.bodies.borrow_mut().retain(|(to, _)| *to != end);
    }

    /// Does everything that is due, and everything that follows.
    pub fn run(&mut self) {
        self.tick();
        for _ in 0..TURNS_MAX {
            let mut quiet = !self.decide();
            quiet &= !self.read_home();
            let shards: Vec<usize> = self.hosts.keys().copied().collect();
            for shard in shards {
                quiet &= !self.run_host(shard);
            }
            let clients: Vec<ClientId> = self.clients.keys().copied().collect();
            for client in clients {
                let session = self.clients.get(&client).map(|it| it.session.clone());
                if session.is_some_and(|session| session.bell.hush()) {
                    quiet = false;
                    self.go_on(client);
                }
            }
            if let Some(post) = self.home.post() {
                quiet &= !post.bell().hush();
                post.send();
                self.exchange.send();
            }
            if quiet {
                return;
            }
        }
        panic!("a node does not come to rest");
    }

    /// Does what the clock says is due, and wakes every store.
    fn tick(&mut self) {
        for host in self.hosts.values_mut() {
            host.shard.turn();
            if has_rung(host.shard.kept_bell()) {
                host.shard.ring_all();
            }
            host.armed = host.shard.arm_timer();
            if host.armed.is_some_and(|at| at <= host.shard.clock().now()) {
                host.shard.fire_timer();
                host.armed = host.shard.arm_timer();
            }
        }
        if let Some(why) = &self.halted {
            self.exchange.refuse_waiting(why);
        }
        let now = self.parts.steady_ms.load(Ordering::Relaxed);
        self.exchange.give_up_waiting(self.ownership.registry_silent_for(now));
        self.clocks.look(now, &self.exchange, &mut self.ownership);
    }

    /// Decides about shards. Returns whether anything was to be done.
    fn decide(&mut self) -> bool {
        if !self.settle() {
            return false;
        }
        let mut busy = self.obey();
        loop {
            let Some((shard, news)) = self.heard.borrow_mut().pop_front() else { break };
            busy = true;
            let Ok(number) = u16::try_from(shard) else { continue };
            match news {
                HostNews::Serves(term) => self.ownership.note_serving(number, term),
                HostNews::Released => self.ownership.note_released(number),
                HostNews::Failed(failure) => {
                    let end = end_of(&failure);
                    self.faced = Some((number, end));
                    if let Some(mind) = &mut self.mind {
                        mind.face(number, failure);
                    }
                    if !self.settle() {
                        return true;
                    }
                }
            }
        }
        for (shard, host) in &self.hosts {
            let Ok(shard) = u16::try_from(*shard) else { continue };
            self.ownership.note_suspended(shard, host.shard.inspect(Durable::is_suspended));
        }
        let now = self.parts.steady_ms.load(Ordering::Relaxed);
        self.orders.extend(self.ownership.turn(now));
        if let Some(mind) = &mut self.mind {
            let meta = &self.ownership.view().meta;
            let (heeded, at) = &self.heeded;
            if heeded != meta || (meta.is_none() && *at < now) {
                self.heeded = (meta.clone(), now);
                mind.heed(meta.clone(), self.ownership.has_session());
                if !self.settle() {
                    return busy;
                }
            }
        }
        self.obey() || busy
    }

    /// Goes on with what it thinks about. Returns false while it thinks, and once it has ended.
    fn settle(&mut self) -> bool {
        if self.ended.is_some() {
            return false;
        }
        if let Some(mind) = &mut self.mind
            && mind.thinks()
        {
            match mind.go_on() {
                None => return false,
                Some(Ok(Thought::Opened | Thought::Faced)) => {}
                Some(Ok(Thought::Heeded(why))) => self.halted = why,
                Some(Err(error)) => {
                    self.ended = Some(error);
                    return false;
                }
            }
        }
        if let Some((shard, end)) = self.faced.take() {
            self.ownership.note_failed(shard, end);
        }
        true
    }

    /// Does what was decided. Returns whether there was anything.
    fn obey(&mut self) -> bool {
        let mut busy = false;
        while let Some(order) = self.orders.pop_front() {
            busy = true;
            match order {
                Order::Host(shard) => self.start_host(usize::from(shard)),
                Order::Release(shard) => {
                    if let Some(host) = self.hosts.get_mut(&usize::from(shard)) {
                        host.is_released = true;
                        host.guests.values_mut().for_each(Guest::release);
                        host.shard.turn();
                    }
                }
                Order::Resume(_) => {}
                Order::Refresh => {
                    let own = self.ownership.node().instance;
                    let nodes = self.ownership.view().nodes.iter().map(|node| node.instance);
                    self.peers = nodes.filter(|node| *node != own).collect();
                    if let Some(owners) = self.exchange.owners() {
                        owners.note_nodes(self.ownership.node(), &self.ownership.view().nodes);
                    }
                }
                Order::GiveUp(why) => self.gave_up = Some(why),
            }
        }
        busy
    }

    fn start_host(&mut self, shard: usize) {
        let news = match self.load(shard) {
            Ok(durable) => {
                let term = durable.engine().header().incarnation;
                let clock = (self.parts.clock)(durable.engine().header().now);
                let post = Post::new(
                    shard,
                    Sharding::Slotted(usize::from(self.parts.shards)),
                    self.common.boxes.clone(),
                );
                let others = (Some(post), self.home.contacts().clone());
                let bell = Arc::new(Notify::new());
                let host = Shard::new(durable, Durability::Sync, clock, bell, others);
                let armed = host.arm_timer();
                let guests = BTreeMap::new();
                self.hosts.insert(shard, Host { shard: host, armed, guests, is_released: false });
                self.terms.insert(shard, term);
                HostNews::Serves(term)
            }
            Err(failure) => HostNews::Failed(failure),
        };
        self.tell_home(shard, news);
    }

    fn load(&self, shard: usize) -> Result<Durable, StoreError> {
        let number = u16::try_from(shard).unwrap_or_default();
        let ledger = (self.parts.ledger)(number, Writer(self.parts.instance.0));
        let steady = self.parts.steady_ms.clone();
        let window = Window {
            ms: window_ms(self.parts.session_ttl_ms),
            steady: Arc::new(move || steady.load(Ordering::Relaxed)),
        };
        let memory = self.mind.as_ref().and_then(Mind::memory);
        let lowest = |memory: &Memory| lowest_term_at(memory.generation(), (self.parts.wall)());
        let at_least = Term(self.terms.get(&shard).map_or(1, |term| term + 1));
        let options = LedgerOptions {
            at_least: memory.map_or(Term(0), lowest).max(at_least),
            slack_bytes: 16 << 10,
            numbers_after: first_number(shard),
            window: Some(window),
            watermark: memory.and_then(|it| it.watermarks().last(number)),
        };
        let mut store = LedgerStore::new(ledger, options);
        if let Some(memory) = memory {
            store = store.keeping(memory.watermarks().keeper(number, Arc::new(|| ())));
        }
        let store = Box::new(store);
        let loading = Loading::load(store, EngineLimits::default(), self.parts.seed)?;
        let loading = loading.with_calendars(Arc::new(Calendars::default()));
        let start = loading.moment((self.parts.wall)(), None);
        let incarnation = loading.loaded().header.incarnation + 1;
        loading.begin(start, incarnation)
    }

    fn tell_home(&self, shard: usize, news: HostNews) {
        let home = self.common.sharding.shards();
        self.common.boxes[home].put(&mut vec![Letter::Host { shard, news }]);
    }

    /// Reads the letters to the home. Returns whether there were any.
    fn read_home(&self) -> bool {
        let mailbox = &self.common.boxes[self.common.sharding.shards()];
        if !has_rung(mailbox.bell()) {
            return false;
        }
        for letter in mailbox.empty() {
            match letter {
                Letter::News { from, home: Home::Place(_), client, news } => {
                    self.exchange.hear_news(from, client, news);
                }
                Letter::News { from, home: Home::Link(link), client, news } => {
                    self.exchange.send_news(link, from, client, news);
                }
                Letter::Host { shard, news } => self.exchange.hear_host(shard, &news),
                _ => {}
            }
        }
        true
    }

    /// Runs a host until nothing is to be done at once. Returns whether there was anything.
    fn run_host(&mut self, shard: usize) -> bool {
        let Some(host) = self.hosts.get_mut(&shard) else { return false };
        let mut busy = host.read(&self.common, self.options);
        busy |= host.entertain();
        if has_rung(host.shard.timer_bell()) {
            host.armed = host.shard.arm_timer();
        }
        if let Some(post) = host.shard.post() {
            busy |= post.bell().hush();
            post.send();
        }
        if let Some(news) = host.end() {
            self.hosts.remove(&shard);
            self.tell_home(shard, news);
            busy = true;
        }
        busy
    }

    fn go_on(&mut self, client: ClientId) {
        let Some(it) = self.clients.get_mut(&client) else { return };
        if let Step::Over | Step::Move(_) = go_on(it, false, false) {
            self.cut(client);
        }
    }
}

/// How often a node may have more to do at one moment.
const TURNS_MAX: u32 = 100_000;

impl Host {
    fn read(&mut self, common: &Common, options: Options) -> bool {
        let own = self.shard.own();
        // What comes after a release is for the next owner.
        if self.is_released || !has_rung(common.boxes[own].bell()) {
            return false;
        }
        for letter in common.boxes[own].empty() {
            match letter {
                Letter::Errand { home, client, errand: Errand::Open(manners) } => {
                    let shard = self.shard.clone();
                    let guest = Guest::receive(shard, (home, client), options.limits, manners);
                    self.guests.insert((home, client), guest);
                }
                Letter::Errand { home, client, errand } => {
                    if let Some(guest) = self.guests.get_mut(&(home, client)) {
                        guest.take(errand);
                    }
                }
                Letter::HomeGone(gone) => {
                    let of_home = self.guests.iter_mut().filter(|((home, _), _)| *home == gone);
                    of_home.for_each(|(_, guest)| guest.vanish());
                }
                _ => {}
            }
        }
        true
    }

    fn entertain(&mut self) -> bool {
        let mut busy = false;
        self.guests.retain(|_, guest| {
            let has_rung = guest.session().bell.hush();
            busy |= has_rung;
            let has_gone = has_rung && guest.go_on();
            if has_gone {
                guest.leave();
            }
            !has_gone
        });
        busy
    }

    /// Returns how it has ended, if it has.
    fn end(&self) -> Option<HostNews> {
        if let Some(failure) = self.shard.store_failure() {
            return Some(HostNews::Failed(failure));
        }
        if !self.is_released || !self.guests.is_empty() {
            return None;
        }
        Some(self.shard.finish().map_or_else(HostNews::Failed, |()| HostNews::Released))
    }
}

/// Begins to find the cluster that a node belongs to, if it remembers any.
fn mind(parts: &Parts) -> (Option<Mind>, Option<ServeError>) {
    let Some(remembers) = &parts.remembers else { return (None, None) };
    let who = (parts.name.clone(), parts.instance.0);
    match Mind::begin(remembers, who, parts.shards, parts.session_ttl_ms) {
        Ok(mind) => (Some(mind), None),
        Err(error) => (None, Some(error)),
    }
}

/// Stands for what was moved elsewhere.
struct Nothing;

impl Registry for Nothing {
    fn start(&mut self, _: pinpriq_cluster::RegistryCall) {}

    fn poll(&mut self) -> Option<pinpriq_cluster::RegistryAnswer> {
        None
    }
}

fn empty_engine(now: Timestamp, seed: u64) -> Durable {
    let store = Box::new(MemoryStore::after(now.ms()));
    let begun = Loading::load(store, EngineLimits::default(), seed).and_then(|loading| {
        let incarnation = loading.loaded().header.incarnation + 1;
        loading.begin(now, incarnation)
    });
    match begun {
        Ok(durable) => durable,
        Err(failure) => panic!("an engine without a disk cannot begin: {failure}"),
    }
}
