//! Restores the engine from what a store kept.
//!
//! While changes are applied, only the tasks themselves are built. The indexes are built once, at
//! the start, when it is known which tasks are left. Fan-out is restored in `restore_lanes.rs`.

use std::collections::BTreeMap;

use crate::engine::Engine;
use crate::memory::deadlines::Due;
use crate::memory::indexes::Indexes;
use crate::memory::packed::{Task, Unsaved};
use crate::memory::slots::{QueueSlot, Slot};
use crate::transition::Operation;
use pinpriq_proto::change::{Change, Granted, Header, Moved, Place, QueueRecord};
use pinpriq_proto::limits::TASK_OVERHEAD_BYTES;
use pinpriq_proto::settings::{Ids, Paused, Settings};
use pinpriq_proto::stats::Exit;
use pinpriq_proto::task::{Bytes, Cancelled, Grant, Lease, State, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};

impl Engine {
    /// Applies one change. Changes must come in the order in which they were reported. `place` is
    /// where the store keeps the record of the change, if it has one.
    /// A change about an unknown task is ignored: the store may have moved the record of that task,
    /// in a later version, behind this change. Costs O(log n).
    pub fn restore(&mut self, change: Change, place: Option<Place>) {
        match change {
            Change::Task(record) => self.restore_task(*record, place),
            Change::Moved(moved) => self.restore_moved(*moved),
            Change::Granted(granted) => self.restore_granted(granted),
            Change::Gone(number) => {
                if let Some(slot) = self.tasks.find(number) {
                    self.unrestore(slot);
                }
            }
            Change::Queue(record) => self.restore_queue(&record, place),
            Change::QueueGone(name) => {
                if let Some(slot) = self.queues.find(&name) {
                    self.queues.pause(slot, Paused::default());
                    self.queues.set_settings(slot, Settings::default());
                    let queue = &mut self.queues[slot];
                    queue.created = false;
                    queue.recorded = false;
                    self.report.give_up(queue.place.take());
                }
            }
            Change::Emptied(name) => {
                let slot = self.queues.find_or_make(&name);
                let epoch = self.queues.next_epoch();
                self.queues[slot].epoch = epoch;
            }
            Change::Published(record, copies) => {
                self.restore_publication(*record, &copies, place);
            }
            Change::Lane(record) => self.restore_lane(*record, place),
            Change::LaneGone(number) => self.restore_lane_gone(number),
            Change::LaneEmptied(number) => {
                if let Some(slot) = self.queues.find_lane(number) {
                    let epoch = self.queues.next_epoch();
                    self.queues[slot].epoch = epoch;
                }
            }
            Change::Member(record) => self.restore_member(*record, place),
            Change::MemberGone(incarnation) => {
                if let Some(member) = self.members.registered.remove(&incarnation) {
                    self.report.give_up(member.place);
                }
            }
            Change::Schedule(record) => self.restore_schedule(*record, place),
            Change::ScheduleMoved(moved) => {
                if let Some(schedule) = self.schedules.find_mut(moved.number) {
                    schedule.course = moved.course;
                }
            }
            Change::Detail(detail) => self.restore_detail(*detail, place),
            Change::DetailGone(kind, number) => self.restore_detail_gone(kind, number),
            Change::ScheduleGone(number) => {
                let gone = self.schedules.remove(number);
                self.report.give_up(gone.and_then(|gone| gone.place));
            }
        }
    }

    /// Starts to serve at the moment `now`, as the given incarnation, with what was restored.
    ///
    /// Tasks whose TTL has passed are removed, and leases without a deadline end. Others keep their
    /// deadline, unless [`Engine::set_grace`] was called. Members that are alive get their whole
    /// lease again. `latest` is the header of the newest batch in the store. Costs O(n log n) in
    /// the number of tasks.
    ///
    /// # Panics
    /// If `now` is earlier than the latest moment that the store knows, or the incarnation is not
    /// higher than the last one.
    pub fn start(&mut self, now: Timestamp, incarnation: u64, latest: Header) {
        assert!(
            now >= latest.now,
            "the clock starts at {now}, before the journal's {}",
            latest.now
        );
        self.issued.begin(incarnation, latest);
        (self.now, self.started_at) = (now, now);
        self.bytes = 0;
        self.restored_last = None;
        self.restored_batches.clear();
        self.link_lanes();
        let slots: Vec<Slot> = self.tasks.slots().collect();
        let mut leases: Vec<Slot> = Vec::new();
        let mut due: Vec<(Timestamp, Due)> = Vec::new();
        let mut queues: BTreeMap<QueueSlot, Vec<Slot>> = BTreeMap::new();
        let mut unique: Vec<Slot> = Vec::new();
        for slot in slots {
            let task = &self.tasks[slot];
            if !self.queues.is_current(task.queue, task.epoch) {
                let task = self.tasks.remove(slot);
                self.report.give_up(task.place());
                continue;
            }
            self.share_restored(slot);
            if let Some(exit) = self.is_over(slot) {
                self.drop_at_start(slot, exit);
                continue;
            }
            let task = &self.tasks[slot];
            match task.state() {
                State::Taken(lease) if lease.deadline.is_none() => leases.push(slot),
                State::Buried(burial) => self.issued.raise_burial(*burial),
                _ => {}
            }
            if task.unique_key().is_some() {
                unique.push(slot);
            }
            queues.entry(task.queue).or_default().push(slot);
            due.extend(self.admit(slot));
        }
        self.drop_unshared();
        due.extend(self.revive_members());
        self.revive_pauses(&mut due);
        self.deadlines = due.into_iter().collect();
        for (slot, tasks) in queues {
            let queue = &mut self.queues[slot];
            let with_ids = queue.settings.ids != Ids::Sequence;
            queue.indexes = Indexes::of(&tasks, with_ids, &self.tasks);
        }
        self.revive_unique(&unique);
        self.revive_batches();
        for slot in leases {
            self.end_lease(slot, Operation::HolderGone);
        }
        while self.deadlines.next().is_some_and(|at| at <= now) {
            self.advance(now);
        }
        self.revive_limits();
        self.revive_shares();
        for queue in self.queues.slots() {
            self.apply_settings(queue);
            self.count_restored(queue);
            self.queues[queue].found = self.queues[queue].counters.put;
            self.tidy_queue(queue);
        }
        self.revive_buckets();
        // Slots that are made up are due from now on. They do not belong to the first batch, which
        // could become too large.
        self.revive_schedules();
        self.conclude();
    }

    /// Adds the ends of pauses to what is due.
    fn revive_pauses(&mut self, due: &mut Vec<(Timestamp, Due)>) {
        for slot in self.queues.slots() {
            let queue = &mut self.queues[slot];
            let paused_until = queue.paused.output.until();
            queue.paused_for = paused_until.map_or(Span::ZERO, |at| at.since(self.now));
            due.extend(queue.paused.next_end().map(|at| (at, Due::Pause(slot))));
        }
    }

    /// Counts a restored queue, if it exists, and the names in its settings.
    fn count_restored(&mut self, queue: QueueSlot) {
        if self.queues[queue].exists() {
            self.count_queue(queue);
        }
        self.bytes += self.queues[queue].settings.bytes();
    }

    /// Whether a restored task is over before it is added to any index. After a long pause that may
    /// be true for all tasks.
    fn is_over(&self, slot: Slot) -> Option<Exit> {
        let task = &self.tasks[slot];
        match task.state() {
            // A dead letter leaves its queue only once all queues are there.
            State::Ready | State::Waiting { .. }
                if task.is_expired(self.now)
                    && self.queues[task.queue].settings.gets_expired().is_none() =>
            {
                Some(Exit::Expired)
            }
            State::Zombie { purge_at } if self.now >= *purge_at => Some(Exit::Acked),
            _ => None,
        }
    }

    fn drop_at_start(&mut self, slot: Slot, exit: Exit) {
        let task = self.tasks.remove(slot);
        let kind = task.kind();
        for counters in [&mut self.queues[task.queue].counters, &mut self.totals] {
            counters.put += u64::from(!kind.is_finished());
            counters.note(Some(kind), None);
            counters.exit(kind, exit);
        }
        self.report.give_up(task.place());
        self.report.add(Change::Gone(task.number()));
    }

    /// Puts the end of a lease off if it would come within the grace. The store hears of it, so
    /// that it holds after the next start too.
    fn put_off_end(&mut self, slot: Slot) {
        let (Some(grace), now) = (self.grace, self.now) else { return };
        let Some(lease) = self.tasks[slot].lease_mut() else { return };
        let Some(deadline) = lease.deadline else { return };
        let earliest = now.after(lease.ttr.map_or(grace, |ttr| ttr.min(grace)));
        if deadline < earliest {
            lease.deadline = Some(earliest);
            self.mark(slot, Unsaved::Grant);
        }
        // Otherwise a second request to stop would end the lease at once.
        let cancelled = self.tasks[slot].cancelled();
        let is_before = |own: &Timestamp| *own < earliest;
        if let Some(cancelled) = cancelled.filter(|it| it.deadline.as_ref().is_some_and(is_before))
        {
            let put_off = Cancelled { deadline: Some(earliest), ..cancelled.clone() };
            self.tasks[slot].set_cancelled(Some(put_off));
            self.mark(slot, Unsaved::Progress);
        }
    }

    /// Counts a restored task, and returns its next deadline.
    fn admit(&mut self, slot: Slot) -> Option<(Timestamp, Due)> {
        self.put_off_end(slot);
        let task = &mut self.tasks[slot];
        let (number, kind, content) = (task.number(), task.kind(), task.content_bytes());
        let own = task.own_bytes();
        task.set_armed(task.due());
        for counters in [&mut self.queues[task.queue].counters, &mut self.totals] {
            counters.put += u64::from(!kind.is_finished());
            counters.bytes += content;
            counters.enter(kind);
        }
        self.bytes += own + TASK_OVERHEAD_BYTES;
        let queue = self.tasks[slot].queue;
        self.weigh_finished(queue, None, Some((kind, content)));
        let task = &self.tasks[slot];
        if task.shares()
            && let Some((_, published)) = self.publications.of_copy(number)
        {
            published.sharers += 1;
        }
        task.armed().map(|at| (at, Due::Task(number)))
    }

    pub(crate) fn restore_task(&mut self, record: TaskRecord, place: Option<Place>) {
        if let Some(slot) = self.tasks.find(record.number) {
            self.unrestore(slot);
        }
        self.issued.raise(record.number.max(record.progress.seq));
        let queue = match &record.lane {
            None => self.restored_queue(&record.queue),
            Some(lane) => self.restored_lane(lane.number),
        };
        let payload = self.tasks.keep_bytes(&record.payload);
        let (is_shared, batch) = (record.shared, record.batch().cloned());
        let mut task = Task::of(record, payload, queue, self.queues[queue].epoch);
        task.set_shares(is_shared);
        task.replace_place(place);
        task.set_recorded();
        let slot = self.tasks.insert(task);
        if let Some(batch) = batch {
            self.tasks.memberships.restore(slot, &batch, &mut self.restored_batches);
        }
        if self.limits.memory_bytes.is_some() {
            if self.is_short_of_memory() {
                self.tasks.leave_payload(slot);
            }
            self.bytes += self.tasks[slot].own_bytes() + TASK_OVERHEAD_BYTES;
        }
    }

    /// Returns the queue of a restored task. Neighbouring records share the allocation of its name,
    /// and then no lookup is needed.
    fn restored_queue(&mut self, name: &Bytes) -> QueueSlot {
        if let Some((last, slot)) = &self.restored_last
            && Bytes::ptr_eq(last, name)
        {
            return *slot;
        }
        let slot = self.queues.find_or_make(name);
        self.restored_last = Some((Bytes::clone(name), slot));
        slot
    }

    /// Removes a restored task again.
    pub(crate) fn unrestore(&mut self, slot: Slot) {
        self.tasks.memberships.leave(slot);
        let task = self.tasks.remove(slot);
        self.report.give_up(task.place());
        if self.limits.memory_bytes.is_some() {
            self.bytes -= task.own_bytes() + TASK_OVERHEAD_BYTES;
        }
    }

    fn restore_moved(&mut self, moved: Moved) {
        let Some(slot) = self.tasks.find(moved.number) else { return };
        self.issued.raise(moved.progress.seq);
        let task = &mut self.tasks[slot];
        let former = task.own_bytes();
        task.set_progress(moved.progress);
        let current = task.own_bytes();
        self.reweigh_restored(former, current);
    }

    /// Updates the accounting when the reason why a restored task is buried appears or disappears.
    fn reweigh_restored(&mut self, former: u64, current: u64) {
        if self.limits.memory_bytes.is_some() {
            self.bytes = self.bytes + current - former;
        }
    }

    fn restore_granted(&mut self, granted: Granted) {
        let Some(slot) = self.tasks.find(granted.number) else { return };
        let task = &mut self.tasks[slot];
        let former = task.own_bytes();
        task.set_attempts(granted.attempts);
        task.set_state(State::Taken(Lease {
            grant: Grant { incarnation: granted.incarnation, serial: granted.serial },
            holder: None,
            deadline: granted.deadline,
            ttr: granted.ttr,
        }));
        let current = task.own_bytes();
        self.reweigh_restored(former, current);
    }

    fn restore_queue(&mut self, record: &QueueRecord, place: Option<Place>) {
        let slot = self.queues.find_or_make(&record.name);
        self.queues.pause(slot, record.paused);
        self.queues.set_settings(slot, record.settings.clone());
        let queue = &mut self.queues[slot];
        queue.created = record.created;
        queue.recorded = true;
        let former = std::mem::replace(&mut queue.place, place);
        self.report.give_up(former);
    }
}
