//! Everything that the store was given and has kept, commit by commit, with the moments that the
//! log says: what an archive must have at any moment.
//!
//! What a crash has removed is forgotten at the next start. States are made here and compared
//! elsewhere.

use std::collections::VecDeque;

use pinpriq_proto::change::{Change, Header};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::Fold;
use pinpriq_store::journal::raw::RawCommit;

/// One commit.
struct Entry {
    /// Its number in the log.
    position: u64,
    /// The moment that the server has named. The log may have made it a later one.
    named: Timestamp,
    /// The moment that the log says, once somebody has looked.
    moment: Option<Timestamp>,
    changes: Vec<Change>,
}

/// All commits of a log; see the start of this file.
#[derive(Default)]
pub(crate) struct Chronicle {
    /// The state before `entries`.
    base: Fold,
    /// How many commits led to it.
    before: u64,
    entries: VecDeque<Entry>,
    /// How many of all commits were in a cut. These must survive.
    in_cuts: u64,
    /// The moment of the first commit that was in a cut.
    first_moment: Option<Timestamp>,
    /// The highest that any commit has said, also of those that were lost.
    highest: Header,
}

impl Chronicle {
    /// Notes a commit.
    pub(crate) fn append(&mut self, position: u64, header: &Header, changes: &[Change]) {
        self.highest.incarnation = self.highest.incarnation.max(header.incarnation);
        self.highest.last_number = self.highest.last_number.max(header.last_number);
        let (named, changes) = (header.now, changes.to_vec());
        self.entries.push_back(Entry { position, named, moment: None, changes });
    }

    /// Forgets the commits from this number on, since a start goes on with it.
    pub(crate) fn go_on_at(&mut self, position: u64) {
        let left = self.entries.partition_point(|entry| entry.position < position);
        let survived = self.before + left as u64;
        assert!(
            survived >= self.in_cuts,
            "{} commits were in cuts, and {survived} have survived",
            self.in_cuts
        );
        self.entries.truncate(left);
    }

    /// Learns from the log of a cut at which moments its commits were. Returns how many of all
    /// commits belong to the cut. `before` says the same of the cut before it, if the same server
    /// has answered it, and its moment, which no later commit may have.
    pub(super) fn learn(&mut self, commits: &[RawCommit], before: Option<(u64, Timestamp)>) -> u64 {
        let mut latest = Timestamp::ZERO;
        for commit in commits {
            let RawCommit { lsn, now, .. } = *commit;
            assert!(latest <= now, "commit {lsn} is earlier than the one before it");
            latest = now;
            let found = self.entries.binary_search_by_key(&lsn, |entry| entry.position);
            let Ok(index) = found else { continue };
            let is_new = |count: u64| self.before + index as u64 >= count;
            let is_late = before.is_some_and(|(count, at)| is_new(count) && now <= at);
            assert!(!is_late, "commit {lsn} at {now} came after a cut at {before:?}");
            let entry = &mut self.entries[index];
            assert!(entry.named <= now, "commit {lsn} was made at {} and says {now}", entry.named);
            let known = *entry.moment.get_or_insert(now);
            assert_eq!(known, now, "commit {lsn} keeps its moment");
            self.first_moment.get_or_insert(now);
        }
        let last = commits.last().map_or(0, |commit| commit.lsn);
        let count = self.entries.partition_point(|entry| entry.position <= last);
        let count = self.before + count as u64;
        self.in_cuts = self.in_cuts.max(count);
        count
    }

    /// The state after those of the first `count` commits that are not later than a moment. What
    /// was put away before a cut could have it is only known to be earlier than what came later.
    pub(super) fn state(&self, count: u64, until: Timestamp) -> Fold {
        let Some(rest) = count.checked_sub(self.before) else {
            panic!("{count} commits are archived, and {} of them are forgotten", self.before)
        };
        let rest = usize::try_from(rest).unwrap_or(usize::MAX).min(self.entries.len());
        let early = self.known_until(rest, |moment| moment <= until);
        if let Some(Entry { position, moment: None, .. }) = self.entries.range(early..rest).next() {
            panic!("nobody knows whether commit {position} was made until {until}")
        }
        self.after(self.entries.range(..early))
    }

    /// How many of the first `most` entries are as early as `is_early` wants, as far as is known.
    fn known_until(&self, most: usize, is_early: impl Fn(Timestamp) -> bool) -> usize {
        let known = |entry: &Entry| entry.moment.is_some_and(&is_early);
        self.entries.range(..most).rposition(known).map_or(0, |last| last + 1)
    }

    /// The state after all commits.
    pub(crate) fn latest(&self) -> Fold {
        self.after(self.entries.iter())
    }

    fn after<'e>(&self, entries: impl Iterator<Item = &'e Entry>) -> Fold {
        let (mut state, mut freed) = (self.base.clone(), Vec::new());
        for change in entries.flat_map(|entry| &entry.changes) {
            state.apply(change, None, &mut freed);
        }
        state
    }

    /// The moment of the first commit that was in a cut. A log without commits may begin anew at a
    /// start, so an archive need not have every moment before.
    pub(super) const fn first_moment(&self) -> Option<Timestamp> {
        self.first_moment
    }

    /// The moments of all commits that were in cuts and are not forgotten.
    pub(super) fn moments(&self) -> Vec<Timestamp> {
        self.entries.iter().filter_map(|entry| entry.moment).collect()
    }

    /// The highest incarnation and number that any commit has said, also of those that were lost.
    pub(super) const fn highest(&self) -> Header {
        self.highest
    }

    /// Forgets the states before a moment.
    pub(super) fn forget_before(&mut self, moment: Timestamp) {
        let mut freed = Vec::new();
        let early = self.known_until(self.entries.len(), |own| own < moment);
        for entry in self.entries.drain(..early) {
            for change in &entry.changes {
                self.base.apply(change, None, &mut freed);
            }
            freed.clear();
        }
        self.before += early as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::sample_task;

    fn chronicle() -> Chronicle {
        let mut chronicle = Chronicle::default();
        for (position, ms) in [(2, 10), (3, 10), (5, 20), (6, 30)] {
            let now = Timestamp::from_ms(ms);
            let header = Header { incarnation: 1, now, last_number: position };
            chronicle.append(position, &header, &[sample_task(position, "jobs", 8)]);
        }
        let commits = [(1, 0), (2, 10), (3, 11), (4, 11), (5, 20)].map(|(lsn, ms)| {
            let now = Timestamp::from_ms(ms);
            RawCommit { lsn, now, incarnation: 1, last_number: 0, oldest: 1 }
        });
        assert_eq!(chronicle.learn(&commits, None), 3);
        chronicle
    }

    fn tasks(chronicle: &Chronicle, count: u64, ms: u64) -> Vec<u64> {
        chronicle.state(count, Timestamp::from_ms(ms)).tasks.into_keys().collect()
    }

    #[test]
    fn a_moment_has_the_commits_of_its_cut_up_to_it() {
        let chronicle = chronicle();
        assert_eq!(tasks(&chronicle, 3, 9), Vec::<u64>::new());
        assert_eq!(tasks(&chronicle, 3, 10), [2]);
        assert_eq!(tasks(&chronicle, 3, 11), [2, 3]);
        assert_eq!(tasks(&chronicle, 3, 99), [2, 3, 5]);
        assert_eq!(tasks(&chronicle, 2, 99), [2, 3]);
    }

    #[test]
    fn what_is_lost_or_old_is_forgotten() {
        let mut chronicle = chronicle();
        assert_eq!(chronicle.latest().tasks.len(), 4);
        chronicle.go_on_at(6);
        assert_eq!(chronicle.latest().tasks.len(), 3);
        chronicle.forget_before(Timestamp::from_ms(11));
        assert_eq!(chronicle.moments().len(), 2);
        assert_eq!(tasks(&chronicle, 3, 11), [2, 3]);
        assert_eq!(chronicle.highest().last_number, 6, "numbers are not given again");
    }
}
