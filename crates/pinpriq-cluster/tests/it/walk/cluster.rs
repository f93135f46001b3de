//! The nodes of a cluster in one process, with a time of their own.

use std::collections::BTreeMap;

use pinpriq_cluster::{
    Instance, Member, NodeRecord, Order, OwnState, Ownership, OwnershipOptions, Placement,
    ShardState, View,
};
use pinpriq_testing::Dice;
use pinpriq_testing::registries::{FakeKnobs, FakeRegistry};

use super::hosts::{Host, Hosts, Log};

const TTL_MS: u64 = 2_000;
const NAMES: [&str; 4] = ["n1", "n2", "n3", "n4"];

struct Process {
    ownership: Ownership,
    hosts: Hosts,
    paused_until: u64,
    is_stopping: bool,
}

pub(super) struct Cluster {
    registry: FakeRegistry,
    dice: Dice,
    now: u64,
    shards: u16,
    logs: Vec<Log>,
    processes: BTreeMap<&'static str, Process>,
    started: u64,
    is_rough: bool,
    /// Whether the registry never lies.
    is_honest: bool,
    act_at: u64,
    /// How many orders there were that concern a shard.
    pub(super) orders: u64,
    counts: BTreeMap<&'static str, u64>,
}

impl Cluster {
    pub(super) fn new(seed: u64, knobs: FakeKnobs) -> Self {
        let mut dice = Dice::new(seed);
        let shards = dice.pick(&[1, 3, 8, 16]);
        let mut cluster = Self {
            registry: FakeRegistry::new(dice.roll(), shards, TTL_MS, knobs),
            dice,
            now: 0,
            shards,
            logs: vec![Log::default(); usize::from(shards)],
            processes: BTreeMap::new(),
            started: 0,
            is_rough: true,
            is_honest: knobs == FakeKnobs::PERFECT,
            act_at: 1,
            orders: 0,
            counts: BTreeMap::from([("a node gave up", 0), ("a node stopped in order", 0)]),
        };
        for name in &NAMES[..=cluster.dice.index(3)] {
            cluster.start(name, 1);
        }
        cluster
    }

    fn start(&mut self, name: &'static str, data: u128) {
        self.started += 1;
        let mut draws = Dice::new(self.dice.roll());
        let mut draw = move || Instance(u128::from(draws.roll()));
        let node =
            NodeRecord { instance: draw(), name: name.to_owned(), data, ..NodeRecord::default() };
        let options = OwnershipOptions::new(TTL_MS, self.shards);
        let registry = Box::new(self.registry.registry());
        let ownership = Ownership::new(registry, node, options, Box::new(draw));
        let hosts = Hosts::new(self.started, self.is_rough);
        let process = Process { ownership, hosts, paused_until: 0, is_stopping: false };
        self.processes.insert(name, process);
    }

    fn end(&mut self, name: &'static str) {
        let Some(process) = self.processes.remove(name) else { return };
        let counters = process.ownership.counters();
        for (name, count) in figures(&counters) {
            *self.counts.entry(name).or_default() += count;
        }
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, duration: u64) {
        let end = self.now + duration;
        // Some may have started just now.
        for name in NAMES {
            self.turn(name);
        }
        while self.now < end {
            let next = self.next_at().unwrap_or(end);
            assert!(next > self.now, "time stands still at {next}");
            self.now = next.min(end);
            self.registry.set_now(self.now);
            if self.is_rough && self.act_at <= self.now {
                self.act_at = self.now + 100 + self.dice.below(3_000);
                self.act();
            }
            for name in NAMES {
                self.turn(name);
            }
        }
    }

    fn next_at(&self) -> Option<u64> {
        let soon = self.now + 1;
        let processes = self.processes.values().filter_map(|process| {
            let own = process.ownership.poll_timeout();
            let at = own.into_iter().chain(process.hosts.next_at()).min();
            at.map(|at| at.max(process.paused_until))
        });
        let act = self.is_rough.then_some(self.act_at);
        let call = self.registry.next_at().map(|at| at.max(soon));
        processes.map(|at| at.max(soon)).chain(act).chain(call).min()
    }

    fn turn(&mut self, name: &'static str) {
        let Some(process) = self.processes.get_mut(name) else { return };
        if process.paused_until > self.now {
            return;
        }
        process.hosts.run(self.now, &mut self.logs, &mut process.ownership, &mut self.dice);
        let orders = process.ownership.turn(self.now);
        let timeout = process.ownership.poll_timeout();
        assert!(timeout.is_none_or(|at| at > self.now), "{name} would turn for ever");
        if self.is_honest {
            check_claims(&orders, &process.ownership, &self.registry.truth());
        }
        let mut gives_up = false;
        for order in orders {
            self.orders += u64::from(order != Order::Refresh);
            match order {
                Order::Host(shard) => process.hosts.host(self.now, shard, &mut self.dice),
                Order::Release(shard) => process.hosts.release(self.now, shard, &mut self.dice),
                Order::Resume(shard) => process.hosts.resume(self.now, shard),
                Order::Refresh => {}
                Order::GiveUp(_) => gives_up = true,
            }
        }
        if gives_up {
            *self.counts.entry("a node gave up").or_default() += 1;
            self.end(name);
            if !self.is_rough {
                // The session of a dead node went on for long: start this one again.
                self.start(name, 1);
                self.turn(name);
            }
            return;
        }
        if process.is_stopping && process.ownership.is_drained() {
            assert!(process.hosts.all.is_empty());
            process.ownership.leave();
            if process.ownership.has_left() {
                *self.counts.entry("a node stopped in order").or_default() += 1;
                self.end(name);
            }
        }
    }

    /// Does something to a node.
    fn act(&mut self) {
        let name = self.dice.pick(&NAMES);
        let runs = self.processes.contains_key(name);
        let what = self.dice.below(100);
        if !runs {
            // Sometimes another data directory comes with the name.
            let data = if self.dice.chance(40) { 2 } else { 1 };
            self.start(name, data);
        } else if what < 25 {
            self.end(name);
            if self.dice.chance(50) {
                self.start(name, 1);
            }
        } else if what < 45 {
            let pause = self.dice.below(4 * TTL_MS);
            if let Some(process) = self.processes.get_mut(name) {
                process.paused_until = self.now + pause;
            }
        } else if what < 65 {
            if let Some(process) = self.processes.get_mut(name) {
                process.is_stopping = true;
                process.ownership.drain();
            }
        } else if what < 90 {
            let drains = self.dice.chance(50);
            self.registry.drain(name, drains);
        }
    }

    /// Ends the trouble. Nodes that stop or drain go on with that.
    pub(super) fn make_peace(&mut self) {
        self.registry.set_knobs(FakeKnobs::PERFECT);
        self.is_rough = false;
        for process in self.processes.values_mut() {
            process.paused_until = 0;
            process.hosts.is_rough = false;
        }
        if self.processes.values().all(|process| process.is_stopping) {
            let free = NAMES.iter().find(|name| !self.processes.contains_key(*name));
            let name = free.copied().unwrap_or(NAMES[0]);
            self.end(name);
            self.start(name, 1);
        }
    }

    /// Checks that every shard is where it belongs, and that all nodes know that.
    pub(super) fn check(&self) {
        let truth = self.registry.truth();
        assert_eq!(truth.nodes.len(), self.processes.len(), "sessions and processes");
        let members: Vec<Member> = self
            .processes
            .keys()
            .map(|name| Member {
                name: (*name).to_owned(),
                is_draining: truth.drained.iter().any(|drained| drained == name),
            })
            .collect();
        let all_drain = members.iter().all(|member| member.is_draining);
        let placement = Placement::new(&members, self.shards);
        for shard in 0..self.shards {
            let hosting = self.processes.iter().filter(|(_, it)| it.hosts.all.contains_key(&shard));
            let hosting: Vec<_> = hosting.collect();
            let [(name, process)] = hosting[..] else {
                panic!("shard {shard} has {} hosts", hosting.len());
            };
            // Where all drain, nothing moves only to be in balance with nodes that are to end.
            assert!(all_drain || placement.target(shard) == Some(*name), "shard {shard}: {name}");
            let term = self.logs[usize::from(shard)].term;
            assert_eq!(process.hosts.all[&shard], Host::Serving { term }, "shard {shard}");
            assert_eq!(self.logs[usize::from(shard)].holder, process.hosts.process);
            let record = truth.owners[usize::from(shard)];
            let record = record.unwrap_or_else(|| panic!("shard {shard} has no owner"));
            assert_eq!(record.instance, process.ownership.node().instance, "shard {shard}");
            assert_eq!((record.term, record.state), (term, OwnState::Serving), "shard {shard}");
            for (other, process) in &self.processes {
                let (owner, known) = process.ownership.owner(shard).unwrap();
                assert_eq!((owner.name.as_str(), known), (*name, &record), "as {other} sees it");
                let state = if other == name { ShardState::Serving } else { ShardState::Absent };
                assert_eq!(process.ownership.state(shard), state, "{other} and shard {shard}");
            }
        }
    }

    /// What has happened, with names for people.
    pub(super) fn happened(&self) -> Vec<(&'static str, u64)> {
        let mut counts = self.counts.clone();
        for process in self.processes.values() {
            for (name, count) in figures(&process.ownership.counters()) {
                *counts.entry(name).or_default() += count;
            }
        }
        for (name, count) in self.registry.struck() {
            *counts.entry(name).or_default() += count;
        }
        counts.into_iter().collect()
    }
}

/// Checks that the registry knows of what is hosted, as long as it knows the node.
fn check_claims(orders: &[Order], ownership: &Ownership, truth: &View) {
    let instance = ownership.node().instance;
    let is_known = truth.nodes.iter().any(|node| node.instance == instance);
    for order in orders {
        if let Order::Host(shard) = order
            && is_known
        {
            let owner = truth.owners[usize::from(*shard)].map(|record| record.instance);
            assert_eq!(owner, Some(instance), "shard {shard} is hosted by {instance}");
        }
    }
}

fn figures(counters: &pinpriq_cluster::Counters) -> [(&'static str, u64); 7] {
    [
        ("a session was lost", counters.sessions_lost),
        ("a shard was taken over", counters.take_overs),
        ("a claim was lost", counters.claims_lost),
        ("a shard was handed over", counters.moves),
        ("a release was given up", counters.moves_given_up),
        ("a host was fenced", counters.fenced),
        ("a host failed", counters.failed),
    ]
}
