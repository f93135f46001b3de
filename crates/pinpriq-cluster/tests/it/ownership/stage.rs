//! One node and a registry that does as the test says.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use pinpriq_cluster::{
    Instance, NodeRecord, Order, OwnRecord, OwnState, Ownership, OwnershipOptions, Registry,
    RegistryAnswer, RegistryCall, ShardNumber, View,
};

pub(super) const TTL: u64 = 5_000;

/// The data directory of the node.
pub(super) const DATA: u128 = 77;

/// What a call that changes a record is answered, if not the truth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Loss {
    Applied,
    Never,
    /// It is answered that another record was there.
    Changed,
}

#[derive(Default)]
pub(super) struct Desk {
    /// The events.
    pub(super) view: View,
    /// Each call and when it was started.
    pub(super) log: Vec<(u64, RegistryCall)>,
    pub(super) loss: Option<Loss>,
    /// No call is answered.
    pub(super) is_silent: bool,
    /// Calls stay under way.
    pub(super) holds: bool,
    /// Calls that change records stay under way, and those behind them.
    pub(super) holds_owns: bool,
    /// So many calls were under way at most.
    pub(super) most: usize,
    /// The session of this instance has ended.
    pub(super) ended: Option<Instance>,
    now: u64,
    instance: Instance,
    answers: VecDeque<(bool, RegistryAnswer)>,
}

impl Desk {
    fn next(&mut self) -> Option<RegistryAnswer> {
        let is_held = self.holds || (self.holds_owns && self.answers.front()?.0);
        if is_held { None } else { self.answers.pop_front().map(|(_, answer)| answer) }
    }

    fn answer(&mut self, call: &RegistryCall) -> RegistryAnswer {
        let unreachable = RegistryAnswer::Unreachable("as the test says".to_owned());
        if let RegistryCall::Announce(record) = call {
            self.instance = record.instance;
        }
        if self.is_silent {
            return unreachable;
        }
        if self.ended == Some(self.instance) && *call != RegistryCall::Look {
            return RegistryAnswer::SessionEnded;
        }
        match call {
            RegistryCall::Look | RegistryCall::Renew => RegistryAnswer::View(self.view.clone()),
            RegistryCall::Announce(record) => {
                self.view.nodes.retain(|node| node.instance != record.instance);
                self.view.nodes.push(record.clone());
                RegistryAnswer::Done
            }
            RegistryCall::End(instance) => {
                self.forget(*instance);
                RegistryAnswer::Done
            }
            RegistryCall::Claim { shard, record, meta } => {
                let is_seen = self.view.meta == *meta;
                self.change(*shard, (Some(*record), None), is_seen)
            }
            RegistryCall::Own { shard, record, instead_of } => {
                self.change(*shard, (*record, *instead_of), true)
            }
            RegistryCall::Found(_)
            | RegistryCall::Find
            | RegistryCall::Amend { .. }
            | RegistryCall::Drain { .. }
            | RegistryCall::Target { .. } => panic!("{call:?}"),
        }
    }

    fn change(
        &mut self,
        shard: ShardNumber,
        (record, instead_of): (Option<OwnRecord>, Option<OwnRecord>),
        may_be: bool,
    ) -> RegistryAnswer {
        let owner = &mut self.view.owners[usize::from(shard)];
        let fits = may_be && *owner == instead_of;
        if fits && matches!(self.loss, None | Some(Loss::Applied)) {
            *owner = record;
        }
        match self.loss {
            Some(Loss::Changed) => RegistryAnswer::Changed,
            Some(_) => RegistryAnswer::Unreachable("as the test says".to_owned()),
            None if fits => RegistryAnswer::Done,
            None => RegistryAnswer::Changed,
        }
    }

    /// Ends a session with all its records.
    pub(super) fn forget(&mut self, instance: Instance) {
        self.view.nodes.retain(|node| node.instance != instance);
        for owner in &mut self.view.owners {
            owner.take_if(|record| record.instance == instance);
        }
    }
}

struct Line(Arc<Mutex<Desk>>);

impl Registry for Line {
    fn start(&mut self, call: RegistryCall) {
        let mut desk = self.0.lock().unwrap();
        let now = desk.now;
        desk.log.push((now, call.clone()));
        let answer = desk.answer(&call);
        let is_own = matches!(call, RegistryCall::Claim { .. } | RegistryCall::Own { .. });
        desk.answers.push_back((is_own, answer));
        desk.most = desk.most.max(desk.answers.len());
    }

    fn poll(&mut self) -> Option<RegistryAnswer> {
        self.0.lock().unwrap().next()
    }
}

/// The node `a` on the stage.
pub(super) struct Stage {
    pub(super) node: Ownership,
    pub(super) now: u64,
    desk: Arc<Mutex<Desk>>,
}

impl Stage {
    pub(super) fn new(shards: u16) -> Self {
        let owners = vec![None; usize::from(shards)];
        let view = View { owners, ..View::default() };
        let desk = Arc::new(Mutex::new(Desk { view, ..Desk::default() }));
        let mut last = 1;
        let draw = move || {
            last += 1;
            Instance(last)
        };
        let record = node("a", 1, DATA);
        let options = OwnershipOptions::new(TTL, shards);
        let line = Box::new(Line(Arc::clone(&desk)));
        let node = Ownership::new(line, record, options, Box::new(draw));
        Self { node, now: 1_000, desk }
    }

    /// A node that has hosted all shards of a cluster on its own for a long time.
    pub(super) fn alone(shards: u16) -> Self {
        let mut stage = Self::new(shards);
        stage.run(100);
        for shard in 0..shards {
            stage.node.note_serving(shard, 5);
        }
        stage.run(3 * TTL);
        stage
    }

    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap()
    }

    /// Lets another node join, or replaces what it says.
    pub(super) fn join(&self, record: NodeRecord) {
        let mut desk = self.desk();
        desk.view.nodes.retain(|node| node.instance != record.instance);
        desk.view.nodes.push(record);
    }

    pub(super) fn owner(&self, shard: ShardNumber) -> Option<OwnRecord> {
        self.desk().view.owners[usize::from(shard)]
    }

    pub(super) fn set_owner(&self, shard: ShardNumber, record: Option<OwnRecord>) {
        self.desk().view.owners[usize::from(shard)] = record;
    }

    /// Forgets the calls so far.
    pub(super) fn forget_log(&self) {
        self.desk().log.clear();
    }

    /// The calls so far that change the record of a shard, and when.
    pub(super) fn owns(&self) -> Vec<(u64, ShardNumber, Option<OwnRecord>, Option<OwnRecord>)> {
        let log = self.desk().log.clone();
        let owns = log.into_iter().filter_map(|(at, call)| match call {
            RegistryCall::Own { shard, record, instead_of } => {
                Some((at, shard, record, instead_of))
            }
            RegistryCall::Claim { shard, record, .. } => Some((at, shard, Some(record), None)),
            _ => None,
        });
        owns.collect()
    }

    /// The claims so far, and when.
    pub(super) fn claims(&self) -> Vec<(u64, ShardNumber)> {
        let claims = self.owns().into_iter().filter(|(_, _, record, instead_of)| {
            record.is_some_and(|it| it.state == OwnState::Loading) && instead_of.is_none()
        });
        claims.map(|(at, shard, ..)| (at, shard)).collect()
    }

    /// Whether the node has asked for this.
    pub(super) fn has_asked(&self, call: &RegistryCall) -> bool {
        self.desk().log.iter().any(|(_, known)| known == call)
    }

    /// Lets time pass, and returns the orders with their times.
    pub(super) fn run(&mut self, duration: u64) -> Vec<(u64, Order)> {
        let end = self.now + duration;
        let mut orders = Vec::new();
        loop {
            self.desk().now = self.now;
            let told = self.node.turn(self.now).into_iter();
            let told = told.filter(|order| *order != Order::Refresh);
            orders.extend(told.map(|order| (self.now, order)));
            let is_answered = {
                let desk = self.desk();
                let is_own = desk.answers.front().is_some_and(|(is_own, _)| *is_own);
                !(desk.answers.is_empty() || desk.holds || desk.holds_owns && is_own)
            };
            if is_answered {
                continue;
            }
            if self.now >= end {
                return orders;
            }
            let next = self.node.poll_timeout().unwrap_or(end);
            assert!(next > self.now, "it would turn for ever");
            self.now = next.min(end);
        }
    }
}

pub(super) fn node(name: &str, instance: u128, data: u128) -> NodeRecord {
    let instance = Instance(instance);
    NodeRecord { instance, name: name.to_owned(), data, ..NodeRecord::default() }
}

#[expect(clippy::unnecessary_wraps, reason = "a record is compared with what may be none")]
pub(super) fn record(instance: u128, term: u64, state: OwnState) -> Option<OwnRecord> {
    Some(OwnRecord { instance: Instance(instance), term, state })
}

/// The shards in orders of one kind.
pub(super) fn shards(orders: &[(u64, Order)], order: fn(ShardNumber) -> Order) -> Vec<ShardNumber> {
    let found = orders.iter().filter_map(|(_, it)| match it {
        Order::Host(shard) | Order::Release(shard) | Order::Resume(shard) => {
            (*it == order(*shard)).then_some(*shard)
        }
        Order::Refresh | Order::GiveUp(_) => None,
    });
    found.collect()
}
