//! Deliveries that were not started, which are called back for more urgent tasks.
//!
//! A delivery of a subscription that asks for it is *unstarted* until its holder says that it has
//! begun. To the store the task stays ready until then, so a restart calls back everything that was
//! not started. Which delivery of a queue is the last one is kept in `memory/unstarted.rs`.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::memory::consumers::{ConsumerId, Ticket};
use crate::memory::packed::{Task, Unsaved};
use crate::memory::queues::Queue;
use crate::memory::slots::{QueueSlot, Slot};
use crate::memory::unstarted::Unstarted;
use crate::operations::ageing::number_of;
use crate::operations::take::Want;
use crate::transition::Operation;
use pinpriq_proto::command::{Held, HeldBy, QueueName, Selection, TakeMode};
use pinpriq_proto::reply::{Notice, Output, Refusal, Reply};
use pinpriq_proto::task::{ClientId, Lease, Receipt, State};

impl Engine {
    pub(crate) fn start_task(
        &mut self,
        client: ClientId,
        queue: QueueName<'_>,
        receipt: Receipt,
    ) -> Result<(), Refusal> {
        let held = Held { queue, by: HeldBy::Receipt(receipt) };
        let (slot, _) = self.hold(client, held, Operation::Start)?;
        self.check_not_cancelled(slot)?;
        self.begin_lease(slot);
        Ok(())
    }

    pub(crate) fn start_all(
        &mut self,
        client: ClientId,
        queue: QueueName<'_>,
        receipts: &[Receipt],
    ) -> Reply {
        let answers = receipts.iter().map(|receipt| self.start_task(client, queue, *receipt));
        Reply::Acks(answers.collect())
    }

    /// Begins the lease of a task anew, as one that was started.
    pub(crate) fn begin_lease(&mut self, slot: Slot) {
        let now = self.now;
        let is_first = self.tasks[slot].lease().is_some_and(Lease::is_unstarted);
        self.amend(slot, Unsaved::Grant, |task| {
            if let Some(lease) = task.lease_mut() {
                lease.start(now);
            }
        });
        if is_first {
            self.begin_attempt(slot, self.tasks[slot].queue);
        }
    }

    /// Returns a consumer behind all others if a task of a queue is more urgent than one that was
    /// delivered and not started. It is for this consumer if it is for no other, or if the queue
    /// has reached a limit: then it gets the place of the other.
    #[inline]
    pub(crate) fn recaller(&mut self, queue: QueueSlot) -> Option<(Ticket, ConsumerId)> {
        self.queues[queue].waiting.unstarted.as_ref()?;
        if !self.can_hand_out(TakeMode::Lease { ttr: None }) {
            return None;
        }
        let last = self.last_unstarted(queue)?;
        let ticket = Ticket::to_recall(self.tasks[last].lease()?.grant.serial);
        Some((ticket, ConsumerId::Recaller))
    }

    /// Returns the task to call back for the one that a queue would hand out next, if that is more
    /// urgent.
    #[inline(never)]
    fn last_unstarted(&mut self, queue: QueueSlot) -> Option<Slot> {
        let next = self.select(queue, Selection::DEFAULT)?;
        let queue = &self.queues[queue];
        let number = number_of(&queue.settings, &self.tasks[next])?;
        self.live(queue.waiting.unstarted.as_ref()?.last_behind(number)?)
    }

    /// Calls back the last delivery of a queue that was not started, and delivers the next task in
    /// its place.
    pub(crate) fn exchange(&mut self, queue: QueueSlot) {
        let Some(former) = self.last_unstarted(queue) else { return };
        let Some(client) = self.call_back(former) else { return };
        let known = self.consumers.clients.get(&client);
        let subscription = known.and_then(|known| known.subscriptions.get(&queue)).copied();
        let (Some(subscription), Some(next)) =
            (subscription, self.select(queue, Selection::DEFAULT))
        else {
            unreachable!("{client:?} is not subscribed, or {queue:?} has no task")
        };
        let mode = subscription.mode;
        let is_held = mode == TakeMode::Pop && self.consumers.client(client).holds;
        let (selection, recalls) = (Selection::DEFAULT, subscription.recalls);
        let want = Want { client, selection, mode, is_tied: is_held, recalls };
        let tasks = vec![self.hand_over(next, want)];
        let popped = mode == TakeMode::Pop && !is_held;
        self.outputs.push_back(Output::Delivery { client, tasks, popped });
    }

    /// Calls back what was delivered to a client from these queues and not started, and gives its
    /// credit back.
    pub(crate) fn call_back_from(&mut self, client: ClientId, queues: &[QueueSlot]) {
        let Some(known) = self.consumers.clients.get(&client) else { return };
        if known.unstarted.is_empty() {
            return;
        }
        let numbers = queues.iter().flat_map(|queue| known.unstarted_of(*queue));
        let mut credits = 0;
        for number in numbers.collect::<BTreeSet<_>>() {
            if let Some(slot) = self.live(number) {
                credits += u32::from(self.call_back(slot).is_some());
            }
        }
        if credits > 0 {
            let known = self.consumers.client(client);
            let was_idle = known.credit == 0;
            known.credit = known.credit.saturating_add(credits);
            if was_idle {
                self.join_lines(client);
            }
        }
    }

    /// Takes a task back that was not started, and tells its holder, which is returned.
    fn call_back(&mut self, slot: Slot) -> Option<ClientId> {
        let task = &self.tasks[slot];
        let client = task.lease()?.client()?;
        let receipt = Receipt { number: task.number(), grant: task.lease()?.grant };
        let (queue, id) = (self.queues[task.queue].name.clone(), task.id());
        let notice = Notice { client, queue, id, receipt, cancelled: None };
        self.outputs.push_back(Output::Notice(Box::new(notice)));
        self.take_back(slot);
        Some(client)
    }

    /// Orders what was not started of a queue anew, which may rank its tasks in another way now.
    pub(super) fn rank_unstarted(&mut self, queue: QueueSlot) {
        let queue = &mut self.queues[queue];
        let Some(former) = queue.waiting.unstarted.as_mut() else { return };
        let mut unstarted = Unstarted::default();
        for slot in former.numbers().filter_map(|number| self.tasks.find(number)) {
            let task = &self.tasks[slot];
            unstarted.insert(task, number_of(&queue.settings, task));
        }
        **former = unstarted;
    }

    /// Takes a task back that was not started, as if it had never been delivered.
    pub(crate) fn take_back(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        let (queue, cost, charged) = (task.queue, task.cost(), self.charged(slot));
        let attempts = task.attempts().saturating_sub(1);
        self.refund(queue, cost);
        self.tasks[slot].set_attempts(attempts);
        if self.tasks[slot].is_expired(self.now) {
            self.leave_expired(slot, Operation::Recall);
        } else {
            // The store knows it as ready.
            self.shift(slot, Operation::Recall, Unsaved::Nothing, |_| State::Ready);
        }
        self.uncharge_turn(charged);
    }
}

/// Takes a task out of those of its queue that were delivered and not started.
pub(crate) fn leave_unstarted(queue: &mut Queue, task: &Task) {
    if let Some(unstarted) = &mut queue.waiting.unstarted {
        unstarted.remove(task, number_of(&queue.settings, task));
        if unstarted.is_empty() {
            queue.waiting.unstarted = None;
        }
    }
}
