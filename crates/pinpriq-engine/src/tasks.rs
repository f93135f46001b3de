//! Where tasks live in memory, and how they are found by number.
//!
//! Tasks sit in pages of a fixed size, so that growing never copies them. All pages go back to the
//! system at once, when the last task is gone. A [`Slot`] is the address of a task for as long as it is there; the
//! indexes hold slots. What a task means is not known here.

use std::collections::BTreeMap;

use crate::change::{Change, Granted, Moved, Place};
use crate::limits::NARROW_PAYLOAD_BYTES_MAX;
use crate::queues::QueueSlot;
use crate::task::{Bytes, Lease, State, StateKind, TaskId, TaskRecord};
use crate::time::{Span, Timestamp};

/// The address of a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Slot(u32);

/// How much of a task must be told to the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Unsaved {
    /// Nothing.
    Nothing,
    /// Only that a lease was granted.
    Grant,
    /// Everything but payload, key and id.
    Standing,
    /// All of it.
    Whole,
}

/// A task as the engine keeps it. The fields that leave the engine are explained at
/// [`TaskRecord`].
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) number: u64,
    pub(crate) queue: QueueSlot,
    /// The epoch of the queue when the task entered. If the queue's has moved on, the queue was
    /// emptied since, and the task only waits for its memory to be freed.
    pub(crate) epoch: u64,
    pub(crate) id: TaskId,
    pub(crate) seq: u64,
    pub(crate) priority: Option<i64>,
    pub(crate) key: Option<Bytes>,
    pub(crate) payload: Bytes,
    pub(crate) put_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) ttr: Option<Span>,
    pub(crate) attempts: u32,
    pub(crate) state: State,
    /// The moment under which the task stands in the index of deadlines.
    pub(crate) armed: Option<Timestamp>,
    /// Where the store keeps its newest whole record.
    pub(crate) place: Option<Place>,
    /// Whether a whole record was ever reported, so that its end must be reported too.
    pub(crate) recorded: bool,
    pub(crate) unsaved: Unsaved,
}

/// How many tasks a page holds.
const PAGE_TASKS: usize = 256;

type Page = Vec<Option<Task>>;

/// All tasks of a shard.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    pages: Vec<Page>,
    /// Free slots of these pages.
    free: Vec<Slot>,
    /// Every task by its number.
    numbers: BTreeMap<u64, Slot>,
}

impl Task {
    /// Whether its payload is small enough for every door.
    pub(crate) fn is_narrow(&self) -> bool {
        self.payload.len() <= NARROW_PAYLOAD_BYTES_MAX
    }

    /// Whether its time to live has passed.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| now >= at)
    }

    /// The next moment at which time changes this task: its TTL acts in R and W, its delay in W,
    /// its lease in T, its stay in Z.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        match &self.state {
            State::Ready => self.expires_at,
            State::Waiting { ready_at } => {
                Some(self.expires_at.map_or(*ready_at, |at| at.min(*ready_at)))
            }
            State::Taken(lease) => lease.deadline,
            State::Zombie { purge_at } => Some(*purge_at),
            State::Buried { .. } | State::Done => None,
        }
    }

    /// The lease, if the task is taken.
    pub(crate) const fn lease(&self) -> Option<&Lease> {
        match &self.state {
            State::Taken(lease) => Some(lease),
            _ => None,
        }
    }

    /// The state without its data.
    pub(crate) const fn kind(&self) -> StateKind {
        self.state.kind()
    }

    /// The bytes it accounts for in statistics: what the client handed over.
    pub(crate) fn content_bytes(&self) -> u64 {
        let key = self.key.as_ref().map_or(0, |key| key.len());
        (self.payload.len() + key) as u64
    }

    /// The task as it leaves the engine.
    pub(crate) fn record(&self, queue: &Bytes) -> TaskRecord {
        TaskRecord {
            number: self.number,
            queue: queue.clone(),
            id: self.id.clone(),
            seq: self.seq,
            priority: self.priority,
            key: self.key.clone(),
            payload: self.payload.clone(),
            put_at: self.put_at,
            expires_at: self.expires_at,
            ttr: self.ttr,
            attempts: self.attempts,
            state: self.state.clone(),
        }
    }

    /// The change that tells the store what it does not know yet.
    pub(crate) fn unsaved_change(&self, queue: &Bytes) -> Option<Change> {
        match (self.unsaved, &self.state) {
            (Unsaved::Nothing, _) => None,
            (Unsaved::Whole, _) => Some(Change::Task(Box::new(self.record(queue)))),
            (Unsaved::Grant, State::Taken(lease)) => Some(Change::Granted(Granted {
                number: self.number,
                incarnation: lease.grant.incarnation,
                serial: lease.grant.serial,
                deadline: lease.deadline,
                ttr: lease.ttr,
                attempts: self.attempts,
            })),
            (Unsaved::Grant | Unsaved::Standing, _) => Some(Change::Moved(Box::new(Moved {
                number: self.number,
                seq: self.seq,
                priority: self.priority,
                expires_at: self.expires_at,
                attempts: self.attempts,
                state: self.state.clone(),
            }))),
        }
    }
}

impl Tasks {
    /// Adds a task. Its number must be new.
    pub(crate) fn insert(&mut self, task: Task) -> Slot {
        let number = task.number;
        let slot = self.free.pop().unwrap_or_else(|| self.open_page());
        let (page, index) = address(slot);
        let former = self.pages[page][index].replace(task);
        debug_assert!(former.is_none(), "{slot:?} was free");
        let known = self.numbers.insert(number, slot);
        assert!(known.is_none(), "task {number} was inserted twice");
        slot
    }

    /// Removes the task at `slot`, which must be there.
    pub(crate) fn remove(&mut self, slot: Slot) -> Task {
        let (page, index) = address(slot);
        let Some(task) = self.pages[page][index].take() else {
            unreachable!("no task at {slot:?}")
        };
        self.numbers.remove(&task.number);
        self.free.push(slot);
        // A queue that just hands tasks through keeps its one page.
        if self.numbers.is_empty() && self.pages.len() > 1 {
            *self = Self::default();
        }
        task
    }

    /// The slot of the task with this number.
    pub(crate) fn find(&self, number: u64) -> Option<Slot> {
        self.numbers.get(&number).copied()
    }

    /// The task at `slot`, if it is still there.
    pub(crate) fn at(&self, slot: Slot) -> Option<&Task> {
        let (page, index) = address(slot);
        self.pages.get(page)?[index].as_ref()
    }

    /// All slots in the order of their numbers. Costs O(n): for start and checks only.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.numbers.values().copied()
    }

    /// Makes a page with free slots and hands out the first of them.
    fn open_page(&mut self) -> Slot {
        let first = self.pages.len() * PAGE_TASKS;
        self.pages.push(std::iter::repeat_with(|| None).take(PAGE_TASKS).collect());
        self.free.extend((first + 1..first + PAGE_TASKS).rev().map(slot_at));
        slot_at(first)
    }
}

impl std::ops::Index<Slot> for Tasks {
    type Output = Task;

    fn index(&self, slot: Slot) -> &Task {
        let (page, index) = address(slot);
        match &self.pages[page][index] {
            Some(task) => task,
            None => unreachable!("no task at {slot:?}"),
        }
    }
}

impl std::ops::IndexMut<Slot> for Tasks {
    fn index_mut(&mut self, slot: Slot) -> &mut Task {
        let (page, index) = address(slot);
        match &mut self.pages[page][index] {
            Some(task) => task,
            None => unreachable!("no task at {slot:?}"),
        }
    }
}

const fn address(slot: Slot) -> (usize, usize) {
    (slot.0 as usize / PAGE_TASKS, slot.0 as usize % PAGE_TASKS)
}

fn slot_at(index: usize) -> Slot {
    let Ok(index) = u32::try_from(index) else {
        panic!("more than {} tasks in one shard", u32::MAX)
    };
    Slot(index)
}
