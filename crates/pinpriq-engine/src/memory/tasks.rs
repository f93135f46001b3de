//! Stores tasks in memory, and finds them by number.
//!
//! A [`Slot`] is the address of a task while it exists. The indexes hold slots. Payloads are stored
//! separately, and removed with their tasks. This module knows nothing about the meaning of a task.

use std::hash::{DefaultHasher, Hasher};
use std::num::NonZeroU32;

use crate::memory::memberships::Memberships;
use crate::memory::numbers::Numbers;
use crate::memory::packed::{Names, Task};
use crate::memory::pages::Pages;
use crate::memory::payloads::{Kept, Payloads};
use crate::memory::slots::{KeyHash, Slot};
use pinpriq_proto::change::{Change, Publication};
use pinpriq_proto::task::{Bytes, TaskRecord, payload_checksum};

/// All tasks of a shard.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    pages: Pages<Task>,
    payloads: Payloads,
    /// Every task by its number.
    numbers: Numbers,
    /// Which tasks are in which batch.
    pub(crate) memberships: Memberships,
    /// Prevents clients from choosing keys whose hashes are equal.
    seed: u64,
}

#[cfg(test)]
impl Slot {
    /// Creates any slot, for tests of code that only carries slots around.
    pub(crate) const fn of(number: NonZeroU32) -> Self {
        Self(number)
    }
}

impl Tasks {
    /// Creates an empty set of tasks. `seed` is the seed of the engine.
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
        let number = task.number();
        let slot = slot_at(self.pages.insert(task));
        self.numbers.insert(number, slot);
        slot
    }

    /// Removes the task at `slot`, which must be there, and forgets its payload.
    pub(crate) fn remove(&mut self, slot: Slot) -> Task {
        let task = self.detach(slot);
        self.forget(task.payload());
        task
    }

    /// Removes the task at `slot`, which must be there. Its payload is still kept.
    #[inline]
    pub(crate) fn detach(&mut self, slot: Slot) -> Task {
        let Some(task) = self.pages.remove(index(slot)) else {
            unreachable!("no task at {slot:?}")
        };
        self.numbers.remove(task.number());
        task
    }

    /// Keeps a copy of a payload, for a task that is about to get it.
    pub(crate) fn keep(&mut self, payload: &[u8]) -> Kept {
        self.payloads.keep(payload)
    }

    /// Keeps a payload that has its own allocation.
    pub(crate) fn keep_bytes(&mut self, payload: &Bytes) -> Kept {
        self.payloads.keep_bytes(payload)
    }

    /// Keeps a payload that several tasks share.
    pub(crate) fn keep_shared(&mut self, payload: &Bytes) -> Kept {
        self.payloads.share(Bytes::clone(payload))
    }

    /// Forgets a payload that no task uses.
    #[inline]
    pub(crate) fn forget(&mut self, payload: Option<Kept>) {
        if let Some(kept) = payload {
            self.payloads.forget(kept);
        }
    }

    /// Returns the payload of a task, unless it was left in the store.
    pub(crate) fn payload(&self, slot: Slot) -> Option<&[u8]> {
        self[slot].payload().map(|kept| self.payloads.read(kept))
    }

    /// Gives a task the terms and the payload of its publication.
    pub(crate) fn share(&mut self, slot: Slot, published: &Publication) {
        let kept = self.keep_shared(&published.payload);
        let former = self[slot].adopt(published, kept);
        self.forget(former);
    }

    /// Leaves a payload in the store, if it is in memory and not shared. Returns the number of
    /// bytes of memory that this freed.
    pub(crate) fn leave_payload(&mut self, slot: Slot) -> u64 {
        let Some(payload) = self.payload(slot).filter(|_| self[slot].can_leave_payload()) else {
            return 0;
        };
        let (bytes, checksum) = (payload.len() as u64, payload_checksum(payload));
        let former = self[slot].leave_payload(checksum);
        self.forget(former);
        bytes
    }

    /// Brings a payload back into memory that was left in the store. Returns the number of bytes of
    /// memory that it takes.
    pub(crate) fn bring_back_payload(&mut self, slot: Slot, payload: &Bytes) -> u64 {
        if self[slot].payload().is_some() {
            return 0;
        }
        let kept = self.keep_bytes(payload);
        self[slot].bring_back_payload(kept);
        payload.len() as u64
    }

    /// Returns the record of the task as it leaves the engine.
    #[inline]
    pub(crate) fn record(&self, slot: Slot, queue: Names<'_>) -> TaskRecord {
        if self.memberships.are_any() {
            return self.record_in_batch(slot, queue);
        }
        self[slot].record(queue, &self.payloads)
    }

    /// Returns the change that reports what the store does not know yet about a task.
    #[inline]
    pub(crate) fn unsaved_change(
        &self,
        (slot, task): (Slot, &Task),
        queue: Names<'_>,
    ) -> Option<Change> {
        if self.memberships.are_any() {
            return self.unsaved_change_in_batch(slot, queue);
        }
        task.unsaved_change(queue, &self.payloads)
    }

    /// Like [`Self::record`], where the task may be in a batch.
    #[cold]
    #[inline(never)]
    fn record_in_batch(&self, slot: Slot, queue: Names<'_>) -> TaskRecord {
        let mut record = self[slot].record(queue, &self.payloads);
        record.set_batch(self.memberships.name_of(slot).cloned());
        record
    }

    /// Like [`Self::unsaved_change`], where the task may be in a batch.
    #[cold]
    #[inline(never)]
    fn unsaved_change_in_batch(&self, slot: Slot, queue: Names<'_>) -> Option<Change> {
        let mut change = self[slot].unsaved_change(queue, &self.payloads);
        if let Some(Change::Task(record)) = &mut change {
            record.set_batch(self.memberships.name_of(slot).cloned());
        }
        change
    }

    /// The number of payloads in memory. For checks only.
    pub(crate) fn payloads_kept(&self) -> usize {
        self.payloads.count()
    }

    /// Returns the slot of the task with this number.
    pub(crate) fn find(&self, number: u64) -> Option<Slot> {
        self.numbers.find(number)
    }

    /// Returns the task at `slot`, if it is still there.
    pub(crate) fn at(&self, slot: Slot) -> Option<&Task> {
        self.pages.find(index(slot))
    }

    /// Iterates over all slots in the order of their numbers. Costs O(n): for start and checks
    /// only.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.numbers.slots()
    }
}

impl std::ops::Index<Slot> for Tasks {
    type Output = Task;

    fn index(&self, slot: Slot) -> &Task {
        match self.pages.find(index(slot)) {
            Some(task) => task,
            None => unreachable!("no task at {slot:?}"),
        }
    }
}

impl std::ops::IndexMut<Slot> for Tasks {
    fn index_mut(&mut self, slot: Slot) -> &mut Task {
        match self.pages.find_mut(index(slot)) {
            Some(task) => task,
            None => unreachable!("no task at {slot:?}"),
        }
    }
}

const fn index(slot: Slot) -> usize {
    slot.0.get() as usize - 1
}

fn slot_at(index: usize) -> Slot {
    let Some(index) = u32::try_from(index + 1).ok().and_then(NonZeroU32::new) else {
        panic!("more than {} tasks in one shard", u32::MAX)
    };
    Slot(index)
}
