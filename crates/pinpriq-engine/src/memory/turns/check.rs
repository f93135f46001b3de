//! Checks turns from scratch.

use std::collections::BTreeMap;

use super::{Roster, Turns};
use crate::memory::slots::Slot;
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::Timestamp;

/// What a share has: how many taken tasks, and the tasks that stand at each number.
type Shares = BTreeMap<Bytes, (u32, BTreeMap<i64, Vec<(u64, Slot)>>)>;

impl Turns {
    /// Checks that turns are what follows from these tasks, which are all of the queue. Costs
    /// O(n log n).
    pub(crate) fn check(
        &self,
        slots: impl Iterator<Item = Slot>,
        roster: &impl Roster,
        now: Timestamp,
    ) {
        assert!(self.touched.is_empty() && self.stale.is_empty(), "the step was concluded");
        assert!(self.emptied.is_empty() && self.notes.is_none(), "the step was concluded");
        if self.openings.due(now).is_some() {
            // The next look notices what has opened.
            return;
        }
        let fresh = Self::of(self.rules.clone(), Some(self), slots, roster, now);
        let aged = |turns: &Self| turns.aged().map(|aged| aged.all().collect::<Vec<_>>());
        assert_eq!(aged(self), aged(&fresh), "those that age follow from the tasks");
        assert_eq!(self.shares(roster), fresh.shares(roster), "shares follow from the tasks");
        assert_eq!(self.keys(), fresh.keys(), "keys follow from the tasks");
        let levels = |turns: &Self| -> Vec<(i64, u32)> {
            turns.levels.iter().map(|level| (level.number, level.pairs)).collect()
        };
        assert_eq!(levels(self), levels(&fresh), "numbers follow from the tasks");
        let mut with_turn = 0;
        for (id, share) in self.shares.iter() {
            let should =
                !self.holds_back(share) && !share.pairs.is_empty() && self.alone().is_none();
            assert_eq!(share.has_turn, should, "it has its turn");
            let turn = share.turn(id, self.rules.is_fair, roster).filter(|_| share.has_turn);
            let is_in_line = turn.is_none_or(|turn| self.line.iter().any(|other| *other == turn));
            assert!(is_in_line || self.line.iter().count() > 1_000, "its turn is in line");
            with_turn += usize::from(turn.is_some());
            for pair in share.pairs.iter() {
                let reached = self.levels.find(pair.number).map(|level| level.reached);
                assert!(reached >= Some(pair.account.start()), "nobody begins after the others");
                let in_row = pair.row.iter().count();
                let latent = self.tasks_of(id, pair.number, roster).skip(in_row).count();
                assert!(pair.counts(latent, roster), "the tasks of a pair are counted");
            }
        }
        let present = self.shares.iter().filter(|(_, share)| !share.pairs.is_empty()).count();
        assert_eq!(self.present as usize, present, "shares are counted");
        assert_eq!(self.line.iter().count(), with_turn, "every turn is that of a share");
        assert!(self.line.iter().is_sorted(), "turns are in order");
    }

    fn shares(&self, roster: &impl Roster) -> Shares {
        let all = self.shares.iter().map(|(id, share)| {
            let tasks = |number| self.tasks_of(id, number, roster).collect();
            let pairs = share.pairs.iter().map(|pair| (pair.number, tasks(pair.number)));
            (self.shares.name(id).into(), (share.taken, pairs.collect()))
        });
        all.collect()
    }

    fn keys(&self) -> BTreeMap<Bytes, (u32, Option<Slot>, bool, usize)> {
        let all = self.keys.iter().map(|(id, key)| {
            let holders = key.holders.iter().flat_map(|holders| holders.iter()).count();
            (self.keys.name(id).into(), (key.taken, key.standing, self.is_paced(key), holders))
        });
        all.collect()
    }
}

#[cfg(test)]
impl Turns {
    /// Everything that does not follow from the tasks, for tests.
    pub(crate) fn history(&self) -> String {
        let mut accounts = BTreeMap::new();
        for (id, share) in self.shares.iter() {
            let pairs = share.pairs.iter().map(|pair| (pair.number, pair.account));
            accounts.insert(self.shares.name(id), pairs.collect::<Vec<_>>());
        }
        format!("{} {accounts:?} {:?}", self.served, self.levels)
    }
}
