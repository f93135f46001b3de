//! One engine's part of a take over the queues of several engines, or of subscriptions there: it
//! shows what it has, and lets the client wait. The caller chooses among the engines.

use crate::engine::{Answered, Engine};
use crate::memory::consumers::Standing;
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::take::Want;
use crate::transition::{By, Operation};
use pinpriq_proto::command::{Done, QueueName, Selection, Share, Take, TakeMode, Wait};
use pinpriq_proto::reply::Reply;
use pinpriq_proto::task::{Bytes, ClientId, Lease, Receipt, RequestId, State, TaskRecord};

impl Engine {
    #[inline(never)]
    pub(crate) fn share(
        &mut self,
        client: ClientId,
        request: RequestId,
        share: &Share<'_>,
    ) -> Answered {
        match *share {
            Share::Look { done, ref take } => self.look(client, done, take),
            Share::Wait { ref take, is_echo } => self.wait_too(client, request, take, is_echo),
            Share::Pop(receipts) => Ok(Some(self.pop_held(receipts))),
            Share::Permit { deliveries, holds } => Ok(Some(self.permit(client, deliveries, holds))),
            Share::Next => {
                let first = self.next_to_deliver(client);
                Ok(Some(self.shown(first)))
            }
        }
    }

    fn look(&mut self, client: ClientId, done: &[Done<'_>], take: &Take<'_>) -> Answered {
        let take = Take { wait: Wait::No, ..*take };
        self.check_taken(&take)?;
        self.find_lanes(take.queues, take.member)?;
        self.check_order(take.queues, take.member, take.selection)?;
        if !done.is_empty() {
            self.finish_all(client, done)?;
        }
        let mut first = None;
        for name in take.queues {
            if let Some(queue) = self.find_queue(QueueName { name, member: take.member })? {
                self.note_life(queue);
                first = first.or_else(|| self.first_to_take(queue, take.selection));
            }
        }
        Ok(Some(self.shown(first)))
    }

    /// Shows a task without its payload.
    fn shown(&self, first: Option<Slot>) -> Reply {
        let record = |slot: Slot| {
            let queue = &self.queues[self.tasks[slot].queue];
            let record = self.tasks.record(slot, queue.names());
            TaskRecord { payload: Bytes::default(), away: None, ..record }
        };
        Reply::Shown(first.into_iter().map(record).collect())
    }

    /// Returns the task of a queue that a take would take first, if it may be taken now.
    pub(crate) fn first_to_take(&mut self, queue: QueueSlot, selection: Selection) -> Option<Slot> {
        if self.queues[queue].paused.output.is_on() {
            return None;
        }
        let slot = self.select(queue, selection)?;
        if !self.is_open(queue) {
            self.note_shut(queue);
            return None;
        }
        Some(slot)
    }

    fn wait_too(
        &mut self,
        client: ClientId,
        request: RequestId,
        take: &Take<'_>,
        is_echo: bool,
    ) -> Answered {
        self.check_take(take)?;
        self.find_lanes(take.queues, take.member)?;
        self.check_order(take.queues, take.member, take.selection)?;
        let (selection, mode, mut count) = (take.selection, take.mode, take.count);
        let is_tied = mode == TakeMode::Pop;
        let want = Want { client, selection, mode, is_tied, recalls: false };
        let mut tasks = Vec::new();
        for name in take.queues {
            if let Some(queue) = self.find_queue(QueueName { name, member: take.member })? {
                self.collect(queue, want, &mut count, &mut tasks);
            }
        }
        if !tasks.is_empty() || !take.wait.blocks() {
            return Ok(Some(Reply::Tasks { tasks, popped: false }));
        }
        let until = match take.wait {
            Wait::For(span) => Some(self.now.after(span)),
            Wait::No | Wait::Forever => None,
        };
        let standing = Standing { reserve: None, is_share: true, is_echo };
        self.block_taker((client, request), take, until, standing)
    }

    /// Pops tasks that were taken for a pop. Those whose leases have ended are left out.
    fn pop_held(&mut self, receipts: &[Receipt]) -> Reply {
        let mut tasks = Vec::with_capacity(receipts.len());
        for receipt in receipts {
            let is_held = |lease: &Lease| lease.grant == receipt.grant && lease.is_held_for_pop();
            let held = self.live_by_now(receipt.number);
            let held = held.filter(|slot| self.tasks[*slot].lease().is_some_and(is_held));
            let Some(slot) = held else { continue };
            let queue = self.tasks[slot].queue;
            let mut record = self.tasks.record(slot, self.queues[queue].names());
            record.progress.state = State::Ready;
            self.finish(slot, Operation::Ack(By::Receipt), None);
            tasks.push(record);
        }
        Reply::Tasks { tasks, popped: true }
    }
}
