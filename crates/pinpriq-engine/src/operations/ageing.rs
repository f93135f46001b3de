//! How the tasks of ageing queues come by their ranks.
//!
//! A rank is the moment at which a task has begun to age, and its priority times what a step of
//! that counts. Both follow from its put and its queue for most tasks, which keep nothing about
//! it: the moment is that of the put, and the step is what AGEING was when the first tasks came.
//! Tasks of which that is not so keep what differs. The order itself is in `memory/turns/aged.rs`.

use std::cmp::Ordering;

use crate::engine::Engine;
use crate::memory::packed::{Task, Unsaved};
use crate::memory::ranked::precedes;
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::arguments::bad;
use pinpriq_proto::command::Selection;
use pinpriq_proto::reply::Refusal;
use pinpriq_proto::settings::Settings;
use pinpriq_proto::task::{Aged, State, StateKind, TaskRecord, Trace};
use pinpriq_proto::time::{Span, Timestamp};

/// The place of a task that is sent to the tail of its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    pub(crate) seq: u64,
    /// When it begins to age, if it does.
    start: Option<Timestamp>,
}

impl Tail {
    pub(crate) fn receive(self, task: &mut Task) {
        task.set_seq(self.seq);
        if let Some(start) = self.start {
            task.set_aged(Aged { start: Some(start), ..task.aged() });
        }
    }
}

/// How the tasks of a queue age that say nothing about it, if they do.
#[inline]
pub(crate) fn usual_ageing(settings: &Settings) -> Option<Span> {
    if settings.age() { settings.ageing_usual } else { None }
}

/// By what a task of a queue goes before others: its priority, or its rank where tasks age.
pub(crate) fn number_of(settings: &Settings, task: &Task) -> Option<i128> {
    match usual_ageing(settings) {
        Some(ageing) => task.aged_rank(ageing),
        None => task.priority().map(i128::from),
    }
}

/// Refuses settings of which one needs another.
pub(super) fn check_ageing(settings: &Settings) -> Result<(), Refusal> {
    if settings.age() && settings.ageing.is_none() {
        let sentence = "RANKING ageing needs AGEING: give how much later a task goes for each \
                        step of its priority, in milliseconds";
        return Err(bad(sentence.to_owned()));
    }
    Ok(())
}

impl Engine {
    /// Returns a place at the tail of a queue.
    pub(crate) fn tail(&mut self, queue: QueueSlot) -> Tail {
        let start = self.queues[queue].settings.age().then_some(self.now);
        Tail { seq: self.issued.next(), start }
    }

    /// Says how the tasks of a queue age that are there already, in settings that it is about to
    /// get. A new AGEING counts for those that come later.
    pub(super) fn keep_ageing(&self, slot: QueueSlot, new: &mut Settings) {
        let queue = &self.queues[slot];
        let stays = queue.settings.age() && queue.counters.in_any_state() > 0;
        let usual = if stays { queue.settings.ageing_usual } else { new.ageing };
        new.ageing_usual = usual.filter(|_| new.age());
    }

    /// Notes how a task ages that enters a queue where tasks do.
    #[inline(never)]
    pub(crate) fn begin_rank(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        let settings = &self.queues[task.queue].settings;
        let mut aged = task.aged();
        if let State::Waiting { ready_at: Some(ready_at) } = *task.state() {
            aged.start.get_or_insert(ready_at);
        }
        if settings.ageing != settings.ageing_usual {
            aged.ageing = aged.ageing.or(settings.ageing);
        }
        self.set_aged(slot, aged);
    }

    /// Makes the tasks of a queue ready to age that is about to be an ageing one.
    pub(super) fn begin_to_age(&mut self, queue: QueueSlot) {
        if self.queues[queue].turns.as_ref().is_some_and(|turns| turns.aged().is_some()) {
            return;
        }
        let ready = self.queues[queue].indexes.by_seq(0, Some(StateKind::Ready));
        let starts_later = |slot: &Slot| self.tasks[*slot].aged().start > Some(self.now);
        let slots: Vec<Slot> = ready.map(|(_, slot)| slot).filter(starts_later).collect();
        for slot in slots {
            self.end_delay(slot);
        }
    }

    /// A ready task ages, even if its delay would have lasted longer.
    pub(super) fn end_delay(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        let aged = task.aged();
        if task.kind() == StateKind::Ready && aged.start > Some(self.now) {
            self.set_aged(slot, Aged { start: Some(self.now), ..aged });
        }
    }

    fn set_aged(&mut self, slot: Slot, aged: Aged) {
        let task = &mut self.tasks[slot];
        if aged != task.aged() {
            task.set_aged(aged);
            self.mark(slot, Unsaved::Progress);
        }
    }

    /// Orders tasks that go together by their ranks, if they age. Those without priority are last
    /// already.
    pub(super) fn by_rank(
        &self,
        queue: QueueSlot,
        selection: Selection,
        mut group: Vec<Slot>,
    ) -> Vec<Slot> {
        let Some(ageing) = usual_ageing(&self.queues[queue].settings) else { return group };
        let rank = |slot: &Slot| {
            let task = &self.tasks[*slot];
            Some((task.aged_rank(ageing)?, task.seq()))
        };
        let ranked = group.iter().take_while(|slot| rank(slot).is_some()).count();
        group[..ranked].sort_by(|one, other| {
            let Some((one, other)) = rank(one).zip(rank(other)) else { return Ordering::Equal };
            let is_first = precedes(one, other, selection.from, selection.order);
            if is_first { Ordering::Less } else { Ordering::Greater }
        });
        group
    }

    /// Sees to it that a task which comes back ages as it did.
    pub(super) fn age_as_before(&self, queue: QueueSlot, task: &mut Task) {
        let settings = &self.queues[queue].settings;
        if settings.age() && settings.ageing != settings.ageing_usual {
            let aged = task.aged();
            task.set_aged(Aged { ageing: aged.ageing.or(settings.ageing_usual), ..aged });
        }
    }

    /// Notes with a task that leaves the server how it ages, if that is not what AGEING says now.
    pub(super) fn show_ageing(&self, queue: QueueSlot, record: &mut TaskRecord) {
        let settings = &self.queues[queue].settings;
        let mut trace = record.progress.trace.as_deref().cloned().unwrap_or(Trace::NONE);
        if settings.age() && settings.ageing != settings.ageing_usual {
            trace.aged.ageing = trace.aged.ageing.or(settings.ageing_usual);
            record.progress.trace = trace.kept();
        }
    }
}
