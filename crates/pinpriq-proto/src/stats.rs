//! Figures: the number of tasks in each state, how they got there, and how they left.
//!
//! At any moment `put + revived = acked + expired + killed + dead + evicted + moved + cancelled +
//! skipped + present`, and
//! only R, T, W and B are present. A task that is kept after it was acknowledged, in Z or D, has
//! left: `acked` counted it then. It counts again as `revived` if it comes back, and as `purged`
//! when it is removed.

use std::fmt;

use crate::histogram::TimeHistogram;
use crate::settings::Paused;
use crate::task::StateKind;
use crate::time::Span;

/// A move of a task between two states; `None` is X, outside the queue.
///
/// One byte, since each move of a task is looked up among the few that a queue sees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move(u8);

impl Move {
    /// A move from one state to another.
    #[must_use]
    #[inline]
    pub const fn new(from: Option<StateKind>, to: Option<StateKind>) -> Self {
        Self(code_of(from) << 4 | code_of(to))
    }

    /// The state before.
    #[must_use]
    pub fn from(self) -> Option<StateKind> {
        kind_of(self.0 >> 4)
    }

    /// The state after.
    #[must_use]
    pub fn to(self) -> Option<StateKind> {
        kind_of(self.0 & 0x0f)
    }
}

impl fmt::Debug for Move {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |kind: Option<StateKind>| kind.map_or('X', StateKind::letter);
        write!(out, "{}-{}", letter(self.from()), letter(self.to()))
    }
}

const fn code_of(kind: Option<StateKind>) -> u8 {
    match kind {
        None => 0,
        Some(kind) => kind as u8 + 1,
    }
}

fn kind_of(code: u8) -> Option<StateKind> {
    usize::from(code).checked_sub(1).and_then(|at| StateKind::ALL.get(at)).copied()
}

/// Why a task left the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It was acknowledged, or what was kept of it after that is removed.
    Acked,
    /// Its TTL had passed.
    Expired,
    /// A client removed it.
    Killed,
    /// It became a dead letter.
    Dead,
    /// It made room for a more urgent one.
    Evicted,
    /// It was moved to another queue.
    Moved,
    /// It was cancelled.
    Cancelled,
    /// The batches that it waited for have ended in a way for which it was not meant.
    Skipped,
}

/// The counters of one queue, or of all.
#[derive(Clone, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct Counters {
    /// Tasks present in each state, in the order of [`StateKind::ALL`].
    pub counts: [u64; 6],
    /// How often each move happened, in no particular order. A queue sees few kinds of moves, so a
    /// short list costs less than a table.
    #[letter(1)]
    pub moves: Vec<(Move, u64)>,
    /// Tasks that entered in R, W or B, including those found at the start in R, T, W or B.
    #[letter(2)]
    pub put: u64,
    /// Tasks that were acknowledged or popped, also those that are kept since.
    #[letter(3)]
    pub acked: u64,
    /// Tasks that left because their TTL passed.
    #[letter(4)]
    pub expired: u64,
    /// Tasks that were killed.
    #[letter(5)]
    pub killed: u64,
    /// Tasks that were moved to the queue for dead letters.
    #[letter(6)]
    pub dead: u64,
    /// Tasks that made room for more urgent ones.
    #[letter(7)]
    pub evicted: u64,
    /// Tasks that were moved to another queue by hand.
    #[letter(8)]
    pub moved: u64,
    /// Tasks that were cancelled.
    #[letter(15)]
    pub cancelled: u64,
    /// Tasks that were skipped: the batches that they waited for have ended in a way for which they
    /// were not meant.
    #[letter(16)]
    pub skipped: u64,
    /// Kept tasks that were removed, for whatever reason.
    #[letter(9)]
    pub purged: u64,
    /// Tasks that came back after they had been acknowledged or popped.
    #[letter(10)]
    pub revived: u64,
    /// How often tasks have failed.
    #[letter(11)]
    pub failures: u64,
    /// Puts that have met a duplicate.
    #[letter(12)]
    pub duplicates: u64,
    /// Bytes of payloads and keys of the tasks present.
    #[letter(13)]
    pub bytes: u64,
    /// How long tasks of one queue took, once any was taken. Not counted over all queues.
    #[letter(14)]
    pub times: Option<Box<Times>>,
}

/// How long the tasks of one queue took.
#[derive(Clone, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct Times {
    /// How long they were ready before they were taken or popped.
    pub waited: TimeHistogram,
    /// How long leases lasted, however they ended.
    pub held: TimeHistogram,
    /// For how long the limit or the rate of the queue held back what a consumer asked for, in
    /// milliseconds.
    pub limited_ms: u64,
}

/// The reply to a request for figures.
#[derive(Clone, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct Figures {
    /// The counters.
    pub counters: Counters,
    /// How long ago the oldest of the tasks that can be selected was put. Only for one queue.
    #[letter(1)]
    pub oldest_ready: Option<Span>,
    /// How many ready tasks have each priority, of the most urgent
    /// [`PRIORITIES_MAX`](crate::limits::PRIORITIES_MAX) of them. Only for one queue.
    #[letter(2)]
    pub priorities: Vec<(i64, u64)>,
    /// Blocked takers.
    #[letter(3)]
    pub takers: u64,
    /// Subscribers.
    #[letter(4)]
    pub subscribers: u64,
    /// The pause. For all queues together it has no meaning: see `paused_queues`.
    #[letter(5)]
    pub paused: Paused,
    /// The number of paused queues.
    #[letter(6)]
    pub paused_queues: u64,
    /// The number of existing queues, not counting lanes.
    #[letter(7)]
    pub queues: u64,
    /// For a lane: the number of published tasks that it did not take because it was full or
    /// paused.
    #[letter(8)]
    pub missed: Option<u64>,
    /// Whether the queue is the one for dead letters of another queue. Only for one queue.
    #[letter(9)]
    pub holds_dead_letters: bool,
}

impl Figures {
    /// Adds the figures of another shard. Neither may be the figures of a single queue.
    pub fn add(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.takers += other.takers;
        self.subscribers += other.subscribers;
        self.paused_queues += other.paused_queues;
        self.queues += other.queues;
    }
}

impl Counters {
    /// Adds other counters.
    pub fn add(&mut self, other: &Self) {
        self.add_counts(other);
        if let Some(others) = &other.times {
            let own = self.times();
            own.waited.add(&others.waited);
            own.held.add(&others.held);
            own.limited_ms += others.limited_ms;
        }
    }

    /// Adds other counters without the times.
    pub fn add_counts(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.join(other, |own, more| *own += more);
        self.bytes += other.bytes;
    }

    /// Joins each counter that never falls with that of others. What is there now stays, and so do
    /// the times.
    pub fn join(&mut self, others: &Self, join: impl Fn(&mut u64, u64)) {
        for (step, times) in &others.moves {
            if let Some((_, own)) = self.moves.iter_mut().find(|(known, _)| known == step) {
                join(own, *times);
                continue;
            }
            let mut own = 0;
            join(&mut own, *times);
            if own > 0 {
                self.moves.push((*step, own));
            }
        }
        let pairs = [
            (&mut self.put, others.put),
            (&mut self.acked, others.acked),
            (&mut self.expired, others.expired),
            (&mut self.killed, others.killed),
            (&mut self.dead, others.dead),
            (&mut self.evicted, others.evicted),
            (&mut self.moved, others.moved),
            (&mut self.cancelled, others.cancelled),
            (&mut self.skipped, others.skipped),
            (&mut self.purged, others.purged),
            (&mut self.revived, others.revived),
            (&mut self.failures, others.failures),
            (&mut self.duplicates, others.duplicates),
        ];
        for (own, other) in pairs {
            join(own, other);
        }
    }

    /// Returns the times, which are counted from now on.
    #[inline]
    pub fn times(&mut self) -> &mut Times {
        self.times.get_or_insert_with(Box::default)
    }

    /// Returns how many tasks have left. What is kept after an acknowledgement has left too.
    #[must_use]
    pub const fn left(&self) -> u64 {
        let on_its_own = self.acked + self.expired + self.dead + self.evicted;
        on_its_own + self.killed + self.moved + self.cancelled + self.skipped
    }

    /// Returns the number of tasks in any state, with those that are kept after they were
    /// acknowledged.
    #[must_use]
    pub fn in_any_state(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the number of tasks present in one state.
    #[must_use]
    pub const fn count(&self, kind: StateKind) -> u64 {
        self.counts[kind as usize]
    }

    /// Returns the number of tasks that are not acknowledged: R, T, W and B. They count against the
    /// capacity.
    #[must_use]
    pub const fn present(&self) -> u64 {
        self.count(StateKind::Ready)
            + self.count(StateKind::Taken)
            + self.count(StateKind::Waiting)
            + self.count(StateKind::Buried)
    }

    /// Counts a move of a task, without changing the number of tasks.
    #[inline]
    pub fn note(&mut self, from: Option<StateKind>, to: Option<StateKind>) {
        self.note_times(Move::new(from, to), 1);
    }

    #[inline]
    fn note_times(&mut self, step: Move, count: u64) {
        if let Some((_, times)) = self.moves.iter_mut().find(|(known, _)| *known == step) {
            *times += count;
        } else {
            self.moves.push((step, count));
        }
    }

    /// Counts the removal of all tasks of one state.
    pub fn remove_all(&mut self, kind: StateKind, count: u64) {
        if count == 0 {
            return;
        }
        self.counts[kind as usize] -= count;
        *if kind.is_finished() { &mut self.purged } else { &mut self.killed } += count;
        self.note_times(Move::new(Some(kind), None), count);
    }

    /// Counts a task that is in the state `from` and becomes one in the state `to`: whether it is
    /// acknowledged by that, or comes back.
    #[inline]
    pub const fn finish(&mut self, from: StateKind, to: StateKind) {
        match (from.is_finished(), to.is_finished()) {
            (false, true) => self.acked += 1,
            (true, false) => self.revived += 1,
            _ => {}
        }
    }

    /// Counts a task that enters this state.
    pub const fn enter(&mut self, kind: StateKind) {
        self.counts[kind as usize] += 1;
    }

    /// Counts a task that leaves this state.
    pub const fn leave(&mut self, kind: StateKind) {
        self.counts[kind as usize] -= 1;
    }

    /// Counts why a task in this state left for good. What was kept after its acknowledgement has
    /// left before, unless it was about to come back.
    #[inline]
    pub const fn exit(&mut self, from: StateKind, exit: Exit) {
        if from.is_finished() {
            match exit {
                Exit::Expired | Exit::Dead => self.revived += 1,
                Exit::Acked
                | Exit::Killed
                | Exit::Evicted
                | Exit::Moved
                | Exit::Cancelled
                | Exit::Skipped => {
                    self.purged += 1;
                    return;
                }
            }
        }
        match exit {
            Exit::Acked => self.acked += 1,
            Exit::Expired => self.expired += 1,
            Exit::Killed => self.killed += 1,
            Exit::Dead => self.dead += 1,
            Exit::Evicted => self.evicted += 1,
            Exit::Moved => self.moved += 1,
            Exit::Cancelled => self.cancelled += 1,
            Exit::Skipped => self.skipped += 1,
        }
    }
}
