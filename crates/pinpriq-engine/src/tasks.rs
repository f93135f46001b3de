//! Where tasks live in memory, and how they are found by number.
//!
//! Tasks sit in pages of a fixed size, so that growing never copies them. All pages go back to the
//! system at once, when the last task is gone. A [`Slot`] is the address of a task for as long as
//! it is there; the indexes hold slots. What a task means is not known here.

use std::hash::{DefaultHasher, Hasher};
use std::num::NonZeroU32;

use crate::change::{Change, Granted, Moved, Place};
use crate::limits::NARROW_PAYLOAD_BYTES_MAX;
use crate::numbers::Numbers;
use crate::queues::QueueSlot;
use crate::ranked::Rank;
use crate::task::{Bytes, Lease, State, StateKind, TaskId, TaskRecord};
use crate::time::{Span, Timestamp};

/// The address of a task.
// One more than the index, so that a slot that may be missing takes no more room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Slot(NonZeroU32);

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
    pub(crate) epoch: u32,
    pub(crate) seq: u64,
    /// The id, where it is not simply the number.
    pub(crate) own_id: Option<Box<TaskId>>,
    pub(crate) priority: Priority,
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

/// A priority or none, in nine bytes rather than sixteen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Priority {
    number: [u8; 8],
    is_some: bool,
}

/// The hash of a key, under a seed that nobody outside knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct KeyHash(u64);

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
    numbers: Numbers,
    /// Keeps clients from choosing keys whose hashes are equal.
    seed: u64,
}

impl Task {
    /// A task from its record, of which the store knows nothing yet.
    pub(crate) fn of(record: TaskRecord, queue: QueueSlot, epoch: u32) -> Self {
        Self {
            number: record.number,
            queue,
            epoch,
            seq: record.seq,
            own_id: own_id(record.number, &record.id),
            priority: record.priority.into(),
            key: record.key,
            payload: record.payload,
            put_at: record.put_at,
            expires_at: record.expires_at,
            ttr: record.ttr,
            attempts: record.attempts,
            state: record.state,
            armed: None,
            place: None,
            recorded: false,
            unsaved: Unsaved::Nothing,
        }
    }

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
    pub(crate) fn lease(&self) -> Option<&Lease> {
        match &self.state {
            State::Taken(lease) => Some(lease),
            _ => None,
        }
    }

    /// The name of the task within its queue.
    pub(crate) fn id(&self) -> TaskId {
        self.own_id.as_deref().cloned().unwrap_or(TaskId::Number(self.number))
    }

    /// Its place in the order of selection, if it has a priority.
    pub(crate) fn rank(&self) -> Option<Rank> {
        Option::<i64>::from(self.priority).map(|priority| (priority, self.seq))
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
            id: self.id(),
            seq: self.seq,
            priority: self.priority.into(),
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
                priority: self.priority.into(),
                expires_at: self.expires_at,
                attempts: self.attempts,
                state: self.state.clone(),
            }))),
        }
    }
}

impl Tasks {
    /// No tasks yet. `seed` is that of the engine.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// The hash of a key.
    pub(crate) fn hash_key(&self, key: &[u8]) -> KeyHash {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write(key);
        KeyHash(hasher.finish())
    }

    /// Adds a task. Its number must be new.
    pub(crate) fn insert(&mut self, task: Task) -> Slot {
        let number = task.number;
        let slot = self.free.pop().unwrap_or_else(|| self.open_page());
        let (page, index) = address(slot);
        let former = self.pages[page][index].replace(task);
        debug_assert!(former.is_none(), "{slot:?} was free");
        self.numbers.insert(number, slot);
        slot
    }

    /// Removes the task at `slot`, which must be there.
    pub(crate) fn remove(&mut self, slot: Slot) -> Task {
        let (page, index) = address(slot);
        let Some(task) = self.pages[page][index].take() else {
            unreachable!("no task at {slot:?}")
        };
        self.numbers.remove(task.number);
        self.free.push(slot);
        // A queue that just hands tasks through keeps its one page.
        if self.numbers.is_empty() && self.pages.len() > 1 {
            *self = Self::new(self.seed);
        }
        task
    }

    /// The slot of the task with this number.
    pub(crate) fn find(&self, number: u64) -> Option<Slot> {
        self.numbers.find(number)
    }

    /// The task at `slot`, if it is still there.
    pub(crate) fn at(&self, slot: Slot) -> Option<&Task> {
        let (page, index) = address(slot);
        self.pages.get(page)?[index].as_ref()
    }

    /// All slots in the order of their numbers. Costs O(n): for start and checks only.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.numbers.slots()
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

impl From<Option<i64>> for Priority {
    fn from(priority: Option<i64>) -> Self {
        Self { number: priority.unwrap_or(0).to_le_bytes(), is_some: priority.is_some() }
    }
}

impl From<Priority> for Option<i64> {
    fn from(priority: Priority) -> Self {
        priority.is_some.then(|| i64::from_le_bytes(priority.number))
    }
}

/// What a task must keep of its id: nothing, if it is its number.
pub(crate) fn own_id(number: u64, id: &TaskId) -> Option<Box<TaskId>> {
    (*id != TaskId::Number(number)).then(|| Box::new(id.clone()))
}

const fn address(slot: Slot) -> (usize, usize) {
    let index = slot.0.get() as usize - 1;
    (index / PAGE_TASKS, index % PAGE_TASKS)
}

fn slot_at(index: usize) -> Slot {
    let Some(index) = u32::try_from(index + 1).ok().and_then(NonZeroU32::new) else {
        panic!("more than {} tasks in one shard", u32::MAX)
    };
    Slot(index)
}
