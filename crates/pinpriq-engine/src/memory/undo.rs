//! What a transaction has changed so far, so that it can be undone, and what it puts off until its
//! end. It only holds the data.

use std::collections::BTreeMap;

use crate::fanout::publications::Published;
use crate::issued;
use crate::memory::batches::Batch;
use crate::memory::bucket::Bucket;
use crate::memory::consumers::Ended;
use crate::memory::endings;
use crate::memory::packed::Task;
use crate::memory::payloads::Kept;
use crate::memory::queues::FormerQueue;
use crate::memory::slots::{QueueSlot, Slot};
use crate::memory::windows::Window;
use crate::report::Mark;
use pinpriq_proto::stats::Counters;
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::Timestamp;

/// The notes of one transaction. Whatever is noted twice stays as it was noted first.
#[derive(Debug)]
pub(crate) struct UndoLog {
    /// The tasks that have changed, by number, as they were. `None` for those that were not there.
    pub(crate) tasks: BTreeMap<u64, Option<Task>>,
    pub(crate) queues: BTreeMap<QueueSlot, FormerQueue>,
    /// The publications that have changed, as they were. `None` for those that were not there.
    pub(crate) publications: BTreeMap<u64, Option<Published>>,
    /// The windows that have changed, as they were. `None` for those that were not there.
    pub(crate) windows: BTreeMap<u64, Option<Window>>,
    /// The tokens of limits with a name that have changed, as they were, by number of the limit.
    pub(crate) buckets: BTreeMap<u64, Option<Bucket>>,
    /// The members that gave a sign of life, and when their lease was over before.
    pub(crate) leases: BTreeMap<u64, Timestamp>,
    /// The members whose lease was found to be over. That is not undone.
    pub(crate) ended: Vec<u64>,
    /// The tasks whose account has changed, and the account before, in the order of the changes.
    pub(crate) accounts: Vec<(u64, Option<Bytes>)>,
    /// The batches that have changed, as they were.
    pub(crate) batches: BTreeMap<u64, Option<Batch>>,
    /// In which batch the changed tasks were, of those that were in one.
    pub(crate) memberships: BTreeMap<u64, u64>,
    /// How many copies were published.
    pub(crate) copies: usize,
    pub(crate) totals: Counters,
    /// See [`crate::Engine::bytes`].
    pub(crate) bytes: u64,
    /// The endings that were remembered.
    pub(crate) endings: endings::Mark,
    /// The endings that were withdrawn.
    pub(crate) endings_taken_back: Vec<endings::TakenBack>,
    /// The numbers that were issued.
    pub(crate) issued: issued::Mark,
    pub(crate) report: Mark,
    /// The number of outputs.
    pub(crate) outputs: usize,
    /// The payloads that no task uses if the transaction is not undone.
    pub(crate) forgotten: Vec<Kept>,
    /// What awaiters have to receive.
    pub(crate) told: Vec<(u64, Ended)>,
    /// The queues that may be unneeded.
    pub(crate) untidied: Vec<QueueSlot>,
    /// The new tasks that live only for this instant.
    pub(crate) instants: Vec<(Slot, u64)>,
}

impl UndoLog {
    /// Tells the awaiters of a task at the end.
    pub(crate) fn tell_later(&mut self, number: u64, ended: Ended) {
        self.told.push((number, ended));
    }

    /// Removes a queue at the end, if it is not needed then.
    pub(crate) fn tidy_later(&mut self, queue: QueueSlot) {
        if self.untidied.last() != Some(&queue) {
            self.untidied.push(queue);
        }
    }

    /// Ends the life of a task at the end, unless a consumer gets it.
    pub(crate) fn end_later(&mut self, slot: Slot, number: u64) {
        self.instants.push((slot, number));
    }

    /// Notes that a member has ended.
    pub(crate) fn note_end(&mut self, incarnation: u64) {
        self.ended.push(incarnation);
    }
}
