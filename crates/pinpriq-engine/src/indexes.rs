//! The indexes of one queue: which of its tasks can be selected, grouped, dug up or found by id.
//!
//! Ready tasks with a priority stand in the order of selection, apart for small and large payloads,
//! since one door cannot carry large ones and must not have to step over them. Ready tasks without
//! a priority and tasks in the other states stand by state and seq. A task is in exactly one of
//! these; a ready task with a key is in its group besides. Everything here is derived from the
//! tasks, and holds nothing of its own.

use std::collections::BTreeMap;

use crate::command::{End, Order, Selection};
use crate::ranked::{Rank, Ranked, precedes};
use crate::task::{Bytes, StateKind, TaskId};
use crate::tasks::{Slot, Task, Tasks};

/// The indexes of one queue. Every operation costs O(log n) unless it says otherwise.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    /// Ready tasks with a priority, and all ready tasks with a key, with small payloads.
    narrow: Selectable,
    /// The same with large payloads.
    wide: Selectable,
    /// All others, by state and seq. Under R stand the tasks without a priority.
    resting: BTreeMap<(StateKind, u64), Slot>,
    /// Tasks by id, where ids are not the shard's own numbers.
    ids: BTreeMap<TaskId, Slot>,
}

/// Ready tasks of one width.
#[derive(Debug, Default)]
struct Selectable {
    ranked: Ranked,
    groups: BTreeMap<Bytes, Group>,
}

/// The ready tasks of one width with one key.
#[derive(Debug)]
enum Group {
    /// Just one, as most are.
    One(Option<i64>, u64, Slot),
    /// Several.
    Many(Box<Members>),
}

/// The members of a group of several.
#[derive(Debug, Default)]
struct Members {
    ranked: Ranked,
    /// Those without priority, by seq.
    unranked: BTreeMap<u64, Slot>,
}

impl Indexes {
    /// Enters a task as it stands now.
    pub(crate) fn insert(&mut self, slot: Slot, task: &Task) {
        if task.kind() != StateKind::Ready {
            self.resting.insert((task.kind(), task.seq), slot);
            return;
        }
        if let Some(priority) = task.priority {
            self.side_mut(task).ranked.insert((priority, task.seq), slot);
        } else {
            self.resting.insert((StateKind::Ready, task.seq), slot);
        }
        if let Some(key) = &task.key {
            let groups = &mut self.side_mut(task).groups;
            match groups.get_mut(key) {
                Some(group) => group.insert(task.priority, task.seq, slot),
                None => {
                    groups.insert(key.clone(), Group::One(task.priority, task.seq, slot));
                }
            }
        }
    }

    /// Removes a task that was entered as it stands now.
    pub(crate) fn remove(&mut self, task: &Task) {
        if task.kind() != StateKind::Ready {
            let known = self.resting.remove(&(task.kind(), task.seq));
            assert!(known.is_some(), "task {} was not among those resting", task.number);
            return;
        }
        if let Some(priority) = task.priority {
            self.side_mut(task).ranked.remove((priority, task.seq));
        } else {
            let known = self.resting.remove(&(StateKind::Ready, task.seq));
            assert!(known.is_some(), "task {} was not among those unranked", task.number);
        }
        if let Some(key) = &task.key {
            let groups = &mut self.side_mut(task).groups;
            let Some(group) = groups.get_mut(key) else {
                unreachable!("task {} is in no group", task.number)
            };
            if group.remove(task.priority, task.seq) {
                groups.remove(key);
            }
        }
    }

    /// Makes a task known by its id. Needed only where ids are not the shard's numbers.
    pub(crate) fn insert_id(&mut self, id: &TaskId, slot: Slot) {
        let known = self.ids.insert(id.clone(), slot);
        assert!(known.is_none(), "two tasks share the id {id}");
    }

    /// Forgets an id, if it was known.
    pub(crate) fn remove_id(&mut self, id: &TaskId) {
        self.ids.remove(id);
    }

    /// The task of this id, where ids are not the shard's numbers.
    pub(crate) fn find_id(&self, id: &TaskId) -> Option<Slot> {
        self.ids.get(id).copied()
    }

    /// The first task that the selection chooses, expired or not.
    pub(crate) fn first(&self, selection: Selection) -> Option<Slot> {
        let Selection { from, order, narrow, .. } = selection;
        let small = self.narrow.ranked.first(from, order);
        let large = if narrow { None } else { self.wide.ranked.first(from, order) };
        match (small, large) {
            (Some((small, slot)), Some((large, _))) if precedes(small, large, from, order) => {
                Some(slot)
            }
            (_, Some((_, slot))) | (Some((_, slot)), None) => Some(slot),
            (None, None) => None,
        }
    }

    /// All tasks in the order of the selection, expired or not, groups not followed.
    pub(crate) fn walk(&self, selection: Selection) -> impl Iterator<Item = Slot> {
        let Selection { from, order, narrow, .. } = selection;
        let small = self.narrow.ranked.walk(from, order);
        let large = (!narrow).then(|| self.wide.ranked.walk(from, order));
        merge(small, large.into_iter().flatten(), from, order)
    }

    /// The ready tasks with this key in the order of the selection, then those without priority,
    /// the newest first; expired or not. Costs O(g log g) for a group of g.
    pub(crate) fn group(&self, key: &Bytes, selection: Selection) -> Vec<Slot> {
        let small = self.narrow.groups.get(key);
        let large = if selection.narrow { None } else { self.wide.groups.get(key) };
        let mut ranked: Vec<(Rank, Slot)> = Vec::new();
        let mut unranked: Vec<(u64, Slot)> = Vec::new();
        for group in small.into_iter().chain(large) {
            group.collect(&mut ranked, &mut unranked);
        }
        ranked.sort_unstable_by(|(left, _), (right, _)| {
            let earlier = precedes(*left, *right, selection.from, selection.order);
            if earlier { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
        });
        unranked.sort_unstable_by_key(|(seq, _)| std::cmp::Reverse(*seq));
        let ranked = ranked.into_iter().map(|(_, slot)| slot);
        ranked.chain(unranked.into_iter().map(|(_, slot)| slot)).collect()
    }

    /// The tasks of one state by seq; for R those without a priority.
    pub(crate) fn resting(&self, kind: StateKind) -> impl DoubleEndedIterator<Item = Slot> {
        self.resting.range((kind, 0)..=(kind, u64::MAX)).map(|(_, slot)| *slot)
    }

    /// The oldest ready task of each priority. Costs O(log n) for each distinct priority.
    pub(crate) fn oldest_of_each(&self) -> impl Iterator<Item = Slot> {
        self.narrow.ranked.oldest_of_each().chain(self.wide.ranked.oldest_of_each())
    }

    /// Any task at all, taken out of its main index: for freeing an emptied queue.
    pub(crate) fn any(&self) -> Option<Slot> {
        self.first(Selection::DEFAULT).or_else(|| self.resting.first_key_value().map(|(_, s)| *s))
    }

    /// Checks that these indexes hold exactly `expected` entries, and that every one is under the
    /// key that its task implies. Costs O(n).
    pub(crate) fn check(&self, tasks: &Tasks, expected: u64) {
        let mut found = 0;
        for (side, narrow) in [(&self.narrow, true), (&self.wide, false)] {
            for (rank, slot) in side.ranked.walk(End::Min, Order::Oldest) {
                let task = &tasks[slot];
                assert_eq!(task.kind(), StateKind::Ready, "a selectable task is ready");
                assert_eq!((task.priority, task.seq), (Some(rank.0), rank.1), "it stands in place");
                assert_eq!(task.is_narrow(), narrow, "task {} is on its side", task.number);
                found += 1;
            }
            for (key, group) in &side.groups {
                let (mut ranked, mut unranked) = (Vec::new(), Vec::new());
                group.collect(&mut ranked, &mut unranked);
                assert!(ranked.len() + unranked.len() > 0, "no group is empty");
                for slot in ranked.iter().map(|(_, s)| s).chain(unranked.iter().map(|(_, s)| s)) {
                    let task = &tasks[*slot];
                    assert_eq!(task.key.as_ref(), Some(key), "task {} has its key", task.number);
                    assert_eq!(task.kind(), StateKind::Ready, "a group holds ready tasks");
                }
            }
        }
        for ((kind, seq), slot) in &self.resting {
            let task = &tasks[*slot];
            assert_eq!((task.kind(), task.seq), (*kind, *seq), "task {} rests", task.number);
            assert!(*kind != StateKind::Ready || task.priority.is_none(), "ranked tasks apart");
            found += 1;
        }
        assert_eq!(found, expected, "every task is in exactly one index");
    }

    fn side_mut(&mut self, task: &Task) -> &mut Selectable {
        if task.is_narrow() { &mut self.narrow } else { &mut self.wide }
    }
}

impl Group {
    fn insert(&mut self, priority: Option<i64>, seq: u64, slot: Slot) {
        if let Self::One(priority, seq, slot) = *self {
            let mut members = Box::<Members>::default();
            members.insert(priority, seq, slot);
            *self = Self::Many(members);
        }
        if let Self::Many(members) = self {
            members.insert(priority, seq, slot);
        }
    }

    /// Removes a member and tells whether the group is empty now.
    fn remove(&mut self, priority: Option<i64>, seq: u64) -> bool {
        match self {
            Self::One(..) => true,
            Self::Many(members) => {
                match priority {
                    Some(priority) => members.ranked.remove((priority, seq)),
                    None => {
                        members.unranked.remove(&seq);
                    }
                }
                members.ranked.is_empty() && members.unranked.is_empty()
            }
        }
    }

    fn collect(&self, ranked: &mut Vec<(Rank, Slot)>, unranked: &mut Vec<(u64, Slot)>) {
        match self {
            Self::One(Some(priority), seq, slot) => ranked.push(((*priority, *seq), *slot)),
            Self::One(None, seq, slot) => unranked.push((*seq, *slot)),
            Self::Many(members) => {
                ranked.extend(members.ranked.walk(End::Min, Order::Oldest));
                unranked.extend(members.unranked.iter().map(|(seq, slot)| (*seq, *slot)));
            }
        }
    }
}

impl Members {
    fn insert(&mut self, priority: Option<i64>, seq: u64, slot: Slot) {
        match priority {
            Some(priority) => self.ranked.insert((priority, seq), slot),
            None => {
                self.unranked.insert(seq, slot);
            }
        }
    }
}

/// Two walks in the same order as one.
fn merge(
    left: impl Iterator<Item = (Rank, Slot)>,
    right: impl Iterator<Item = (Rank, Slot)>,
    from: End,
    order: Order,
) -> impl Iterator<Item = Slot> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    std::iter::from_fn(move || {
        let take_left = match (left.peek(), right.peek()) {
            (Some((one, _)), Some((other, _))) => precedes(*one, *other, from, order),
            (Some(_), None) => true,
            (None, _) => false,
        };
        let next = if take_left { left.next() } else { right.next() };
        next.map(|(_, slot)| slot)
    })
}
