//! Imports one record of another server: settings, the rules of a share, a task, a window or
//! a schedule.
//!
//! A record comes in as a whole or not at all. Nothing makes room for it, and a pause does not keep
//! it out: the importer has decided that it belongs here.

use std::sync::Arc;

use crate::engine::{Answered, Engine};
use crate::memory::packed::Task;
use crate::memory::schedules::{Schedule, schedule_bytes};
use crate::memory::slots::QueueSlot;
use crate::operations::ageing::check_ageing;
use crate::operations::arguments::{bad, check_id, check_positive, check_reason, quoted};
use crate::operations::progress::check_checkpoint;
use crate::transition::Operation;
use pinpriq_proto::batches::{After, Bonds, MEMBER_OF_BATCH_BYTES, encode_names};
use pinpriq_proto::change::{Change, ScheduleRecord};
use pinpriq_proto::command::QueueName;
use pinpriq_proto::export::Import;
use pinpriq_proto::facts::check_name;
use pinpriq_proto::limits::{FIRED_MAX, LOOKED_STEPS_MAX, UNIQUE_OVERHEAD_BYTES, given_id_bytes};
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::schedule::{Course, NewSchedule, Overlap, Recurrence, When};
use pinpriq_proto::settings::{Assignment, Ids, Misfit, Paused, Settings};
use pinpriq_proto::shares::{ShareRecord, check_share_name};
use pinpriq_proto::task::{Bytes, Origin, State, TaskId, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{UNIQUE_BYTES_MAX, WindowRecord, window_bytes};

impl Engine {
    #[inline(never)]
    pub(crate) fn import(&mut self, import: &Import<'_>) -> Answered {
        match *import {
            Import::Queue { queue, settings, paused } => self.import_queue(queue, settings, paused),
            Import::Task { task, until } => self.import_task(task, until),
            Import::Window(window) => self.import_window(window),
            Import::Schedule(schedule) => self.import_schedule(schedule),
            Import::Share(record) => self.import_share(record),
        }
    }

    fn import_queue(
        &mut self,
        name: &[u8],
        settings: Option<&[Assignment<'_>]>,
        paused: Paused,
    ) -> Answered {
        let paused = paused.at(self.now);
        let settings = settings.map(|settings| self.check_settings(name, settings)).transpose()?;
        let existing = self.queues.find(name);
        let is_new = existing.is_none_or(|slot| !self.queues[slot].counted);
        if is_new && settings.is_none() && !paused.any() {
            return Ok(Some(Reply::Done));
        }
        if let (Some(slot), Some(settings)) = (existing, &settings) {
            self.check_new_settings(name.into(), slot, settings)?;
        }
        if let Some(settings) = &settings {
            self.check_uses(existing, settings)?;
        }
        self.check_room_for_settings(name, existing, settings.as_ref())?;
        let slot = self.queues.find_or_make(name);
        self.count_queue(slot);
        if let Some(settings) = settings {
            self.queues[slot].created = true;
            self.replace_settings(slot, settings);
            self.apply_settings(slot);
        }
        self.pause(slot, paused);
        self.report_queue(slot);
        self.note_vacancy(slot);
        self.wake(slot);
        self.tidy_queue(slot);
        Ok(Some(Reply::Done))
    }

    fn check_settings(
        &self,
        name: &[u8],
        settings: &[Assignment<'_>],
    ) -> Result<Settings, Refusal> {
        self.check_changes(name, settings)?;
        let settings = Settings::default()
            .with(settings)
            .map_err(|Misfit| bad("a setting cannot have a value of this kind".to_owned()))?;
        check_ageing(&settings)?;
        Ok(settings)
    }

    fn import_task(&mut self, record: &TaskRecord, until: Option<Timestamp>) -> Answered {
        self.check_imported(record)?;
        let until = until.filter(|until| *until > self.now && record.unique().is_some());
        let state = match record.progress.state {
            State::Taken(_) => State::Ready,
            State::Waiting { ready_at: Some(ready_at) } if ready_at <= self.now => State::Ready,
            ref state => state.clone(),
        };
        let batch = record.batch().filter(|_| !state.kind().is_finished()).cloned();
        let own = self.own_id(record)?;
        self.check_unique_of(record, &state, until)?;
        record.names_after().iter().try_for_each(|name| self.check_follows(name))?;
        batch.as_ref().map_or(Ok(()), |name| self.check_joins(name))?;
        // The searches may have ended the queue.
        let existing = self.queues.find(&record.queue);
        self.check_place(record, &state, existing)?;
        let given = own.as_ref().map_or(0, |id| id.len());
        let window = record.unique().filter(|_| until.is_some());
        let window = window.map(|key| window_bytes(record.queue.len(), key.len(), given));
        if window.is_some() {
            self.check_windows_left()?;
        }
        let grown =
            self.growth_by_put(existing, &record.queue, content_of(record) + given_id_bytes(given));
        let of_batch =
            batch.as_ref().map_or(0, |name| MEMBER_OF_BATCH_BYTES + self.bytes_of_new_batch(name));
        self.check_room(grown + window.unwrap_or(0) + of_batch)?;

        let queue = existing.unwrap_or_else(|| self.queues.find_or_make(&record.queue));
        self.count_queue(queue);
        if let Some(name) = &batch {
            self.make_if_new(name);
        }
        let number = self.issued.next();
        let id = match own {
            Some(own) => TaskId::Given(own),
            None => self.new_id(self.queues[queue].settings.ids, number),
        };
        let mut record = TaskRecord { number, id: id.clone(), shared: false, ..record.clone() };
        record.put_at = record.put_at.min(self.now);
        let state = match state {
            State::Buried(burial) => State::Buried(self.issued.adopt(burial, self.now)),
            state => state,
        };
        (record.progress.seq, record.progress.state) = (number, state);
        let (name, key) = (record.queue.clone(), record.unique().cloned());
        let is_ready = record.progress.state == State::Ready;
        let payload = self.tasks.keep_bytes(&record.payload);
        let mut task = Task::of(record, payload, queue, self.queues[queue].epoch);
        if !is_ready {
            task.set_since(self.now);
        }
        let after = task.after().cloned().map(|after| self.still_after(after));
        task.set_after(after);
        let slot = self.enter(task, Operation::Arrive);
        self.count_for_account(number);
        if let Some(name) = batch {
            self.join_named(slot, &name);
        }
        if let (Some(key), Some(until)) = (key, until) {
            let is_held = self.holds_key(number);
            self.keep_window(WindowRecord { number, queue: name, key, id: id.clone(), until });
            self.windows.hold(number, is_held);
        }
        self.free_at_once(number);
        // Its TTL, or its stay as a zombie, may be over.
        self.live_by_now(number);
        Ok(Some(Reply::Put(id)))
    }

    /// Checks only the arguments.
    fn check_imported(&self, record: &TaskRecord) -> Result<(), Refusal> {
        record.terms.check()?;
        self.check_cost(&record.queue, record.terms.cost())?;
        self.check_payload(&record.payload)?;
        check_positive("the TTR", record.terms.ttr)?;
        self.moment("the TTR", record.terms.ttr.unwrap_or(Span::ZERO))?;
        check_reason(record.progress.reason.as_deref())?;
        check_checkpoint(record.progress.checkpoint().map(|it| &**it))?;
        record.progress.result().map_or(Ok(()), |result| self.check_payload(result))?;
        record.unique().map_or(Ok(()), |key| check_unique_key(key))?;
        if let Some(Origin { queue, id, .. }) = record.origin() {
            check_name("queue name", queue)?;
            check_given(id)?;
        }
        check_imported_bonds(record)?;
        let scheduled = record.scheduled();
        scheduled.map_or(Ok(()), |it| check_name("name of a schedule", &it.schedule))
    }

    /// Returns the id that the task keeps, where ids are given.
    fn own_id(&mut self, record: &TaskRecord) -> Result<Option<Bytes>, Refusal> {
        let queue = QueueName::from(&*record.queue);
        let slot = self.queues.find(queue.name);
        if slot.is_none_or(|slot| self.queues[slot].settings.ids != Ids::Given) {
            return Ok(None);
        }
        let own: Bytes = match &record.id {
            TaskId::Given(own) => own.clone(),
            other => other.to_string().into_bytes().into(),
        };
        if own.is_empty() {
            let name = quoted(queue.name);
            let sentence = format!("the queue {name} wants each task's id: give one");
            return Err(Refusal::new(RefusalKind::IdRequired, sentence));
        }
        check_id(&own)?;
        if self.find_task(queue, &own)?.is_some() {
            let (name, id) = (quoted(queue.name), quoted(&own));
            let sentence = format!("the queue {name} has a task {id} already");
            return Err(Refusal::new(RefusalKind::Exists, sentence));
        }
        Ok(Some(own))
    }

    /// Refuses a task whose key another task holds, or a window that is open.
    fn check_unique_of(
        &mut self,
        record: &TaskRecord,
        state: &State,
        until: Option<Timestamp>,
    ) -> Result<(), Refusal> {
        let Some(key) = record.unique() else { return Ok(()) };
        let holds = !state.kind().is_finished();
        let is_held = holds && self.find_duplicate(&record.queue, key).is_some();
        let window = self.windows.find(&record.queue, key).filter(|_| until.is_some());
        if !is_held && window.is_none_or(|window| window.record.until <= self.now) {
            return Ok(());
        }
        let (name, key) = (quoted(&record.queue), quoted(key));
        let sentence = format!("the queue {name} has a task that was put with {key} already");
        Err(Refusal::new(RefusalKind::Exists, sentence))
    }

    /// Refuses a task for which its queue has no place.
    fn check_place(
        &self,
        record: &TaskRecord,
        state: &State,
        existing: Option<QueueSlot>,
    ) -> Result<(), Refusal> {
        let content = (record.payload.len() + record.terms.key_bytes()) as u64;
        match existing {
            Some(queue) if !state.kind().is_finished() => {
                self.check_not_full(&record.queue, queue, record.terms.share_or_key(), content)
            }
            _ => Ok(()),
        }
    }

    /// Whether the task of this number holds its unique key.
    fn holds_key(&self, number: u64) -> bool {
        let task = self.tasks.find(number).map(|slot| &self.tasks[slot]);
        task.is_some_and(|task| task.unique_key().is_some() && task.holds_its_key())
    }

    fn import_window(&mut self, record: &WindowRecord) -> Answered {
        check_unique_key(&record.key)?;
        check_given(&record.id)?;
        if record.until <= self.now {
            return Ok(Some(Reply::Done));
        }
        let known = self.windows.find(&record.queue, &record.key);
        match known.map(|known| known.record.clone()).filter(|known| known.until > self.now) {
            Some(known) if known.until >= record.until => {}
            Some(known) => self.keep_window(WindowRecord { until: record.until, ..known }),
            None => {
                self.check_windows_left()?;
                self.check_room(record.bytes())?;
                let number = self.issued.next();
                self.keep_window(WindowRecord { number, ..record.clone() });
            }
        }
        Ok(Some(Reply::Done))
    }

    fn import_share(&mut self, record: &ShareRecord) -> Answered {
        check_share_name(&record.share)?;
        self.replace_share(&record.queue, &record.share, record.rules)?;
        Ok(Some(Reply::Done))
    }

    fn import_schedule(&mut self, record: &ScheduleRecord) -> Answered {
        let ScheduleRecord { name, plan, course, number: _ } = record;
        let when = match &plan.form {
            Recurrence::Every { every, anchor } => When::Every { every: *every, at: Some(*anchor) },
            Recurrence::Cron { expression, zone } => {
                When::Cron { expression, zone: zone.as_deref() }
            }
        };
        self.check_schedule(&NewSchedule {
            name,
            queue: &plan.queue,
            payload: &plan.payload,
            terms: plan.terms.borrowed(),
            priority: plan.priority,
            ttl: plan.ttl,
            when,
            on_missed: plan.on_missed,
            overlap: plan.overlap,
        })?;
        course.last_id.as_ref().map_or(Ok(()), check_given)?;
        if course.fired.max(course.missed) > FIRED_MAX {
            let sentence = format!("a schedule has fired and missed at most {FIRED_MAX} times");
            return Err(bad(sentence));
        }
        if self.schedules.find(name).is_some() {
            let sentence = format!("there is a schedule {} already", quoted(name));
            return Err(Refusal::new(RefusalKind::Exists, sentence));
        }
        self.check_room(schedule_bytes(name, plan))?;
        let number = self.issued.next();
        let now = self.calendars.slot_time(&plan.form, self.now);
        let course = Course {
            done_until: course.done_until.min(now),
            last_number: self.number_of_last(record),
            ..course.clone()
        };
        let (name, plan) = (name.clone(), Arc::new(plan.clone()));
        let schedule = Schedule { name, plan, course, armed: None, place: None };
        let record = schedule.record(number);
        self.schedules.insert(number, schedule);
        self.report.add(Change::Schedule(Box::new(record)));
        self.revive_schedule(number);
        self.fire_due();
        Ok(Some(Reply::Done))
    }

    /// The number of the task that the last slot of an imported schedule has put, if its next slot
    /// must know that, and the task is here already. Looks at [`LOOKED_STEPS_MAX`] tasks at most.
    fn number_of_last(&self, record: &ScheduleRecord) -> u64 {
        let ScheduleRecord { name, plan, course, .. } = record;
        let slot = self.queues.find(&plan.queue);
        let (Overlap::Skip, Some(_), Some(queue)) = (plan.overlap, course.last_slot, slot) else {
            return 0;
        };
        let tasks = self.queues[queue].indexes.by_seq(0, None).take(LOOKED_STEPS_MAX);
        let is_last = |task: &&Task| {
            let scheduled = task.scheduled();
            scheduled.is_some_and(|it| it.schedule == *name && it.slot == course.last_slot)
        };
        let last = tasks.map(|(_, slot)| &self.tasks[slot]).filter(is_last).last();
        last.map_or(0, Task::number)
    }
}

/// The bytes of a task that count, apart from its id.
fn content_of(record: &TaskRecord) -> usize {
    let reason = record.progress.reason.as_ref().map_or(0, |reason| reason.len());
    let origin = record.origin().map_or(0, Origin::bytes);
    let scheduled = record.scheduled().map_or(0, |scheduled| scheduled.schedule.len());
    let unique = record.unique().map_or(0, |key| key.len() + UNIQUE_OVERHEAD_BYTES);
    let after = record.progress.after().map_or(0, After::bytes);
    let texts = reason + record.progress.told_bytes() + after;
    record.payload.len() + record.terms.bytes() + texts + origin + scheduled + unique
}

/// Checks what an imported task says about batches.
fn check_imported_bonds(record: &TaskRecord) -> Result<(), Refusal> {
    let after = record.names_after();
    if !after.is_empty() && record.progress.state != State::HELD {
        let state = record.progress.state.kind();
        return Err(bad(format!("a task in state {state} waits for no batch")));
    }
    let names = encode_names(after.iter().map(|name| &**name));
    let batch = record.batch().map(|name| &**name);
    Bonds { batch, after: (!names.is_empty()).then_some(&names) }.check()
}

fn check_unique_key(key: &[u8]) -> Result<(), Refusal> {
    let length = key.len();
    if length == 0 || length > UNIQUE_BYTES_MAX {
        return Err(bad(format!(
            "a unique key has 1 to {UNIQUE_BYTES_MAX} bytes, and this one has {length}"
        )));
    }
    Ok(())
}

/// Checks an id that a task has had elsewhere.
fn check_given(id: &TaskId) -> Result<(), Refusal> {
    if let TaskId::Given(id) = id { check_id(id) } else { Ok(()) }
}
