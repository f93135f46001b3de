//! Tasks in the order in which they are selected.
//!
//! The order has two keys, the priority and the seq. There are four ways to walk it: from the
//! lowest or the highest priority, and within one priority from the oldest or the newest. It is
//! used for the ready tasks of a queue and for those of a group. Nothing here knows about states or
//! time.
//!
//! Tasks of one priority are in chunks. Each chunk is a sorted run of seqs, and the chunks are
//! sorted too. Most tasks enter at the end of the last chunk and leave at the front of the first.
//! So an entry takes eight bytes, and a chunk is full when the next one begins.

use std::collections::{BinaryHeap, VecDeque};

use crate::memory::slots::Slot;
use crate::memory::sorted::{self, Cursor, Key, Sorted};
use pinpriq_proto::command::{End, Order};

/// A place in the order: first the priority, then the seq.
pub(crate) type Rank = (i64, u64);

/// The key of a rank. Negative priorities come first.
const fn key_of((priority, seq): Rank) -> Key {
    sorted::key_of(priority.cast_unsigned() ^ (1 << 63), seq)
}

/// The priority of a key.
const fn priority_of(key: Key) -> i64 {
    (sorted::above(key) ^ (1 << 63)).cast_signed()
}

/// The most tasks in a chunk.
const CHUNK_TASKS: usize = 256;

/// Tasks by rank. Every operation costs O(log n), plus a scan of part of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Ranked {
    /// By a rank that no task of the chunk precedes. A chunk is never empty, and its tasks have the
    /// same priority.
    chunks: Sorted<Box<Chunk>>,
}

/// A run of tasks of one priority, sorted by seq.
#[derive(Debug)]
struct Chunk {
    /// Seqs are stored as distances from this one.
    base: u64,
    entries: VecDeque<(u32, Slot)>,
}

impl Chunk {
    fn of_one(seq: u64, slot: Slot) -> Self {
        Self { base: seq, entries: VecDeque::from([(0, slot)]) }
    }

    fn seq(&self, entry: (u32, Slot)) -> u64 {
        self.base + u64::from(entry.0)
    }

    fn first(&self) -> Option<(u64, Slot)> {
        self.entries.front().map(|entry| (self.seq(*entry), entry.1))
    }

    fn last(&self) -> Option<(u64, Slot)> {
        self.entries.back().map(|entry| (self.seq(*entry), entry.1))
    }

    /// The distance of a seq from the base, if it can be stored here.
    fn distance(&self, seq: u64) -> Option<u32> {
        seq.checked_sub(self.base).and_then(|distance| u32::try_from(distance).ok())
    }

    /// The position of the first entry whose seq is at least `seq`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every put and every end of a lease")]
    fn position(&self, seq: u64) -> usize {
        // Most tasks enter at the end.
        if self.last().is_none_or(|(last, _)| last < seq) {
            return self.entries.len();
        }
        self.entries.partition_point(|entry| self.seq(*entry) < seq)
    }
}

impl Ranked {
    pub(crate) fn insert(&mut self, rank: Rank, slot: Slot) {
        let (priority, seq) = rank;
        if let Some(cursor) = self.chunk_of(rank)
            && let chunk = self.chunks.value_mut(cursor)
            && let Some(distance) = chunk.distance(seq)
        {
            let at = chunk.position(seq);
            let known = chunk.entries.get(at).is_some_and(|entry| entry.0 == distance);
            assert!(!known, "two tasks share the rank {rank:?}");
            let is_last = at == chunk.entries.len();
            if chunk.entries.len() < CHUNK_TASKS {
                if is_last {
                    chunk.entries.push_back((distance, slot));
                } else {
                    chunk.entries.insert(at, (distance, slot));
                }
                return;
            }
            if !is_last {
                let upper = chunk.entries.split_off(CHUNK_TASKS / 2);
                let upper = Chunk { base: chunk.base, entries: upper };
                if let Some((first, _)) = upper.first() {
                    self.chunks.insert(key_of((priority, first)), Box::new(upper));
                }
                self.insert(rank, slot);
                return;
            }
        }
        self.chunks.insert(key_of(rank), Box::new(Chunk::of_one(seq, slot)));
    }

    pub(crate) fn remove(&mut self, rank: Rank) {
        let seq = rank.1;
        let Some(cursor) = self.chunk_of(rank) else {
            unreachable!("no task has the rank {rank:?}")
        };
        let chunk = self.chunks.value_mut(cursor);
        let removed = if chunk.first().is_some_and(|(first, _)| first == seq) {
            chunk.entries.pop_front()
        } else {
            chunk.entries.remove(chunk.position(seq))
        };
        let seq_removed = removed.map(|entry| chunk.seq(entry));
        assert_eq!(seq_removed, Some(seq), "no task has the rank {rank:?}");
        let left = chunk.entries.len();
        if left == 0 {
            self.chunks.remove(cursor);
        } else if left <= CHUNK_TASKS / 4 && left < chunk.entries.capacity() / 4 {
            self.thin_out(cursor);
        }
    }

    /// Returns the chunk that holds the task of this rank, if there is such a task.
    fn chunk_of(&self, rank: Rank) -> Option<Cursor> {
        let cursor = self.chunks.at_or_below(key_of(rank))?;
        (self.priority_at(cursor) == rank.0).then_some(cursor)
    }

    fn priority_at(&self, cursor: Cursor) -> i64 {
        priority_of(self.chunks.key(cursor))
    }

    /// Shrinks a chunk that became small, or joins it with the one before if both are small. So a
    /// few tasks that stay for long do not hold the memory of all that left.
    fn thin_out(&mut self, cursor: Cursor) {
        let key = self.chunks.key(cursor);
        let mut chunk = self.chunks.remove(cursor);
        let before = self.chunks.at_or_below(key);
        if let Some(before) = before.filter(|at| self.priority_at(*at) == priority_of(key))
            && let before = self.chunks.value_mut(before)
            && before.entries.len() + chunk.entries.len() <= CHUNK_TASKS / 2
            && chunk.last().is_some_and(|(last, _)| before.distance(last).is_some())
        {
            for entry in &chunk.entries {
                if let Some(distance) = before.distance(chunk.seq(*entry)) {
                    before.entries.push_back((distance, entry.1));
                }
            }
            return;
        }
        chunk.entries.shrink_to_fit();
        self.chunks.insert(key, chunk);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns the first task in the given order.
    pub(crate) fn first(&self, from: End, order: Order) -> Option<(Rank, Slot)> {
        let cursor = match from {
            End::Min => self.chunks.first()?,
            End::Max => self.chunks.last()?,
        };
        match (from, order) {
            (End::Min, Order::Oldest) => self.oldest_at(cursor),
            (End::Max, Order::Newest) => self.newest_at(cursor),
            (End::Min, Order::Newest) | (End::Max, Order::Oldest) => {
                self.first_of(self.priority_at(cursor), order)
            }
        }
    }

    /// Iterates over all tasks in the given order. Each step costs O(log n) at most.
    pub(crate) fn walk(&self, from: End, order: Order) -> Walk<'_> {
        Walk { ranked: self, from, order, next: self.first(from, order) }
    }

    /// Iterates over all tasks of one priority, the oldest first.
    pub(crate) fn level(&self, priority: i64) -> impl DoubleEndedIterator<Item = Slot> {
        self.chunks
            .range(key_of((priority, 0)), key_of((priority, u64::MAX)))
            .flat_map(|chunk| chunk.entries.iter().map(|entry| entry.1))
    }

    /// Iterates over the oldest task of each priority. Costs O(log n) for each distinct priority.
    pub(crate) fn oldest_of_each(&self) -> impl Iterator<Item = Slot> {
        self.fronts().map(|(_, slot)| slot)
    }

    /// Whether there are more priorities than this number. Costs a comparison for each chunk that
    /// is looked at, which is far less than looking at tasks.
    pub(crate) fn has_more_priorities_than(&self, most: usize) -> bool {
        let mut priorities = self.chunks.iter().map(|(key, _)| priority_of(key));
        let Some(mut last) = priorities.next() else { return false };
        let is_next = |priority: &i64| std::mem::replace(&mut last, *priority) != *priority;
        priorities.filter(is_next).nth(most.saturating_sub(1)).is_some() || most == 0
    }

    /// Keeps the oldest tasks of all priorities whose seq is above `after`, together with what is
    /// there already, at most `most` of them. Costs a comparison for each chunk, and more only for
    /// those that have tasks to be kept.
    pub(crate) fn keep_oldest(
        &self,
        after: u64,
        (oldest, most): (&mut BinaryHeap<(u64, Slot)>, usize),
    ) {
        for (key, chunk) in self.chunks.iter() {
            // No task of the chunk comes before the seq of its key.
            let is_hopeless = |seq: u64, oldest: &BinaryHeap<(u64, Slot)>| {
                oldest.len() == most && oldest.peek().is_some_and(|(last, _)| *last <= seq)
            };
            if is_hopeless(sorted::below(key), oldest)
                || chunk.last().is_none_or(|(last, _)| last <= after)
            {
                continue;
            }
            for entry in chunk.entries.range(chunk.position(after.saturating_add(1))..) {
                let seq = chunk.seq(*entry);
                if is_hopeless(seq, oldest) {
                    break;
                }
                if oldest.len() == most {
                    oldest.pop();
                }
                oldest.push((seq, entry.1));
            }
        }
    }

    /// Iterates over all priorities, the lowest first. Costs O(log n) for each.
    pub(crate) fn priorities(&self) -> impl Iterator<Item = i64> {
        self.fronts().map(|((priority, _), _)| priority)
    }

    /// Iterates over the number of tasks of each priority, the lowest first. Costs a step for each
    /// chunk.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (i64, u64)> {
        let mut next = self.chunks.first();
        std::iter::from_fn(move || {
            let priority = self.priority_at(next?);
            let mut count = 0;
            while let Some(cursor) = next.filter(|cursor| self.priority_at(*cursor) == priority) {
                count += self.chunks.value(cursor).entries.len() as u64;
                next = self.chunks.after(cursor);
            }
            Some((priority, count))
        })
    }

    /// Returns the oldest task of a priority whose seq is above `seq`, with its seq.
    pub(crate) fn next_in_level(&self, priority: i64, seq: u64) -> Option<(u64, Slot)> {
        let found = self.above((priority, seq)).filter(|((found, _), _)| *found == priority);
        found.map(|((_, seq), slot)| (seq, slot))
    }

    fn fronts(&self) -> impl Iterator<Item = (Rank, Slot)> {
        let mut next = self.first(End::Min, Order::Oldest);
        std::iter::from_fn(move || {
            let front = next?;
            next = self.above((front.0.0, u64::MAX));
            Some(front)
        })
    }

    /// Returns the oldest or newest task of a priority.
    fn first_of(&self, priority: i64, order: Order) -> Option<(Rank, Slot)> {
        let found = match order {
            Order::Oldest => self.oldest_at(self.chunks.at_or_above(key_of((priority, 0)))?),
            Order::Newest => self.newest_at(self.chunks.at_or_below(key_of((priority, u64::MAX)))?),
        };
        found.filter(|((found, _), _)| *found == priority)
    }

    fn oldest_at(&self, cursor: Cursor) -> Option<(Rank, Slot)> {
        let (seq, slot) = self.chunks.value(cursor).first()?;
        Some(((self.priority_at(cursor), seq), slot))
    }

    fn newest_at(&self, cursor: Cursor) -> Option<(Rank, Slot)> {
        let (seq, slot) = self.chunks.value(cursor).last()?;
        Some(((self.priority_at(cursor), seq), slot))
    }

    /// Returns the next task above `rank`.
    pub(crate) fn next(&self, rank: Rank) -> Option<(Rank, Slot)> {
        self.above(rank)
    }

    fn above(&self, rank: Rank) -> Option<(Rank, Slot)> {
        let below = self.chunks.at_or_below(key_of(rank));
        let within =
            below.filter(|cursor| self.priority_at(*cursor) == rank.0).and_then(|cursor| {
                let chunk = self.chunks.value(cursor);
                let entry = chunk.entries.get(chunk.position(rank.1.checked_add(1)?))?;
                Some(((rank.0, chunk.seq(*entry)), entry.1))
            });
        within.or_else(|| {
            let next =
                below.map_or_else(|| self.chunks.first(), |cursor| self.chunks.after(cursor));
            self.oldest_at(next?)
        })
    }

    /// Returns the next task below `rank`.
    fn below(&self, rank: Rank) -> Option<(Rank, Slot)> {
        let cursor = self.chunks.at_or_below(key_of(rank))?;
        if self.priority_at(cursor) != rank.0 {
            return self.newest_at(cursor);
        }
        let chunk = self.chunks.value(cursor);
        match chunk.position(rank.1).checked_sub(1).and_then(|at| chunk.entries.get(at)) {
            Some(entry) => Some(((rank.0, chunk.seq(*entry)), entry.1)),
            None => self.newest_at(self.chunks.before(cursor)?),
        }
    }

    /// Returns the task after `rank` in the given order.
    fn after(&self, rank: Rank, from: End, order: Order) -> Option<(Rank, Slot)> {
        let priority = rank.0;
        let same = match order {
            Order::Oldest => self.above(rank),
            Order::Newest => self.below(rank),
        };
        if let Some(found) = same.filter(|((other, _), _)| *other == priority) {
            return Some(found);
        }
        let next = match from {
            End::Min => self.above((priority, u64::MAX)),
            End::Max => self.below((priority, 0)),
        };
        let ((next_priority, _), _) = next?;
        self.first_of(next_priority, order)
    }
}

/// Builds a [`Ranked`] of many tasks at a fraction of the cost of inserting them one by one. It
/// costs least if the tasks of each priority come by age, as restored tasks do.
#[derive(Debug, Default)]
pub(crate) struct Building {
    full: Vec<(Key, Box<Chunk>)>,
    /// The last chunk of each priority.
    open: Vec<(i64, Box<Chunk>)>,
    /// The positions in `open`, by priority alone.
    levels: Sorted<usize>,
    /// A cache of positions in `open` for priorities seen before, each at its remainder. Used once
    /// there are many priorities.
    seen: Vec<Option<(i64, usize)>>,
    /// Tasks that came after a newer task of their priority.
    late: Vec<(Rank, Slot)>,
}

/// The number of entries of [`Building::seen`], and the number of priorities from which on it is
/// used.
const SEEN_LEVELS: u16 = 1_024;
const SEEN_FROM_LEVELS: usize = 16;

impl Building {
    pub(crate) fn push(&mut self, rank: Rank, slot: Slot) {
        let (priority, seq) = rank;
        let Some(level) = self.level(priority) else {
            self.levels.insert(key_of((priority, 0)), self.open.len());
            self.open.push((priority, Box::new(Chunk::of_one(seq, slot))));
            return;
        };
        let (_, chunk) = &mut self.open[level];
        if chunk.last().is_some_and(|(last, _)| last >= seq) {
            self.late.push((rank, slot));
            return;
        }
        if let Some(distance) = chunk.distance(seq).filter(|_| chunk.entries.len() < CHUNK_TASKS) {
            chunk.entries.push_back((distance, slot));
        } else {
            let done = std::mem::replace(chunk, Box::new(Chunk::of_one(seq, slot)));
            self.full.push((key_of((priority, done.base)), done));
        }
    }

    /// Returns the position of the last chunk of a priority in `open`, if there is one.
    fn level(&mut self, priority: i64) -> Option<usize> {
        if self.seen.is_empty() && self.open.len() >= SEEN_FROM_LEVELS {
            self.seen = vec![None; usize::from(SEEN_LEVELS)];
        }
        let remainder = usize::try_from(priority.rem_euclid(i64::from(SEEN_LEVELS)));
        let seen = remainder.ok().and_then(|at| self.seen.get_mut(at));
        if let Some(Some((known, level))) = seen
            && *known == priority
        {
            return Some(*level);
        }
        let level = *self.levels.value(self.levels.find(key_of((priority, 0)))?);
        if let Some(seen) = seen {
            *seen = Some((priority, level));
        }
        Some(level)
    }

    pub(crate) fn finish(self) -> Ranked {
        let Self { full: mut chunks, open, late, .. } = self;
        for (priority, mut chunk) in open {
            chunk.entries.shrink_to_fit();
            chunks.push((key_of((priority, chunk.base)), chunk));
        }
        chunks.sort_unstable_by_key(|(key, _)| *key);
        let mut ranked = Ranked { chunks: chunks.into_iter().collect() };
        for (rank, slot) in late {
            ranked.insert(rank, slot);
        }
        ranked
    }
}

impl FromIterator<(Rank, Slot)> for Ranked {
    fn from_iter<I: IntoIterator<Item = (Rank, Slot)>>(tasks: I) -> Self {
        let mut building = Building::default();
        tasks.into_iter().for_each(|(rank, slot)| building.push(rank, slot));
        building.finish()
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
#[inline]
pub(crate) fn precedes<N: Copy + PartialOrd>(
    left: (N, u64),
    right: (N, u64),
    from: End,
    order: Order,
) -> bool {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;

    use super::*;
    use crate::memory::sorted::tests::draws;

    /// Inserts and removes by a fixed sequence of numbers, and compares every walk with a sorted
    /// list.
    #[test]
    fn every_walk_agrees_with_a_sorted_list() {
        let mut draw = draws();
        let mut ranked = Ranked::default();
        let mut known: BTreeMap<Rank, Slot> = BTreeMap::new();
        for step in 0..20_000_u32 {
            let fills = (step / 4_000) % 2 == 0;
            let priority = i64::try_from(draw(3)).unwrap_or(0) - 1;
            // Some are far apart, so that distances do not fit in a chunk.
            let seq = if draw(50) == 0 { draw(u64::MAX) } else { draw(5_000) };
            if fills || known.is_empty() {
                let rank = (priority, seq);
                if known.contains_key(&rank) {
                    continue;
                }
                let slot = Slot::of(NonZeroU32::MIN.saturating_add(step));
                ranked.insert(rank, slot);
                known.insert(rank, slot);
            } else {
                let from = (priority, seq);
                let rank = known.range(from..).next().or_else(|| known.iter().next());
                let Some((&rank, _)) = rank else { continue };
                ranked.remove(rank);
                known.remove(&rank);
            }
            if step % 500 == 0 {
                compare(&ranked, &known);
                let tasks = known.iter().map(|(rank, slot)| (*rank, *slot));
                compare(&tasks.clone().collect(), &known);
                compare(&tasks.clone().rev().collect(), &known);
                let mut by_age: Vec<(Rank, Slot)> = tasks.collect();
                by_age.sort_unstable_by_key(|((priority, seq), _)| (*seq, *priority));
                compare(&by_age.into_iter().collect(), &known);
            }
        }
        for rank in known.keys() {
            ranked.remove(*rank);
        }
        assert!(ranked.is_empty());
    }

    fn compare(ranked: &Ranked, known: &BTreeMap<Rank, Slot>) {
        for from in [End::Min, End::Max] {
            for order in [Order::Oldest, Order::Newest] {
                let mut expected: Vec<(Rank, Slot)> = known.iter().map(|(r, s)| (*r, *s)).collect();
                expected.sort_unstable_by(|(left, _), (right, _)| {
                    let earlier = precedes(*left, *right, from, order);
                    if earlier { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
                });
                let walked: Vec<(Rank, Slot)> = ranked.walk(from, order).collect();
                assert_eq!(walked, expected, "{from:?} {order:?}");
                assert_eq!(ranked.first(from, order), expected.first().copied());
            }
        }
        for priority in -2..3 {
            let level: Vec<Slot> = ranked.level(priority).collect();
            let expected = known.range((priority, 0)..=(priority, u64::MAX)).map(|(_, slot)| *slot);
            assert_eq!(level, expected.clone().collect::<Vec<_>>());
            assert!(ranked.level(priority).rev().eq(expected.rev()));
        }
        let mut oldest: Vec<Slot> = Vec::new();
        let mut last = None;
        for ((priority, _), slot) in known {
            if last.replace(*priority) != Some(*priority) {
                oldest.push(*slot);
            }
        }
        assert_eq!(ranked.oldest_of_each().collect::<Vec<_>>(), oldest);
    }
}
