//! What the registry in memory keeps, and what it tells of that.
//!
//! When anything happens is decided in `state.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::trouble::{self, Troubles};
use pinpriq_cluster::{
    Instance, Meta, NodeRecord, OwnRecord, OwnState, RegistryAnswer, RegistryCall, ShardNumber,
    View,
};

/// So many views of the past are remembered, and so many nodes that are gone.
const PAST: usize = 16;

#[derive(Clone)]
struct Session {
    record: NodeRecord,
    ends_at: u64,
    /// Whether it goes on after its time, which happens once.
    was_kept: bool,
}

/// All records.
#[derive(Clone)]
pub(super) struct Records {
    ttl: u64,
    sessions: BTreeMap<Instance, Session>,
    ended: BTreeSet<Instance>,
    owners: Vec<Option<OwnRecord>>,
    drained: BTreeSet<String>,
    targets: BTreeMap<ShardNumber, String>,
    meta: Option<Meta>,
    past: VecDeque<View>,
    gone: VecDeque<NodeRecord>,
}

impl Records {
    pub(super) fn new(shards: u16, ttl: u64) -> Self {
        Self {
            ttl,
            sessions: BTreeMap::new(),
            ended: BTreeSet::new(),
            owners: vec![None; usize::from(shards)],
            drained: BTreeSet::new(),
            targets: BTreeMap::new(),
            meta: None,
            past: VecDeque::new(),
            gone: VecDeque::new(),
        }
    }

    pub(super) fn truth(&self) -> View {
        View {
            nodes: self.sessions.values().map(|session| session.record.clone()).collect(),
            owners: self.owners.clone(),
            drained: self.drained.iter().cloned().collect(),
            targets: self.targets.iter().map(|(shard, node)| (*shard, node.clone())).collect(),
            meta: self.meta.clone(),
        }
    }

    /// When the next session ends.
    pub(super) fn next_end(&self) -> Option<u64> {
        self.sessions.values().map(|session| session.ends_at).min()
    }

    /// Ends the sessions whose time has passed.
    pub(super) fn expire(&mut self, now: u64, troubles: &mut Troubles) {
        let is_over = |(instance, session): (&Instance, &Session)| {
            (session.ends_at <= now).then_some(*instance)
        };
        let over: Vec<Instance> = self.sessions.iter().filter_map(is_over).collect();
        for instance in over {
            let Some(session) = self.sessions.get_mut(&instance) else { continue };
            if !session.was_kept && troubles.strikes(troubles.knobs.kept, trouble::KEPT) {
                session.was_kept = true;
                session.ends_at = now + 1 + troubles.dice.below(troubles.knobs.outage_ms);
            } else {
                troubles.count(trouble::EXPIRED);
                self.end(instance);
            }
        }
    }

    /// Ends a session with all its records.
    fn end(&mut self, instance: Instance) {
        self.remember();
        self.ended.insert(instance);
        if let Some(session) = self.sessions.remove(&instance) {
            push(&mut self.gone, session.record);
        }
        for owner in &mut self.owners {
            owner.take_if(|record| record.instance == instance);
        }
    }

    /// Keeps what is true for views of the past.
    fn remember(&mut self) {
        let truth = self.truth();
        push(&mut self.past, truth);
    }

    pub(super) fn drain(&mut self, name: &str, drains: bool) {
        self.remember();
        if drains {
            self.drained.insert(name.to_owned());
        } else {
            self.drained.remove(name);
        }
    }

    /// Makes everything as it was when `saved` was. Every session lives from now on for its time to
    /// live.
    pub(super) fn restore(&mut self, now: u64, saved: &Self) {
        *self = saved.clone();
        for session in self.sessions.values_mut() {
            session.ends_at = now + self.ttl;
        }
    }

    /// Loses everything.
    pub(super) fn wipe(&mut self) {
        let shards = u16::try_from(self.owners.len()).unwrap_or(u16::MAX);
        *self = Self::new(shards, self.ttl);
    }

    /// Carries a call out for the session of this instance.
    pub(super) fn apply(
        &mut self,
        now: u64,
        instance: Option<Instance>,
        call: &RegistryCall,
        troubles: &mut Troubles,
    ) -> RegistryAnswer {
        match call {
            RegistryCall::Found(meta) => {
                RegistryAnswer::Meta(self.meta.get_or_insert_with(|| meta.clone()).clone())
            }
            RegistryCall::Find => {
                self.meta.clone().map_or(RegistryAnswer::Unfounded, RegistryAnswer::Meta)
            }
            RegistryCall::Amend { meta, instead_of } => match &mut self.meta {
                None => RegistryAnswer::Unfounded,
                Some(there) if there != instead_of => RegistryAnswer::Changed,
                Some(there) => {
                    *there = meta.clone();
                    RegistryAnswer::Done
                }
            },
            RegistryCall::Announce(record) => self.announce(now, record),
            RegistryCall::Look => RegistryAnswer::View(self.view(troubles)),
            RegistryCall::Renew => {
                let Some(instance) = self.living(instance) else {
                    return RegistryAnswer::SessionEnded;
                };
                if troubles.strikes(troubles.knobs.revoked, trouble::REVOKED) {
                    self.end(instance);
                    return RegistryAnswer::SessionEnded;
                }
                if let Some(session) = self.sessions.get_mut(&instance) {
                    session.ends_at = now + self.ttl;
                }
                RegistryAnswer::View(self.view(troubles))
            }
            RegistryCall::Claim { shard, record, meta } => {
                let is_seen = self.meta == *meta;
                self.own(instance, (*shard, Some(*record), None), is_seen, troubles)
            }
            RegistryCall::Own { shard, record, instead_of } => {
                self.own(instance, (*shard, *record, *instead_of), true, troubles)
            }
            RegistryCall::End(ended) => {
                self.end(*ended);
                RegistryAnswer::Done
            }
            RegistryCall::Drain { name, drains } => {
                self.drain(name, *drains);
                RegistryAnswer::Done
            }
            RegistryCall::Target { shard, node } => {
                self.remember();
                match node {
                    Some(node) => drop(self.targets.insert(*shard, node.clone())),
                    None => drop(self.targets.remove(shard)),
                }
                RegistryAnswer::Done
            }
        }
    }

    /// Changes the record of a shard, if that is the one to be replaced and may be.
    fn own(
        &mut self,
        instance: Option<Instance>,
        (shard, record, instead_of): (ShardNumber, Option<OwnRecord>, Option<OwnRecord>),
        may_be: bool,
        troubles: &mut Troubles,
    ) -> RegistryAnswer {
        let Some(instance) = self.living(instance) else {
            return RegistryAnswer::SessionEnded;
        };
        let is_foreign = record.is_some_and(|record| record.instance != instance);
        assert!(!is_foreign, "{instance} writes {record:?}");
        let index = usize::from(shard);
        if self.owners.get(index).copied().flatten() != instead_of {
            let lies = record.is_some() && troubles.strikes(troubles.knobs.lied, trouble::LIED);
            return if lies { RegistryAnswer::Done } else { RegistryAnswer::Changed };
        }
        if !may_be {
            return RegistryAnswer::Changed;
        }
        self.remember();
        if let Some(owner) = self.owners.get_mut(index) {
            *owner = record;
        }
        RegistryAnswer::Done
    }

    fn announce(&mut self, now: u64, record: &NodeRecord) -> RegistryAnswer {
        if self.ended.contains(&record.instance) {
            return RegistryAnswer::SessionEnded;
        }
        self.remember();
        let ends_at = now + self.ttl;
        let session = Session { record: record.clone(), ends_at, was_kept: false };
        let former = self.sessions.insert(record.instance, session);
        if let (Some(former), Some(session)) = (former, self.sessions.get_mut(&record.instance)) {
            // Only the record is replaced.
            session.ends_at = former.ends_at;
        }
        RegistryAnswer::Done
    }

    fn living(&self, instance: Option<Instance>) -> Option<Instance> {
        instance.filter(|instance| self.sessions.contains_key(instance))
    }

    /// The answer to a request for a view.
    fn view(&self, troubles: &mut Troubles) -> View {
        let mut view = self.truth();
        let knobs = troubles.knobs;
        if !self.past.is_empty() && troubles.strikes(knobs.stale, trouble::STALE) {
            view = self.past[troubles.dice.index(self.past.len())].clone();
        }
        if !view.nodes.is_empty() && troubles.strikes(knobs.hidden, trouble::HIDDEN) {
            let hidden = view.nodes.remove(troubles.dice.index(view.nodes.len())).instance;
            if troubles.dice.chance(50) {
                for owner in &mut view.owners {
                    owner.take_if(|record| record.instance == hidden);
                }
            }
        }
        if !self.gone.is_empty() && troubles.strikes(knobs.ghost, trouble::GHOST) {
            let ghost = &self.gone[troubles.dice.index(self.gone.len())];
            view.nodes.push(ghost.clone());
            view.nodes.sort_by_key(|node| node.instance);
        }
        if !view.nodes.is_empty() && troubles.strikes(knobs.wrong_owner, trouble::WRONG_OWNER) {
            let instance = view.nodes[troubles.dice.index(view.nodes.len())].instance;
            let state = troubles.dice.pick(&[OwnState::Serving, OwnState::Releasing]);
            let record = OwnRecord { instance, term: troubles.dice.below(4), state };
            let shard = troubles.dice.index(view.owners.len());
            view.owners[shard] = Some(record).filter(|_| troubles.dice.chance(70));
        }
        view
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == PAST {
        queue.pop_front();
    }
    queue.push_back(item);
}
