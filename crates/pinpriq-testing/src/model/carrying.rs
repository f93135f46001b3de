//! Carrying queues to other servers: what an export shows, and what becomes of a record that is
//! imported.

use pinpriq_proto::change::ScheduleRecord;
use pinpriq_proto::export::{Export, ExportPlace, Exported, Import, QueueExported};
use pinpriq_proto::limits::{
    EXPORTED_BYTES_MAX, FIRED_MAX, NAME_BYTES_MAX, REASON_BYTES_MAX, TASK_OVERHEAD_BYTES,
    given_id_bytes,
};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::schedule::{EVERY_MIN, Overlap, Plan, Recurrence};
use pinpriq_proto::settings::{Assignment, DEADLETTER, Ids, Paused, Settings, Value};
use pinpriq_proto::shares::ShareRecord;
use pinpriq_proto::task::{Bytes, State, TaskId, TaskRecord};
use pinpriq_proto::time::Timestamp;
use pinpriq_proto::unique::{UNIQUE_BYTES_MAX, WindowRecord, window_bytes};

use super::ageing::ages;
use super::bonds::{batch_of_imported, imported_bonds_make_sense};
use super::progress::checkpoint_fits;
use super::schedules::{Schedule, bytes_of};
use super::turns::share_of;
use super::{Answer, Exit, Home, Model, Place, fits, id_fits};

/// One record, and the place after it.
enum Record {
    Share(ShareRecord),
    Task(TaskRecord),
    Window(WindowRecord),
    Schedule(ScheduleRecord),
}

impl Model {
    pub(super) fn export(&self, export: &Export<'_>) -> Answer {
        let place = self.place_of(export.queue.into())?;
        super::looking::page_fits(export.count)?;
        let (queue, after) = (export.queue, export.after);
        let mut page = Exported::default();
        if after == ExportPlace::Start {
            page.queue = self.decided(&place);
        }
        let (mut bytes, mut last) = (0, after.kept());
        for record in self.records(queue, &place, after) {
            if page.len() == export.count as usize || bytes >= EXPORTED_BYTES_MAX {
                page.next = Some(match &record {
                    Record::Task(next) => self.before_task(&place, next, after),
                    record => before(record, last),
                });
                break;
            }
            match record {
                Record::Share(own) => {
                    last = ExportPlace::Share(own.share.clone());
                    page.shares.push(own);
                }
                Record::Task(task) => {
                    bytes += task.payload.len() + task.progress.told_bytes();
                    last = ExportPlace::Task(task.progress.seq);
                    let window = self.windows.get(&task.number);
                    page.ends.extend(window.map(|window| (task.number, window.until)));
                    page.tasks.push(task);
                }
                Record::Window(window) => {
                    last = ExportPlace::Window(window.key.clone());
                    page.windows.push(window);
                }
                Record::Schedule(schedule) => {
                    bytes += schedule.plan.payload.len();
                    last = ExportPlace::Schedule(schedule.number);
                    page.schedules.push(schedule);
                }
            }
        }
        Ok(Some(Reply::Exported(Box::new(page))))
    }

    /// The place before a task: behind the one before it, also if that is not exported.
    fn before_task(
        &self,
        place: &Place,
        next: &TaskRecord,
        after: ExportPlace<&[u8]>,
    ) -> ExportPlace {
        let tasks = self.homes.get(place).into_iter().flat_map(|home| home.tasks.values());
        let passed = tasks.map(|task| task.progress.seq).filter(|seq| *seq < next.progress.seq);
        let from = if let ExportPlace::Task(seq) = after { seq } else { 0 };
        ExportPlace::Task(passed.max().unwrap_or(0).max(from))
    }

    fn decided(&self, place: &Place) -> Option<Box<QueueExported>> {
        let home = self.homes.get(place).filter(|home| home.created || home.paused.any())?;
        let settings = home.created.then(|| home.settings.clone());
        Some(Box::new(QueueExported { name: home.name.clone(), settings, paused: home.paused }))
    }

    /// All that belongs to a queue and comes after a place.
    fn records(&self, queue: &[u8], place: &Place, after: ExportPlace<&[u8]>) -> Vec<Record> {
        let (seq, key, number): (_, &[u8], _) = match after {
            ExportPlace::Start | ExportPlace::Share(_) => (0, b"", 0),
            ExportPlace::Task(seq) => (seq, b"", 0),
            ExportPlace::Window(key) => (u64::MAX, key, 0),
            ExportPlace::Schedule(number) => (u64::MAX, &[0xFF; UNIQUE_BYTES_MAX + 1], number),
        };
        let home = self.homes.get(place);
        let mut tasks: Vec<&TaskRecord> =
            home.into_iter().flat_map(|it| it.tasks.values()).collect();
        tasks.retain(|task| task.progress.seq > seq && task.progress.cancelled().is_none());
        tasks.sort_by_key(|task| task.progress.seq);
        let is_there = |number: u64| home.is_some_and(|home| home.tasks.contains_key(&number));
        let mut windows: Vec<&WindowRecord> = self
            .windows
            .values()
            .filter(|known| *known.queue == *queue && *known.key > *key)
            .filter(|known| !is_there(known.number))
            .collect();
        windows.sort_by_key(|known| known.key.clone());
        let schedules = self
            .schedules
            .iter()
            .filter(|(known, schedule)| **known > number && *schedule.plan.queue == *queue);
        let tasks = tasks.into_iter().filter_map(|task| Some(home?.exported(task.clone())));
        let tasks = tasks.map(Record::Task);
        let windows = windows.into_iter().cloned().map(Record::Window);
        let schedules = schedules.map(|(number, known)| {
            Record::Schedule(ScheduleRecord {
                number: *number,
                name: known.name.clone(),
                plan: known.plan.clone(),
                course: known.course.clone(),
            })
        });
        let mut shares: Vec<ShareRecord> = self
            .own_shares
            .values()
            .filter(|own| *own.queue == *queue)
            .filter(|own| match after {
                ExportPlace::Start => true,
                ExportPlace::Share(after) => *own.share > *after,
                _ => false,
            })
            .cloned()
            .collect();
        shares.sort_by_key(|own| own.share.clone());
        let shares = shares.into_iter().map(Record::Share);
        shares.chain(tasks).chain(windows).chain(schedules).collect()
    }

    pub(super) fn import(&mut self, import: &Import<'_>) -> Answer {
        if let Import::Schedule(schedule) = import {
            fits(schedule.name.len() <= NAME_BYTES_MAX)?;
        }
        fits(import.queue().len() <= NAME_BYTES_MAX)?;
        match *import {
            Import::Queue { queue, settings, paused } => self.import_queue(queue, settings, paused),
            Import::Task { task, until } => self.import_task(task, until),
            Import::Window(window) => self.import_window(window),
            Import::Schedule(schedule) => self.import_schedule(schedule),
            Import::Share(own) => self.give_rules(&own.queue, &own.share, own.rules),
        }
    }

    fn import_queue(
        &mut self,
        queue: &[u8],
        settings: Option<&[Assignment<'_>]>,
        paused: Paused,
    ) -> Answer {
        let place = Place::Queue(queue.into());
        let paused = paused.at(self.now);
        self.note_due(paused.next_end());
        if let Some(changes) = settings {
            self.settings_fit(changes)?;
            let is_own = |change: &Assignment<'_>| *change == (DEADLETTER, Value::Bytes(queue));
            fits(!changes.iter().any(is_own))?;
        }
        let settings = settings.map(|changes| Settings::default().with(changes)).transpose();
        let settings = settings.map_err(|_| RefusalKind::BadArgument)?;
        fits(settings.as_ref().is_none_or(|it| !ages(it) || it.ageing.is_some()))?;
        let home = self.homes.get(&place);
        if home.is_none() && settings.is_none() && !paused.any() {
            return Ok(Some(Reply::Done));
        }
        let in_use = home.filter(|home| !home.tasks.is_empty());
        if let (Some(home), Some(settings)) = (in_use, &settings)
            && home.settings.ids != settings.ids
        {
            return Err(RefusalKind::WrongState);
        }
        if let Some(settings) = &settings {
            self.turns_may_change(&place, settings)?;
            self.uses_fit(&place, settings)?;
        }
        self.may_set(&place, settings.as_ref())?;
        let home = self.home(&place);
        home.paused = paused;
        if let Some(settings) = settings {
            home.created = true;
            home.set(settings);
            self.obey(&place);
        }
        self.tidy(&place);
        Ok(Some(Reply::Done))
    }

    fn import_task(&mut self, from: &TaskRecord, until: Option<Timestamp>) -> Answer {
        self.imported_fits(from)?;
        let place = Place::Queue(from.queue.clone());
        let until = until.filter(|until| *until > self.now && from.unique().is_some());
        let state = match &from.progress.state {
            State::Taken(_) => State::Ready,
            State::Waiting { ready_at: Some(at) } if *at <= self.now => State::Ready,
            state => state.clone(),
        };
        let is_finished = matches!(state, State::Zombie { .. } | State::Done);
        let gives_ids = self.settings(&place).ids == Ids::Given;
        let own = Bytes::from(from.id.to_string().into_bytes());
        let own: Bytes = if let TaskId::Given(id) = &from.id { id.clone() } else { own };
        if gives_ids {
            if own.is_empty() {
                return Err(RefusalKind::IdRequired);
            }
            id_fits(&own)?;
            if self.find((&*from.queue).into(), &own)?.is_some() {
                return Err(RefusalKind::Exists);
            }
        }
        if let Some(key) = from.unique() {
            let has_window = self.window_of(&from.queue, key).is_some();
            let is_held = !is_finished && self.duplicate(&from.queue, key).is_some();
            if is_held || until.is_some() && has_window {
                return Err(RefusalKind::Exists);
            }
        }
        self.imported_bonds_fit(from)?;
        let content = (from.payload.len() + from.terms.key_bytes()) as u64;
        let home = self.homes.get(&place);
        let refuses =
            |home: &Home| home.is_full_for(content) || home.share_is_full(&share_of(&from.terms));
        if !is_finished && home.is_some_and(refuses) {
            return Err(RefusalKind::Full);
        }
        let given = if gives_ids { own.len() } else { 0 };
        let mut needed = self.room_of_queue(&from.queue) + TASK_OVERHEAD_BYTES;
        needed += given_id_bytes(given) as u64;
        if let Some(key) = from.unique().filter(|_| until.is_some()) {
            self.another_window_fits()?;
            needed += window_bytes(from.queue.len(), key.len(), given);
        }
        // The id that it had elsewhere takes no room.
        let mut bare = TaskRecord { number: 0, id: TaskId::Number(0), ..from.clone() };
        bare.set_batch(batch_of_imported(from).cloned());
        needed += self.room_of_batch(bare.batch().map(|name| &**name));
        self.has_room(needed + self.own_bytes(&bare))?;

        let id = self.enter_imported(from, state, gives_ids.then_some(own), until);
        Ok(Some(Reply::Put(id)))
    }

    /// An imported task enters its queue in this state, with the id that it is given, if it is
    /// given one. Returns its id.
    fn enter_imported(
        &mut self,
        from: &TaskRecord,
        state: State,
        given: Option<Bytes>,
        until: Option<Timestamp>,
    ) -> TaskId {
        let place = Place::Queue(from.queue.clone());
        self.make_if_new(batch_of_imported(from).map(|name| &**name));
        self.last_number += 1;
        let number = self.last_number;
        let ids = self.settings(&place).ids;
        let id = given.map_or_else(|| self.new_id(ids, number), TaskId::Given);
        let mut task = TaskRecord { number, id: id.clone(), ..from.clone() };
        self.tie_imported(number, &mut task);
        task.put_at = task.put_at.min(self.now);
        let state = match state {
            State::Buried(own) => State::Buried(self.burial_of_imported(own)),
            state => state,
        };
        (task.progress.seq, task.progress.state) = (number, state.clone());
        if state != State::Ready {
            self.since.insert(number, self.now);
        }
        let (queue, key, is_over) =
            (task.queue.clone(), task.unique().cloned(), self.is_over(&task));
        self.enter(&place, task);
        if let (Some(key), Some(until)) = (key, until) {
            self.keep_window(WindowRecord { number, queue, key, id: id.clone(), until });
        }
        match state {
            State::Ready | State::Waiting { .. } if is_over => self.expire(number),
            State::Zombie { purge_at } if purge_at <= self.now => self.leave(number, Exit::Acked),
            _ => self.free_if_nothing_is_left(number),
        }
        id
    }

    fn imported_fits(&self, from: &TaskRecord) -> Result<(), RefusalKind> {
        let settings = self.settings(&Place::Queue(from.queue.clone()));
        from.terms.check().map_err(|refusal| refusal.kind)?;
        fits(u64::from(from.terms.cost()) <= settings.cost_max)?;
        self.payload_fits(Some(&from.payload))?;
        checkpoint_fits(from.progress.checkpoint().map(|it| &**it))?;
        self.payload_fits(from.progress.result().map(|it| &**it))?;
        self.span_fits(from.terms.ttr, false)?;
        imported_bonds_make_sense(from)?;
        fits(from.progress.reason.as_ref().is_none_or(|reason| reason.len() <= REASON_BYTES_MAX))?;
        fits(from.unique().is_none_or(|key| key_fits(key)))?;
        if let Some(origin) = from.origin() {
            fits(origin.queue.len() <= NAME_BYTES_MAX)?;
            former_id_fits(&origin.id)?;
        }
        fits(from.scheduled().is_none_or(|it| it.schedule.len() <= NAME_BYTES_MAX))
    }

    fn window_of(&self, queue: &[u8], key: &[u8]) -> Option<u64> {
        let mut windows = self.windows.values();
        let window = windows.find(|known| *known.queue == *queue && *known.key == *key);
        window.map(|known| known.number)
    }

    fn import_window(&mut self, from: &WindowRecord) -> Answer {
        fits(key_fits(&from.key))?;
        former_id_fits(&from.id)?;
        if from.until <= self.now {
            return Ok(Some(Reply::Done));
        }
        if let Some(number) = self.window_of(&from.queue, &from.key) {
            if let Some(known) = self.windows.get_mut(&number) {
                known.until = known.until.max(from.until);
            }
        } else {
            self.another_window_fits()?;
            self.has_room(from.bytes())?;
            self.last_number += 1;
            let number = self.last_number;
            self.windows.insert(number, WindowRecord { number, ..from.clone() });
        }
        self.note_due(Some(from.until));
        Ok(Some(Reply::Done))
    }

    fn import_schedule(&mut self, from: &ScheduleRecord) -> Answer {
        let ScheduleRecord { name, plan, course, .. } = from;
        plan.terms.check().map_err(|refusal| refusal.kind)?;
        self.payload_fits(Some(&plan.payload))?;
        self.span_fits(plan.terms.ttr, false)?;
        self.span_fits(plan.ttl, false)?;
        if let Recurrence::Every { every, .. } = plan.form {
            fits(every >= EVERY_MIN)?;
            self.span_fits(Some(every), false)?;
        }
        course.last_id.as_ref().map_or(Ok(()), former_id_fits)?;
        fits(course.fired <= FIRED_MAX && course.missed <= FIRED_MAX)?;
        if self.schedules.values().any(|known| known.name == *name) {
            return Err(RefusalKind::Exists);
        }
        let mut course = course.clone();
        course.done_until = course.done_until.min(self.now);
        course.last_number = self.put_by_last_slot(name, plan, course.last_slot);
        let schedule = Schedule::new(name.clone(), plan.clone(), course.clone());
        self.has_room(bytes_of(&schedule))?;
        self.last_number += 1;
        let (number, name, plan) = (self.last_number, name.clone(), plan.clone());
        self.revive_schedules(vec![ScheduleRecord { number, name, plan, course }]);
        self.fire_due();
        Ok(Some(Reply::Done))
    }

    /// The number of the task that the last slot has put, if a later slot is skipped because of it.
    fn put_by_last_slot(&self, name: &Bytes, plan: &Plan, slot: Option<Timestamp>) -> u64 {
        let home = self.homes.get(&Place::Queue(plan.queue.clone()));
        if plan.overlap == Overlap::Allow || slot.is_none() {
            return 0;
        }
        let tasks = home.into_iter().flat_map(|home| home.tasks.values());
        let is_last = |task: &&TaskRecord| {
            task.scheduled().is_some_and(|it| it.schedule == *name && it.slot == slot)
        };
        let last = tasks.filter(is_last).max_by_key(|task| task.progress.seq);
        last.map_or(0, |task| task.number)
    }
}

/// The place before a record that follows another place.
fn before(record: &Record, last: ExportPlace) -> ExportPlace {
    match (record, last) {
        (Record::Share(_) | Record::Task(_), last) => last,
        (Record::Window(_), ExportPlace::Window(key)) => ExportPlace::Window(key),
        (Record::Window(_), _) => ExportPlace::Window(Bytes::default()),
        (Record::Schedule(schedule), _) => ExportPlace::Schedule(schedule.number - 1),
    }
}

fn key_fits(key: &[u8]) -> bool {
    (1..=UNIQUE_BYTES_MAX).contains(&key.len())
}

fn former_id_fits(id: &TaskId) -> Result<(), RefusalKind> {
    if let TaskId::Given(id) = id { id_fits(id) } else { Ok(()) }
}
