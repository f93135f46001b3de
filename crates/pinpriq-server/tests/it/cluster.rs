//! Nodes of a cluster on an engine and a registry in memory, with clocks that only move when a test
//! moves them.

mod choosing;
mod subscriptions;
mod tubes;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinpriq_cluster::{Addresses, Instance};
use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_server::clock::Clock as _;
use pinpriq_server::config::{Config, DoorName, Durability};
use pinpriq_store::ledger::Writer;
use pinpriq_testing::ledgers::{FakeEngine, FakeKnobs as EngineKnobs};
use pinpriq_testing::registries::{FakeKnobs as RegistryKnobs, FakeRegistry};
use pinpriq_testing::server::node::{End, Node, Parts};

use crate::manual_clock::ManualClock;
use crate::world::START;

const TTL_MS: u64 = 3_000;

/// How long a client waits for a reply, in milliseconds.
const PATIENCE_MS: u64 = 10_000;

/// Nodes, and what is between them.
struct Stage {
    engine: FakeEngine,
    registry: FakeRegistry,
    clock: ManualClock,
    steady_ms: Arc<AtomicU64>,
    nodes: Vec<Node>,
    /// Each link: its number, the node that asks, and the one that is asked.
    links: Vec<(u64, usize, usize)>,
    last_link: u64,
    /// Whether links are opened.
    links_nodes: bool,
    shards: u16,
    /// The nodes that are stopped.
    dead: Vec<usize>,
}

fn instance(at: usize) -> Instance {
    Instance((at as u128 + 1) << 64)
}

impl Stage {
    /// Starts nodes of a cluster with one shard, and waits until one of them serves it.
    fn start(nodes: usize) -> Self {
        Self::of(nodes, 1)
    }

    /// Starts nodes of a cluster, and waits until its shards are served.
    fn of(nodes: usize, shards: u16) -> Self {
        let engine = FakeEngine::new(1, EngineKnobs::PERFECT);
        let registry = FakeRegistry::new(1, shards, TTL_MS, RegistryKnobs::PERFECT);
        let (clock, steady_ms) = (ManualClock::at(START), Arc::<AtomicU64>::default());
        let mut stage = Self {
            engine,
            registry,
            clock,
            steady_ms,
            nodes: Vec::new(),
            links: Vec::new(),
            last_link: 0,
            links_nodes: true,
            shards,
            dead: Vec::new(),
        };
        stage.nodes = (0..nodes).map(|at| stage.node(at)).collect();
        stage.advance(if shards == 1 { 4 } else { 12 } * TTL_MS);
        stage
    }

    fn node(&self, at: usize) -> Node {
        let (engine, clock, wall) = (self.engine.clone(), self.clock.clone(), self.clock.clone());
        let mut drawn = instance(at).0;
        let parts = Parts {
            name: format!("n{at}"),
            addresses: Addresses::default(),
            instance: instance(at),
            draw: Box::new(move || {
                drawn += 1;
                Instance(drawn)
            }),
            registry: Box::new(self.registry.registry()),
            ledger: Box::new(move |shard, writer| Box::new(engine.ledger(shard, writer))),
            clock: Box::new(move |_: Timestamp| Rc::new(clock.clone())),
            wall: Box::new(move || wall.now()),
            steady_ms: self.steady_ms.clone(),
            shards: self.shards,
            session_ttl_ms: TTL_MS,
            remembers: None,
            seed: 1,
        };
        Node::start(parts, Config { durability: Durability::Sync, ..Config::default() })
    }

    /// Lets time pass, in small steps.
    fn advance(&mut self, ms: u64) {
        for _ in 0..ms / 10 {
            self.clock.advance(Span::from_ms(10));
            let now = self.steady_ms.load(Ordering::Relaxed) + 10;
            self.steady_ms.store(now, Ordering::Relaxed);
            self.registry.set_now(now);
            self.engine.step();
            self.link();
            for _ in 0..4 {
                self.round();
            }
        }
    }

    /// Each process does what it can, and then all letters between them arrive.
    fn round(&mut self) {
        let nodes = self.nodes.iter_mut().enumerate();
        let living = nodes.filter(|(at, _)| !self.dead.contains(at));
        living.for_each(|(_, node)| node.run());
        self.carry();
    }

    /// Lets time pass while no process does anything.
    fn stand_still(&mut self, ms: u64) {
        self.clock.advance(Span::from_ms(ms));
        self.steady_ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn link(&mut self) {
        if !self.links_nodes {
            return;
        }
        for from in 0..self.nodes.len() {
            for to in 0..self.nodes.len() {
                if self.dead.contains(&from) || self.dead.contains(&to) {
                    continue;
                }
                let is_linked = self.links.iter().any(|(_, a, b)| (*a, *b) == (from, to));
                if !is_linked && self.nodes[from].peers().contains(&instance(to)) {
                    self.last_link += 1;
                    self.links.push((self.last_link, from, to));
                    self.nodes[from].link_up(instance(to));
                    self.nodes[to].asker_came(self.last_link);
                }
            }
        }
    }

    fn carry(&mut self) {
        for at in 0..self.nodes.len() {
            for (end, body) in self.nodes[at].take_bodies() {
                let link = self.links.iter().find(|(id, from, to)| match end {
                    End::From(link) => link == *id,
                    End::To(node) => *from == at && instance(*to).0 == node,
                });
                let Some((id, from, to)) = link.copied() else { continue };
                let (hears, end) = match end {
                    End::To(_) => (to, End::From(id)),
                    End::From(_) => (from, End::To(instance(to).0)),
                };
                assert!(self.nodes[hears].hear(end, &body), "a body cannot be read");
            }
        }
    }

    /// Ends all links for good, as both ends notice.
    fn cut_links(&mut self) {
        self.links_nodes = false;
        for (id, from, to) in std::mem::take(&mut self.links) {
            self.nodes[from].link_down(instance(to));
            self.nodes[to].asker_gone(id);
        }
    }

    /// A node stops, and the others notice that its links are gone.
    fn kill(&mut self, at: usize) {
        self.dead.push(at);
        let links = std::mem::take(&mut self.links);
        let (gone, left) = links.into_iter().partition(|(_, from, to)| *from == at || *to == at);
        self.links = left;
        let gone: Vec<(u64, usize, usize)> = gone;
        for (id, from, to) in gone {
            if from == at {
                self.nodes[to].asker_gone(id);
            } else {
                self.nodes[from].link_down(instance(to));
            }
        }
    }

    /// The node that serves the shard.
    fn owner(&self) -> usize {
        let owners = self.nodes.iter().enumerate().filter(|(_, node)| !node.serves().is_empty());
        let owners: Vec<usize> = owners.map(|(at, _)| at).collect();
        assert_eq!(owners.len(), 1, "the shard is served once");
        owners[0]
    }

    fn visit(&mut self, at: usize) -> (usize, ClientId) {
        (at, self.nodes[at].connect(DoorName::Resp))
    }

    fn send(&mut self, (at, client): (usize, ClientId), line: &str) {
        self.nodes[at].feed(client, format!("{line}\r\n").as_bytes());
    }

    /// What a client received since the last time.
    fn received(&mut self, (at, client): (usize, ClientId)) -> String {
        let mut bytes = Vec::new();
        self.nodes[at].drain_replies(client, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    /// Sends a request, and waits for a reply.
    fn ask(&mut self, who: (usize, ClientId), line: &str) -> String {
        self.send(who, line);
        for _ in 0..PATIENCE_MS / 10 {
            self.advance(10);
            let told = self.received(who);
            if !told.is_empty() {
                return told;
            }
        }
        panic!("{line} is not answered");
    }
}

#[test]
fn a_host_says_nothing_while_another_node_may_own_its_shard() {
    let mut stage = Stage::start(1);
    let client = stage.visit(0);
    assert!(stage.ask(client, "PUT q loaf").starts_with('$'));
    assert!(stage.ask(client, "PEEK q").contains("loaf"));

    // The process stands still for a session, of which a window is 0.7, and then it does not reach
    // the engine.
    stage.engine.cut(Writer(instance(0).0), true);
    stage.stand_still(TTL_MS);
    stage.send(client, "PEEK q");
    stage.advance(500);
    assert_eq!(stage.received(client), "");
    stage.advance(1_000);
    let told = stage.received(client);
    assert!(told.starts_with("-CLUSTERDOWN"), "{told}");

    stage.engine.cut(Writer(instance(0).0), false);
    stage.advance(TTL_MS);
    assert!(stage.ask(client, "PEEK q").contains("loaf"), "the tenure goes on");
}

#[test]
fn what_has_not_begun_is_refused_while_the_engine_is_down_and_what_has_begun_waits() {
    let mut stage = Stage::start(1);
    let [begun, other, patient] = [(); 3].map(|()| stage.visit(0));
    stage.engine.cut(Writer(instance(0).0), true);
    stage.send(begun, "PUT q bread");
    stage.advance(1_500);
    // Replies keep their order.
    stage.send(begun, "PUT q toast");
    assert!(stage.ask(other, "PUT q crumb").starts_with("-CLUSTERDOWN"));
    stage.send(patient, "TAKE r WAIT 2000");
    stage.advance(1_500);
    assert_eq!(stage.received(patient), "", "it may block");
    stage.advance(1_000);
    assert!(stage.received(patient).starts_with("-CLUSTERDOWN"));
    assert_eq!(stage.received(begun), "");

    stage.engine.cut(Writer(instance(0).0), false);
    stage.advance(TTL_MS);
    let told = stage.received(begun);
    assert_eq!(told.matches('$').count(), 2, "{told}");
    let there = stage.ask(other, "PEEK q COUNT 10");
    assert!(there.contains("bread") && there.contains("toast"), "{there}");
    assert!(!there.contains("crumb"), "{there}");
}

#[test]
fn what_clients_had_taken_over_a_link_that_is_lost_is_ready_again() {
    let mut stage = Stage::start(2);
    let owner = stage.owner();
    let (near, far) = (stage.visit(owner), stage.visit(1 - owner));
    assert!(stage.ask(near, "PUT q loaf").starts_with('$'));
    assert!(stage.ask(far, "TAKE q").contains("loaf"), "for as long as it is connected");
    assert_eq!(stage.ask(near, "TAKE q"), "*0\r\n");
    stage.cut_links();
    assert!(stage.ask(near, "TAKE q").contains("loaf"), "its lease has ended with the link");
}
