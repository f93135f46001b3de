//! Administers queues: settings, names, emptying, pauses, figures.

use crate::engine::{Answered, Engine};
use crate::memory::deadlines::Due;
use crate::memory::slots::QueueSlot;
use crate::operations::ageing::check_ageing;
use crate::operations::arguments::{bad, check_positive, quoted};
use crate::operations::find::named;
use pinpriq_proto::change::Change;
use pinpriq_proto::command::{QueueCommand, QueueName, Sides};
use pinpriq_proto::facts::check_name;
use pinpriq_proto::limits::{LOOKED_BYTES_MAX, PRIORITIES_MAX, queue_bytes};
use pinpriq_proto::named_limits::check_used;
use pinpriq_proto::names::NamesPage;
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::settings::{
    Assignment, Changes, DEADLETTER, Lanes, Misfit, Pause, Paused, Rate, SETTINGS, Setting,
    Settings, USES, Value,
};
use pinpriq_proto::stats::{Counters, Figures};
use pinpriq_proto::survey::QueueChange;
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::{Span, Timestamp};

impl Engine {
    pub(crate) fn administer(&mut self, command: QueueCommand<'_>) -> Answered {
        match command {
            QueueCommand::Create { queue, settings } => self.create_queue(queue, settings),
            QueueCommand::Set { queue, settings } => self.set_queue(queue, settings),
            QueueCommand::Show(queue) => self.show_queue(queue),
            QueueCommand::List(NamesPage { prefix, count, after }) => {
                Ok(Some(page_of_names(self.queues.names(prefix, after), count)))
            }
            QueueCommand::Truncate(queue) => self.truncate_queue(queue),
            QueueCommand::Drop(queue) => self.drop_queue(queue),
            QueueCommand::Pause { queue, sides, length } => self.pause_sides(queue, sides, length),
            QueueCommand::Hold { queue, length, makes } => self.hold_output(queue, length, makes),
            QueueCommand::Resume { queue, sides } => self.set_pause(queue, sides, Pause::Off),
            QueueCommand::Share { queue, share, change } => self.set_share(queue, share, change),
            QueueCommand::Shares { queue, count, from, top } => {
                self.show_shares(queue, count, from, top)
            }
            QueueCommand::Stats(queue) => self.stats(queue),
        }
    }

    fn create_queue(&mut self, name: &[u8], changes: &[Assignment<'_>]) -> Answered {
        self.check_values(changes)?;
        let existing = self.queues.find(name).filter(|slot| self.queues[*slot].created);
        if existing.is_some() {
            return Err(Refusal::new(
                RefusalKind::Exists,
                format!("the queue {} has been created already", quoted(name)),
            ));
        }
        self.set_queue(name.into(), changes)
    }

    fn set_queue(&mut self, name: QueueName<'_>, changes: &[Assignment<'_>]) -> Answered {
        if name.member.is_some() {
            self.check_values(changes)?;
            changes.iter().try_for_each(check_in_lane)?;
        } else {
            self.check_changes(name.name, changes)?;
        }
        let existing = self.find_queue(name)?;
        let former = existing.map(|slot| self.queues[slot].settings.clone()).unwrap_or_default();
        let settings = former
            .with(changes)
            .map_err(|Misfit| bad("a setting cannot have a value of this kind".to_owned()))?;
        check_ageing(&settings)?;
        if let Some(slot) = existing {
            self.check_new_settings(name, slot, &settings)?;
        }
        self.check_uses(existing, &settings)?;
        self.check_room_for_settings(name.name, existing, Some(&settings))?;
        let slot = self.find_or_make(name)?;
        self.count_queue(slot);
        self.queues[slot].created = true;
        self.replace_settings(slot, settings);
        self.apply_settings(slot);
        self.note_vacancy(slot);
        self.report_queue(slot);
        self.queues.tell(slot, QueueChange::Set);
        Ok(Some(Reply::Done))
    }

    /// Refuses a queue or lane, and its new settings if it gets some, that need more memory or disk
    /// than there is. Settings that need no more than those before are always accepted.
    pub(super) fn check_room_for_settings(
        &self,
        name: &[u8],
        existing: Option<QueueSlot>,
        new: Option<&Settings>,
    ) -> Result<(), Refusal> {
        let is_new = existing.is_none_or(|slot| !self.queues[slot].counted);
        let of_queue = if is_new { queue_bytes(name.len()) } else { 0 };
        let former = existing.map_or(0, |slot| self.queues[slot].settings.bytes());
        match of_queue + new.map_or(0, Settings::bytes).saturating_sub(former) {
            0 => Ok(()),
            needed => self.check_room(needed),
        }
    }

    /// Gives a queue or lane these settings, and counts what they occupy.
    pub(super) fn replace_settings(&mut self, slot: QueueSlot, mut new: Settings) {
        self.keep_ageing(slot, &mut new);
        let (former, current) = (self.queues[slot].settings.bytes(), new.bytes());
        self.queues.set_settings(slot, new);
        self.bytes = self.bytes + current - former;
    }

    fn show_queue(&mut self, name: QueueName<'_>) -> Answered {
        let slot = self.existing(name)?;
        let queue = &self.queues[slot];
        let (settings, paused, created) = (queue.settings.clone(), queue.paused, queue.created);
        Ok(Some(Reply::Settings { settings: Box::new(settings), paused, created }))
    }

    fn truncate_queue(&mut self, name: QueueName<'_>) -> Answered {
        let slot = self.existing(name)?;
        let count = self.empty(slot);
        self.tidy_queue(slot);
        Ok(Some(Reply::Count(count)))
    }

    fn drop_queue(&mut self, name: &[u8]) -> Answered {
        let windows = self.end_windows(name);
        let slot = match self.existing(name.into()) {
            // A queue that has ceased to exist may have left windows behind.
            Err(_) if windows > 0 => return Ok(Some(Reply::Count(0))),
            existing => existing?,
        };
        let count = self.empty(slot);
        self.forget_shares(name);
        self.pause(slot, Paused::default());
        self.queues[slot].created = false;
        self.replace_settings(slot, Settings::default());
        self.apply_settings(slot);
        self.note_vacancy(slot);
        self.report_queue(slot);
        self.tidy_queue(slot);
        Ok(Some(Reply::Count(count)))
    }

    /// Pauses sides of a queue, for a while or until a client ends it.
    fn pause_sides(&mut self, name: QueueName<'_>, sides: Sides, length: Option<Span>) -> Answered {
        check_positive("the length of the pause", length)?;
        self.moment("the length of the pause", length.unwrap_or(Span::ZERO))?;
        let pause = length.map_or(Pause::Endless, |length| Pause::Until(self.now.after(length)));
        self.set_pause(name, sides, pause)
    }

    /// Pauses the output of a queue for a while, or ends that. The queue need not exist if it may
    /// be made.
    fn hold_output(&mut self, name: &[u8], length: Option<Span>, makes: bool) -> Answered {
        check_positive("the length of the pause", length)?;
        let until = self.moment("the length of the pause", length.unwrap_or(Span::ZERO))?;
        if !makes {
            self.existing(name.into())?;
        }
        let known = self.queues.find(name);
        let exists = known.is_some_and(|slot| self.queues[slot].exists());
        if length.is_none() && !exists {
            return Ok(Some(Reply::Done));
        }
        if known.is_none_or(|slot| !self.queues[slot].counted) {
            self.check_room(queue_bytes(name.len()))?;
        }
        let slot = self.queues.find_or_make(name);
        self.count_queue(slot);
        let (output, what) = match length {
            Some(_) => (Pause::Until(until), QueueChange::Paused),
            None => (Pause::Off, QueueChange::Resumed),
        };
        self.change_pause(slot, Paused { output, ..self.queues[slot].paused }, what);
        Ok(Some(Reply::Done))
    }

    fn set_pause(&mut self, name: QueueName<'_>, sides: Sides, pause: Pause) -> Answered {
        let slot = self.existing(name)?;
        let mut new = self.queues[slot].paused;
        if matches!(sides, Sides::Input | Sides::Both) {
            new.input = pause;
        }
        if matches!(sides, Sides::Output | Sides::Both) {
            new.output = pause;
        }
        let what = if pause.is_on() { QueueChange::Paused } else { QueueChange::Resumed };
        self.change_pause(slot, new, what);
        Ok(Some(Reply::Done))
    }

    /// Ends the pause that ends next. However late it is, the other side stays paused until
    /// everything was done that is due before its end.
    pub(crate) fn end_pause(&mut self, slot: QueueSlot) {
        let paused = self.queues[slot].paused;
        let paused = paused.at(paused.next_end().unwrap_or(self.now));
        self.change_pause(slot, paused, QueueChange::Resumed);
    }

    fn change_pause(&mut self, slot: QueueSlot, paused: Paused, what: QueueChange) {
        if self.queues[slot].paused == paused {
            return;
        }
        self.pause(slot, paused);
        self.queues.tell(slot, what);
        self.report_queue(slot);
        self.note_vacancy(slot);
        self.wake(slot);
        self.tidy_queue(slot);
    }

    /// Pauses exactly these sides of a queue or lane, and notes when that ends by itself.
    pub(crate) fn pause(&mut self, slot: QueueSlot, paused: Paused) {
        let due = Due::Pause(slot);
        if self.queues[slot].paused.output != paused.output {
            self.queues[slot].paused_for =
                paused.output.until().map_or(Span::ZERO, |at| at.since(self.now));
        }
        let former = self.queues[slot].paused.next_end();
        // One that has just ended was removed already.
        if let Some(at) = former.filter(|at| self.deadlines.contains(*at, due)) {
            self.deadlines.remove(at, due);
        }
        self.queues.pause(slot, paused);
        if let Some(at) = paused.next_end() {
            self.deadlines.insert(at, due);
        }
    }

    fn stats(&mut self, name: Option<QueueName<'_>>) -> Answered {
        let figures = match name {
            Some(name) => {
                let slot = self.find_queue(name)?;
                let holds_dead_letters =
                    name.member.is_none() && self.queues.holds_dead_letters(name.name);
                let absent = Figures { holds_dead_letters, ..Figures::default() };
                slot.map_or(absent, |slot| self.queue_figures(slot, self.now))
            }
            None => self.total_figures(),
        };
        Ok(Some(Reply::Figures(Box::new(figures))))
    }

    /// Returns the figures of one queue. Costs O(log n) for each distinct priority in it, or a
    /// comparison if there are many.
    pub(super) fn queue_figures(&self, slot: QueueSlot, now: Timestamp) -> Figures {
        let queue = &self.queues[slot];
        let oldest = self.oldest_ready(slot);
        let in_line = queue.waiting.any.values().chain(queue.waiting.narrow.values());
        let takers = in_line
            .filter(|id| matches!(id, crate::memory::consumers::ConsumerId::Taker(_)))
            .count();
        Figures {
            counters: self.counters_of(slot),
            priorities: queue.indexes.ready_by_priority(PRIORITIES_MAX),
            oldest_ready: oldest.map(|at| now.since(at)),
            takers: takers as u64,
            subscribers: queue.subscribers.len() as u64,
            paused: queue.paused,
            paused_queues: u64::from(queue.paused.any()),
            queues: u64::from(queue.exists()),
            missed: queue.lane.as_ref().map(|lane| lane.missed),
            holds_dead_letters: queue.lane.is_none() && self.queues.holds_dead_letters(&queue.name),
        }
    }

    /// Returns the counters of a queue, up to this moment.
    fn counters_of(&self, slot: QueueSlot) -> Counters {
        let mut counters = self.queues.counters(slot, self.now);
        let limited_ms = self.limited(slot).ms();
        if limited_ms > 0 {
            counters.times().limited_ms = limited_ms;
        }
        counters
    }

    /// Returns when the oldest ready task of a queue was put. If there are many priorities, it is
    /// the one that comes first by seq, which usually was put first.
    fn oldest_ready(&self, slot: QueueSlot) -> Option<Timestamp> {
        let indexes = &self.queues[slot].indexes;
        if indexes.have_many_priorities() {
            return indexes.oldest_of_all().map(|slot| self.tasks[slot].put_at());
        }
        let oldest = indexes.oldest_of_each();
        oldest.map(|slot| self.tasks[slot].put_at()).min()
    }

    /// Returns the figures of all queues together. Costs the same for any number of queues, so it
    /// leaves out the oldest ready task.
    #[must_use]
    pub fn total_figures(&self) -> Figures {
        Figures {
            counters: self.totals.clone(),
            takers: self.consumers.takers.len() as u64 - self.consumers.echoes,
            subscribers: self.consumers.subscriptions,
            paused_queues: self.queues.paused(),
            queues: self.queues.existing(),
            ..Figures::default()
        }
    }

    /// Reports a queue that the store must remember apart from its tasks, or that it need no
    /// longer remember.
    pub(super) fn report_queue(&mut self, slot: QueueSlot) {
        let queue = &mut self.queues[slot];
        if queue.created || queue.paused.any() {
            queue.recorded = true;
            self.report.add(queue.record());
        } else if queue.recorded {
            queue.recorded = false;
            self.report.add(Change::QueueGone(queue.name.clone()));
            self.report.give_up(queue.place.take());
        }
    }

    /// Checks the values that settings of a queue are to have.
    pub(super) fn check_changes(
        &self,
        queue: &[u8],
        changes: &[Assignment<'_>],
    ) -> Result<(), Refusal> {
        self.check_values(changes)?;
        check_not_its_own(queue, changes)
    }

    /// Checks new settings of a queue or lane that exists.
    pub(super) fn check_new_settings(
        &self,
        name: QueueName<'_>,
        slot: QueueSlot,
        new: &Settings,
    ) -> Result<(), Refusal> {
        let queue = &self.queues[slot];
        if queue.counters.in_any_state() == 0 {
            return Ok(());
        }
        self.check_ranking(slot, new)?;
        check_in_use(name, &queue.settings, new)
    }

    fn check_values(&self, changes: &[Assignment<'_>]) -> Result<(), Refusal> {
        for (setting, value) in changes {
            let Setting { what, least, most, .. } = setting;
            match value {
                Value::Number(number) if number < least => {
                    return Err(bad(format!("{what} must be at least {least}")));
                }
                Value::Number(number) if number > most => {
                    return Err(bad(format!("{what} must be at most {most}")));
                }
                Value::Span(span) if span.ms() < *least => {
                    return Err(bad(format!("{what} must be at least {least} ms")));
                }
                Value::Span(span) => self.moment(what, *span).map(|_| ())?,
                Value::Bytes(uses) if *setting == USES => check_used(uses)?,
                Value::Bytes(name) => check_name("queue name", name)?,
                Value::Rate(Rate { count: 0, .. } | Rate { per: Span::ZERO, .. }) => {
                    return Err(bad(format!("{what} is at least 1 task in at least 1 ms")));
                }
                Value::Rate(rate) => self.moment(what, rate.per).map(|_| ())?,
                Value::None | Value::Number(_) | Value::Word(_) => {}
            }
        }
        Ok(())
    }
}

/// Returns a page of at most `count` of these names, and fewer if they are long.
pub(super) fn page_of_names<'n>(mut names: impl Iterator<Item = &'n Bytes>, count: usize) -> Reply {
    let (mut page, mut bytes) = (Vec::new(), 0);
    while page.len() < count && bytes < LOOKED_BYTES_MAX {
        let Some(name) = names.next() else { return Reply::Names { names: page, more: false } };
        bytes += name.len();
        page.push(name.clone());
    }
    Reply::Names { names: page, more: names.next().is_some() }
}

fn check_in_lane((setting, value): &Assignment<'_>) -> Result<(), Refusal> {
    match setting.lanes {
        Lanes::Not(refused, why) if refused == *value => Err(bad(why.to_owned())),
        Lanes::Default(why) if !setting.is_default(*value) => Err(bad(why.to_owned())),
        Lanes::Not(..) | Lanes::Default(_) | Lanes::Any => Ok(()),
    }
}

/// Refuses a queue as the queue for its own dead letters.
fn check_not_its_own(queue: &[u8], changes: &[Assignment<'_>]) -> Result<(), Refusal> {
    let is_own =
        |(setting, value): &Assignment<'_>| *setting == DEADLETTER && *value == Value::Bytes(queue);
    if changes.iter().any(is_own) {
        let name = quoted(queue);
        return Err(bad(format!("the queue {name} cannot be the queue for its own dead letters")));
    }
    Ok(())
}

/// Checks a change of the settings of a queue that has tasks.
fn check_in_use(name: QueueName<'_>, former: &Settings, new: &Settings) -> Result<(), Refusal> {
    let changes = |setting: &&Setting| (setting.read)(former) != (setting.read)(new);
    let fixed = SETTINGS.into_iter().filter(|setting| setting.changes == Changes::WhileEmpty);
    let Some(setting) = fixed.into_iter().find(changes) else { return Ok(()) };
    let (what, queue) = (setting.what, named(name));
    Err(Refusal::new(
        RefusalKind::WrongState,
        format!("{what} of {queue} can change only while it is empty: truncate it first"),
    ))
}
