//! What has to hold of batches at any time between two calls.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Engine;
use crate::memory::deadlines::Due;
use pinpriq_proto::batches::{BatchRecord, BatchState, MEMBER_OF_BATCH_BYTES};
use pinpriq_proto::task::{State, StateKind};

impl Engine {
    /// Each batch knows its tasks and those that wait for it, and none is done too late.
    pub(super) fn check_batches(&self) {
        let mut followers: BTreeMap<Vec<u8>, BTreeSet<u64>> = BTreeMap::new();
        let (mut members, mut buried) = (BTreeMap::new(), BTreeMap::new());
        let mut linked = 0;
        for slot in self.tasks.slots() {
            let task = &self.tasks[slot];
            linked += u64::from(self.tasks.memberships.has(slot));
            if let Some(batch) = self.tasks.memberships.of(slot) {
                assert!(!task.kind().is_finished(), "a finished task is in no batch");
                *members.entry(batch).or_insert(0) += 1;
                *buried.entry(batch).or_insert(0) += u64::from(task.kind() == StateKind::Buried);
            }
            // What was emptied away waits for nothing any more, whatever it still says.
            let Some(after) = task.after().filter(|_| self.live(task.number()).is_some()) else {
                continue;
            };
            assert_eq!(*task.state(), State::HELD, "what waits for batches is held");
            assert!(!after.names.is_empty(), "it waits for something");
            for name in &after.names {
                assert!(self.batches.called(name).is_some(), "it waits for a batch");
                followers.entry(name.to_vec()).or_default().insert(task.number());
            }
        }
        assert_eq!(linked, self.tasks.memberships.members(), "members are counted");
        for batch in self.batches.iter() {
            let (record, number) = (&batch.record, batch.record.number);
            let own = members.remove(&number).unwrap_or(0);
            assert_eq!(record.pending(), own, "the batch {number} counts its tasks");
            assert_eq!(self.tasks.memberships.count(number), own, "and its list does");
            assert_eq!(batch.buried, buried.remove(&number).unwrap_or(0), "and the buried ones");
            let waiting = followers.remove(&*record.name).unwrap_or_default();
            let known = batch.followers.iter().filter(|task| self.live(**task).is_some());
            let known: BTreeSet<u64> = known.copied().collect();
            assert_eq!(known, waiting, "the batch {number} knows who waits for it");
            assert_eq!(record.done_at.is_some(), record.is_done(), "it is done at some time");
            let is_late = record.state == BatchState::Closed && own == 0;
            assert!(!is_late, "the batch {number} is done as soon as it can be");
            assert_eq!(self.tasks.memberships.follow(number), !record.is_done(), "it is followed");
            assert_eq!(batch.armed, batch.due(own, &self.limits), "the batch {number} is due");
            if let Some(at) = batch.armed {
                assert!(self.deadlines.contains(at, Due::Batch(number)), "it is due at {at}");
            }
            assert!(
                batch.is_forgettable() || !record.is_done() || self.batches.have_work(),
                "those that wait for the batch {number} hear of its end"
            );
        }
        assert!(members.is_empty() && followers.is_empty(), "what is named is there");
        assert!(!self.batches.have_unsaved(), "all batches were reported");
    }

    /// How many bytes batches occupy, and that tasks are in them.
    pub(super) fn batch_bytes(&self) -> u64 {
        let bytes_of = |record: &BatchRecord| {
            let members = self.tasks.memberships.count(record.number);
            record.bytes() + MEMBER_OF_BATCH_BYTES * members
        };
        self.batches.iter().map(|batch| bytes_of(&batch.record)).sum()
    }
}
