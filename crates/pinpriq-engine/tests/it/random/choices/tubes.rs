//! Chooses commands about several tubes, and about tasks that only their number names.

use pinpriq_proto::command::{Deed, Reserve, Share, Take, TakeMode};
use pinpriq_proto::task::{Receipt, State, StateKind, TaskRecord};

use super::{Chooser, QUEUES};

impl Chooser<'_> {
    pub(super) fn tubes(&mut self) -> &'static [&'static [u8]] {
        let mut queues = QUEUES.to_vec();
        queues.truncate(usize::try_from(self.dice.below(4)).unwrap());
        Vec::leak(queues)
    }

    pub(super) fn reserve(&mut self) -> Reserve<'static> {
        Reserve { queues: self.tubes(), wait: self.wait(), is_echo: self.dice.once_in(8) }
    }

    pub(super) fn share(&mut self) -> Share<'static> {
        match self.dice.below(6) {
            4 => Share::Next,
            5 => {
                let deliveries = u32::try_from(self.dice.below(4)).unwrap();
                Share::Permit { deliveries, holds: self.dice.once_in(2) }
            }
            0 => Share::Look { done: self.done(), take: self.take() },
            3 if !self.memory.receipts.is_empty() => {
                let held = self.tasks().into_iter().find_map(|task| match &task.progress.state {
                    State::Taken(lease) if lease.is_held_for_pop() => task.receipt(),
                    _ => None,
                });
                let mut receipts: Vec<Receipt> = held.into_iter().collect();
                if self.dice.once_in(4) {
                    receipts.push(self.old_receipt().1);
                }
                Share::Pop(Vec::leak(receipts))
            }
            _ => {
                let mode = self.dice.pick(&[TakeMode::Pop, TakeMode::Lease { ttr: None }]);
                let take = Take { mode, ..self.take() };
                Share::Wait { take, is_echo: self.dice.once_in(4) }
            }
        }
    }

    /// The number that a task has, had or might have.
    pub(super) fn number(&mut self) -> u64 {
        let mut tasks: Vec<&TaskRecord> = self.tasks();
        // There are few zombies.
        let kind = self.dice.pick(&[StateKind::Taken, StateKind::Taken, StateKind::Zombie]);
        let is_it = |task: &&TaskRecord| task.progress.state.kind() == kind;
        if self.dice.once_in(2) && tasks.iter().any(is_it) {
            tasks.retain(is_it);
        }
        if tasks.is_empty() || self.dice.once_in(12) {
            return self.model.last_number.saturating_sub(self.dice.below(5));
        }
        tasks[usize::try_from(self.dice.below(tasks.len() as u64)).unwrap()].number
    }

    pub(super) fn deed(&mut self) -> Deed {
        let priority = self.priority().unwrap_or(3);
        match self.dice.below(9) {
            0 => Deed::Read,
            1..=2 => Deed::Take,
            3 => Deed::Delete,
            4..=5 => Deed::Release { priority, delay: self.delay() },
            6 => Deed::Bury { priority },
            7 => Deed::Touch,
            _ => Deed::Kick,
        }
    }
}
