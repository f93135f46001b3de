//! The one index of moments at which something is due without anybody asking.
//!
//! A task has at most one entry, for the next moment that matters to it; a blocked taker and an
//! awaiter have one if they do not wait for ever, and so has a member. Entries that are due at the
//! same moment come in the order tasks, takers, awaiters, members, and then by age, so that a
//! replay agrees with the run. Nothing here reads a clock.

use std::collections::BTreeSet;

use crate::consumers::{AwaiterId, TakerId};
use crate::time::Timestamp;

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    /// The task of this number must be looked at.
    Task(u64),
    /// A blocked take has waited long enough.
    Taker(TakerId),
    /// An await has waited long enough.
    Awaiter(AwaiterId),
    /// The lease of the member of this incarnation may have run out.
    Member(u64),
}

/// All deadlines of a shard. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    entries: BTreeSet<(Timestamp, Due)>,
}

impl FromIterator<(Timestamp, Due)> for Deadlines {
    fn from_iter<I: IntoIterator<Item = (Timestamp, Due)>>(entries: I) -> Self {
        Self { entries: entries.into_iter().collect() }
    }
}

impl Deadlines {
    pub(crate) fn insert(&mut self, at: Timestamp, due: Due) {
        self.entries.insert((at, due));
    }

    pub(crate) fn remove(&mut self, at: Timestamp, due: Due) {
        let known = self.entries.remove(&(at, due));
        assert!(known, "{due:?} was not due at {at}");
    }

    /// The earliest moment at which anything is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.entries.first().map(|(at, _)| *at)
    }

    /// Removes and returns the earliest entry that is due at `now`. A deadline is due *at* its
    /// moment, not after it.
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<Due> {
        let (at, _) = self.entries.first()?;
        if *at > now || (planted!(DeadlineOneLate) && *at == now) {
            return None;
        }
        self.entries.pop_first().map(|(_, due)| due)
    }

    pub(crate) fn contains(&self, at: Timestamp, due: Due) -> bool {
        self.entries.contains(&(at, due))
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}
