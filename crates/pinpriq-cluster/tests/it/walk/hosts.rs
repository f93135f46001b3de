//! The hosts of one node and the logs of the shards, as far as that matters for who owns what.

use std::collections::BTreeMap;

use pinpriq_cluster::{HostEnd, Ownership, ShardNumber};
use pinpriq_testing::Dice;

/// The log of a shard: only its fence.
#[derive(Clone, Copy, Default)]
pub(super) struct Log {
    pub(super) term: u64,
    /// The process that seized it last.
    pub(super) holder: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Host {
    Seizing { at: u64 },
    Loading { term: u64, at: u64 },
    Serving { term: u64 },
    Stopping { term: u64, at: u64 },
}

/// The hosts of one process.
pub(super) struct Hosts {
    pub(super) process: u64,
    pub(super) all: BTreeMap<ShardNumber, Host>,
    /// Whether hosts fail and take long.
    pub(super) is_rough: bool,
    /// When they write again, and find out whether they were fenced.
    write_at: u64,
}

/// How often a host writes something, in milliseconds.
const WRITES_MS: u64 = 400;

impl Hosts {
    pub(super) fn new(process: u64, is_rough: bool) -> Self {
        Self { process, all: BTreeMap::new(), is_rough, write_at: 0 }
    }

    pub(super) fn host(&mut self, now: u64, shard: ShardNumber, dice: &mut Dice) {
        let at = now + 1 + dice.below(20);
        let before = self.all.insert(shard, Host::Seizing { at });
        assert_eq!(before, None, "shard {shard} is hosted twice in one process");
    }

    pub(super) fn release(&mut self, now: u64, shard: ShardNumber, dice: &mut Dice) {
        let is_slow = self.is_rough && dice.chance(15);
        let at = now + 1 + dice.below(if is_slow { 8_000 } else { 200 });
        let term = match self.all[&shard] {
            Host::Seizing { .. } => 0,
            Host::Loading { term, .. } | Host::Serving { term } => term,
            Host::Stopping { .. } => panic!("shard {shard} is released twice"),
        };
        self.all.insert(shard, Host::Stopping { term, at });
    }

    pub(super) fn resume(&mut self, now: u64, shard: ShardNumber) {
        match self.all.get(&shard) {
            Some(Host::Stopping { term: 0, .. }) => {
                self.all.insert(shard, Host::Seizing { at: now + 1 });
            }
            Some(Host::Stopping { term, .. }) => {
                let term = *term;
                self.all.insert(shard, Host::Loading { term, at: now + 1 });
            }
            other => panic!("shard {shard} goes on as {other:?}"),
        }
    }

    /// When the next host has something to do.
    pub(super) fn next_at(&self) -> Option<u64> {
        let due = self.all.values().filter_map(|host| match host {
            Host::Seizing { at } | Host::Loading { at, .. } | Host::Stopping { at, .. } => {
                Some(*at)
            }
            Host::Serving { .. } => None,
        });
        due.chain((!self.all.is_empty()).then_some(self.write_at)).min()
    }

    /// Lets the hosts do what is due, and report it.
    pub(super) fn run(
        &mut self,
        now: u64,
        logs: &mut [Log],
        ownership: &mut Ownership,
        dice: &mut Dice,
    ) {
        let writes = self.write_at <= now;
        if writes {
            self.write_at = now + WRITES_MS;
        }
        for (shard, host) in self.all.clone() {
            let log = &mut logs[usize::from(shard)];
            let next = match host {
                Host::Seizing { at } if at <= now => {
                    log.term += 1;
                    log.holder = self.process;
                    let is_slow = self.is_rough && dice.chance(10);
                    let at = now + 1 + dice.below(if is_slow { 4_000 } else { 150 });
                    Ok(Host::Loading { term: log.term, at })
                }
                Host::Loading { at, .. } if at <= now && self.is_rough && dice.chance(10) => {
                    Err(Some(HostEnd::Failed))
                }
                Host::Loading { term, at } if at <= now && log.term == term => {
                    ownership.note_serving(shard, term);
                    Ok(Host::Serving { term })
                }
                Host::Loading { at, .. } if at <= now => Err(Some(HostEnd::Fenced)),
                Host::Stopping { at, .. } if at <= now => Err(None),
                Host::Serving { term } | Host::Stopping { term, .. }
                    if writes && term != 0 && log.term != term =>
                {
                    Err(Some(HostEnd::Fenced))
                }
                Host::Serving { .. } if writes && self.is_rough && dice.chance(2) => {
                    Err(Some(HostEnd::Failed))
                }
                other => Ok(other),
            };
            match next {
                Ok(next) => {
                    self.all.insert(shard, next);
                    continue;
                }
                Err(None) => ownership.note_released(shard),
                Err(Some(end)) => ownership.note_failed(shard, end),
            }
            self.all.remove(&shard);
        }
    }
}
