//! The one index of moments at which something is due without a command.
//!
//! A task has at most one entry, for the next moment that matters to it. A blocked taker and an
//! awaiter have one unless they wait for ever, and so has a put that waits for room. A member has
//! one, and so has a schedule with a next slot unless it is paused, a window of a unique task, and
//! a queue of which a pause ends by itself. A queue has one while its consumers wait for a token;
//! those come before everything else that is due, and tasks come next. Other entries come in the
//! order of their moments. Those of the same moment come in the order pauses, takers, awaiters,
//! puts, members, schedules, windows, batches, and then by age, so that a replay gives the same
//! result as the run. Nothing here reads a clock.

use std::collections::BTreeSet;

use crate::memory::consumers::{AwaiterId, TakerId};
use crate::memory::putters::PutterId;
use crate::memory::slots::QueueSlot;
use crate::memory::sorted::{self, Key, Sorted};
use pinpriq_proto::time::Timestamp;

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    /// The task of this number must be checked.
    Task(u64),
    /// The pause of a side of a queue is over.
    Pause(QueueSlot),
    /// A blocked take has waited long enough.
    Taker(TakerId),
    /// An await has waited long enough.
    Awaiter(AwaiterId),
    /// A put has waited long enough for room.
    Putter(PutterId),
    /// The lease of the member of this incarnation may have run out.
    Member(u64),
    /// The schedule of this number has a slot.
    Schedule(u64),
    /// The window of this number is over.
    Window(u64),
    /// The batch of this number is given up or forgotten.
    Batch(u64),
}

/// The deadline of a task as a key.
const fn key_of(at: Timestamp, number: u64) -> Key {
    sorted::key_of(at.ms(), number)
}

/// The moment of a key.
const fn moment_of(key: Key) -> Timestamp {
    Timestamp::from_ms(sorted::above(key))
}

/// All deadlines of a shard. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    /// The deadlines of tasks, by number. These are by far the most, and each lease adds one.
    tasks: Sorted<()>,
    others: BTreeSet<(Timestamp, Due)>,
    /// When queues that are short of tokens get the next one.
    queues: BTreeSet<(Timestamp, QueueSlot)>,
}

impl FromIterator<(Timestamp, Due)> for Deadlines {
    fn from_iter<I: IntoIterator<Item = (Timestamp, Due)>>(entries: I) -> Self {
        let (mut tasks, mut others) = (Vec::new(), Vec::new());
        for (at, due) in entries {
            match due {
                Due::Task(number) => tasks.push((key_of(at, number), ())),
                _ => others.push((at, due)),
            }
        }
        tasks.sort_unstable();
        let (tasks, others) = (tasks.into_iter().collect(), others.into_iter().collect());
        Self { tasks, others, queues: BTreeSet::new() }
    }
}

impl Deadlines {
    pub(crate) fn insert(&mut self, at: Timestamp, due: Due) {
        match due {
            Due::Task(number) => {
                self.tasks.insert(key_of(at, number), ());
            }
            _ => {
                self.others.insert((at, due));
            }
        }
    }

    pub(crate) fn remove(&mut self, at: Timestamp, due: Due) {
        let known = match due {
            Due::Task(number) => self
                .tasks
                .find(key_of(at, number))
                .map(|cursor| self.tasks.remove(cursor))
                .is_some(),
            _ => self.others.remove(&(at, due)),
        };
        assert!(known, "{due:?} was not due at {at}");
    }

    /// The earliest moment at which anything is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let task = self.tasks.first().map(|cursor| moment_of(self.tasks.key(cursor)));
        let other = self.others.first().map(|(at, _)| *at);
        let queue = self.queues.first().map(|(at, _)| *at);
        task.into_iter().chain(other).chain(queue).min()
    }

    /// Whether [`Self::pop_queue`] or [`Self::pop_due`] may return something at `now`.
    #[inline]
    pub(crate) fn has_due(&self, now: Timestamp) -> bool {
        let task = self.tasks.first().map(|cursor| moment_of(self.tasks.key(cursor)));
        task.is_some_and(|at| at <= now)
            || self.others.first().is_some_and(|(at, _)| *at <= now)
            || self.queues.first().is_some_and(|(at, _)| *at <= now)
    }

    /// Adds the moment at which a queue gets a token.
    pub(crate) fn insert_queue(&mut self, at: Timestamp, queue: QueueSlot) {
        self.queues.insert((at, queue));
    }

    /// Removes the moment at which a queue was to get a token.
    pub(crate) fn remove_queue(&mut self, at: Timestamp, queue: QueueSlot) {
        let known = self.queues.remove(&(at, queue));
        assert!(known, "{queue:?} was to get no token at {at}");
    }

    /// Removes and returns a queue that has a token by `now`.
    #[inline]
    pub(crate) fn pop_queue(&mut self, now: Timestamp) -> Option<QueueSlot> {
        let (at, _) = self.queues.first()?;
        if *at > now { None } else { self.queues.pop_first().map(|(_, queue)| queue) }
    }

    /// Whether this queue is to get a token at this moment.
    pub(crate) fn has_queue(&self, at: Timestamp, queue: QueueSlot) -> bool {
        self.queues.contains(&(at, queue))
    }

    /// The number of queues that are to get a token.
    pub(crate) fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Removes and returns the next entry that is due at `now`. A deadline is due at its moment,
    /// not after it.
    ///
    /// Tasks come first, however late everything is: then who waits gets a task that has become
    /// ready, and no task whose time is over counts against a capacity. The others come in their
    /// order.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<Due> {
        let is_due = |at: Timestamp| at <= now;
        if let Some(cursor) = self.tasks.first()
            && let key = self.tasks.key(cursor)
            && is_due(moment_of(key))
        {
            self.tasks.remove(cursor);
            return Some(Due::Task(sorted::below(key)));
        }
        let (at, _) = self.others.first()?;
        if is_due(*at) { self.others.pop_first().map(|(_, due)| due) } else { None }
    }

    pub(crate) fn contains(&self, at: Timestamp, due: Due) -> bool {
        match due {
            Due::Task(number) => self.tasks.find(key_of(at, number)).is_some(),
            _ => self.others.contains(&(at, due)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len() + self.others.len()
    }
}
