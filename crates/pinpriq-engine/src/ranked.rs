//! Tasks in the order in which they are selected.
//!
//! The order has two keys, the priority and the seq, and four ways to walk it: from the lowest or
//! the highest priority, and within one priority from the oldest or the newest. Used for the
//! ready tasks of a queue and for those of a group. Nothing here knows about states or time.

use std::collections::BTreeMap;

use crate::command::{End, Order};
use crate::tasks::Slot;

/// A place in the order: the priority, then the seq.
pub(crate) type Rank = (i64, u64);

/// Tasks by rank. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(crate) struct Ranked {
    tasks: BTreeMap<Rank, Slot>,
}

impl Ranked {
    pub(crate) fn insert(&mut self, rank: Rank, slot: Slot) {
        let known = self.tasks.insert(rank, slot);
        assert!(known.is_none(), "two tasks share the rank {rank:?}");
    }

    pub(crate) fn remove(&mut self, rank: Rank) {
        let known = self.tasks.remove(&rank);
        assert!(known.is_some(), "no task has the rank {rank:?}");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The first task in the given order.
    pub(crate) fn first(&self, from: End, order: Order) -> Option<(Rank, Slot)> {
        let outermost = match from {
            End::Min => self.tasks.first_key_value(),
            End::Max => self.tasks.last_key_value(),
        };
        let ((priority, _), _) = outermost?;
        let mut level = self.tasks.range((*priority, 0)..=(*priority, u64::MAX));
        let chosen = match order {
            Order::Oldest => level.next(),
            Order::Newest => level.next_back(),
        };
        chosen.map(|(rank, slot)| (*rank, *slot))
    }

    /// All tasks in the given order. Each step costs O(log n) at most.
    pub(crate) fn walk(&self, from: End, order: Order) -> Walk<'_> {
        Walk { ranked: self, from, order, next: self.first(from, order) }
    }

    /// The oldest seq of each priority. Costs O(log n) for each distinct priority.
    pub(crate) fn oldest_of_each(&self) -> impl Iterator<Item = Slot> {
        let mut next = self.first(End::Min, Order::Oldest);
        std::iter::from_fn(move || {
            let ((priority, _), slot) = next?;
            next = self
                .tasks
                .range((priority, u64::MAX)..)
                .find(|((other, _), _)| *other > priority)
                .map(|(rank, slot)| (*rank, *slot));
            Some(slot)
        })
    }

    /// The task after `rank` in the given order.
    fn after(&self, rank: Rank, from: End, order: Order) -> Option<(Rank, Slot)> {
        let (priority, seq) = rank;
        let same = match order {
            Order::Oldest => {
                seq.checked_add(1).and_then(|seq| self.tasks.range((priority, seq)..).next())
            }
            Order::Newest => self.tasks.range(..rank).next_back(),
        };
        let same = same.filter(|((other, _), _)| *other == priority);
        if let Some((rank, slot)) = same {
            return Some((*rank, *slot));
        }
        let next_priority = match from {
            End::Min => self.tasks.range((priority.checked_add(1)?, 0)..).next()?.0.0,
            End::Max => self.tasks.range(..(priority, 0)).next_back()?.0.0,
        };
        let mut level = self.tasks.range((next_priority, 0)..=(next_priority, u64::MAX));
        let chosen = match order {
            Order::Oldest => level.next(),
            Order::Newest => level.next_back(),
        };
        chosen.map(|(rank, slot)| (*rank, *slot))
    }
}

impl FromIterator<(Rank, Slot)> for Ranked {
    fn from_iter<I: IntoIterator<Item = (Rank, Slot)>>(tasks: I) -> Self {
        Self { tasks: tasks.into_iter().collect() }
    }
}

/// See [`Ranked::walk`].
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    ranked: &'a Ranked,
    from: End,
    order: Order,
    next: Option<(Rank, Slot)>,
}

impl Iterator for Walk<'_> {
    type Item = (Rank, Slot);

    fn next(&mut self) -> Option<(Rank, Slot)> {
        let current = self.next?;
        self.next = self.ranked.after(current.0, self.from, self.order);
        Some(current)
    }
}

/// Whether `left` comes before `right` in the given order.
pub(crate) const fn precedes(left: Rank, right: Rank, from: End, order: Order) -> bool {
    if left.0 != right.0 {
        return match from {
            End::Min => left.0 < right.0,
            End::Max => left.0 > right.0,
        };
    }
    match order {
        Order::Oldest => left.1 < right.1,
        Order::Newest => left.1 > right.1,
    }
}
