//! Remembers what became of tasks that have left, and tells it to those who ask too late.
//!
//! Tasks of queues that are emptied or dropped as a whole are not remembered one by one.

use crate::engine::Engine;
use crate::memory::endings::NamePlace;
use crate::memory::packed::Task;
use crate::memory::slots::QueueSlot;
use crate::operations::ids::parse_id;
use pinpriq_proto::command::QueueName;
use pinpriq_proto::looking::Ending;
use pinpriq_proto::reply::Outcome;
use pinpriq_proto::settings::Ids;
use pinpriq_proto::task::TaskId;

impl Engine {
    /// Remembers that a task has left its queue. Costs O(1).
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every end of a task")]
    pub(crate) fn remember(&mut self, name: NamePlace, task: &Task, outcome: Outcome) {
        let mut name = name;
        if !self.endings.has(name) {
            if !self.endings.are_wanted() {
                return;
            }
            name = self.place_name(task.queue);
        }
        let left = (outcome, self.now);
        match task.plain_number() {
            Some(number) => self.endings.add_plain(name, number, left),
            None => self.endings.add(name, (task.id(), task.reason().cloned()), left),
        }
        // What a transaction forgets, it could not bring back.
        if self.undo.is_none() {
            self.endings.trim();
        }
    }

    #[cold]
    #[inline(never)]
    fn place_name(&mut self, queue: QueueSlot) -> NamePlace {
        let queue = &mut self.queues[queue];
        let member = queue.lane.as_ref().map(|lane| &lane.name.member);
        queue.remembered_as = self.endings.name_at(queue.remembered_as, (&queue.name, member));
        queue.remembered_as
    }

    /// What became of a task that is not there, with its id, if that is remembered. Costs O(1)
    /// usually.
    pub(crate) fn ending_of(&self, queue: QueueName<'_>, id: &[u8]) -> Option<(TaskId, Ending)> {
        // The queue may be gone, and what ids it had.
        let ids = [Ids::Sequence, Ids::Uuid, Ids::Given].into_iter();
        let ids = ids.filter_map(|kind| parse_id(kind, id));
        self.endings.find((queue.name, queue.member), ids)
    }

    /// Notes that a task has come back to its queue, or that another one has its id from now on.
    #[inline(never)]
    pub(crate) fn forget_ending(&mut self, queue: QueueSlot, id: &TaskId) {
        let queue = &self.queues[queue];
        let member = queue.lane_name().map(|lane| &*lane.member);
        let taken_back = self.endings.take_back((&queue.name, member), id);
        if let Some(undo) = &mut self.undo {
            undo.endings_taken_back.extend(taken_back);
        }
    }
}
