//! How many unfinished tasks each share of a queue has, where a setting bounds that.
//!
//! This follows from the tasks. Nothing here knows the bound.

use std::collections::BTreeMap;

use crate::memory::packed::Task;
use pinpriq_proto::task::Bytes;

/// See the start of this file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ShareCounts(BTreeMap<Bytes, u64>);

impl ShareCounts {
    /// Counts these tasks.
    pub(crate) fn of<'t>(tasks: impl Iterator<Item = &'t Task>) -> Self {
        let mut counts = Self::default();
        tasks.for_each(|task| counts.insert(task));
        counts
    }

    /// The number of unfinished tasks of a share.
    pub(crate) fn count(&self, share: &[u8]) -> u64 {
        self.0.get(share).copied().unwrap_or(0)
    }

    /// Counts a task with its current fields.
    pub(crate) fn insert(&mut self, task: &Task) {
        if task.kind().is_finished() {
            return;
        }
        if let Some(count) = self.0.get_mut(share_of(task)) {
            *count += 1;
        } else {
            let share = task.share().or_else(|| task.key()).cloned();
            self.0.insert(share.unwrap_or_default(), 1);
        }
    }

    /// No longer counts a task that was counted with its current fields.
    pub(crate) fn remove(&mut self, task: &Task) {
        if task.kind().is_finished() {
            return;
        }
        let share = share_of(task);
        let Some(count) = self.0.get_mut(share) else {
            unreachable!("task {} is not counted", task.number())
        };
        *count -= 1;
        if *count == 0 {
            self.0.remove(share);
        }
    }

    /// Frees some memory, of counts that are used no longer.
    pub(crate) fn free_some(&mut self) {
        self.0.pop_first();
    }
}

/// The share of a task: the one that its put named, or else its key.
pub(crate) fn share_of(task: &Task) -> &[u8] {
    task.share().or_else(|| task.key()).map_or(&[], |share| share)
}
