//! The indexes of one queue, which find its tasks by selection, group, state and id.
//!
//! Ready tasks with a priority are in the order of selection. Small and large payloads are
//! separate, since one door cannot carry large ones and must not have to skip them. Ready tasks
//! without a priority, and tasks in other states, are ordered by state and seq. A task is in
//! exactly one of these indexes. A ready task with a key is also in its group. Everything here is
//! derived from the tasks.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap};

use crate::memory::packed::Task;
use crate::memory::ranked::{Building, Rank, Ranked, precedes};
use crate::memory::slots::{KeyHash, Slot};
use crate::memory::sorted::{self, Key, Sorted};
use crate::memory::tasks::Tasks;
use pinpriq_proto::command::{End, Order, Selection};
use pinpriq_proto::task::{Bytes, State, StateKind, TaskId};
use pinpriq_proto::time::Timestamp;

/// The indexes of one queue. Every operation costs O(log n) unless its comment says otherwise.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    /// Ready tasks with a priority, and all ready tasks with a key, with small payloads.
    narrow: Selectable,
    /// The same for large payloads.
    wide: Selectable,
    /// All other tasks, with the state in place of the priority. Under R are the tasks without a
    /// priority.
    resting: Ranked,
    /// Waiting tasks once more, by the end of their delay.
    waiting: Sorted<Slot>,
    /// Buried tasks once more, in the order in which they were buried.
    buried: Sorted<Slot>,
    /// Tasks by id, where ids are not the numbers of the shard.
    ids: BTreeMap<TaskId, Slot>,
    /// Unfinished tasks by the key that makes them unique.
    keys: BTreeMap<Bytes, Slot>,
}

/// Ready tasks of one width.
#[derive(Debug, Default)]
struct Selectable {
    ranked: Ranked,
    /// By the hash of the key, which is far cheaper to compare than the key. If two keys have the
    /// same hash, they share an entry, and their tasks are separated when they are needed.
    groups: BTreeMap<KeyHash, Group>,
}

/// The ready tasks of one width whose keys have one hash.
#[derive(Debug)]
enum Group {
    /// One task, the usual case.
    One(Slot),
    /// Several tasks.
    Many(Box<Members>),
}

/// The members of a group of several.
#[derive(Debug, Default)]
struct Members {
    ranked: Ranked,
    /// Members without priority, by seq.
    unranked: BTreeMap<u64, Slot>,
}

impl Indexes {
    /// Builds the indexes of these tasks at once, which costs a fraction of inserting them one by
    /// one.
    pub(crate) fn of(slots: &[Slot], with_ids: bool, tasks: &Tasks) -> Self {
        let [mut narrow, mut wide] = [SelectableBuilding::default(), SelectableBuilding::default()];
        let mut resting = Building::default();
        let (mut waiting, mut buried) = (Vec::new(), Vec::new());
        for slot in slots {
            let task = &tasks[*slot];
            if task.kind() != StateKind::Ready {
                resting.push(resting_rank(task), *slot);
                match turn_of(task) {
                    None => {}
                    Some((StateKind::Waiting, turn)) => waiting.push((turn, *slot)),
                    Some((_, turn)) => buried.push((turn, *slot)),
                }
                continue;
            }
            let side = if task.is_narrow() { &mut narrow } else { &mut wide };
            match task.rank() {
                Some(rank) => side.ranked.push(rank, *slot),
                None => resting.push(resting_rank(task), *slot),
            }
            side.keys.extend(task.key().map(|key| (tasks.hash_key(key), *slot)));
        }
        let ids = slots.iter().filter(|_| with_ids).map(|slot| (tasks[*slot].id(), *slot));
        waiting.sort_unstable();
        buried.sort_unstable();
        Self {
            narrow: narrow.finish(tasks),
            wide: wide.finish(tasks),
            resting: resting.finish(),
            waiting: waiting.into_iter().collect(),
            buried: buried.into_iter().collect(),
            ids: ids.collect(),
            keys: BTreeMap::new(),
        }
    }

    /// Inserts a task with its current fields.
    pub(crate) fn insert(&mut self, slot: Slot, tasks: &Tasks) {
        let task = &tasks[slot];
        if task.kind() != StateKind::Ready {
            self.resting.insert(resting_rank(task), slot);
            if let Some((kind, turn)) = turn_of(task) {
                self.turns_mut(kind).insert(turn, slot);
            }
            return;
        }
        match task.rank() {
            Some(rank) => self.side_mut(task).ranked.insert(rank, slot),
            None => self.resting.insert(resting_rank(task), slot),
        }
        if let Some(key) = &task.key() {
            let hash = tasks.hash_key(key);
            match self.side_mut(task).groups.entry(hash) {
                Entry::Occupied(mut group) => group.get_mut().insert(slot, tasks),
                Entry::Vacant(place) => {
                    place.insert(Group::One(slot));
                }
            }
        }
    }

    /// Removes a task that was inserted with its current fields.
    pub(crate) fn remove(&mut self, slot: Slot, tasks: &Tasks) {
        let task = &tasks[slot];
        if task.kind() != StateKind::Ready {
            self.resting.remove(resting_rank(task));
            if let Some((kind, turn)) = turn_of(task) {
                let turns = self.turns_mut(kind);
                let Some(cursor) = turns.find(turn) else {
                    unreachable!("task {} has no turn", task.number())
                };
                turns.remove(cursor);
            }
            return;
        }
        match task.rank() {
            Some(rank) => self.side_mut(task).ranked.remove(rank),
            None => self.resting.remove(resting_rank(task)),
        }
        if let Some(key) = &task.key() {
            let hash = tasks.hash_key(key);
            let Entry::Occupied(mut group) = self.side_mut(task).groups.entry(hash) else {
                unreachable!("task {} is in no group", task.number())
            };
            if group.get_mut().remove(task) {
                group.remove();
            }
        }
    }

    /// Adds a task under its id. Needed only where ids are not the numbers of the shard.
    pub(crate) fn insert_id(&mut self, id: &TaskId, slot: Slot) {
        let known = self.ids.insert(id.clone(), slot);
        assert!(known.is_none(), "two tasks share the id {id}");
    }

    /// Removes an id, if it is known.
    pub(crate) fn remove_id(&mut self, id: &TaskId) {
        self.ids.remove(id);
    }

    /// Returns the task of this id, where ids are not the numbers of the shard.
    pub(crate) fn find_id(&self, id: &TaskId) -> Option<Slot> {
        self.ids.get(id).copied()
    }

    /// Gives a unique key to a task. Returns whether it holds it now: no other task may.
    pub(crate) fn hold(&mut self, key: &Bytes, slot: Slot) -> bool {
        *self.keys.entry(key.clone()).or_insert(slot) == slot
    }

    /// Frees a unique key.
    pub(crate) fn release(&mut self, key: &[u8]) {
        self.keys.remove(key);
    }

    /// Returns the task that holds a unique key.
    pub(crate) fn holder(&self, key: &[u8]) -> Option<Slot> {
        self.keys.get(key).copied()
    }

    /// The number of unique keys that are held.
    pub(crate) fn keys_held(&self) -> usize {
        self.keys.len()
    }

    /// Returns the first task that the selection chooses, expired or not.
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

    /// Returns the first selectable task after a place in the usual order, with its own place.
    pub(crate) fn after(&self, place: Rank) -> Option<(Rank, Slot)> {
        let (small, large) = (self.narrow.ranked.next(place), self.wide.ranked.next(place));
        small.into_iter().chain(large).min_by_key(|(rank, _)| *rank)
    }

    /// Iterates over all tasks in the order of the selection, expired or not. Groups are not
    /// followed.
    pub(crate) fn walk(&self, selection: Selection) -> impl Iterator<Item = Slot> {
        let Selection { from, order, narrow, .. } = selection;
        let small = self.narrow.ranked.walk(from, order);
        let large = (!narrow).then(|| self.wide.ranked.walk(from, order));
        merge(small, large.into_iter().flatten(), from, order)
    }

    /// Returns the ready tasks with this key in the order of the selection, and after them those
    /// without priority, the newest first. Includes expired tasks. Empty if there is only one such
    /// task. Costs O(g log g) for a group of g.
    pub(crate) fn group(&self, key: &Bytes, selection: Selection, tasks: &Tasks) -> Vec<Slot> {
        let hash = tasks.hash_key(key);
        let small = self.narrow.groups.get(&hash);
        let large = if selection.narrow { None } else { self.wide.groups.get(&hash) };
        if let (Some(Group::One(_)), None) | (None, Some(Group::One(_))) = (small, large) {
            // The usual case: a task without companions.
            return Vec::new();
        }
        let mut ranked: Vec<(Rank, Slot)> = Vec::new();
        let mut unranked: Vec<(u64, Slot)> = Vec::new();
        for group in small.into_iter().chain(large) {
            group.collect(tasks, &mut ranked, &mut unranked);
        }
        let has_key = |slot: &Slot| tasks[*slot].key() == Some(key);
        ranked.retain(|(_, slot)| has_key(slot));
        unranked.retain(|(_, slot)| has_key(slot));
        ranked.sort_unstable_by(|(left, _), (right, _)| {
            let earlier = precedes(*left, *right, selection.from, selection.order);
            if earlier { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
        });
        unranked.sort_unstable_by_key(|(seq, _)| Reverse(*seq));
        let ranked = ranked.into_iter().map(|(_, slot)| slot);
        ranked.chain(unranked.into_iter().map(|(_, slot)| slot)).collect()
    }

    /// Returns the first ready task with this key and a priority, by priority and seq. Expired
    /// tasks count.
    pub(crate) fn first_of_key(&self, key: &[u8], tasks: &Tasks) -> Option<Slot> {
        let hash = tasks.hash_key(key);
        let sides = [&self.narrow, &self.wide].into_iter();
        let groups = sides.filter_map(|side| side.groups.get(&hash));
        let first = groups.filter_map(|group| group.first_of(key, tasks));
        first.min_by_key(|slot| tasks[*slot].rank())
    }

    /// Iterates over the ready tasks with this key and a priority, by priority and seq. Expired
    /// tasks count.
    pub(crate) fn all_of_key<'i>(
        &'i self,
        key: &'i Bytes,
        tasks: &'i Tasks,
    ) -> impl Iterator<Item = Slot> + 'i {
        let hash = tasks.hash_key(key);
        let [small, large] = [&self.narrow, &self.wide].map(|side| {
            let group = side.groups.get(&hash);
            group.into_iter().flat_map(|group| group.ranked(tasks))
        });
        let all = merge(small, large, End::Min, Order::Oldest);
        all.filter(move |slot| tasks[*slot].key() == Some(key))
    }

    /// Iterates over the tasks of one state by seq. For R, these are the tasks without a priority.
    pub(crate) fn resting(&self, kind: StateKind) -> impl DoubleEndedIterator<Item = Slot> {
        self.resting.level(kind as i64)
    }

    /// Returns the waiting task whose delay ends first, or the task that was buried first.
    pub(crate) fn foremost(&self, kind: StateKind) -> Option<Slot> {
        let turns = match kind {
            StateKind::Waiting => &self.waiting,
            StateKind::Buried => &self.buried,
            _ => return None,
        };
        turns.first().map(|cursor| *turns.value(cursor))
    }

    /// The number of ready tasks whose priority is lower than this number. Costs a step for each
    /// chunk of these tasks.
    pub(crate) fn ready_below(&self, priority: i64) -> u64 {
        let below = |side: &Selectable| -> u64 {
            let counts = side.ranked.counts().take_while(|(of, _)| *of < priority);
            counts.map(|(_, tasks)| tasks).sum()
        };
        [&self.narrow, &self.wide].into_iter().map(below).sum()
    }

    /// Iterates over the ready tasks of each priority and width by seq. Costs O(log n) for each.
    pub(crate) fn levels(&self) -> impl Iterator<Item = impl Iterator<Item = Slot>> {
        let sides = [&self.narrow.ranked, &self.wide.ranked].into_iter();
        sides.flat_map(|side| side.priorities().map(move |priority| side.level(priority)))
    }

    /// Whether the ready tasks have so many priorities that going through them one by one takes
    /// long.
    pub(crate) fn have_many_priorities(&self) -> bool {
        let sides = [&self.narrow.ranked, &self.wide.ranked];
        sides.into_iter().any(|side| side.has_more_priorities_than(PRIORITIES_FEW))
    }

    /// Returns the oldest task that is ready with a priority. Costs a comparison for each chunk of
    /// these tasks.
    pub(crate) fn oldest_of_all(&self) -> Option<Slot> {
        let mut oldest = BinaryHeap::new();
        for side in [&self.narrow.ranked, &self.wide.ranked] {
            side.keep_oldest(0, (&mut oldest, 1));
        }
        oldest.pop().map(|(_, slot)| slot)
    }

    /// Iterates over all tasks, or over those of one state, whose seq is above `after`, by seq.
    /// Begins with a step of O(log n) for each distinct priority, if ready tasks are among them. If
    /// there are many priorities, begins with a comparison for each chunk of ready tasks instead,
    /// and now and then repeats that.
    pub(crate) fn by_seq(&self, after: u64, state: Option<StateKind>) -> BySeq<'_> {
        let levels = [&self.narrow.ranked, &self.wide.ranked, &self.resting];
        let mut heads = BinaryHeap::new();
        let is_ready_wanted = state.is_none_or(|state| state == StateKind::Ready);
        let crowd = (is_ready_wanted && self.have_many_priorities()).then(|| Crowd {
            after,
            next: Vec::new(),
            most: CROWD_FIRST,
        });
        for (index, ranked) in levels.into_iter().enumerate() {
            let rests = index == RESTING;
            if !rests && crowd.is_some() {
                continue;
            }
            if !rests && state.is_some_and(|state| state != StateKind::Ready) {
                continue;
            }
            // Resting tasks have the state in place of the priority.
            let is_wanted =
                |level: &i64| !rests || state.is_none_or(|state| state as i64 == *level);
            for level in ranked.priorities().filter(is_wanted) {
                let head = ranked.next_in_level(level, after);
                heads.extend(head.map(|(seq, slot)| Reverse(Head { seq, index, level, slot })));
            }
        }
        BySeq { levels, heads, crowd }
    }

    /// Iterates over the oldest ready task of each priority. Costs O(log n) for each distinct
    /// priority.
    pub(crate) fn oldest_of_each(&self) -> impl Iterator<Item = Slot> {
        self.narrow.ranked.oldest_of_each().chain(self.wide.ranked.oldest_of_each())
    }

    /// Returns how many ready tasks have each priority, of at most `most` priorities, the most
    /// urgent first. Costs a step for each chunk of these tasks.
    pub(crate) fn ready_by_priority(&self, most: usize) -> Vec<(i64, u64)> {
        let mut counts = BTreeMap::new();
        for side in [&self.narrow, &self.wide] {
            for (priority, tasks) in side.ranked.counts().take(most) {
                *counts.entry(priority).or_default() += tasks;
            }
        }
        counts.into_iter().take(most).collect()
    }

    /// Returns any one task from its main index. Used to free an emptied queue.
    pub(crate) fn any(&self) -> Option<Slot> {
        let resting = || self.resting.first(End::Min, Order::Oldest).map(|(_, slot)| slot);
        self.first(Selection::DEFAULT).or_else(resting)
    }

    /// Checks that these indexes hold exactly `expected` entries, each under the key that its task
    /// implies. Costs O(n).
    pub(crate) fn check(&self, tasks: &Tasks, expected: u64) {
        let mut found = 0;
        for (side, narrow) in [(&self.narrow, true), (&self.wide, false)] {
            for (rank, slot) in side.ranked.walk(End::Min, Order::Oldest) {
                let task = &tasks[slot];
                assert_eq!(task.kind(), StateKind::Ready, "a selectable task is ready");
                assert_eq!(task.rank(), Some(rank), "it stands in place");
                assert_eq!(task.is_narrow(), narrow, "task {} is on its side", task.number());
                found += 1;
            }
            for (hash, group) in &side.groups {
                let (mut ranked, mut unranked) = (Vec::new(), Vec::new());
                group.collect(tasks, &mut ranked, &mut unranked);
                assert!(ranked.len() + unranked.len() > 0, "no group is empty");
                for slot in ranked.iter().map(|(_, s)| s).chain(unranked.iter().map(|(_, s)| s)) {
                    let task = &tasks[*slot];
                    let key = task.key().as_ref().map(|key| tasks.hash_key(key));
                    assert_eq!(key, Some(*hash), "task {} is in its group", task.number());
                    assert_eq!(task.kind(), StateKind::Ready, "a group holds ready tasks");
                }
            }
        }
        for (rank, slot) in self.resting.walk(End::Min, Order::Oldest) {
            let task = &tasks[slot];
            assert_eq!(resting_rank(task), rank, "task {} rests", task.number());
            assert!(!is_ready(tasks, slot) || task.rank().is_none(), "ranked tasks apart");
            found += 1;
        }
        assert_eq!(found, expected, "every task is in exactly one index");
        for (kind, turns) in
            [(StateKind::Waiting, &self.waiting), (StateKind::Buried, &self.buried)]
        {
            assert_eq!(turns.len(), self.resting(kind).count(), "each has its turn");
            for (turn, slot) in turns.iter() {
                assert_eq!(turn_of(&tasks[*slot]), Some((kind, turn)), "it has its own turn");
            }
        }
    }

    fn turns_mut(&mut self, kind: StateKind) -> &mut Sorted<Slot> {
        if kind == StateKind::Waiting { &mut self.waiting } else { &mut self.buried }
    }

    fn side_mut(&mut self, task: &Task) -> &mut Selectable {
        if task.is_narrow() { &mut self.narrow } else { &mut self.wide }
    }
}

/// The ready tasks of one width, built at once.
#[derive(Debug, Default)]
struct SelectableBuilding {
    ranked: Building,
    /// Tasks with a key, by its hash.
    keys: Vec<(KeyHash, Slot)>,
}

impl SelectableBuilding {
    fn finish(mut self, tasks: &Tasks) -> Selectable {
        self.keys.sort_unstable();
        let groups = self.keys.chunk_by(|(one, _), (other, _)| one == other).map(|members| {
            let (hash, first) = members[0];
            let group = match members {
                [_] => Group::One(first),
                _ => {
                    Group::Many(Box::new(Members::of(members.iter().map(|(_, slot)| *slot), tasks)))
                }
            };
            (hash, group)
        });
        Selectable { groups: groups.collect(), ranked: self.ranked.finish() }
    }
}

impl Group {
    fn insert(&mut self, slot: Slot, tasks: &Tasks) {
        if let Self::One(first) = *self {
            let mut members = Box::<Members>::default();
            members.insert(first, tasks);
            *self = Self::Many(members);
        }
        if let Self::Many(members) = self {
            members.insert(slot, tasks);
        }
    }

    /// Removes a member. Returns whether the group is empty now.
    fn remove(&mut self, task: &Task) -> bool {
        match self {
            Self::One(_) => true,
            Self::Many(members) => {
                match task.rank() {
                    Some(rank) => members.ranked.remove(rank),
                    None => {
                        members.unranked.remove(&task.seq());
                    }
                }
                members.ranked.is_empty() && members.unranked.is_empty()
            }
        }
    }

    /// Returns its first task with this key and a priority.
    fn first_of(&self, key: &[u8], tasks: &Tasks) -> Option<Slot> {
        let has_key = |slot: &Slot| tasks[*slot].key().is_some_and(|it| **it == *key);
        match self {
            Self::One(slot) => {
                Some(*slot).filter(has_key).filter(|slot| tasks[*slot].rank().is_some())
            }
            Self::Many(members) => {
                let ranked = members.ranked.walk(End::Min, Order::Oldest);
                ranked.map(|(_, slot)| slot).find(has_key)
            }
        }
    }

    /// Iterates over its tasks with a priority.
    fn ranked(&self, tasks: &Tasks) -> impl Iterator<Item = (Rank, Slot)> {
        let (one, many) = match self {
            Self::One(slot) => (tasks[*slot].rank().map(|rank| (rank, *slot)), None),
            Self::Many(members) => (None, Some(members.ranked.walk(End::Min, Order::Oldest))),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    fn collect(
        &self,
        tasks: &Tasks,
        ranked: &mut Vec<(Rank, Slot)>,
        unranked: &mut Vec<(u64, Slot)>,
    ) {
        match self {
            Self::One(slot) => match tasks[*slot].rank() {
                Some(rank) => ranked.push((rank, *slot)),
                None => unranked.push((tasks[*slot].seq(), *slot)),
            },
            Self::Many(members) => {
                ranked.extend(members.ranked.walk(End::Min, Order::Oldest));
                unranked.extend(members.unranked.iter().map(|(seq, slot)| (*seq, *slot)));
            }
        }
    }
}

impl Members {
    /// Builds a group of these members at once.
    fn of(slots: impl Iterator<Item = Slot> + Clone, tasks: &Tasks) -> Self {
        let ranked = slots.clone().filter_map(|slot| Some((tasks[slot].rank()?, slot)));
        let unranked = slots.filter(|slot| tasks[*slot].rank().is_none());
        Self {
            ranked: ranked.collect(),
            unranked: unranked.map(|slot| (tasks[slot].seq(), slot)).collect(),
        }
    }

    fn insert(&mut self, slot: Slot, tasks: &Tasks) {
        match tasks[slot].rank() {
            Some(rank) => self.ranked.insert(rank, slot),
            None => {
                self.unranked.insert(tasks[slot].seq(), slot);
            }
        }
    }
}

/// The position of the resting tasks in [`BySeq::levels`].
const RESTING: usize = 2;

/// See [`Indexes::by_seq`].
#[derive(Debug)]
pub(crate) struct BySeq<'i> {
    /// The ready tasks with small and with large payloads, and all others.
    levels: [&'i Ranked; 3],
    /// The next task of each level, the oldest first.
    heads: BinaryHeap<Reverse<Head>>,
    /// The ready tasks with a priority, if they have so many that those are not levels.
    crowd: Option<Crowd>,
}

/// From more priorities than this on, the oldest tasks of all of them are looked for together.
const PRIORITIES_FEW: usize = 1_024;

/// How many of the oldest tasks are looked for together at first, and at most.
const CROWD_FIRST: usize = 64;
const CROWD_MOST: usize = 4_096;

/// Ready tasks of many priorities, by seq.
#[derive(Debug)]
struct Crowd {
    /// The seq up to which they have been looked for.
    after: u64,
    /// Those that come next, the oldest last.
    next: Vec<(u64, Slot)>,
    /// How many are looked for together.
    most: usize,
}

impl Crowd {
    /// Returns the next task of these sides.
    fn peek(&mut self, sides: &[&Ranked]) -> Option<(u64, Slot)> {
        if self.next.is_empty() && self.most > 0 {
            let mut oldest = BinaryHeap::new();
            for side in sides {
                side.keep_oldest(self.after, (&mut oldest, self.most));
            }
            // Fewer than wanted are the last ones.
            let are_last = oldest.len() < self.most;
            self.next = oldest.into_sorted_vec();
            self.after = self.next.last().map_or(self.after, |(seq, _)| *seq);
            self.next.reverse();
            self.most = if are_last { 0 } else { (self.most * 4).min(CROWD_MOST) };
        }
        self.next.last().copied()
    }
}

/// The next task of a level.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Head {
    seq: u64,
    index: usize,
    level: i64,
    slot: Slot,
}

impl Iterator for BySeq<'_> {
    type Item = (u64, Slot);

    fn next(&mut self) -> Option<(u64, Slot)> {
        if let Some(crowd) = &mut self.crowd
            && let Some((seq, slot)) = crowd.peek(&self.levels[..RESTING])
            && self.heads.peek().is_none_or(|Reverse(head)| seq < head.seq)
        {
            crowd.next.pop();
            return Some((seq, slot));
        }
        let Reverse(head) = self.heads.pop()?;
        let next = self.levels[head.index].next_in_level(head.level, head.seq);
        self.heads.extend(next.map(|(seq, slot)| Reverse(Head { seq, slot, ..head })));
        Some((head.seq, head.slot))
    }
}

/// The rank of a task among the resting tasks.
fn resting_rank(task: &Task) -> Rank {
    (task.kind() as i64, task.seq())
}

/// The place of a waiting task among those that wait, or of a buried one among those that are
/// buried.
fn turn_of(task: &Task) -> Option<(StateKind, Key)> {
    let above = match task.state() {
        // Those that are held come last.
        State::Waiting { ready_at } => ready_at.map_or(u64::MAX, Timestamp::ms),
        State::Buried(burial) => burial.number(),
        _ => return None,
    };
    Some((task.kind(), sorted::key_of(above, task.number())))
}

fn is_ready(tasks: &Tasks, slot: Slot) -> bool {
    tasks[slot].kind() == StateKind::Ready
}

/// Merges two walks in the same order into one.
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
