//! The ready tasks of an ageing queue, in the order in which they go.
//!
//! A task has a rank: the moment at which it has begun to age, and its priority times what a step
//! of that counts. Lower ranks go first, and of equal ones the task with the lower seq. Ranks take
//! 128 bits, and hardly two are equal, so they have an order of their own here.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::line::Line;
use super::named::Id;
use super::{Entrant, Turns};
use crate::memory::ranked::precedes;
use crate::memory::slots::Slot;
use pinpriq_proto::command::{End, Order, Selection};

/// The place of a task in the order of ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Aged {
    pub(super) rank: i128,
    pub(super) seq: u64,
    pub(super) slot: Slot,
}

/// Tasks with small payloads, and those with large ones. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(crate) struct AgedTasks {
    narrow: Line<Aged>,
    wide: Line<Aged>,
    /// Those of each key once more, where keys may hold tasks back.
    keys: BTreeMap<Id, Line<Aged>>,
}

impl AgedTasks {
    fn insert(&mut self, task: Aged, is_narrow: bool) {
        self.side(is_narrow).insert(task);
    }

    fn remove(&mut self, task: Aged, is_narrow: bool) {
        self.side(is_narrow).remove(task);
    }

    /// Returns the task that a selection chooses.
    pub(super) fn first(&self, selection: Selection) -> Option<Slot> {
        self.walk(selection).next()
    }

    /// Iterates over all tasks in the order of the selection. Groups are not followed.
    pub(crate) fn walk(&self, selection: Selection) -> impl Iterator<Item = Slot> {
        let Selection { from, order, narrow: is_narrow, .. } = selection;
        let mut small = end_of(&self.narrow, from, order);
        let mut large = end_of(&self.wide, from, order).filter(|_| !is_narrow);
        std::iter::from_fn(move || {
            let is_small = match (small, large) {
                (Some(small), Some(large)) => {
                    precedes((small.rank, small.seq), (large.rank, large.seq), from, order)
                }
                (small, _) => small.is_some(),
            };
            let (line, next) =
                if is_small { (&self.narrow, &mut small) } else { (&self.wide, &mut large) };
            let task = (*next)?;
            *next = after(line, task, from, order);
            Some(task.slot)
        })
    }

    /// Frees some memory, of tasks that are used no longer.
    pub(super) fn free_some(&mut self) {
        self.narrow.free_some();
        self.wide.free_some();
        self.keys.pop_first();
    }

    /// The first task of a key.
    pub(super) fn first_of_key(&self, key: Id) -> Option<Slot> {
        self.keys.get(&key)?.first().map(|task| task.slot)
    }

    /// All tasks of a key, in order.
    pub(super) fn all_of_key(&self, key: Id) -> impl Iterator<Item = Slot> {
        self.keys.get(&key).into_iter().flat_map(|line| line.iter().map(|task| task.slot))
    }

    /// All tasks, for checks.
    pub(super) fn all(&self) -> impl Iterator<Item = (bool, Aged)> {
        let of = |line: &'_ Line<Aged>, is_narrow| {
            line.iter().map(|task| (is_narrow, *task)).collect::<Vec<_>>()
        };
        of(&self.narrow, true).into_iter().chain(of(&self.wide, false))
    }

    fn side(&mut self, is_narrow: bool) -> &mut Line<Aged> {
        if is_narrow { &mut self.narrow } else { &mut self.wide }
    }
}

impl Turns {
    /// Whether takers cannot ask for tasks in another order.
    pub(crate) const fn fix_order(&self) -> bool {
        self.rules.fix_order()
    }

    /// All tasks that could be handed out, if they age.
    pub(crate) fn aged(&self) -> Option<&AgedTasks> {
        self.aged.as_deref()
    }

    /// Adds a task to those that age, or removes it, with its current fields.
    pub(super) fn age(&mut self, slot: Slot, task: &Entrant<'_>, is_there: bool) {
        match &mut self.aged {
            Some(aged) if task.is_selectable() && is_there => {
                aged.insert(task.aged(slot), task.is_narrow);
            }
            Some(aged) if task.is_selectable() => aged.remove(task.aged(slot), task.is_narrow),
            _ => {}
        }
    }

    /// Does the same among the tasks of its key.
    pub(super) fn age_in_key(&mut self, key: Id, slot: Slot, task: &Entrant<'_>, is_there: bool) {
        let Some(aged) = self.aged.as_mut().filter(|_| task.is_selectable()) else { return };
        if is_there {
            aged.keys.entry(key).or_default().insert(task.aged(slot));
        } else if let Entry::Occupied(mut line) = aged.keys.entry(key) {
            line.get_mut().remove(task.aged(slot));
            if line.get().is_empty() {
                line.remove();
            }
        }
    }
}

/// The first task of a line in this order.
fn end_of(line: &Line<Aged>, from: End, order: Order) -> Option<Aged> {
    let outermost = match from {
        End::Min => line.first(),
        End::Max => line.last(),
    };
    of_rank(line, outermost?.rank, order)
}

/// The task after this one in this order.
fn after(line: &Line<Aged>, task: Aged, from: End, order: Order) -> Option<Aged> {
    let same = match order {
        Order::Oldest => line.above(task),
        Order::Newest => line.below(task),
    };
    if let Some(same) = same.filter(|other| other.rank == task.rank) {
        return Some(*same);
    }
    let next = match from {
        End::Min => line.above(Aged { seq: u64::MAX, ..task }),
        End::Max => line.below(Aged { seq: 0, ..task }),
    };
    of_rank(line, next?.rank, order)
}

/// The oldest or newest task of a rank. Seqs begin at 1.
fn of_rank(line: &Line<Aged>, rank: i128, order: Order) -> Option<Aged> {
    let slot = line.first()?.slot;
    let found = match order {
        Order::Oldest => line.above(Aged { rank, seq: 0, slot }),
        Order::Newest => line.below(Aged { rank, seq: u64::MAX, slot }),
    };
    found.copied()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::memory::sorted::tests::draws;

    /// Inserts and removes by a fixed sequence of numbers, and compares every walk with a sorted
    /// list.
    #[test]
    fn every_walk_agrees_with_a_sorted_list() {
        let mut draw = draws();
        let mut tasks = AgedTasks::default();
        let mut known: Vec<(bool, Aged)> = Vec::new();
        for step in 1..6_000_u32 {
            let is_narrow = draw(3) > 0;
            let rank = if draw(20) == 0 { i128::MIN / 4 } else { i128::from(draw(400)) << 70 };
            let slot = Slot::of(NonZeroU32::MIN.saturating_add(step));
            if draw(5) > 1 || known.is_empty() {
                let task = Aged { rank, seq: u64::from(step), slot };
                tasks.insert(task, is_narrow);
                known.push((is_narrow, task));
            } else {
                let at = usize::try_from(draw(known.len() as u64)).unwrap_or(0);
                let (is_narrow, task) = known.swap_remove(at);
                tasks.remove(task, is_narrow);
            }
            if step % 500 == 0 {
                compare(&tasks, &known);
            }
        }
    }

    fn compare(tasks: &AgedTasks, known: &[(bool, Aged)]) {
        for from in [End::Min, End::Max] {
            for (order, narrow) in
                [Order::Oldest, Order::Newest].into_iter().flat_map(|it| [(it, true), (it, false)])
            {
                let mut expected: Vec<Aged> = Vec::new();
                expected.extend(known.iter().filter(|it| !narrow || it.0).map(|it| it.1));
                let turned = |is_turned: bool, value: i128| if is_turned { -value } else { value };
                expected.sort_unstable_by_key(|task| {
                    let rank = turned(from == End::Max, task.rank);
                    (rank, turned(order == Order::Newest, i128::from(task.seq)))
                });
                let selection = Selection { from, order, narrow, ..Selection::DEFAULT };
                let walked: Vec<Slot> = tasks.walk(selection).collect();
                let expected: Vec<Slot> = expected.into_iter().map(|task| task.slot).collect();
                assert_eq!(walked, expected, "{selection:?}");
                assert_eq!(tasks.first(selection), expected.first().copied());
            }
        }
    }
}
