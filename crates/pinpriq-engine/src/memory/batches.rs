//! Batches: their records, who waits for each, and which of them have something left to be done.
//!
//! Which tasks are in a batch is in `memberships.rs`. Nothing here knows what becomes of tasks.

use std::collections::{BTreeSet, VecDeque};

use crate::memory::details::{self, Kept, Records, start_of};
use crate::memory::slots::Slot;
use pinpriq_proto::batches::{BatchRecord, BatchShown, BatchState};
use pinpriq_proto::change::Place;
use pinpriq_proto::limits::Limits;
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::Timestamp;

/// The most names of batches that were given up.
const GIVEN_UP_MAX: usize = 100;

/// They are of no queue.
const NO_QUEUE: &[u8] = b"";

/// One batch.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) record: BatchRecord,
    /// Where the store keeps its record.
    pub(crate) place: Option<Place>,
    /// The numbers of the tasks that wait for it.
    pub(crate) followers: BTreeSet<u64>,
    /// How many of its tasks are buried.
    pub(crate) buried: u64,
    /// The next of its tasks to be cancelled.
    pub(crate) next_to_cancel: Option<Slot>,
    /// Whether holders that were asked to stop are asked again.
    pub(crate) asks_again: bool,
    /// The moment under which it is in the index of deadlines.
    pub(crate) armed: Option<Timestamp>,
    /// Whether the store does not know its record as it is now.
    is_unsaved: bool,
    /// Whether those that wait for it have not all heard that it is done.
    pub(crate) is_firing: bool,
}

/// See the start of this file.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    records: Records<Batch>,
    /// Those that are done, while there is somebody who has to hear that.
    fired: VecDeque<u64>,
    /// Those of which there are tasks to cancel.
    cancelling: VecDeque<u64>,
    /// Whether there may be one of either.
    has_work: bool,
    /// Whether there was ever one since the start.
    were_used: bool,
    /// Those that may be forgotten, the one that is done for longest first.
    forgettable: BTreeSet<(Timestamp, u64)>,
    /// Those that the store does not know as they are now.
    unsaved: Vec<u64>,
    /// The names of those that were given up since somebody has asked, the first ones.
    given_up: Vec<Bytes>,
}

impl Batch {
    pub(crate) const fn new(record: BatchRecord, place: Option<Place>) -> Self {
        Self {
            record,
            place,
            followers: BTreeSet::new(),
            buried: 0,
            next_to_cancel: None,
            asks_again: false,
            armed: None,
            is_unsaved: false,
            is_firing: false,
        }
    }

    /// The next moment at which time changes it: when it is forgotten or given up. `members` is the
    /// number of its tasks.
    pub(crate) fn due(&self, members: u64, limits: &Limits) -> Option<Timestamp> {
        let record = &self.record;
        match record.state {
            BatchState::Done if self.is_forgettable() => {
                record.done_at.map(|at| at.after(limits.batch_retain))
            }
            BatchState::Done => None,
            BatchState::Open if members == 0 => {
                let abandoned = record.changed_at.after(limits.batch_abandon);
                Some(record.expires_at.map_or(abandoned, |at| at.min(abandoned)))
            }
            BatchState::Open | BatchState::Closed => record.expires_at,
        }
    }

    /// What is shown of it.
    pub(crate) fn shown(&self) -> BatchShown {
        let record = &self.record;
        BatchShown {
            name: record.name.clone(),
            state: record.state,
            total: record.total,
            pending: record.pending(),
            buried: self.buried,
            acked: record.acked,
            failed: record.failed,
            waiting: self.followers.len() as u64,
            opened_at: record.opened_at,
            done_at: record.done_at,
        }
    }

    /// Whether it may be forgotten: it is done, and no task has to be told.
    pub(crate) fn is_forgettable(&self) -> bool {
        self.record.is_done() && self.followers.is_empty()
    }
}

impl Batches {
    /// Whether there was ever one since the start. Otherwise no task has to do with any.
    #[inline]
    pub(crate) const fn were_used(&self) -> bool {
        self.were_used
    }

    /// Notes that a task names one, which may be lost.
    pub(crate) const fn note_use(&mut self) {
        self.were_used = true;
    }

    /// Whether there is something left to be done with one of them.
    #[inline]
    pub(crate) const fn have_work(&self) -> bool {
        self.has_work
    }

    /// Notes whether there is still something left to be done.
    pub(crate) fn note_work(&mut self) {
        self.has_work = !self.fired.is_empty() || !self.cancelling.is_empty();
    }

    /// Whether the store does not know one of them as it is now.
    #[inline]
    pub(crate) const fn have_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.records.count_of(NO_QUEUE)
    }

    pub(crate) fn one(&self, number: u64) -> Option<&Batch> {
        self.records.one(number)
    }

    pub(crate) fn called(&self, name: &[u8]) -> Option<&Batch> {
        self.records.find(NO_QUEUE, name)
    }

    /// All of them, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Batch> {
        self.records.iter()
    }

    /// Adds one. No other may have its name.
    pub(crate) fn insert(&mut self, batch: Batch) {
        let number = batch.record.number;
        self.were_used = true;
        self.records.insert(batch);
        self.note_forgettable(number, true);
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Batch> {
        self.note_forgettable(number, false);
        self.records.remove(number)
    }

    /// Changes one, but not its name.
    pub(crate) fn change<R>(
        &mut self,
        number: u64,
        change: impl FnOnce(&mut Batch) -> R,
    ) -> Option<R> {
        self.note_forgettable(number, false);
        let changed = self.records.one_mut(number).map(change);
        self.note_forgettable(number, true);
        changed
    }

    fn note_forgettable(&mut self, number: u64, is_there: bool) {
        let Some(batch) = self.records.one(number).filter(|batch| batch.is_forgettable()) else {
            return;
        };
        let Some(at) = batch.record.done_at else { return };
        if is_there {
            self.forgettable.insert((at, number));
        } else {
            self.forgettable.remove(&(at, number));
        }
    }

    /// The one that gives way first to another one.
    pub(crate) fn oldest_done(&self) -> Option<u64> {
        self.forgettable.first().map(|(_, number)| *number)
    }

    /// Notes that the store does not know a batch as it is now.
    pub(crate) fn mark(&mut self, number: u64) {
        if let Some(batch) = self.records.one_mut(number)
            && !std::mem::replace(&mut batch.is_unsaved, true)
        {
            self.unsaved.push(number);
        }
    }

    /// Those that the store does not know as they are now. It does from now on.
    pub(crate) fn take_unsaved(&mut self) -> Vec<BatchRecord> {
        let unsaved = std::mem::take(&mut self.unsaved);
        let mut records = Vec::with_capacity(unsaved.len());
        for number in unsaved {
            if let Some(batch) = self.records.one_mut(number) {
                batch.is_unsaved = false;
                records.push(batch.record.clone());
            }
        }
        records
    }

    /// Forgets what was noted for the store, of what was undone.
    pub(crate) fn forget_unsaved(&mut self) {
        for number in std::mem::take(&mut self.unsaved) {
            if let Some(batch) = self.records.one_mut(number) {
                batch.is_unsaved = false;
            }
        }
    }

    /// Notes that a batch is given up.
    pub(crate) fn note_given_up(&mut self, number: u64) {
        if let Some(batch) = self.records.one(number)
            && self.given_up.len() < GIVEN_UP_MAX
        {
            self.given_up.push(batch.record.name.clone());
        }
    }

    /// The names of the batches that were given up since the last call, at most
    /// [`GIVEN_UP_MAX`] of them.
    pub(crate) fn take_given_up(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.given_up)
    }

    /// Notes that those that wait for a batch have to hear that it is done.
    pub(crate) fn fire(&mut self, number: u64) {
        self.change(number, |batch| batch.is_firing = true);
        self.fired.push_back(number);
        self.has_work = true;
    }

    /// The first batch of which somebody has to hear that it is done.
    pub(crate) fn first_fired(&mut self) -> Option<u64> {
        while let Some(number) = self.fired.front() {
            if self.one(*number).is_some_and(|batch| batch.record.is_done() && batch.is_firing) {
                return Some(*number);
            }
            // What had fired it was undone.
            self.fired.pop_front();
        }
        None
    }

    /// Notes that all have heard that the first one is done.
    pub(crate) fn end_firing(&mut self) {
        if let Some(number) = self.fired.pop_front() {
            self.change(number, |batch| batch.is_firing = false);
        }
    }

    /// Notes that there are tasks of a batch to be cancelled, from this one on.
    pub(crate) fn cancel_from(&mut self, number: u64, first: Option<Slot>) {
        self.change(number, |batch| batch.next_to_cancel = first);
        if first.is_some() && !self.cancelling.contains(&number) {
            self.cancelling.push_back(number);
            self.has_work = true;
        }
    }

    /// The first batch of which there are tasks to be cancelled, and the first of them.
    pub(crate) fn first_to_cancel(&mut self) -> Option<(u64, Slot)> {
        while let Some(number) = self.cancelling.front() {
            let batch = self.one(*number).filter(|batch| !batch.record.is_done());
            if let Some(first) = batch.and_then(|batch| batch.next_to_cancel) {
                return Some((*number, first));
            }
            self.cancelling.pop_front();
        }
        None
    }

    /// All names that begin with a prefix, in order, after another one.
    pub(crate) fn names_after<'s>(
        &'s self,
        prefix: &'s [u8],
        after: Option<&'s [u8]>,
    ) -> impl Iterator<Item = &'s Bytes> {
        let batches = self.records.of_queue(NO_QUEUE, start_of(prefix, after));
        let names = batches.map(|batch| &batch.record.name);
        names.take_while(move |name| name.starts_with(prefix))
    }

    /// Adds a restored one. Returns the places of the records that it replaces.
    pub(crate) fn restore(&mut self, batch: Batch) -> [Option<Place>; 2] {
        self.were_used = true;
        self.records.restore(batch)
    }

    /// The details, as the store sees them.
    pub(crate) const fn details(&mut self) -> &mut dyn details::Details {
        &mut self.records
    }
}

impl Kept for Batch {
    type Record = BatchRecord;

    fn names(&self) -> (u64, Bytes, Bytes) {
        (self.record.number, NO_QUEUE.into(), self.record.name.clone())
    }

    fn record(&self) -> &BatchRecord {
        &self.record
    }

    fn place(&mut self) -> &mut Option<Place> {
        &mut self.place
    }

    fn counts(&self) -> bool {
        false
    }
}
