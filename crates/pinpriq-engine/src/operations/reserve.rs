//! Reserves: takes over several queues at once, whose most urgent task comes first.
//!
//! A lease that a reserve grants is tied to the connection. While one of them is about to end, its
//! holder is not made to wait. Takes that try their queues in order are in `take.rs`.

use crate::engine::{Answered, Engine};
use crate::memory::consumers::{Patience, Standing, TakerId};
use crate::memory::deadlines::Due;
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::take::Want;
use pinpriq_proto::command::{QueueName, Reserve, Selection, Take, TakeMode, Wait};
use pinpriq_proto::limits::DEADLINE_MARGIN;
use pinpriq_proto::reply::{Refusal, Reply};
use pinpriq_proto::task::{ClientId, RequestId, TaskRecord};
use pinpriq_proto::time::Timestamp;

/// The lease that a reserve asks for: with the TTR of the task or its queue.
pub(crate) const MODE: TakeMode = TakeMode::Lease { ttr: None };

/// The place of a task among the first ones of several queues: its priority, when it was put, and
/// its number.
type Urgency = (Option<i64>, Timestamp, u64);

impl Engine {
    /// Takes the most urgent task of some queues. Costs O(log n) for each queue.
    pub(crate) fn reserve(
        &mut self,
        client: ClientId,
        request: RequestId,
        reserve: &Reserve<'_>,
    ) -> Answered {
        let Reserve { queues, wait, is_echo } = *reserve;
        let selection = Selection::DEFAULT;
        let take = Take { queues, member: None, count: 1, wait, selection, mode: MODE };
        self.check_taken(&take)?;
        if let Some(slot) = self.head_of(queues)? {
            let task = self.hand_over(
                slot,
                Want { client, selection, mode: MODE, is_tied: true, recalls: false },
            );
            return Ok(Some(Reply::Tasks { tasks: vec![task], popped: false }));
        }
        let soon = self.deadline_soon(client);
        if soon.is_some_and(|at| at <= self.now) {
            return Ok(Some(Reply::DeadlineSoon));
        }
        if !wait.blocks() {
            return Ok(Some(Reply::Tasks { tasks: Vec::new(), popped: false }));
        }
        let up = match wait {
            Wait::For(span) => Some(self.now.after(span)),
            Wait::No | Wait::Forever => None,
        };
        let until = soon.into_iter().chain(up).min();
        let reserve = Some(Patience { until: up });
        let standing = Standing { reserve, is_share: false, is_echo };
        self.block_taker((client, request), &take, until, standing)
    }

    /// Reads the task that a reserve of some queues would take. Costs O(log n) for each queue.
    pub(crate) fn head(&mut self, client: ClientId, queues: &[&[u8]]) -> Answered {
        let (selection, wait) = (Selection::DEFAULT, Wait::No);
        self.check_taken(&Take { queues, member: None, count: 1, wait, selection, mode: MODE })?;
        let head = self.head_of(queues)?;
        if head.is_none() && self.deadline_soon(client).is_some_and(|at| at <= self.now) {
            return Ok(Some(Reply::DeadlineSoon));
        }
        let record = |slot: Slot| {
            let queue = &self.queues[self.tasks[slot].queue];
            self.tasks.record(slot, queue.names())
        };
        Ok(Some(Reply::Shown(head.into_iter().map(record).collect())))
    }

    /// Returns the most urgent of the first tasks of some queues.
    fn head_of(&mut self, queues: &[&[u8]]) -> Result<Option<Slot>, Refusal> {
        let mut best: Option<(Urgency, Slot)> = None;
        for name in queues {
            let name = QueueName { name, member: None };
            if let Some(queue) = self.find_queue(name)? {
                best = more_urgent(best, self.first_on_offer(queue));
            }
        }
        Ok(best.map(|(_, slot)| slot))
    }

    /// Takes the most urgent task of queues whose objects stay meanwhile.
    pub(crate) fn take_most_urgent(
        &mut self,
        queues: &[QueueSlot],
        want: Want,
    ) -> Option<TaskRecord> {
        let mut best = None;
        for queue in queues {
            best = more_urgent(best, self.first_on_offer(*queue));
        }
        best.map(|(_, slot)| self.hand_over(slot, want))
    }

    /// Returns the task of a queue that would be taken next, if it may be taken now.
    fn first_on_offer(&mut self, queue: QueueSlot) -> Option<(Urgency, Slot)> {
        let slot = self.first_to_take(queue, Selection::DEFAULT)?;
        let task = &self.tasks[slot];
        Some(((task.priority(), task.put_at(), task.number()), slot))
    }

    /// Handles a blocked reserve whose moment has come: a lease of its client is about to end, or
    /// its time is up. If neither is true, that lease is over or has moved, and it waits on.
    pub(crate) fn fire_reserve(&mut self, id: TakerId, patience: Patience) {
        let Some(client) = self.consumers.takers.get(&id).map(|taker| taker.client) else { return };
        let soon = self.deadline_soon(client);
        if soon.is_some_and(|at| at <= self.now) {
            if let Some(taker) = self.remove_taker(id) {
                self.reply(client, taker.request, Reply::DeadlineSoon);
            }
        } else if patience.until.is_some_and(|at| at <= self.now) {
            self.time_out_taker(id);
        } else {
            let until = soon.into_iter().chain(patience.until).min();
            if let Some(at) = until {
                self.deadlines.insert(at, Due::Taker(id));
            }
            if let Some(taker) = self.consumers.takers.get_mut(&id) {
                taker.until = until;
            }
        }
    }

    /// When the first of the leases that are tied to a client begins to be about to end.
    fn deadline_soon(&self, client: ClientId) -> Option<Timestamp> {
        // Those of a queue that was emptied are no longer live, and are freed bit by bit.
        let tied = &self.consumers.clients.get(&client)?.tied;
        let (at, _) = tied.iter().find(|(_, number)| self.live(*number).is_some())?;
        let margin = DEADLINE_MARGIN.ms();
        Some(Timestamp::from_ms(at.ms().saturating_sub(margin)))
    }
}

/// Returns the more urgent of two tasks.
fn more_urgent(
    one: Option<(Urgency, Slot)>,
    other: Option<(Urgency, Slot)>,
) -> Option<(Urgency, Slot)> {
    one.into_iter().chain(other).min_by_key(|(urgency, _)| *urgency)
}
