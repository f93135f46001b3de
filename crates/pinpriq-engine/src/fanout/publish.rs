//! Publishing: one task into each lane of a topic.
//!
//! All copies enter in one step and are reported as one change, so that after a crash all of them
//! are there or none. The payload is stored once. A lane that is full or paused for input gets no
//! copy and delays no other lane. From then on, a copy is a task like any other.

use crate::engine::{Answered, Engine};
use crate::fanout::publications::Published;
use crate::memory::packed::{NewTask, Task, Unsaved};
use crate::memory::slots::QueueSlot;
use crate::operations::arguments::check_cost_below;
use crate::transition::Operation;
use pinpriq_proto::change::{Copied, Place, Publication};
use pinpriq_proto::fanout::{Deadline, Publish};
use pinpriq_proto::limits::{TASK_OVERHEAD_BYTES, TRANSACTION_COPIES_MAX};
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::settings::COST_MAX_DEFAULT;
use pinpriq_proto::time::{Span, Timestamp};

/// The lanes of a topic, in the order in which their members joined.
struct Lanes {
    /// The lanes that take a copy.
    open: Vec<QueueSlot>,
    /// The lanes that are full or paused for input.
    shut: Vec<QueueSlot>,
}

impl Engine {
    /// Costs O(log n) for each lane of the topic.
    pub(crate) fn publish(&mut self, publish: &Publish<'_>) -> Answered {
        let expires_at = self.check_publish(publish)?;
        if expires_at.is_some_and(|at| at <= self.now) {
            return Ok(Some(Reply::Count(0)));
        }
        self.check_copies(self.members.lanes_in(publish.topic))?;
        let Lanes { open: lanes, shut } = self.lanes(publish);
        if !lanes.is_empty() {
            let content = (publish.payload.len() + publish.terms.bytes()) as u64;
            self.check_room(content + TASK_OVERHEAD_BYTES * lanes.len() as u64)?;
        }
        for slot in shut {
            if self.undo.is_some() {
                self.note_queue(slot);
            }
            if let Some(lane) = &mut self.queues[slot].lane {
                lane.missed += 1;
            }
        }
        if lanes.is_empty() {
            return Ok(Some(Reply::Count(0)));
        }
        let count = lanes.len() as u64;
        let first = self.issued.next_run(count);
        let record = Publication {
            first,
            last: self.issued.last(),
            put_at: self.now,
            terms: publish.terms.kept(),
            priority: publish.priority,
            expires_at,
            payload: publish.payload.into(),
        };
        let published = Published { record, sharers: count, place: None };
        self.bytes += published.content_bytes();
        let copies = self.enter_copies(&lanes, &published.record);
        self.report.add(published.change(copies));
        if self.undo.is_some() {
            self.note_publication(first);
        }
        self.publications.insert(published);
        Ok(Some(Reply::Count(count)))
    }

    /// Refuses copies that may be too many for the transaction that is being carried out, if one
    /// is. A lane that takes no copy costs a step too.
    fn check_copies(&mut self, copies: usize) -> Result<(), Refusal> {
        let Some(undo) = &mut self.undo else { return Ok(()) };
        undo.copies += copies;
        if undo.copies <= TRANSACTION_COPIES_MAX {
            return Ok(());
        }
        let most = TRANSACTION_COPIES_MAX;
        let sentence = format!("a transaction publishes into at most {most} lanes: split it");
        Err(Refusal::new(RefusalKind::Busy, sentence))
    }

    /// Adds a copy to each of these lanes. Returns the copies that are exactly as the publication
    /// says. Other copies, in lanes with a TTL or ids of their own, are reported one by one.
    fn enter_copies(&mut self, lanes: &[QueueSlot], published: &Publication) -> Vec<Copied> {
        let first = published.first;
        let mut copies = Vec::with_capacity(lanes.len());
        for (number, queue) in (first..).zip(lanes) {
            let task = self.copy(number, *queue, published);
            let is_plain = task.is_as_published(published);
            let slot = self.enter_known(task, Operation::Put);
            self.count_for_account(number);
            if !is_plain {
                self.mark(slot, Unsaved::Whole);
            } else if let Some(lane) = self.queues[*queue].lane_name() {
                copies.push(Copied { number, lane: lane.number });
            }
        }
        copies
    }

    fn copy(&mut self, number: u64, queue: QueueSlot, published: &Publication) -> Task {
        let (ids, ttl) = (self.queues[queue].settings.ids, self.queues[queue].settings.ttl);
        let id = self.new_id(ids, number);
        let default = || ttl.map(|ttl| self.now.after(ttl));
        let payload = self.tasks.keep_shared(&published.payload);
        let mut task = Task::new(NewTask {
            number,
            queue,
            epoch: self.queues[queue].epoch,
            id,
            put_at: self.now,
            terms: published.terms.clone(),
            priority: published.priority,
            expires_at: published.expires_at.or_else(default),
            ready_at: None,
            payload,
        });
        task.set_shares(true);
        task.set_recorded();
        task
    }

    /// Returns the lanes of a topic whose members are alive now.
    fn lanes(&self, publish: &Publish<'_>) -> Lanes {
        let mut found = Lanes { open: Vec::new(), shut: Vec::new() };
        let Some(lanes) = self.members.topics.get(publish.topic) else { return found };
        // A lease can be over and not fired yet, if more is due than one call fires.
        let all_alive = self.members.ended.is_empty()
            && self.deadlines.next().is_none_or(|next| next > self.now);
        found.open.reserve(lanes.len());
        for slot in lanes.values() {
            let queue = &self.queues[*slot];
            let Some(lane) = &queue.lane else { continue };
            let is_alive = all_alive || {
                let member = &self.members.registered[&lane.incarnation];
                !member.has_ended && member.lease_until > self.now
            };
            if !is_alive {
                continue;
            }
            let is_full =
                self.is_shut_for(*slot, publish.terms.share_or_key(), content_of(publish));
            let side = if is_full || queue.paused.input.is_on() {
                &mut found.shut
            } else {
                &mut found.open
            };
            side.push(*slot);
        }
        found
    }

    /// Checks the arguments, and returns the deadline.
    fn check_publish(&self, publish: &Publish<'_>) -> Result<Option<Timestamp>, Refusal> {
        publish.terms.check()?;
        check_cost_below(COST_MAX_DEFAULT, publish.terms.cost())?;
        self.check_payload(publish.payload)?;
        match publish.deadline {
            Deadline::OfLane => Ok(None),
            Deadline::At(at) => Ok(Some(at)),
            Deadline::After(ttl) => {
                self.check_ttl(ttl, Span::ZERO)?;
                Ok(Some(self.now.after(ttl)))
            }
        }
    }

    /// Reports a publication again, with the copies that have no record of their own, if it is
    /// still at `place`.
    pub(crate) fn rewrite_publication(&mut self, first: u64, place: Place) {
        let Some(published) = self.publications.find(first) else { return };
        if published.place != Some(place) {
            return;
        }
        let last = published.record.last;
        let mut copies = Vec::new();
        for number in first..=last {
            let Some(slot) = self.live(number) else { continue };
            let task = &self.tasks[slot];
            let Some((_, published)) = self.publications.of_copy(number) else { continue };
            if task.place().is_some() || !task.shares() {
                continue;
            }
            if task.is_as_published(&published.record) {
                let lane = self.queues[task.queue].lane_name();
                copies.extend(lane.map(|lane| Copied { number, lane: lane.number }));
            } else {
                self.mark(slot, Unsaved::Whole);
            }
        }
        if let Some(published) = self.publications.find(first) {
            let change = published.change(copies);
            self.report.add(change);
        }
        self.save();
    }
}

/// The number of bytes that a copy counts in statistics.
const fn content_of(publish: &Publish<'_>) -> u64 {
    let key = if let Some(key) = publish.terms.key { key.len() } else { 0 };
    (publish.payload.len() + key) as u64
}
