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
use pinpriq_server::calendars::Calendars;
use pinpriq_server::clock::Clock;
use pinpriq_server::config::{Config, DoorName, Durability};
use pinpriq_server::parts::{
    Carrier, Client, ClockWatch, Common, Company, Exchange, HostNews, NodeMemory, Place, Shard,
    Step, end_of, has_rung, lowest_term_at, window_ms,
};
use pinpriq_server::{ServeError, Stop};
use pinpriq_store::StoreError;
use pinpriq_store::durable::{Durable, Loading};
use pinpriq_store::ledger::{Ledger, LedgerOptions, LedgerStore, Term, Watermark, Window, Writer};
use pinpriq_store::shards::first_number;

use super::mind::{Mind, Thought};
use super::{Driven, PEER, run_until_blocked, take_bytes};

pub use super::mind::Remembers;
pub use pinpriq_server::parts::End;

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
    /// That of its hosts.
    config: Config,
    common: Arc<Common>,
    home: Place,
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
    driven: Driven,
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
    pub fn start(mut parts: Parts, config: Config) -> Self {
        let shards = usize::from(parts.shards);
        let common = Common::of_cluster(shards, Stop::default(), Company::of(&config));
        let now = (parts.wall)();
        let with = (&config, common.clone());
        let home = match Place::behind_shards(with, ((parts.clock)(now), now), parts.seed) {
            Ok(home) => home,
            Err(failure) => panic!("an engine without a disk cannot begin: {failure}"),
        };
        let bodies = Queue::default();
        let heard = Queue::default();
        let tell = {
            let heard = heard.clone();
            move |shard: usize, news: &HostNews| {
                heard.borrow_mut().push_back((shard, news.clone()));
            }
        };
        let carrier = Box::new(Bodies(bodies.clone()));
        let exchange = Exchange::new(home.shard().clone(), carrier, Box::new(tell));
        home.connect_with(exchange.clone());
        let config = Config { durability: Durability::Sync, ..config };
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
            config,
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
        let term = |host: &Host| host.shard().inspect(|it| it.engine().header().incarnation);
        self.hosts.iter().map(|(shard, host)| (*shard, term(host))).collect()
    }

    /// Whether a shard that is served may say anything at the moment.
    #[must_use]
    pub fn may_speak(&self, shard: usize) -> bool {
        self.hosts.get(&shard).is_some_and(|host| {
            host.shard().inspect(|it| !it.is_suspended() && it.failure().is_none())
        })
    }

    /// Calls `look` with the engine of a shard that is served, and its store.
    pub fn inspect<T>(&self, shard: usize, look: impl FnOnce(&Durable) -> T) -> Option<T> {
        self.hosts.get(&shard).map(|host| host.shard().inspect(look))
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
        let begun = self.home.connect((door, PEER), None);
        let client = begun.number();
        self.clients.insert(client, begun);
        self.run_client(client);
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
            it.feed(bytes);
            self.run_client(client);
        }
    }

    /// Moves the bytes of replies to the client's side.
    pub fn drain_replies(&mut self, client: ClientId, out: &mut Vec<u8>) {
        let Some(it) = self.clients.get(&client) else { return };
        if take_bytes(it, usize::MAX, out) > 0 {
            self.run_client(client);
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
                if self.clients.get(&client).is_some_and(Client::has_rung) {
                    quiet = false;
                    self.run_client(client);
                }
            }
            quiet &= !self.home.send_letters();
            if quiet {
                return;
            }
        }
        panic!("a node does not come to rest");
    }

    /// Does what the clock says is due, and wakes every store.
    fn tick(&mut self) {
        for host in self.hosts.values_mut() {
            let shard = host.shard();
            shard.turn();
            if has_rung(shard.kept_bell()) {
                shard.ring_all();
            }
            host.driven.armed = shard.arm_timer();
            host.driven.fire_timer();
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
            self.ownership.note_suspended(shard, host.shard().inspect(Durable::is_suspended));
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
            match mind.poll() {
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
                        host.driven.place.release();
                    }
                }
                Order::Resume(_) => {}
                Order::Refresh => {
                    let own = self.ownership.node().instance;
                    let nodes = self.ownership.view().nodes.iter().map(|node| node.instance);
                    self.peers = nodes.filter(|node| *node != own).collect();
                    self.exchange.note_nodes(&self.ownership);
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
                let with = (&self.config, self.common.clone());
                let place = Place::new(shard, with, (durable, Arc::default()), clock);
                let driven = Driven::new(place);
                self.hosts.insert(shard, Host { driven, is_released: false });
                self.terms.insert(shard, term);
                HostNews::Serves(term)
            }
            Err(failure) => HostNews::Failed(failure),
        };
        self.common.tell_home(shard, news);
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
        let lowest = |memory: &NodeMemory| lowest_term_at(memory.generation(), (self.parts.wall)());
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

    /// Reads the letters to the home. Returns whether there were any.
    fn read_home(&self) -> bool {
        let has_letters = has_rung(self.home.letters_bell());
        if has_letters {
            self.home.read_letters(|_| ());
        }
        has_letters
    }

    /// Runs a host until nothing is to be done at once. Returns whether there was anything.
    fn run_host(&mut self, shard: usize) -> bool {
        let Some(host) = self.hosts.get_mut(&shard) else { return false };
        let place = &host.driven.place;
        // What comes after a release is for the next owner.
        let mut busy = !host.is_released && has_rung(place.letters_bell());
        if busy {
            place.read_letters(|_| ());
        }
        busy |= place.entertain_all();
        busy |= place.send_letters();
        host.driven.heed_timer();
        if let Some(news) = host.end() {
            self.hosts.remove(&shard);
            self.common.tell_home(shard, news);
            busy = true;
        }
        busy
    }

    fn run_client(&mut self, client: ClientId) {
        let Some(it) = self.clients.get_mut(&client) else { return };
        if let Step::Over | Step::Move(_) = run_until_blocked(it, false, false) {
            self.cut(client);
        }
    }
}

/// How often a node may have more to do at one moment.
const TURNS_MAX: u32 = 100_000;

impl Host {
    fn shard(&self) -> &Rc<Shard> {
        self.driven.shard()
    }

    /// Returns how it has ended, if it has.
    fn end(&self) -> Option<HostNews> {
        if let Some(failure) = self.shard().store_failure() {
            return Some(HostNews::Failed(failure));
        }
        if !self.is_released || !self.shard().is_deserted() {
            return None;
        }
        Some(self.shard().finish().map_or_else(HostNews::Failed, |()| HostNews::Released))
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
