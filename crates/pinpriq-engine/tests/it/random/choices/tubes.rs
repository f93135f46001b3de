//! Chooses commands about several tubes, and about tasks that only their number names.

use pinpriq_proto::command::{
    Command, Deed, Delay, QueueCommand, Reserve, Share, Take, TakeMode, TimeToLive,
};
use pinpriq_proto::task::{Receipt, State, StateKind, TaskRecord};

use super::{Chooser, QUEUES};

impl Chooser<'_> {
    pub(super) fn of_tubes(&mut self) -> Command<'static> {
        let crowded = self.model.task_count() > 24;
        match self.dice.below(16) {
            0..=1 if !crowded => {
                let (mut put, reason) = (self.put(), self.reason());
                if !self.dice.once_in(8) {
                    (put.wait, put.unique) = (None, None);
                    put.delay = Delay::NONE;
                }
                let is_numbered = self.dice.once_in(3);
                if is_numbered {
                    // The answer does not tell the id that the engine draws. It must be seen before
                    // the task goes elsewhere as a dead letter.
                    put.ttl = TimeToLive::Endless;
                }
                let put = Box::leak(Box::new(put));
                if is_numbered {
                    return Command::PutNumbered(put);
                }
                Command::PutBuried { put, reason }
            }
            0..=4 => {
                let mut queues = QUEUES.to_vec();
                queues.truncate(usize::try_from(self.dice.below(4)).unwrap());
                let queues: &[&[u8]] = Vec::leak(queues);
                if self.dice.once_in(8) {
                    return Command::Head(queues);
                }
                let (wait, is_echo) = (self.wait(), self.dice.once_in(8));
                Command::Reserve(Reserve { queues, wait, is_echo })
            }
            5..=10 => self.numbered(),
            11..=12 => {
                let count = self.dice.pick(&[0, 1, 1, 2, u32::MAX]);
                Command::Kick { queue: self.queue(), count }
            }
            13 => {
                let state = self.dice.pick(&[StateKind::Waiting, StateKind::Buried]);
                Command::Foremost { queue: self.queue(), state }
            }
            14 => match self.dice.below(6) {
                0 => Command::Tubes(Some(self.queue())),
                1..=2 => Command::LetGo,
                _ => Command::Tubes(None),
            },
            _ => {
                let length = (!self.dice.once_in(3)).then(|| self.span());
                let (queue, makes) = (self.queue(), self.dice.once_in(2));
                Command::Queue(QueueCommand::Hold { queue, length, makes })
            }
        }
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

    pub(super) fn numbered(&mut self) -> Command<'static> {
        let mut tasks: Vec<&TaskRecord> = self.tasks();
        let is_taken = |task: &&TaskRecord| matches!(task.progress.state, State::Taken(_));
        if self.dice.once_in(2) && tasks.iter().any(is_taken) {
            tasks.retain(is_taken);
        }
        let number = if tasks.is_empty() || self.dice.once_in(12) {
            self.model.last_number.saturating_sub(self.dice.below(5))
        } else {
            tasks[usize::try_from(self.dice.below(tasks.len() as u64)).unwrap()].number
        };
        let priority = self.priority().unwrap_or(3);
        let deed = match self.dice.below(9) {
            0 => Deed::Read,
            1..=2 => Deed::Take,
            3 => Deed::Delete,
            4..=5 => Deed::Release { priority, delay: self.delay() },
            6 => Deed::Bury { priority },
            7 => Deed::Touch,
            _ => Deed::Kick,
        };
        Command::Numbered { number, deed }
    }
}
