//! One simulated cluster with its clients: what happens in each step of time.
//!
//! Trouble comes for a while, and then ends. After that every shard must be served, every queue is
//! emptied, and the history is judged. Anything wrong panics, which ends the run.

mod patrons;
mod rollback;

use std::sync::Arc;

use crate::Dice;
use crate::faulty_disk::{CrashPolicy, FaultyDisk};
use crate::history::{Event, Recorder};
use crate::ledgers::{FakeEngine, FakeKnobs as EngineKnobs};
use crate::registries::{FakeKnobs as RegistryKnobs, FakeRegistry};
use pinpriq_cluster::{Addresses, Instance};
use pinpriq_proto::task::ClientId;
use pinpriq_server::config::{Config, DoorName, Durability, PinpriqOptions, TtlZero};
use pinpriq_store::ledger::Writer;

use crate::cluster_sim::clocks::Clocks;
use crate::cluster_sim::engine::Reach;
use crate::cluster_sim::faults::{Faults, Kind};
use crate::cluster_sim::line::Line;
use crate::cluster_sim::network::Network;
use crate::cluster_sim::policies::Patron;
use crate::cluster_sim::verdict::{judge_history, judge_logs};
use crate::cluster_sim::visitor::{History, QUEUES, Visitor, written};
use crate::server::node::{End, Node, Parts, Remembers};
use rollback::{Losing, Memories};

/// How many nodes there are.
const NODES: usize = 3;

/// How long trouble comes, in milliseconds of true time.
const TROUBLE_MS: u64 = 60_000;

/// How long a cluster may take to serve everything after the trouble, in sessions.
const RECOVERY_SESSIONS: u64 = 12;

/// How long clients may take to empty all queues, in milliseconds.
const EMPTYING_MS: u64 = 400_000;

/// How long a lease lasts at most, in milliseconds.
const LEASE_MS: u64 = 70_000;

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// The requests of all clients.
    pub calls: u64,
    /// Those whose outcome no client knows.
    pub unknown: u64,
    /// How often a host was started because another one was gone.
    pub take_overs: u64,
    /// How often a shard was handed over in order.
    pub moves: u64,
    /// How often a cluster client was sent to another node.
    pub sent_away: u64,
    /// How often each fault has struck.
    pub faults: Faults,
    /// A digest of all that clients saw.
    pub digest: u64,
}

/// A machine, with its node if that runs.
struct Machine {
    clocks: Clocks,
    node: Option<Node>,
    /// Until when it stands still.
    paused_until: u64,
    /// When its node starts again.
    starts_at: u64,
    /// Whether its node is ending in order.
    ends: bool,
    /// How often its node has started.
    runs: u64,
    /// The number of its handle of the registry.
    handle: u64,
    writer: Writer,
    reach: Arc<Reach>,
    /// Its data directory, if nodes have any.
    disk: Option<FaultyDisk>,
    memories: Memories,
}

impl Machine {
    fn cut_engine(&self, engine: &FakeEngine, is_cut: bool) {
        engine.cut(self.writer, is_cut);
        self.reach.cut_engine(is_cut);
    }

    fn cut_registry(&self, registry: &FakeRegistry, is_cut: bool) {
        registry.cut(self.handle, is_cut);
        self.reach.cut_registry(is_cut);
    }
}

struct World {
    dice: Dice,
    now: u64,
    shards: u16,
    ttl_ms: u64,
    engine: FakeEngine,
    /// How rough the engine is during the trouble.
    engine_knobs: EngineKnobs,
    registry: FakeRegistry,
    /// How rough the registry is during the trouble.
    registry_knobs: RegistryKnobs,
    network: Network,
    machines: Vec<Machine>,
    visitors: Vec<Visitor>,
    patrons: Vec<Patron>,
    /// Over which queues are looked at after the trouble.
    looking: Line,
    history: History,
    faults: Faults,
    /// When the present fault ends.
    healed_at: u64,
    is_calm: bool,
    /// A number for everything that happens, so that nothing has the same moment.
    tick: u64,
    take_overs: u64,
    moves: u64,
    sent_away: u64,
    losing: Losing,
    /// The queues of the visitors.
    queues: [&'static str; 6],
    /// The requests in histories that were judged already, and those whose outcome is unknown.
    judged: (u64, u64),
}

/// Runs one seed. Panics if anything is wrong.
#[must_use]
pub fn run(seed: u64) -> Outcome {
    let mut world = World::new(seed);
    while world.now < world.losing.trouble_until {
        world.trouble();
        world.step(true);
        world.lose_if_due();
    }
    world.calm_down();
    world.recover();
    world.judge_policies();
    world.empty();
    world.finish()
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let shards = dice.pick(&[1, 2, 4, 5]);
        let ttl_ms = dice.pick(&[2_000, 3_000, 5_000]);
        let engine_knobs = rough_engine(&mut dice);
        let engine = FakeEngine::new(dice.roll(), engine_knobs);
        let rough = dice.chance(60);
        let knobs = if rough { RegistryKnobs::ROUGH } else { RegistryKnobs::PERFECT };
        let registry = FakeRegistry::new(dice.roll(), shards, ttl_ms, knobs);
        let losing = Losing::drawn(&mut dice);
        let machines = (0..NODES)
            .map(|_| {
                let off_ms = i64::try_from(dice.below(4_000)).unwrap_or_default() - 2_000;
                let fast_ppm = i64::try_from(dice.below(2_000)).unwrap_or_default() - 1_000;
                Machine {
                    clocks: Clocks::new(fast_ppm, off_ms),
                    node: None,
                    paused_until: 0,
                    starts_at: dice.below(3_000),
                    ends: false,
                    runs: 0,
                    handle: 0,
                    writer: Writer(0),
                    reach: reach_of(&engine, &registry, Writer(0)),
                    disk: losing.remembers.then(|| FaultyDisk::new(dice.roll())),
                    memories: Memories::default(),
                }
            })
            .collect();
        let block = dice.chance(70);
        let visitors = (0..4 + dice.below(4)).map(|_| Visitor::new(block, QUEUES)).collect();
        Self {
            now: 0,
            shards,
            ttl_ms,
            engine,
            engine_knobs,
            registry,
            registry_knobs: knobs,
            network: Network::new(dice.pick(&[1, 5, 30])),
            machines,
            visitors,
            patrons: Patron::all(),
            looking: Line::new(DoorName::Resp),
            history: Recorder::new(Vec::new()),
            faults: Faults::default(),
            healed_at: 0,
            is_calm: false,
            tick: 0,
            take_overs: 0,
            moves: 0,
            sent_away: 0,
            losing,
            queues: QUEUES,
            judged: (0, 0),
            dice,
        }
    }

    /// A moment for the history: later than every moment before.
    fn now_us(&mut self) -> u64 {
        self.tick += 1;
        self.now * 1_000 + self.tick.min(999)
    }

    /// Lets a little time pass, and everything happen that is due.
    fn step(&mut self, asks: bool) {
        self.now += 1 + self.dice.below(20);
        self.tick = 0;
        self.registry.set_now(self.now);
        self.engine.step();
        for at in 0..NODES {
            self.machines[at].clocks.set(self.now);
            self.start_if_due(at);
            self.end_if_done(at);
        }
        self.connect_nodes();
        for _ in 0..4 {
            self.deliver();
            for at in 0..NODES {
                self.run_node(at);
            }
        }
        self.end_silent_links();
        self.hear_visitors();
        self.hear_patrons();
        if asks {
            self.ask();
            if self.dice.chance(20) {
                self.ask_as_patron();
            }
        }
    }

    fn is_awake(&self, at: usize) -> bool {
        let machine = &self.machines[at];
        machine.node.is_some() && machine.paused_until <= self.now
    }

    fn start_if_due(&mut self, at: usize) {
        let is_due = self.machines[at].starts_at <= self.now;
        if self.machines[at].node.is_some() || !is_due {
            return;
        }
        // A process that has vanished was the other end of these. The new one refuses them.
        self.end_links(|link| link.from == at || link.to == at);
        let machine = &mut self.machines[at];
        machine.runs += 1;
        machine.ends = false;
        let base = (at as u128) << 96 | u128::from(machine.runs) << 64;
        let mut drawn = 0_u64;
        let handle = self.registry.registry();
        machine.handle = handle.number();
        machine.writer = Writer(base);
        machine.reach = reach_of(&self.engine, &self.registry, machine.writer);
        let remembers = machine
            .disk
            .clone()
            .map(|disk| Remembers { engine: machine.reach.clone(), data: Arc::new(disk) });
        let (engine, clocks) = (self.engine.clone(), machine.clocks.clone());
        let wall = clocks.clone();
        let parts = Parts {
            name: format!("n{at}"),
            addresses: Addresses { resp_cluster: address_of(at), ..Addresses::default() },
            instance: Instance(base),
            draw: Box::new(move || {
                drawn += 1;
                Instance(base | u128::from(drawn))
            }),
            registry: Box::new(handle),
            ledger: Box::new(move |shard, writer| Box::new(engine.ledger(shard, writer))),
            clock: Box::new(move |start| clocks.line(start)),
            wall: Box::new(move || wall.wall()),
            steady_ms: machine.clocks.steady_ms.clone(),
            shards: self.shards,
            session_ttl_ms: self.ttl_ms,
            seed: self.dice.roll(),
            remembers,
        };
        let pinpriq_options =
            PinpriqOptions { ttl_zero: TtlZero::Forever, ..PinpriqOptions::default() };
        let durability = Durability::Sync;
        let config = Config { durability, pinpriq_options, ..Config::default() };
        machine.node = Some(Node::start(parts, config));
    }

    /// Ends a node that has handed everything over, or has to end.
    fn end_if_done(&mut self, at: usize) {
        let pause = 500 + self.dice.below(4_000);
        let machine = &mut self.machines[at];
        let Some(node) = machine.node.as_mut() else { return };
        if let Some(error) = node.ended() {
            self.losing.note_end(self.now, error);
            machine.starts_at = self.now + pause;
            return self.remove(at, false);
        }
        let gave_up = node.gave_up().is_some();
        if gave_up || (machine.ends && node.is_drained()) {
            if !gave_up {
                node.leave();
                node.run();
            }
            machine.starts_at = self.now + pause;
            self.remove(at, false);
        }
    }

    /// Removes a node. If it vanishes, it does not say so.
    fn remove(&mut self, at: usize, vanishes: bool) {
        let Some(node) = self.machines[at].node.take() else { return };
        self.machines[at].memories.note(&node, self.shards);
        let counters = node.counters();
        drop(node);
        if vanishes && let Some(disk) = &self.machines[at].disk {
            disk.crash(CrashPolicy::KeepSome(self.dice.below(100)));
        }
        self.take_overs += counters.take_overs;
        self.moves += counters.moves;
        let now_us = self.now_us();
        for visitor in &mut self.visitors {
            if visitor.at.is_some_and(|(home, _)| home == at) {
                visitor.disconnected(now_us, &self.history);
            }
        }
        self.lose_patrons_at(at);
        if !vanishes {
            self.end_links(|link| link.from == at || link.to == at);
        }
    }

    fn end_links(&mut self, is_meant: impl Fn(&crate::cluster_sim::network::Link) -> bool) {
        let ended: Vec<u64> = self
            .network
            .links
            .iter()
            .filter(|(_, link)| is_meant(link))
            .map(|(id, _)| *id)
            .collect();
        for id in ended {
            self.end_link(id);
        }
    }

    fn end_link(&mut self, id: u64) {
        let Some(link) = self.network.links.remove(&id) else { return };
        if let Some(node) = &mut self.machines[link.from].node {
            node.link_down(link.instance);
        }
        if let Some(node) = &mut self.machines[link.to].node {
            node.asker_gone(id);
        }
    }

    /// Opens the links that nodes want and closes those that they no longer want.
    fn connect_nodes(&mut self) {
        for from in 0..NODES {
            if !self.is_awake(from) {
                continue;
            }
            let Some(node) = &self.machines[from].node else { continue };
            let peers = node.peers().to_vec();
            self.end_links(|link| link.from == from && !peers.contains(&link.instance));
            for to in (0..NODES).filter(|to| *to != from) {
                let Some(instance) = self.machines[to].node.as_ref().map(Node::instance) else {
                    continue;
                };
                let is_linked =
                    self.network.links.values().any(|link| (link.from, link.to) == (from, to));
                if is_linked || !peers.contains(&instance) || !self.is_awake(to) {
                    continue;
                }
                let Some(id) = self.network.open(self.now, (from, to), instance) else { continue };
                if let Some(node) = &mut self.machines[from].node {
                    node.link_up(instance);
                }
                if let Some(node) = &mut self.machines[to].node {
                    node.asker_came(id);
                }
            }
        }
    }

    /// Carries what nodes say, and hands over what has arrived.
    fn deliver(&mut self) {
        for at in 0..NODES {
            if !self.is_awake(at) {
                continue;
            }
            let bodies = self.machines[at].node.as_mut().map(Node::take_bodies).unwrap_or_default();
            for (end, body) in bodies {
                let (id, is_back) = match end {
                    End::From(id) => (Some(id), true),
                    End::To(node) => {
                        let to = |link: &crate::cluster_sim::network::Link| {
                            link.from == at && link.instance.0 == node
                        };
                        let links = &self.network.links;
                        (links.iter().find(|(_, link)| to(link)).map(|(id, _)| *id), false)
                    }
                };
                if let Some(id) = id {
                    self.network.send(self.now, id, is_back, body, &mut self.dice);
                }
            }
        }
        loop {
            let machines = &self.machines;
            let now = self.now;
            let hears = |at: usize| machines[at].node.is_some() && machines[at].paused_until <= now;
            let Some((id, is_back, body)) = self.network.arrived(now, hears) else { return };
            let Some(link) = self.network.links.get(&id) else { continue };
            let (at, end) = if is_back {
                (link.from, End::To(link.instance.0))
            } else {
                (link.to, End::From(id))
            };
            let is_read = self.machines[at].node.as_mut().is_some_and(|it| it.hear(end, &body));
            assert!(is_read, "a node could not read what another one has said");
        }
    }

    fn run_node(&mut self, at: usize) {
        if self.is_awake(at)
            && let Some(node) = &mut self.machines[at].node
        {
            if self.dice.chance(60) {
                node.write_watermarks();
            }
            node.run();
        }
    }

    fn end_silent_links(&mut self) {
        let awake: Vec<bool> = (0..NODES).map(|at| self.is_awake(at)).collect();
        for id in self.network.silent(self.now, self.ttl_ms, |at| awake[at]) {
            self.end_link(id);
        }
    }

    fn hear_visitors(&mut self) {
        for index in 0..self.visitors.len() {
            let Some((at, client)) = self.visitors[index].at else { continue };
            if !self.is_awake(at) {
                continue;
            }
            let now_us = self.now_us();
            let Some(node) = &mut self.machines[at].node else { continue };
            let mut bytes = Vec::new();
            node.drain_replies(client, &mut bytes);
            let is_connected = node.is_connected(client);
            self.visitors[index].hear(now_us, &bytes, &self.history);
            let is_sent_away = self.visitors[index].sent_to.is_some();
            if is_sent_away && is_connected {
                node.cut(client);
                self.sent_away += 1;
            }
            if is_sent_away || !is_connected {
                self.visitors[index].disconnected(now_us, &self.history);
            }
        }
    }

    /// Lets one client connect, ask or leave.
    fn ask(&mut self) {
        let index = self.dice.index(self.visitors.len());
        let leaves = !self.is_calm && self.dice.chance(1);
        if !self.connect(index) {
            return;
        }
        let Some((at, client)) = self.visitors[index].at else { return };
        if leaves {
            let now_us = self.now_us();
            self.visitors[index].disconnected(now_us, &self.history);
            if let Some(node) = &mut self.machines[at].node {
                node.cut(client);
            }
            self.faults.note(Kind::ClientGone);
            return;
        }
        if self.visitors[index].waits() {
            return;
        }
        let now_us = self.now_us();
        let bytes = self.visitors[index].ask(now_us, &mut self.dice, &self.history);
        self.feed(at, client, &bytes);
    }

    /// Makes sure that a client is connected to a node that runs. Returns whether it is.
    fn connect(&mut self, index: usize) -> bool {
        if let Some((at, _)) = self.visitors[index].at {
            return self.is_awake(at);
        }
        let any = self.dice.index(NODES);
        let at = self.visitors[index].sent_to.take().map_or(any, |it| place_of(&it));
        // After the trouble no client has to look for the right node.
        let is_cluster_client = !self.is_calm && self.dice.chance(30);
        let door = if is_cluster_client { DoorName::RespCluster } else { DoorName::Resp };
        let Some(who) = self.connect_to(at, door) else { return false };
        self.visitors[index].connected(who, &self.history);
        true
    }

    /// Connects a client to a node, if that runs and does not end.
    fn connect_to(&mut self, at: usize, door: DoorName) -> Option<(usize, ClientId)> {
        if !self.is_awake(at) || self.machines[at].ends {
            return None;
        }
        let node = self.machines[at].node.as_mut().filter(|node| node.is_open())?;
        Some((at, node.connect(door)))
    }

    fn feed(&mut self, at: usize, client: ClientId, bytes: &[u8]) {
        let Some(node) = &mut self.machines[at].node else { return };
        if node.is_connected(client) && !node.reads_from(client) {
            // Its connection may be about to end.
            node.run();
        }
        if node.is_connected(client) {
            assert!(node.reads_from(client), "a client that waits for nothing is not read from");
            node.feed(client, bytes);
        }
    }

    /// Lets something go wrong now and then.
    fn trouble(&mut self) {
        if self.now >= self.healed_at && self.healed_at > 0 {
            self.heal();
        }
        if self.healed_at > 0 || !self.dice.chance(2) {
            return;
        }
        let at = self.dice.index(NODES);
        let other = (at + 1 + self.dice.index(NODES - 1)) % NODES;
        let lasts = 200 + self.dice.below(3 * self.ttl_ms);
        let kind = self.dice.pick(Kind::COMMON);
        if self.machines[at].node.is_none() {
            return;
        }
        match kind {
            Kind::Killed | Kind::Vanished => {
                self.remove(at, kind == Kind::Vanished);
                self.machines[at].starts_at = self.now + lasts;
            }
            Kind::ShortPause | Kind::LongPause => {
                let least = if kind == Kind::LongPause { 2 * self.ttl_ms } else { 0 };
                self.machines[at].paused_until =
                    self.now + least + 1 + self.dice.below(self.ttl_ms / 2);
            }
            Kind::StoppedInOrder => {
                self.machines[at].ends = true;
                if let Some(node) = &mut self.machines[at].node {
                    node.drain();
                }
            }
            Kind::Drained => self.registry.drain(&format!("n{at}"), true),
            Kind::Cut => {
                self.network.cut(at, other);
                self.network.cut(other, at);
            }
            Kind::CutOneWay => self.network.cut(at, other),
            Kind::EngineCut => self.machines[at].cut_engine(&self.engine, true),
            Kind::EngineOutage => {
                self.machines.iter().for_each(|it| it.cut_engine(&self.engine, true));
                self.machines.iter().for_each(|it| it.cut_registry(&self.registry, true));
            }
            Kind::EngineFull => {
                self.engine.set_knobs(EngineKnobs { bytes_max: 0, ..self.engine_knobs });
            }
            Kind::RegistryCut => self.machines[at].cut_registry(&self.registry, true),
            Kind::ClockSet => {
                let off_ms = i64::try_from(self.dice.below(4_000)).unwrap_or_default() - 2_000;
                self.machines[at].clocks.set_wall(off_ms);
            }
            _ => return,
        }
        self.healed_at = self.now + lasts;
        self.faults.note(kind);
    }

    /// Ends what does not end by itself.
    fn heal(&mut self) {
        self.healed_at = 0;
        self.network.heal();
        self.engine.set_knobs(self.engine_knobs);
        for (at, machine) in self.machines.iter().enumerate() {
            machine.cut_engine(&self.engine, false);
            machine.cut_registry(&self.registry, false);
            self.registry.drain(&format!("n{at}"), false);
        }
    }

    fn calm_down(&mut self) {
        self.heal();
        self.is_calm = true;
        self.engine.set_knobs(EngineKnobs::PERFECT);
        self.registry.set_knobs(RegistryKnobs::PERFECT);
        for machine in &mut self.machines {
            machine.paused_until = machine.paused_until.min(self.now);
        }
    }

    /// Waits until every shard is served once.
    fn recover(&mut self) {
        let until = self.now + RECOVERY_SESSIONS * self.ttl_ms + 10_000;
        loop {
            self.step(true);
            if self.all_served() {
                return;
            }
            assert!(
                self.now < until,
                "not every shard is served after the trouble: {:?}",
                self.serves()
            );
        }
    }

    pub(crate) fn serves(&self) -> Vec<Vec<(usize, u64)>> {
        let serves = |it: &Machine| it.node.as_ref().map(Node::serves).unwrap_or_default();
        self.machines.iter().map(serves).collect()
    }

    fn all_served(&self) -> bool {
        let served: Vec<_> = self.serves().concat();
        (0..usize::from(self.shards)).all(|shard| {
            let terms = served.iter().filter(|(of, _)| *of == shard);
            let current = self.engine.tenure(u16::try_from(shard).unwrap_or_default());
            terms.clone().count() == 1
                && terms.clone().all(|(_, term)| current.is_some_and(|it| it.term.0 == *term))
        })
    }

    /// Lets a client empty all queues, until nothing comes for as long as a lease can last.
    fn empty(&mut self) {
        let until = self.now + EMPTYING_MS;
        let mut quiet_since = self.now;
        while self.now < quiet_since + LEASE_MS {
            assert!(self.now < until, "the queues are never empty");
            for queue in self.queues {
                if self.pop_once(queue) != Some(0) {
                    quiet_since = self.now;
                }
            }
            // Nothing happens but time.
            for _ in 0..8 {
                self.now += 100;
                self.step(false);
            }
        }
        for queue in self.queues {
            let now_us = self.now_us();
            let drained = Event::Drained { queue: queue.to_owned(), buried_stay: false };
            written(self.history.event(now_us, drained));
        }
    }

    /// Lets the first client pop from a queue. Returns how many tasks came, if the reply did.
    fn pop_once(&mut self, queue: &str) -> Option<usize> {
        let until = self.now + EMPTYING_MS;
        while self.visitors[0].waits() || !self.connect(0) {
            assert!(self.now < until, "a client waits for ever");
            self.step(false);
        }
        let (at, client) = self.visitors[0].at?;
        let now_us = self.now_us();
        let bytes = self.visitors[0].empty(now_us, queue, &self.history);
        self.feed(at, client, &bytes);
        for _ in 0..2_000 {
            self.step(false);
            if !self.visitors[0].waits() {
                return self.visitors[0].last_count.take();
            }
        }
        panic!("a pop is not answered after the trouble");
    }

    fn finish(mut self) -> Outcome {
        for at in 0..NODES {
            self.remove(at, false);
        }
        for (word, times) in self.engine.struck().into_iter().chain(self.registry.struck()) {
            self.faults.add(word, times);
        }
        self.judge_given();
        judge_logs(&self.engine, self.shards);
        rollback::judge_terms(&self.engine, &self.losing.accepted);
        let history = written(self.history.finish());
        let digest = history.iter().fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
            (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let (calls, unknown) = judge_history(&history);
        let (calls, unknown) = (calls + self.judged.0, unknown + self.judged.1);
        let (take_overs, moves, sent_away) = (self.take_overs, self.moves, self.sent_away);
        Outcome { calls, unknown, take_overs, moves, sent_away, faults: self.faults, digest }
    }
}

fn reach_of(engine: &FakeEngine, registry: &FakeRegistry, writer: Writer) -> Arc<Reach> {
    Arc::new(Reach::new(engine.clone(), registry.clone(), writer))
}

/// Where a node says that it listens for cluster clients.
fn address_of(at: usize) -> String {
    format!("n{at}:7251")
}

/// The node that listens at an address.
///
/// # Panics
/// If none does.
fn place_of(address: &str) -> usize {
    let place = (0..NODES).find(|at| address_of(*at) == address);
    place.unwrap_or_else(|| panic!("a client was sent to {address}"))
}

/// How rough the engine is in this run.
fn rough_engine(dice: &mut Dice) -> EngineKnobs {
    if dice.chance(30) {
        return EngineKnobs::PERFECT;
    }
    EngineKnobs {
        full: u64::from(dice.chance(30)),
        raced: u64::from(dice.chance(20)),
        ..EngineKnobs::ROUGH
    }
}
