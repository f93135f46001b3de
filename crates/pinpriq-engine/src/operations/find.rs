//! Finds queues, lanes and tasks by the names that clients use.
//!
//! This finds only what exists for clients. It does not find a queue object that only waits for its
//! first task, the lane of a member that has ended, a task of an emptied queue, or what a passed
//! deadline would have removed.

use crate::engine::Engine;
use crate::memory::deadlines::Due;
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::arguments::quoted;
use crate::operations::ids::parse_id;
use pinpriq_proto::command::QueueName;
use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::settings::Ids;
use pinpriq_proto::task::TaskId;
use pinpriq_proto::time::Timestamp;

impl Engine {
    /// Returns the object of a queue or lane. A queue may have none. A lane that does not exist is
    /// refused.
    pub(crate) fn find_queue(&mut self, name: QueueName<'_>) -> Result<Option<QueueSlot>, Refusal> {
        let Some(member) = name.member else { return Ok(self.queues.find(name.name)) };
        self.find_lane(name.name, member).map(Some)
    }

    /// Refuses names of lanes if one of them does not exist, before anything is done with the
    /// others.
    #[inline]
    pub(crate) fn find_lanes(
        &mut self,
        topics: &[&[u8]],
        member: Option<&[u8]>,
    ) -> Result<(), Refusal> {
        let Some(member) = member else { return Ok(()) };
        topics.iter().try_for_each(|topic| self.find_lane(topic, member).map(drop))
    }

    /// Returns the object of a queue, created if it does not exist, or of a lane.
    pub(crate) fn find_or_make(&mut self, name: QueueName<'_>) -> Result<QueueSlot, Refusal> {
        match name.member {
            None => Ok(self.queues.find_or_make(name.name)),
            Some(member) => self.find_lane(name.name, member),
        }
    }

    /// Returns the lane of a member in a topic.
    pub(crate) fn find_lane(&mut self, topic: &[u8], member: &[u8]) -> Result<QueueSlot, Refusal> {
        let Some(incarnation) = self.find_member(member) else {
            return Err(Refusal::new(
                RefusalKind::NotFound,
                format!("there is no member {}: join first", quoted(member)),
            ));
        };
        self.members.registered[&incarnation].lanes.get(topic).copied().ok_or_else(|| {
            Refusal::new(
                RefusalKind::NotFound,
                format!(
                    "the member {} has no lane in the topic {}: join first",
                    quoted(member),
                    quoted(topic)
                ),
            )
        })
    }

    /// Returns the incarnation of a member that is alive now.
    pub(crate) fn find_member(&mut self, member: &[u8]) -> Option<u64> {
        let incarnation = *self.members.alive.get(member)?;
        // A member outlives its lease only while more deadlines are due than one call fires.
        let is_over = self.members.registered[&incarnation].lease_until <= self.now;
        if is_over {
            self.end_member(incarnation);
            return None;
        }
        Some(incarnation)
    }

    /// Returns the queue or lane, if it exists for clients.
    pub(crate) fn existing(&mut self, name: QueueName<'_>) -> Result<QueueSlot, Refusal> {
        let slot = self.find_queue(name)?.filter(|slot| self.queues[*slot].exists());
        slot.ok_or_else(|| {
            let name = quoted(name.name);
            Refusal::new(RefusalKind::NoQueue, format!("there is no queue {name}"))
        })
    }

    /// Returns the task of this id.
    pub(crate) fn find_task(
        &mut self,
        queue: QueueName<'_>,
        id: &[u8],
    ) -> Result<Option<Slot>, Refusal> {
        let Some(queue_slot) = self.find_queue(queue)? else { return Ok(None) };
        let queue = &self.queues[queue_slot];
        let Some(id) = parse_id(queue.settings.ids, id) else { return Ok(None) };
        let slot = match (&id, queue.settings.ids) {
            (TaskId::Number(number), Ids::Sequence) => {
                self.live(*number).filter(|slot| self.tasks[*slot].queue == queue_slot)
            }
            _ => queue.indexes.find_id(&id),
        };
        Ok(slot.and_then(|slot| self.live_by_now(self.tasks[slot].number())))
    }

    /// Returns the slot of the task with this number, unless it was removed.
    pub(crate) fn live(&self, number: u64) -> Option<Slot> {
        let slot = self.tasks.find(number)?;
        let task = &self.tasks[slot];
        let is_there =
            self.queues.is_current(task.queue, task.epoch) && !self.has_ended(task.queue);
        is_there.then_some(slot)
    }

    /// Like [`Self::live`], but first fires a passed deadline of the task, or of the member whose
    /// lane it is in. There is such a deadline only while more deadlines are due than one call
    /// fires.
    pub(crate) fn live_by_now(&mut self, number: u64) -> Option<Slot> {
        let slot = self.live(number)?;
        if self.end_if_over(self.tasks[slot].queue) {
            return None;
        }
        let is_due = |at: &Timestamp| *at <= self.now;
        let Some(at) = self.tasks[slot].armed().filter(is_due) else {
            return Some(slot);
        };
        self.deadlines.remove(at, Due::Task(number));
        self.fire(number);
        self.live(number)
    }

    /// Ends the member whose lane this is if its lease is over. Returns whether it did. A
    /// publication may have skipped the member already, so no sign of life can bring it back.
    fn end_if_over(&mut self, queue: QueueSlot) -> bool {
        let Some(lane) = &self.queues[queue].lane else { return false };
        let incarnation = lane.incarnation;
        let member = &self.members.registered[&incarnation];
        let is_over = !member.has_ended && member.lease_until <= self.now;
        if is_over {
            self.end_member(incarnation);
        }
        is_over
    }

    /// Whether a queue is the lane of a member that has ended, so that it only waits for its
    /// cleaning.
    pub(crate) fn has_ended(&self, queue: QueueSlot) -> bool {
        if self.members.ended.is_empty() {
            return false;
        }
        let lane = self.queues[queue].lane.as_ref();
        lane.is_some_and(|lane| self.members.ended.contains(&lane.incarnation))
    }
}

/// Formats the name of a queue or lane for a sentence.
pub(crate) fn named(queue: QueueName<'_>) -> String {
    let name = quoted(queue.name);
    match queue.member {
        None => format!("the queue {name}"),
        Some(member) => format!("the lane of {} in the topic {name}", quoted(member)),
    }
}

/// The refusal for an id that names no task.
pub(crate) fn not_found(queue: QueueName<'_>, id: &[u8]) -> Refusal {
    Refusal::new(RefusalKind::NotFound, format!("{} has no task {}", named(queue), quoted(id)))
}
