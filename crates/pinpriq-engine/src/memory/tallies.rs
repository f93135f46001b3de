//! What is counted about the shares of a queue, while somebody looks at them.
//!
//! A queue has none of this until its shares are looked at. The first look goes through the tasks
//! by seq, some at a time: tasks beyond the last one that was gone through are not counted yet.
//! From then on it follows what becomes of tasks. It ends some time after the last look.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::memory::packed::Task;
use crate::memory::slots::Slot;
use pinpriq_proto::shares::ShareShown;
use pinpriq_proto::task::{Bytes, StateKind};
use pinpriq_proto::time::{Span, Timestamp};

/// For how long shares are followed after a look at them.
const FOLLOWED: Span = Span::from_ms(15 * 60 * 1_000);

/// Of how many shares without tasks it stays known what has happened to their tasks.
const IDLE_MAX: usize = 10_000;

/// See the start of this file. Every operation costs O(log n) unless its comment says otherwise.
#[derive(Debug)]
pub(crate) struct Tallies {
    shares: BTreeMap<Bytes, Tally>,
    /// The shares with tasks that wait, by when the oldest of these was put.
    waits: BTreeSet<(Timestamp, Bytes)>,
    /// The shares without tasks, those first that have had none for longest.
    idle: BTreeMap<u64, Bytes>,
    next_idle: u64,
    /// The shares with tasks, by how many they have, if that is wanted.
    sizes: Option<Sizes>,
    /// Tasks up to this seq are counted.
    counted: u64,
    looked_at: Timestamp,
    /// What has happened before the transaction that goes on, of shares that it has changed.
    former: Option<BTreeMap<Bytes, Happened>>,
}

/// The shares with tasks by how many they have.
#[derive(Debug, Default)]
struct Sizes {
    known: BTreeSet<(u64, Bytes)>,
    /// Whether all are known. If not, those up to this name are.
    are_whole: bool,
    up_to: Option<Bytes>,
}

/// One share.
#[derive(Debug, Default)]
struct Tally {
    tasks: u64,
    ready: u64,
    taken: u64,
    /// Its ready tasks with a priority, by when they were put.
    waiting: BTreeSet<(Timestamp, Slot)>,
    happened: Happened,
    /// Its place among those without tasks.
    idle: Option<u64>,
}

/// What has happened to tasks of a share since it is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Happened {
    pub(crate) acked: u64,
    pub(crate) failed: u64,
    /// How long the task that was handed out last had been ready.
    pub(crate) waited: Option<Span>,
}

/// The share of a task, which is `None` if it has neither a share nor a key.
fn share_of(task: &Task) -> Option<&Bytes> {
    task.share().or_else(|| task.key())
}

impl Tallies {
    /// Those of a queue of which nothing is counted yet. `by_size` says whether it is to be known
    /// which shares have most tasks.
    pub(crate) fn new(now: Timestamp, by_size: bool) -> Self {
        Self {
            shares: BTreeMap::new(),
            waits: BTreeSet::new(),
            idle: BTreeMap::new(),
            next_idle: 0,
            sizes: by_size.then(|| Sizes { are_whole: true, ..Sizes::default() }),
            counted: 0,
            looked_at: now,
            former: None,
        }
    }

    /// Those of the same queue without tasks. Nothing has happened to its shares.
    pub(crate) fn emptied(&self) -> Self {
        let former = self.former.as_ref().map(|_| BTreeMap::new());
        Self { counted: u64::MAX, former, ..Self::new(self.looked_at, self.are_by_size()) }
    }

    /// Whether it is followed which shares have most tasks.
    pub(crate) const fn are_by_size(&self) -> bool {
        self.sizes.is_some()
    }

    /// Follows from now on which shares have most tasks, or no longer. Returns what is to be freed.
    pub(crate) fn follow_sizes(&mut self, by_size: bool) -> Option<Self> {
        let sizes = self.sizes.take();
        self.sizes = by_size.then(Sizes::default);
        sizes.map(|sizes| Self { sizes: Some(sizes), ..Self::new(self.looked_at, false) })
    }

    /// Whether it is known which shares have most tasks.
    pub(crate) fn know_sizes(&self) -> bool {
        self.sizes.as_ref().is_some_and(|sizes| sizes.are_whole)
    }

    /// Finds the sizes of at most so many more shares.
    pub(crate) fn size_some(&mut self, count: usize) {
        let Some(sizes) = self.sizes.as_mut().filter(|sizes| !sizes.are_whole) else { return };
        let after = sizes.up_to.take().map_or(Bound::Unbounded, Bound::Excluded);
        let mut found = 0;
        for (name, tally) in self.shares.range((after, Bound::Unbounded)).take(count) {
            sizes.up_to = Some(name.clone());
            sizes.note(name, 0, tally.tasks);
            found += 1;
        }
        sizes.are_whole = found < count;
    }

    /// Whether the last look was so long ago that they end.
    pub(crate) fn are_over(&self, now: Timestamp) -> bool {
        now.since(self.looked_at) > FOLLOWED
    }

    pub(crate) const fn looked_at(&self) -> Timestamp {
        self.looked_at
    }

    pub(crate) fn note_look(&mut self, now: Timestamp) {
        self.looked_at = now;
    }

    /// The seq up to which tasks are counted, or `None` if all are.
    pub(crate) fn counted(&self) -> Option<u64> {
        Some(self.counted).filter(|counted| *counted < u64::MAX)
    }

    /// Counts a task that was there already, the next one by seq.
    pub(crate) fn count(&mut self, slot: Slot, task: &Task) {
        self.counted = task.seq();
        self.enter(slot, task);
    }

    /// Notes that all tasks are counted.
    pub(crate) fn complete(&mut self) {
        self.counted = u64::MAX;
    }

    /// Notes that a task is in its state now.
    pub(crate) fn enter(&mut self, slot: Slot, task: &Task) {
        if task.seq() > self.counted {
            return;
        }
        let name = share_of(task).cloned().unwrap_or_default();
        let tally = self.shares.entry(name.clone()).or_default();
        if let Some(serial) = tally.idle.take() {
            self.idle.remove(&serial);
        }
        tally.tasks += 1;
        if let Some(sizes) = &mut self.sizes {
            sizes.note(&name, tally.tasks - 1, tally.tasks);
        }
        match task.kind() {
            StateKind::Ready => tally.ready += 1,
            StateKind::Taken => tally.taken += 1,
            _ => {}
        }
        if waits(task) {
            let former = tally.oldest();
            tally.waiting.insert((task.put_at(), slot));
            let oldest = tally.oldest();
            self.move_wait(name, former, oldest);
        }
    }

    /// Notes that a task leaves its state.
    pub(crate) fn leave(&mut self, slot: Slot, task: &Task) {
        if task.seq() > self.counted {
            return;
        }
        let empty = Bytes::default();
        let name = share_of(task).unwrap_or(&empty);
        let Some(tally) = self.shares.get_mut(name) else {
            unreachable!("the share of task {} is counted", task.number())
        };
        tally.tasks -= 1;
        if let Some(sizes) = &mut self.sizes {
            sizes.note(name, tally.tasks + 1, tally.tasks);
        }
        match task.kind() {
            StateKind::Ready => tally.ready -= 1,
            StateKind::Taken => tally.taken -= 1,
            _ => {}
        }
        let is_idle = tally.tasks == 0;
        if waits(task) {
            let former = tally.oldest();
            tally.waiting.remove(&(task.put_at(), slot));
            let oldest = tally.oldest();
            self.move_wait(name.clone(), former, oldest);
        }
        if is_idle {
            self.rest(name);
        }
    }

    /// Notes what has happened to a task that is there.
    pub(crate) fn note(&mut self, task: &Task, note: impl FnOnce(&mut Happened)) {
        let empty = Bytes::default();
        let name = share_of(task).unwrap_or(&empty);
        let Some(tally) = self.shares.get_mut(name) else { return };
        if let Some(former) = &mut self.former {
            former.entry(name.clone()).or_insert(tally.happened);
        }
        note(&mut tally.happened);
    }

    /// Begins to note what has happened before a transaction.
    pub(crate) fn begin_notes(&mut self) {
        self.former = Some(BTreeMap::new());
    }

    /// Ends the notes. The tasks are what they were if the transaction was undone.
    pub(crate) fn end_notes(&mut self, is_undone: bool) {
        for (name, happened) in self.former.take().into_iter().flatten().filter(|_| is_undone) {
            let Some(tally) = self.shares.get_mut(&name) else { continue };
            tally.happened = happened;
            if tally.tasks == 0 && happened == Happened::default() {
                if let Some(serial) = tally.idle {
                    self.idle.remove(&serial);
                }
                self.shares.remove(&name);
            }
        }
    }

    /// The shares with tasks whose names are not before this one, by name. Goes over at most
    /// [`IDLE_MAX`] others.
    pub(crate) fn from(&self, name: &[u8], now: Timestamp) -> impl Iterator<Item = ShareShown> {
        let names = self.shares.range::<[u8], _>((Bound::Included(name), Bound::Unbounded));
        let present = names.filter(|(_, tally)| tally.tasks > 0);
        present.map(move |(name, tally)| tally.shown(name, now))
    }

    /// The shares with tasks that wait, those first that wait longest.
    pub(crate) fn longest(&self, now: Timestamp) -> impl Iterator<Item = ShareShown> {
        self.waits.iter().filter_map(move |(_, name)| self.find(name, now))
    }

    /// The shares with tasks, those first that have most, as far as that is known. Of equal ones,
    /// the last by name comes first.
    pub(crate) fn largest(&self, now: Timestamp) -> impl Iterator<Item = ShareShown> {
        let sizes = self.sizes.iter().flat_map(|sizes| sizes.known.iter().rev());
        sizes.filter_map(move |(_, name)| self.find(name, now))
    }

    /// What is known about one share.
    pub(crate) fn find(&self, name: &Bytes, now: Timestamp) -> Option<ShareShown> {
        self.shares.get(name).map(|tally| tally.shown(name, now))
    }

    /// Frees some memory, of tallies that are used no longer. Returns whether any is left.
    pub(crate) fn free_some(&mut self) -> bool {
        self.waits.pop_first();
        self.idle.pop_first();
        let size = self.sizes.as_mut().and_then(|sizes| sizes.known.pop_first());
        if let Some(mut first) = self.shares.first_entry()
            && first.get_mut().waiting.pop_first().is_none()
        {
            first.remove();
        }
        !self.shares.is_empty() || size.is_some()
    }

    /// Notes that a share has no tasks. If nothing has happened, it is forgotten.
    fn rest(&mut self, name: &Bytes) {
        let Some(tally) = self.shares.get_mut(name) else { return };
        if tally.happened == Happened::default() {
            self.shares.remove(name);
            return;
        }
        tally.idle = Some(self.next_idle);
        self.idle.insert(self.next_idle, name.clone());
        self.next_idle += 1;
        if self.idle.len() > IDLE_MAX
            && let Some((_, name)) = self.idle.pop_first()
        {
            self.shares.remove(&name);
        }
    }

    fn move_wait(&mut self, name: Bytes, former: Option<Timestamp>, oldest: Option<Timestamp>) {
        if former == oldest {
            return;
        }
        if let Some(former) = former {
            self.waits.remove(&(former, name.clone()));
        }
        if let Some(oldest) = oldest {
            self.waits.insert((oldest, name));
        }
    }

    /// Checks that these are the tallies of these tasks. Costs O(n log n).
    pub(crate) fn check<'t>(&self, tasks: impl Iterator<Item = (Slot, &'t Task)>) {
        let mut fresh = Self { counted: self.counted, ..Self::new(self.looked_at, false) };
        tasks.for_each(|(slot, task)| fresh.enter(slot, task));
        let present = |tallies: &Self| -> Vec<_> {
            let present = tallies.shares.iter().filter(|(_, tally)| tally.tasks > 0);
            let plain = |(name, it): (&Bytes, &Tally)| {
                (name.clone(), it.tasks, it.ready, it.taken, it.waiting.clone(), it.idle)
            };
            present.map(plain).collect()
        };
        assert_eq!(present(self), present(&fresh), "shares are counted");
        assert_eq!(self.waits, fresh.waits, "the longest waits are known");
        if let Some(sizes) = &self.sizes {
            let known = fresh.shares.iter().filter(|(name, _)| sizes.know(name));
            let known = known.map(|(name, it)| (it.tasks, name.clone()));
            assert_eq!(sizes.known, known.collect(), "the largest shares are known");
        }
        let idle = self.shares.values().filter_map(|tally| tally.idle);
        assert_eq!(idle.count(), self.idle.len(), "shares without tasks are known");
        assert!(self.idle.len() <= IDLE_MAX && self.former.is_none(), "a step has ended");
    }
}

impl Sizes {
    fn know(&self, name: &Bytes) -> bool {
        self.are_whole || self.up_to.as_ref().is_some_and(|up_to| name <= up_to)
    }

    /// Notes that a share has so many tasks, and no longer so many.
    fn note(&mut self, name: &Bytes, former: u64, tasks: u64) {
        if !self.know(name) {
            return;
        }
        self.known.remove(&(former, name.clone()));
        if tasks > 0 {
            self.known.insert((tasks, name.clone()));
        }
    }
}

impl Tally {
    fn oldest(&self) -> Option<Timestamp> {
        self.waiting.first().map(|(put_at, _)| *put_at)
    }

    fn shown(&self, name: &Bytes, now: Timestamp) -> ShareShown {
        ShareShown {
            share: name.clone(),
            ready: self.ready,
            taken: self.taken,
            waited: self.happened.waited,
            oldest_ready: self.oldest().map(|put_at| now.since(put_at)),
            acked: self.happened.acked,
            failed: self.happened.failed,
            ..ShareShown::default()
        }
    }
}

/// Whether a task waits until it is handed out.
fn waits(task: &Task) -> bool {
    task.kind() == StateKind::Ready && task.priority().is_some()
}
