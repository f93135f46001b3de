//! Full queues: what a queue holds at most, and what makes room for a more urgent task.
//!
//! Tasks in R, T, W and B count, and their payloads and keys. Dead letters are never refused, and
//! what a task weighs may change later, so a queue can hold more than its capacity.

use crate::engine::Engine;
use crate::memory::queues::Queue;
use crate::memory::share_counts::ShareCounts;
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::arguments::quoted;
use crate::transition::Operation;
use pinpriq_proto::command::{End, Order, Put, Selection};
use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::settings::Overflow;
use pinpriq_proto::stats::Exit;
use pinpriq_proto::task::{StateKind, reasons};

/// What a queue lacks for a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lack<'a> {
    /// It holds this many tasks already, which is its capacity.
    Tasks(u64),
    /// With the task it would hold more than this many bytes.
    Bytes(u64),
    /// This share has as many tasks already as one may have.
    Share(&'a [u8], u64),
}

impl Queue {
    /// Whether it has a capacity at all.
    #[inline]
    pub(crate) const fn is_bounded(&self) -> bool {
        self.settings.capacity.is_some()
            || self.settings.capacity_bytes.is_some()
            || self.settings.share_capacity.is_some()
    }

    /// What it lacks for another task with `content` bytes of payload and key.
    #[inline]
    fn lack(&self, content: u64) -> Option<Lack<'static>> {
        if !self.is_bounded() {
            return None;
        }
        let settings = &self.settings;
        let tasks = settings.capacity.filter(|most| self.counters.present() >= *most);
        let bytes = settings.capacity_bytes;
        let bytes = bytes.filter(|most| self.unfinished_bytes().saturating_add(content) > *most);
        tasks.map(Lack::Tasks).or_else(|| bytes.map(Lack::Bytes))
    }

    /// What it lacks for another task of this share.
    fn lack_of_share<'a>(&self, share: &'a [u8]) -> Option<Lack<'a>> {
        let most = self.settings.share_capacity?;
        let count = self.share_counts.as_ref().map_or(0, |counts| counts.count(share));
        (count >= most).then_some(Lack::Share(share, most))
    }

    /// The bytes of payloads and keys that count against the capacity.
    const fn unfinished_bytes(&self) -> u64 {
        self.counters.bytes - self.finished_bytes
    }
}

impl Engine {
    /// Whether a queue has no room for another task with `content` bytes of payload and key.
    #[inline]
    pub(crate) fn is_full_for(&self, queue: QueueSlot, content: u64) -> bool {
        self.queues[queue].lack(content).is_some()
    }

    /// Whether a queue has no room for another task of this share with `content` bytes of payload
    /// and key, or the share has none.
    #[inline]
    pub(crate) fn is_shut_for(&self, queue: QueueSlot, share: &[u8], content: u64) -> bool {
        let queue = &self.queues[queue];
        queue.is_bounded()
            && (queue.lack(content).is_some() || queue.lack_of_share(share).is_some())
    }

    /// Refuses a put whose share has no room.
    pub(crate) fn check_share_room(&self, put: &Put<'_>, queue: QueueSlot) -> Result<(), Refusal> {
        let lack = self.queues[queue].lack_of_share(put.terms.share_or_key());
        lack.map_or(Ok(()), |lack| Err(full(put.queue, lack)))
    }

    /// Counts the tasks of each share of a queue from now on, or no longer, as its settings say.
    /// Costs a step for each task if that is new.
    pub(crate) fn count_shares(&mut self, slot: QueueSlot) {
        let queue = &mut self.queues[slot];
        let is_wanted = queue.settings.share_capacity.is_some();
        if is_wanted != queue.share_counts.is_some() {
            let tasks = queue.indexes.by_seq(0, None).map(|(_, slot)| &self.tasks[slot]);
            queue.share_counts = is_wanted.then(|| Box::new(ShareCounts::of(tasks)));
        }
        queue.note_followers();
    }

    /// Refuses a put into a full queue. Notes the tasks that have to make room for it, if there are
    /// any and the queue evicts.
    #[inline(never)]
    pub(crate) fn check_capacity(
        &mut self,
        put: &Put<'_>,
        queue: QueueSlot,
    ) -> Result<(), Refusal> {
        self.in_the_way.clear();
        self.check_share_room(put, queue)?;
        let content = content_of(put);
        if self.consumers.putters.wait_for(queue) {
            let sentence = format!("other tasks wait for room in the queue {}", quoted(put.queue));
            return Err(Refusal::new(RefusalKind::Full, sentence));
        }
        match self.queues[queue].lack(content) {
            Some(lack) => {
                let found = self.find_room(put.priority, content, queue);
                self.in_the_way = found.ok_or_else(|| full(put.queue, lack))?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Refuses a task for which there is no room, and nothing is to make any.
    pub(crate) fn check_not_full(
        &self,
        name: &[u8],
        queue: QueueSlot,
        share: &[u8],
        content: u64,
    ) -> Result<(), Refusal> {
        let queue = &self.queues[queue];
        match queue.lack_of_share(share).or_else(|| queue.lack(content)) {
            Some(lack) => Err(full(name, lack)),
            _ => Ok(()),
        }
    }

    /// Finds the tasks that have to go to make room, the last of the order of selection first. None
    /// if they are not all less urgent than the new one. Costs O(log n) for each of them.
    #[inline(never)]
    fn find_room(
        &self,
        priority: Option<i64>,
        content: u64,
        queue: QueueSlot,
    ) -> Option<Vec<Slot>> {
        const LAST: Selection =
            Selection { from: End::Max, order: Order::Newest, ..Selection::DEFAULT };
        let queue = &self.queues[queue];
        let settings = &queue.settings;
        if settings.overflow == Overflow::Refuse {
            return None;
        }
        let excess =
            |most: Option<u64>, wanted: u64| most.map_or(0, |most| wanted.saturating_sub(most));
        let mut tasks = excess(settings.capacity, queue.counters.present() + 1);
        let mut bytes = excess(settings.capacity_bytes, queue.unfinished_bytes() + content);
        let unranked = queue.indexes.resting(StateKind::Ready).rev();
        let mut last = unranked.chain(queue.indexes.walk(LAST));
        let mut victims = Vec::new();
        while tasks > 0 || bytes > 0 {
            let slot = last.next()?;
            let task = &self.tasks[slot];
            let is_behind = match (priority, task.priority()) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(new), Some(old)) => old > new,
            };
            if !is_behind {
                return None;
            }
            tasks = tasks.saturating_sub(1);
            bytes = bytes.saturating_sub(task.content_bytes());
            victims.push(slot);
        }
        Some(victims)
    }

    /// Removes the tasks that were noted to make room for a more urgent one. They become dead
    /// letters, if their queue has a queue for those.
    #[inline(never)]
    pub(crate) fn make_room(&mut self) {
        for slot in std::mem::take(&mut self.in_the_way) {
            let task = &self.tasks[slot];
            if task.is_expired(self.now) {
                self.expire(slot);
                continue;
            }
            let dead_letters = self.queues[task.queue].settings.dead_letter.clone();
            match dead_letters {
                None => self.leave(slot, Operation::Evict, Exit::Evicted),
                Some(to) => {
                    let how = (Operation::Evict, Exit::Evicted);
                    self.become_dead_letter(slot, how, &to, Some(reasons::EVICTED));
                }
            }
        }
    }

    /// Counts the bytes of a task that becomes finished, stays so with another payload, or is
    /// finished no more.
    #[inline(never)]
    pub(crate) fn weigh_finished(
        &mut self,
        queue: QueueSlot,
        from: Option<(StateKind, u64)>,
        to: Option<(StateKind, u64)>,
    ) {
        let finished = |side: Option<(StateKind, u64)>| {
            side.filter(|(kind, _)| kind.is_finished()).map_or(0, |(_, bytes)| bytes)
        };
        let (former, current) = (finished(from), finished(to));
        if former != current {
            let queue = &mut self.queues[queue];
            queue.finished_bytes = queue.finished_bytes + current - former;
        }
    }
}

/// The bytes of a put that count against the capacity of its queue.
pub(crate) fn content_of(put: &Put<'_>) -> u64 {
    (put.payload.len() + put.terms.key_bytes()) as u64
}

pub(crate) fn full(queue: &[u8], lack: Lack<'_>) -> Refusal {
    let name = quoted(queue);
    let sentence = match lack {
        Lack::Tasks(capacity) => format!("the queue {name} holds its {capacity} tasks already"),
        Lack::Bytes(capacity) => {
            format!("the queue {name} has no room for the task in its {capacity} bytes")
        }
        Lack::Share(share, capacity) => {
            let share = quoted(share);
            format!("the share {share} has its {capacity} tasks in the queue {name} already")
        }
    };
    Refusal::new(RefusalKind::Full, sentence)
}
