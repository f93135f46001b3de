//! Kicks: buried tasks become ready in the order in which they were buried, or waiting ones in the
//! order in which their delays end. Digging and plowing are in `transfer.rs`.

use crate::engine::Engine;
use crate::memory::packed::Task;
use crate::memory::slots::{QueueSlot, Slot};
use crate::transition::Operation;
use pinpriq_proto::command::Amendment;
use pinpriq_proto::reply::Reply;
use pinpriq_proto::task::{State, StateKind};
use pinpriq_proto::time::Span;

impl Engine {
    /// Makes buried tasks of a queue ready, or if there is none, waiting ones. Who waits gets each
    /// before the next one is ready, as in beanstalkd. Costs O(log n) for each.
    pub(crate) fn kick(&mut self, queue: &[u8], count: u32) -> Reply {
        let Some(queue) = self.queues.find(queue) else { return Reply::Count(0) };
        let buried = self.queues[queue].indexes.foremost(StateKind::Buried);
        let state = if buried.is_some() { StateKind::Buried } else { StateKind::Waiting };
        let epoch = self.queues[queue].epoch;
        let mut kicked = 0;
        // With its last task, the queue may end.
        while kicked < u64::from(count) && self.queues.is_current(queue, epoch) {
            let Some(slot) = self.foremost_by_now(queue, state) else { break };
            kicked += u64::from(self.kick_one(slot).is_some());
            self.serve();
        }
        Reply::Count(kicked)
    }

    /// Makes a task ready. Its attempts stay, unlike with a dig.
    pub(super) fn kick_one(&mut self, slot: Slot) -> Option<StateKind> {
        self.bring_back(
            slot,
            Operation::Kick,
            Span::ZERO,
            &Amendment::default(),
            |task: &mut Task| {
                task.set_failures(0);
                task.count(|counts| &mut counts.kicks);
            },
        )
    }

    pub(crate) fn foremost(&mut self, queue: &[u8], state: StateKind) -> Reply {
        let slot = self.queues.find(queue).and_then(|queue| self.foremost_by_now(queue, state));
        let record = slot.map(|slot| {
            let queue = &self.queues[self.tasks[slot].queue];
            Box::new(self.tasks.record(slot, queue.names()))
        });
        Reply::Task(record)
    }

    /// Returns the first task of one state, after deadlines that have passed were fired. There are
    /// such deadlines only while more are due than one call fires. What is held is none of them.
    fn foremost_by_now(&mut self, queue: QueueSlot, state: StateKind) -> Option<Slot> {
        let epoch = self.queues[queue].epoch;
        while self.queues.is_current(queue, epoch) {
            let slot = self.queues[queue].indexes.foremost(state)?;
            if *self.tasks[slot].state() == State::HELD {
                return None;
            }
            let number = self.tasks[slot].number();
            let slot = self.live_by_now(number).filter(|slot| self.tasks[*slot].kind() == state);
            if slot.is_some() {
                return slot;
            }
        }
        None
    }
}
