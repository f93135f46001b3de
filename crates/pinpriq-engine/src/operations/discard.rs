//! Frees what an emptied queue leaves behind, a bounded number of tasks at a time.
//!
//! A queue is emptied at once: its indexes are set aside and it gets a new epoch, so that none of
//! its former tasks can be found. Their memory, and everything else that refers to them, is freed
//! here.

use crate::engine::Engine;
use crate::memory::discarded::Discarded;
use crate::memory::packed::Task;
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::following::Leaving;
use crate::step::connection_lease;
use pinpriq_proto::change::Change;
use pinpriq_proto::reply::Outcome;
use pinpriq_proto::task::StateKind;

impl Engine {
    /// Removes every task of a queue at once, and returns how many there were. Costs the same for
    /// any number of tasks.
    pub(crate) fn empty(&mut self, slot: QueueSlot) -> u64 {
        let count = self.discard(slot);
        if count > 0 {
            let queue = &self.queues[slot];
            self.report.add(match queue.lane_name() {
                None => Change::Emptied(queue.name.clone()),
                Some(lane) => Change::LaneEmptied(lane.number),
            });
        }
        count
    }

    /// Like [`Self::empty`], but reports nothing to the store.
    pub(crate) fn discard(&mut self, slot: QueueSlot) -> u64 {
        let epoch = self.queues.next_epoch();
        let queue = &mut self.queues[slot];
        let present = queue.counters.in_any_state();
        if present == 0 {
            return 0;
        }
        if queue.indexes.keys_held() > 0 {
            self.outlive(slot);
        }
        self.note_vacancy(slot);
        let queue = &mut self.queues[slot];
        let former = std::mem::replace(&mut queue.epoch, epoch);
        let indexes = std::mem::take(&mut queue.indexes);
        queue.finished_bytes = 0;
        queue.waiting.unstarted = None;
        let turns = self.empty_turns(slot);
        let tallies = self.empty_tallies(slot);
        let queue = &mut self.queues[slot];
        let share_counts = queue.share_counts.as_deref_mut().map(std::mem::take);
        let counts = queue.counters.counts;
        let bytes = queue.counters.bytes;
        for counters in [&mut queue.counters, &mut self.totals] {
            for (kind, count) in StateKind::ALL.into_iter().zip(counts) {
                counters.remove_all(kind, count);
            }
            counters.bytes -= bytes;
        }
        self.count_taken(slot);
        self.discarded.push_back(Discarded {
            epoch: former,
            indexes,
            turns,
            share_counts,
            tallies,
            remaining: present,
        });
        present
    }

    /// Frees up to `steps` tasks of emptied queues. Their awaiters get the outcome `killed`.
    pub(crate) fn free_discarded(&mut self, steps: usize) {
        for _ in 0..steps {
            if let Some(tallies) = self.former_tallies.front_mut() {
                if !tallies.free_some() {
                    self.former_tallies.pop_front();
                }
                continue;
            }
            let Some(discarded) = self.discarded.front_mut() else { return };
            let Some(slot) = discarded.indexes.any() else {
                self.discarded.pop_front();
                continue;
            };
            discarded.remove(slot, &self.tasks);
            self.free(slot);
        }
    }

    /// Frees one task of an emptied queue before its turn, because its number is needed.
    pub(crate) fn free_early(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        let Some(discarded) = self.discarded.iter_mut().find(|known| known.epoch == task.epoch)
        else {
            unreachable!("task {} is of no emptied queue", task.number())
        };
        discarded.remove(slot, &self.tasks);
        self.discarded.retain(|known| known.remaining > 0);
        self.free(slot);
    }

    /// Frees a task that is in no index and that cannot be found.
    fn free(&mut self, slot: Slot) {
        if self.tasks.memberships.are_any() {
            self.leave_batch(slot, self.tasks[slot].kind(), Leaving::Failed);
        }
        let task = self.remove_from_memory(slot);
        self.unfollow(&task);
        self.forget_lease(&task);
        self.tell_watchers(None, &task, Outcome::Killed);
    }

    fn forget_lease(&mut self, task: &Task) {
        let Some((client, bond)) = connection_lease(task) else { return };
        if let Some(holder) = self.consumers.clients.get_mut(&client) {
            holder.let_go(task.number(), bond);
        }
        self.consumers.tidy(client);
    }
}
