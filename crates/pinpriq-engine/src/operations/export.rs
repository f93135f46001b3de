//! Exports a queue, page by page: all that another server needs to go on with it.
//!
//! Nothing changes. A share, a task, a window or a schedule that is there throughout is on one
//! page, as in a scan.

use std::ops::Bound;

use crate::engine::{Answered, Engine};
use crate::memory::own_shares::OwnShare;
use crate::memory::slots::QueueSlot;
use crate::operations::scan::check_looked;
use pinpriq_proto::command::QueueName;
use pinpriq_proto::export::{Export, ExportPlace, Exported, QueueExported};
use pinpriq_proto::limits::{EXPORTED_BYTES_MAX, LOOKED_STEPS_MAX};
use pinpriq_proto::reply::Reply;

/// A page that is being filled.
struct Page {
    exported: Exported,
    /// The most records.
    count: usize,
    /// The bytes of the payloads on it.
    bytes: usize,
    /// The number of records that were looked at.
    steps: usize,
}

impl Page {
    /// Looks at another record, which may belong to the export. Returns whether the page ends
    /// before it.
    fn ends_before(&mut self, belongs: bool) -> bool {
        self.steps += 1;
        let is_full = self.exported.len() == self.count || self.bytes >= EXPORTED_BYTES_MAX;
        self.steps > LOOKED_STEPS_MAX || belongs && is_full
    }
}

impl Engine {
    /// Returns the next records of a queue. Costs as much as a scan of as many tasks, and a step
    /// for each schedule of the shard.
    #[inline(never)]
    pub(crate) fn export(&mut self, export: &Export<'_>) -> Answered {
        check_looked(export.count)?;
        let slot = self.find_queue(QueueName::from(export.queue))?;
        let exported = Exported::default();
        let mut page = Page { exported, count: export.count as usize, bytes: 0, steps: 0 };
        let next = self.fill(export, slot, &mut page);
        let exported = Exported { next, ..page.exported };
        Ok(Some(Reply::Exported(Box::new(exported))))
    }

    /// Adds records until the page is full. Returns where the next one begins.
    fn fill(
        &self,
        export: &Export<'_>,
        slot: Option<QueueSlot>,
        page: &mut Page,
    ) -> Option<ExportPlace> {
        let mut share = None;
        let (seq, key, number) = match export.after {
            ExportPlace::Start => {
                page.exported.queue = slot.and_then(|slot| self.decided(slot));
                share = Some(None);
                (Some(0), Some(&[][..]), 0)
            }
            ExportPlace::Share(after) => {
                share = Some(Some(after));
                (Some(0), Some(&[][..]), 0)
            }
            ExportPlace::Task(seq) => (Some(seq), Some(&[][..]), 0),
            ExportPlace::Window(key) => (None, Some(key), 0),
            ExportPlace::Schedule(number) => (None, None, number),
        };
        let next = share.and_then(|after| self.export_shares(export.queue, after, page));
        if next.is_some() {
            return next;
        }
        let tasks = seq.zip(slot).and_then(|(seq, slot)| self.export_tasks(slot, seq, page));
        let windows =
            || key.and_then(|key| self.export_windows(export.queue, (slot, key), &mut *page));
        let next = tasks.or_else(windows);
        next.or_else(|| self.export_schedules(export.queue, number, page))
    }

    fn decided(&self, slot: QueueSlot) -> Option<Box<QueueExported>> {
        let queue = &self.queues[slot];
        let (name, paused) = (queue.name.clone(), queue.paused);
        let settings = queue.created.then(|| queue.settings.clone());
        let is_decided = settings.is_some() || paused.any();
        is_decided.then(|| Box::new(QueueExported { name, settings, paused }))
    }

    fn export_shares(
        &self,
        queue: &[u8],
        after: Option<&[u8]>,
        page: &mut Page,
    ) -> Option<ExportPlace> {
        let mut last = after;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        for OwnShare { record, .. } in self.own_shares.of_queue(queue, from) {
            if page.ends_before(true) {
                return Some(last.map_or(ExportPlace::Start, |it| ExportPlace::Share(it.into())));
            }
            last = Some(&record.share);
            page.exported.shares.push(record.clone());
        }
        None
    }

    fn export_tasks(&self, slot: QueueSlot, after: u64, page: &mut Page) -> Option<ExportPlace> {
        let queue = &self.queues[slot];
        let mut last = after;
        for (seq, slot) in queue.indexes.by_seq(after, None) {
            // A cancelled task ends with its lease, and leases are not exported.
            let is_there = !self.looks_gone(slot) && self.tasks[slot].cancelled().is_none();
            if page.ends_before(is_there) {
                return Some(ExportPlace::Task(last));
            }
            last = seq;
            if !is_there {
                continue;
            }
            let task = &self.tasks[slot];
            let mut record = self.tasks.record(slot, queue.names());
            // Leases are not exported, and nor is what goes with them.
            record.progress.forget_text();
            record.progress.forget_open_attempt();
            page.bytes += task.payload_bytes() + record.progress.told_bytes();
            let window = self.windows.one(task.number()).map(|window| window.record.until);
            let until = window.filter(|until| *until > self.now);
            page.exported.ends.extend(until.map(|until| (task.number(), until)));
            self.show_ageing(task.queue, &mut record);
            page.exported.tasks.push(record);
        }
        None
    }

    fn export_windows(
        &self,
        queue: &[u8],
        (slot, after): (Option<QueueSlot>, &[u8]),
        page: &mut Page,
    ) -> Option<ExportPlace> {
        let (mut last, mut looked) = (after, after);
        for window in self.windows.of_queue(queue, Bound::Excluded(after)) {
            // That of a task is exported with it.
            let task = self.live(window.record.number);
            let is_with_task = task.is_some_and(|task| slot == Some(self.tasks[task].queue));
            let is_alone = window.record.until > self.now && !is_with_task;
            if page.ends_before(is_alone) {
                let last = if is_alone { last } else { looked };
                return Some(ExportPlace::Window(last.into()));
            }
            looked = &window.record.key;
            if is_alone {
                last = looked;
                page.exported.windows.push(window.record.clone());
            }
        }
        None
    }

    fn export_schedules(&self, queue: &[u8], after: u64, page: &mut Page) -> Option<ExportPlace> {
        for (number, schedule) in self.schedules.after(after) {
            let belongs = *schedule.plan.queue == *queue;
            if page.ends_before(belongs) {
                return Some(ExportPlace::Schedule(number - 1));
            }
            if belongs {
                page.bytes += schedule.plan.payload.len();
                page.exported.schedules.push(schedule.record(number));
            }
        }
        None
    }
}
