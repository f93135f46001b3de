//! An engine that loses what it had said to keep, and what the nodes must do then.
//!
//! From the loss on until an operator accepts it, a node serves no log of which it has seen more
//! than is there. A node whose log refuses an append for that reason tells it before any other node
//! may claim that log. As soon as one node has reported it, all refuse; and it is reported at the
//! latest when every node was started once more. After it was accepted the cluster serves again,
//! and neither ids nor receipts nor terms come twice.
//!
//! Not promised, and counted here: before anybody has told it, a node that has not seen as much of
//! a log may serve what is left of it. The node that has seen more was down or cut off then, or its
//! session was lost with the registry. A loss is not noticed either once others have gone on with
//! the log and removed what is in the place of the lost entries.

use std::collections::{BTreeMap, BTreeSet};

use crate::Dice;
use crate::history::Recorder;
use crate::ledgers::FakeEngine;
use crate::ledgers::Happened;
use crate::registries::Saved;
use pinpriq_cluster::{Instance, Registry, RegistryAnswer, RegistryCall};
use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_server::ServeError;
use pinpriq_server::cluster::{KnownCluster, NodeData, acceptance};
use pinpriq_server::config::DoorName;
use pinpriq_store::ledger::entry::EntryHeader;
use pinpriq_store::ledger::{Term, Watermark};

use super::{Kind, Line, NODES, TROUBLE_MS, World};
use crate::cluster_sim::line::Request;
use crate::cluster_sim::verdict::judge_history;
use crate::cluster_sim::visitor::{LATER_QUEUES, QUEUES, Visitor, written};
use crate::server::node::Node;

/// What is counted that is not promised.
const SERVED: &str = "a log that was rolled back was served by a node that could not know";

/// How long a loss may stay unnoticed while all nodes run and clients ask, in milliseconds, before
/// the nodes are started once more.
const UNNOTICED_MS: u64 = 15_000;

/// How long trouble goes on after a loss was accepted, in milliseconds.
const AFTERWARDS_MS: u64 = 15_000;

/// The watermarks that a node had when it ended.
#[derive(Default)]
pub(super) struct Memories(Vec<Option<Watermark>>);

impl Memories {
    pub(super) fn note(&mut self, node: &Node, shards: u16) {
        if node.is_open() || node.ended().is_some() {
            let kept: Vec<_> = (0..shards).map(|shard| node.kept_watermark(shard)).collect();
            if kept.iter().any(Option::is_some) {
                self.0 = kept;
            }
        }
    }

    fn of(&self, shard: u16) -> Option<Watermark> {
        self.0.get(usize::from(shard)).copied().flatten()
    }
}

/// What a run loses.
pub(super) struct Losing {
    /// Whether nodes have data directories.
    pub(super) remembers: bool,
    /// What is lost next, and when.
    next: Option<(Kind, u64)>,
    /// Whether the registry goes back to a former generation later.
    again: bool,
    saves_at: u64,
    saved: Option<Saved>,
    /// The ids and receipts that were given before the last loss was accepted.
    given: BTreeSet<String>,
    /// How much had happened to each log when a loss was accepted.
    pub(super) accepted: Vec<Vec<usize>>,
    /// Until when a node may end because of a loss.
    ends_until: u64,
    ends: usize,
    /// Until when there is trouble.
    pub(super) trouble_until: u64,
}

impl Losing {
    pub(super) fn drawn(dice: &mut Dice) -> Self {
        let remembers = dice.chance(30);
        let at = 12_000 + dice.below(20_000);
        let loses = remembers && dice.chance(70);
        Self {
            remembers,
            next: loses.then(|| (dice.pick(&Kind::LOSSES), at)),
            again: dice.chance(40),
            saves_at: at - dice.below(8_000),
            saved: None,
            given: BTreeSet::new(),
            accepted: Vec::new(),
            ends_until: 0,
            ends: 0,
            trouble_until: TROUBLE_MS,
        }
    }

    /// Notes that a node has ended by itself at this time.
    ///
    /// # Panics
    /// If it had no reason to.
    pub(super) fn note_end(&mut self, now: u64, error: &ServeError) {
        let of_loss =
            matches!(error, ServeError::RolledBack { .. } | ServeError::WrongEngine { .. });
        // A node whose engine does not answer when it starts ends too.
        let is_silence = matches!(error, ServeError::Cluster { .. });
        let may_end = is_silence || (of_loss && now <= self.ends_until);
        assert!(may_end, "a node has ended, with exit code {}: {error}", error.exit_code());
        if of_loss {
            assert_eq!(error.exit_code(), 3, "{error}");
            self.ends += 1;
        }
    }
}

/// The owner of a log that has lost what it knows, as long as nothing keeps it from telling.
struct Guard {
    at: usize,
    runs: u64,
    instance: Instance,
    failed: u64,
}

/// What is true between a loss and its acceptance.
struct Limbo {
    /// What nodes have seen of each log that was more than there is.
    knows: Vec<Vec<Option<Watermark>>>,
    /// The tenures that were served when it was lost, of each node.
    served: Vec<BTreeSet<(usize, u64)>>,
    guards: BTreeMap<u16, Guard>,
    was_served: bool,
}

impl World {
    /// Loses something, if that is due, and has it accepted.
    pub(super) fn lose_if_due(&mut self) {
        if self.losing.next.is_some() && self.losing.saved.is_none() {
            let is_made = self.registry.truth().meta.is_some();
            if is_made && self.now >= self.losing.saves_at {
                self.losing.saved = Some(self.registry.save());
            }
        }
        let Some((kind, at)) = self.losing.next else { return };
        if self.now < at || self.losing.saved.is_none() || !self.all_remember(kind) {
            return;
        }
        self.losing.next = None;
        self.losing.ends_until = u64::MAX;
        self.losing.ends = 0;
        let mut limbo = self.lose(kind);
        self.faults.note(kind);
        self.wait_until_noted(&mut limbo);
        self.refuse_all();
        if !self.is_noted() {
            // Those who serve go on in their tenures, and give ids that were lost.
            self.losing.given.clear();
        }
        let before = self.registry.save();
        self.accept(kind);
        self.begin_again(kind);
        if self.losing.again && kind != Kind::RegistryRolledBack {
            let at = self.now + self.dice.below(5_000);
            self.losing.next = Some((Kind::RegistryRolledBack, at));
            self.losing.saved = Some(before);
        }
    }

    /// Whether every machine belongs to the cluster, and has seen its last generation if that is
    /// to be lost.
    fn all_remember(&self, kind: Kind) -> bool {
        let generation = u32::from(kind == Kind::RegistryRolledBack);
        self.machines.iter().all(|machine| {
            let files = machine.disk.as_ref().map(crate::faulty_disk::FaultyDisk::files);
            let text = files.and_then(|files| files.get("node").cloned()).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let seen = text.lines().find_map(|line| line.strip_prefix("generation "));
            seen.and_then(|seen| seen.parse().ok()).is_some_and(|seen: u32| seen >= generation)
        })
    }

    /// Loses what this kind of loss loses.
    fn lose(&mut self, kind: Kind) -> Limbo {
        if kind == Kind::RolledBackUnseen {
            let (first, count) = (self.dice.index(NODES), 1 + self.dice.index(NODES));
            for at in (first..first + count).map(|at| at % NODES) {
                let vanishes = self.dice.chance(50);
                self.remove(at, vanishes);
                self.machines[at].starts_at = self.now + 200 + self.dice.below(4_000);
            }
        }
        let saved = self.losing.saved.take();
        if kind == Kind::RegistryRolledBack {
            // Nothing is lost that a reply confirmed.
            self.registry.roll_back(saved.as_ref());
        } else {
            self.begin_history(QUEUES);
        }
        let owners = self.serves();
        match kind {
            Kind::Wiped => {
                self.engine.wipe();
                self.registry.roll_back(None);
            }
            Kind::LogRolledBack => {
                let shard = self.dice.below(u64::from(self.shards));
                self.roll_back_log(u16::try_from(shard).unwrap_or_default());
            }
            Kind::RegistryRolledBack => {}
            _ => {
                (0..self.shards).for_each(|shard| self.roll_back_log(shard));
                self.registry.roll_back(saved.as_ref());
            }
        }
        let knows = |world: &Self, at: usize, shard: u16| {
            let machine = &world.machines[at];
            let running = machine.node.as_ref().and_then(|node| node.kept_watermark(shard));
            let known = running.or_else(|| machine.memories.of(shard));
            // Once a loss is accepted, watermarks of before it do not count.
            let generation = world.losing.accepted.len() as u64;
            let known = known.filter(|known| known.term.generation() >= generation);
            known.filter(|known| known.head > world.engine.head(shard))
        };
        let of_node = |at: usize| (0..self.shards).map(|shard| knows(self, at, shard)).collect();
        let knows: Vec<Vec<_>> = (0..NODES).map(of_node).collect();
        let guards = self.guards(&knows, &owners);
        let served = owners.into_iter().map(|it| it.into_iter().collect()).collect();
        Limbo { knows, served, guards, was_served: false }
    }

    fn roll_back_log(&mut self, shard: u16) {
        let entries = 1 + self.dice.index(20);
        self.engine.roll_back(shard, entries);
    }

    /// The owners of logs that have lost what they know.
    fn guards(
        &self,
        knows: &[Vec<Option<Watermark>>],
        owners: &[Vec<(usize, u64)>],
    ) -> BTreeMap<u16, Guard> {
        let truth = self.registry.truth();
        let mut guards = BTreeMap::new();
        for (at, shards) in owners.iter().enumerate() {
            let Some(node) = &self.machines[at].node else { continue };
            for (shard, _) in shards.iter().filter(|(shard, _)| knows[at][*shard].is_some()) {
                let instance = node.instance();
                let record = truth.owners.get(*shard).copied().flatten();
                let last = self.engine.history(u16::try_from(*shard).unwrap_or_default());
                if record.is_some_and(|it| it.instance == instance) && !last.is_empty() {
                    let (runs, failed) = (self.machines[at].runs, node.counters().failed);
                    let shard = u16::try_from(*shard).unwrap_or_default();
                    guards.insert(shard, Guard { at, runs, instance, failed });
                }
            }
        }
        guards
    }

    /// Whether a node has told what was lost, or the cluster is gone and a node has ended for that.
    fn is_noted(&self) -> bool {
        match self.registry.truth().meta {
            None => self.losing.ends > 0,
            Some(meta) => meta.rolled_back.is_some(),
        }
    }

    /// Whether a log shows that it has lost what a node has seen. It no longer does once others
    /// have gone on and removed the entries that are in the place of what was lost.
    fn contradicts(&self, shard: u16, known: &[Option<Watermark>]) -> bool {
        let Some(known) = known.get(usize::from(shard)).copied().flatten() else { return false };
        if self.engine.head(shard) < known.head {
            return true;
        }
        let log = self.engine.log(shard);
        let there = log.iter().find(|(seq, _)| *seq == known.head);
        let checksum = there.and_then(|(_, bytes)| EntryHeader::open(bytes).ok()).map(|it| it.1);
        checksum.is_some_and(|checksum| checksum != known.checksum)
    }

    /// Lets trouble go on for a while, then ends it, and waits until the loss is noted.
    fn wait_until_noted(&mut self, limbo: &mut Limbo) {
        let trouble_until = self.now + self.dice.below(8_000);
        while self.now < trouble_until {
            self.trouble();
            self.step(true);
            self.watch(limbo);
        }
        self.calm_down();
        let until = self.now + UNNOTICED_MS;
        while self.now < until && !self.is_noted() {
            self.step(true);
            self.watch(limbo);
        }
        for at in 0..NODES {
            if self.is_noted() {
                break;
            }
            // It is started once more, and compares all logs.
            self.remove(at, false);
            self.machines[at].starts_at = self.now;
            let until = self.now + 3_000 + 2 * self.ttl_ms;
            while self.now < until && !self.is_noted() {
                self.step(true);
                self.watch(limbo);
            }
        }
        let still = |shard: u16, known: &[Option<Watermark>]| self.contradicts(shard, known);
        let is_known = limbo.knows.iter().any(|it| (0..self.shards).any(|shard| still(shard, it)));
        assert!(
            self.is_noted() || !is_known,
            "no node has noticed that the engine was rolled back"
        );
        self.faults.add(SERVED, u64::from(limbo.was_served));
    }

    /// Panics if a node serves a log of which it has seen more, or has given one up silently.
    fn watch(&mut self, limbo: &mut Limbo) {
        let is_noted = self.is_noted();
        for (at, shards) in self.serves().into_iter().enumerate() {
            for (shard, term) in shards {
                if limbo.served[at].contains(&(shard, term)) {
                    continue;
                }
                limbo.was_served |= limbo.knows.iter().any(|knows| knows[shard].is_some());
                // Once is enough: it goes on until it ends.
                limbo.served[at].insert((shard, term));
                let number = u16::try_from(shard).unwrap_or_default();
                let knew = self.contradicts(number, &limbo.knows[at]);
                assert!(!knew, "n{at} serves shard {shard}, of which it has seen more");
            }
        }
        if is_noted {
            limbo.guards.clear();
        }
        if limbo.guards.is_empty() {
            return;
        }
        let truth = self.registry.truth();
        let (machines, now) = (&self.machines, self.now);
        limbo.guards.retain(|shard, guard| {
            let machine = &machines[guard.at];
            let Some(node) = &machine.node else { return false };
            let is_hampered = machine.paused_until > now || machine.reach.is_cut() || machine.ends;
            let has_session = truth.nodes.iter().any(|it| it.instance == guard.instance);
            let is_same = machine.runs == guard.runs && node.counters().failed == guard.failed;
            if is_hampered || !has_session || !is_same {
                return false;
            }
            let record = truth.owners.get(usize::from(*shard)).copied().flatten();
            let is_owner = record.is_some_and(|record| record.instance == guard.instance);
            assert!(is_owner, "n{} has given shard {shard} up silently", guard.at);
            true
        });
    }

    /// Panics unless serving has ended, and clients learn why.
    fn refuse_all(&mut self) {
        if !self.is_noted() {
            return;
        }
        let until = self.now + 3 * self.ttl_ms + 3_000;
        while self.now < until {
            self.step(false);
        }
        let serves = self.serves();
        assert!(serves.concat().is_empty(), "served after a loss was noted: {serves:?}");
        let Some(at) = (0..NODES).find(|at| {
            self.machines[*at]
                .node
                .as_ref()
                .is_some_and(|node| node.is_open() && node.halted().is_some())
        }) else {
            return;
        };
        let mut line = Line::new(DoorName::Resp);
        let Some((at, client)) = self.connect_to(at, DoorName::Resp) else { return };
        line.connected((at, client));
        let put = Words::new("PUT").bytes(QUEUES[0]).bytes("refused");
        let bytes = line.ask(Request::of(&[put]));
        self.feed(at, client, &bytes);
        for _ in 0..1_000 {
            self.step(false);
            let Some(node) = &mut self.machines[at].node else { return };
            let mut bytes = Vec::new();
            node.drain_replies(client, &mut bytes);
            line.hear(&bytes);
            if let Some(replies) = line.take_replies() {
                let is_refused =
                    |it: &Value| matches!(it, Value::Error(it) if it.starts_with("STORE "));
                assert!(replies.iter().all(is_refused), "after a loss was noted: {replies:?}");
                node.cut(client);
                return;
            }
        }
        panic!("a client is not told that the engine was rolled back");
    }

    /// Accepts the loss, as an operator does.
    fn accept(&mut self, kind: Kind) {
        let is_gone = self.registry.truth().meta.is_none();
        let known = (is_gone || self.dice.chance(50)).then(|| self.known());
        let mut registry = self.registry.registry();
        loop {
            let there = match self.ask_registry(&mut registry, RegistryCall::Find) {
                RegistryAnswer::Meta(meta) => Some(meta),
                RegistryAnswer::Unfounded => None,
                _ => continue,
            };
            let (meta, call) = match acceptance(there, known) {
                Ok(accepted) => accepted,
                Err(why) => panic!("{kind:?} cannot be accepted: {why:?}"),
            };
            match self.ask_registry(&mut registry, call) {
                RegistryAnswer::Done => break,
                RegistryAnswer::Meta(made) if made == meta => break,
                _ => {}
            }
        }
        let happened = |shard| self.engine.history(shard).len();
        let happened = (0..self.shards).map(happened).collect();
        self.losing.accepted.push(happened);
    }

    fn ask_registry(&mut self, registry: &mut dyn Registry, call: RegistryCall) -> RegistryAnswer {
        registry.start(call);
        loop {
            if let Some(answer) = registry.poll() {
                return answer;
            }
            self.step(false);
        }
    }

    /// What the data directory of a machine knows, after its node was stopped.
    fn known(&mut self) -> KnownCluster {
        let at = self.dice.index(NODES);
        self.remove(at, false);
        self.machines[at].starts_at = self.now + 500;
        let disk = self.machines[at].disk.clone();
        let opened = disk.map(|disk| NodeData::on_disk(std::sync::Arc::new(disk), 0));
        match opened {
            Some(Ok(data)) => data.cluster().unwrap_or_else(|| panic!("n{at} knows no cluster")),
            Some(Err(error)) => panic!("n{at}: {error}"),
            None => panic!("n{at} has no data directory"),
        }
    }

    /// Lets clients begin anew with what is left, and trouble come back.
    fn begin_again(&mut self, kind: Kind) {
        self.losing.ends_until = self.now + 4 * self.ttl_ms + 5_000;
        self.losing.trouble_until = TROUBLE_MS.max(self.now + AFTERWARDS_MS);
        if kind != Kind::RegistryRolledBack {
            self.begin_history(LATER_QUEUES);
        }
        self.is_calm = false;
        self.engine.set_knobs(self.engine_knobs);
        self.registry.set_knobs(self.registry_knobs);
    }

    /// Ends the history of all clients, and begins another one with new clients.
    fn begin_history(&mut self, queues: [&'static str; 6]) {
        let now_us = self.now_us();
        let count = self.visitors.len();
        for visitor in std::mem::take(&mut self.visitors) {
            let mut visitor = visitor;
            self.leave(visitor.at);
            visitor.disconnected(now_us, &self.history);
            self.losing.given.extend(visitor.given.drain(..));
            self.visitors.push(Visitor::new(visitor.blocks(), queues));
        }
        assert_eq!(self.visitors.len(), count, "as many clients as before");
        for patron in std::mem::take(&mut self.patrons) {
            self.leave(patron.line.at);
        }
        let history = std::mem::replace(&mut self.history, Recorder::new(Vec::new()));
        let history = written(history.finish());
        // What clients saw between a loss and its acceptance is judged otherwise.
        if self.queues == QUEUES && queues == QUEUES {
            let (calls, unknown) = judge_history(&history);
            self.judged = (self.judged.0 + calls, self.judged.1 + unknown);
        }
        self.queues = queues;
    }

    fn leave(&mut self, at: Option<(usize, pinpriq_proto::task::ClientId)>) {
        if let Some((at, client)) = at
            && let Some(node) = &mut self.machines[at].node
            && node.is_connected(client)
        {
            node.cut(client);
        }
    }

    /// Panics if an id or a receipt came twice over a loss.
    pub(super) fn judge_given(&self) {
        for visitor in &self.visitors {
            let twice = visitor.given.iter().find(|it| self.losing.given.contains(*it));
            assert_eq!(twice, None, "given before and after a loss");
        }
    }
}

/// Panics if entries after an accepted loss are of a tenure that may have been before.
pub(super) fn judge_terms(engine: &FakeEngine, accepted: &[Vec<usize>]) {
    for happened in accepted {
        for (shard, at) in (0..).zip(happened) {
            let history = engine.history(shard);
            let (before, after) = history.split_at(*at);
            let term = |it: &Happened| match it {
                Happened::Seized { tenure, .. } => Some(tenure.term),
                _ => None,
            };
            let highest = before.iter().filter_map(term).max().unwrap_or(Term(0));
            // A tenure may go on if no node has noticed the loss.
            let begun: BTreeSet<Term> = after.iter().filter_map(term).collect();
            for it in after {
                if let Happened::Added { tenure, .. } = it {
                    let is_new = tenure.term > highest || !begun.contains(&tenure.term);
                    assert!(is_new, "shard {shard}: {tenure:?} after a loss, {highest:?} before");
                }
            }
        }
    }
}
