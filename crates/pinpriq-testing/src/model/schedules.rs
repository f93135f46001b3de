//! Schedules: the commands on them, and what happens at a slot. Slots themselves are computed by
//! the calendars that the caller supplies.

use pinpriq_proto::change::ScheduleRecord;
use pinpriq_proto::limits::{NAME_BYTES_MAX, SCHEDULE_OVERHEAD_BYTES, TASK_OVERHEAD_BYTES};
use pinpriq_proto::names::{NamePattern, NamesPage};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::room::Room;
use pinpriq_proto::schedule::{
    Course, EVERY_MIN, NewSchedule, OnMissed, Overlap, Plan, Recurrence, ScheduleCommand,
    Scheduled, ShownSchedule, When,
};
use pinpriq_proto::settings::Ids;
use pinpriq_proto::task::{Bytes, Past, Progress, StateKind, TaskId, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};

use super::turns::share_of;
use super::within::page_of;
use super::{Answer, Model, Place, fits};

/// A schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Its name.
    pub name: Bytes,
    /// What was decided about it.
    pub plan: Plan,
    /// How far it has come.
    pub course: Course,
    /// How far it had come when the store was last told.
    told: Course,
}

impl Schedule {
    /// A schedule that the store knows as it is.
    pub(super) fn new(name: Bytes, plan: Plan, course: Course) -> Self {
        let told = course.clone();
        Self { name, plan, course, told }
    }
}

impl Model {
    pub(super) fn keep_schedules(&mut self, command: &ScheduleCommand<'_>) -> Answer {
        let name_fits = |name: &[u8]| fits(name.len() <= NAME_BYTES_MAX);
        let reply = match *command {
            ScheduleCommand::Set(ref new) => {
                name_fits(new.queue)?;
                name_fits(new.name)?;
                return self.set_schedule(new);
            }
            ScheduleCommand::Show(name) => {
                name_fits(name)?;
                let known = &self.schedules[&self.known_schedule(name)?];
                Reply::Schedule(Box::new(self.shown(known)))
            }
            ScheduleCommand::List(page) => self.list_schedules(page, None),
            ScheduleCommand::Pause(name) | ScheduleCommand::Resume(name) => {
                name_fits(name)?;
                let number = self.known_schedule(name)?;
                let pauses = matches!(command, ScheduleCommand::Pause(_));
                if self.schedules[&number].course.paused != pauses {
                    if !pauses {
                        self.miss_until_now(number);
                    }
                    self.schedule(number).course.paused = pauses;
                    self.tell_store(number);
                }
                Reply::Done
            }
            ScheduleCommand::Drop(name) => {
                name_fits(name)?;
                let number = self.known_schedule(name).ok();
                let dropped = number.and_then(|number| self.schedules.remove(&number));
                Reply::Count(u64::from(dropped.is_some()))
            }
            ScheduleCommand::Fire(name) => {
                name_fits(name)?;
                let number = self.known_schedule(name)?;
                let (id, _) = self.put_scheduled(number, None)?;
                let course = &mut self.schedule(number).course;
                course.fired += 1;
                course.last_id = Some(id.clone());
                self.tell_store(number);
                Reply::Put(id)
            }
        };
        Ok(Some(reply))
    }

    pub(super) fn list_schedules(
        &self,
        page: NamesPage<'_>,
        within: Option<&[NamePattern<'_>]>,
    ) -> Reply {
        let known = self.schedules.values();
        page_of(known.map(|known| (&known.name, &known.plan.queue)), page, within)
    }

    /// Whether the arguments of a schedule make sense.
    pub(super) fn schedule_fits(&self, new: &NewSchedule<'_>) -> Result<(), RefusalKind> {
        let settings = self.settings(&Place::Queue(new.queue.into()));
        new.terms.check().map_err(|refusal| refusal.kind)?;
        fits(u64::from(new.terms.cost()) <= settings.cost_max)?;
        self.payload_fits(Some(new.payload))?;
        self.span_fits(new.terms.ttr, false)?;
        self.span_fits(new.ttl, false)?;
        if let When::Every { every, .. } = new.when {
            fits(every >= EVERY_MIN)?;
            self.span_fits(Some(every), false)?;
        }
        Ok(())
    }

    fn set_schedule(&mut self, new: &NewSchedule<'_>) -> Answer {
        self.schedule_fits(new)?;
        let form = match new.when {
            When::Every { every, at } => {
                Recurrence::Every { every, anchor: at.unwrap_or_else(|| self.now.after(every)) }
            }
            When::Cron { expression, zone } => {
                Recurrence::Cron { expression: expression.into(), zone: zone.map(Bytes::from) }
            }
        };
        let next = self.calendars.next_after(&form, self.now).ok_or(RefusalKind::BadArgument)?;
        let plan = Plan {
            queue: new.queue.into(),
            payload: new.payload.into(),
            terms: new.terms.kept(),
            priority: new.priority,
            ttl: new.ttl,
            form,
            on_missed: new.on_missed,
            overlap: new.overlap,
        };
        let known = self.known_schedule(new.name).ok();
        let former = known.map_or(0, |number| bytes_of(&self.schedules[&number]));
        let course = Course { done_until: self.now, ..Course::default() };
        let mut schedule = Schedule::new(new.name.into(), plan, course);
        let current = bytes_of(&schedule);
        if current > former {
            self.has_room(current - former)?;
        }
        let number = if let Some(number) = known {
            self.miss_until_now(number);
            schedule.course = self.schedules[&number].course.clone();
            number
        } else {
            self.last_number += 1;
            self.last_number
        };
        self.schedules.insert(number, schedule);
        self.tell_store(number);
        Ok(Some(Reply::Deadline(Some(next))))
    }

    fn shown(&self, known: &Schedule) -> ShownSchedule {
        let mut course = known.course.clone();
        let from = if course.paused { self.now } else { course.done_until };
        if course.paused {
            course.missed += self.slots_between(known, course.done_until);
        }
        let next_at = self.calendars.next_after(&known.plan.form, from);
        ShownSchedule { name: known.name.clone(), plan: known.plan.clone(), course, next_at }
    }

    /// Every schedule with its next slot, unless it is paused or has none.
    pub(super) fn slots(&self) -> impl Iterator<Item = (Timestamp, u64)> {
        let awake = self.schedules.iter().filter(|(_, known)| !known.course.paused);
        awake.filter_map(|(number, known)| {
            let next = self.calendars.next_after(&known.plan.form, known.course.done_until);
            Some((next?, *number))
        })
    }

    pub(super) fn fire_slot(&mut self, number: u64, slot: Timestamp) {
        let known = &self.schedules[&number];
        let last = known.course.last_number;
        let is_unfinished = self.is_live(last)
            && !matches!(
                self.task(last).progress.state.kind(),
                StateKind::Zombie | StateKind::Done
            );
        let put = if known.plan.overlap == Overlap::Skip && is_unfinished {
            Err(RefusalKind::Busy)
        } else {
            self.put_scheduled(number, Some(slot))
        };
        let has_room = self.room < Room::Scarce;
        let course = &mut self.schedule(number).course;
        course.done_until = slot;
        if let Ok((id, task)) = &put {
            course.fired += 1;
            (course.last_id, course.last_slot) = (Some(id.clone()), Some(slot));
            course.last_number = *task;
        } else {
            course.missed += 1;
        }
        if put.is_ok() || has_room {
            self.tell_store(number);
        }
    }

    fn put_scheduled(
        &mut self,
        number: u64,
        slot: Option<Timestamp>,
    ) -> Result<(TaskId, u64), RefusalKind> {
        let Schedule { name, plan, .. } = self.schedules[&number].clone();
        let place = Place::Queue(plan.queue.clone());
        let settings = self.settings(&place);
        let ttl = plan.ttl.or(settings.ttl);
        self.payload_fits(Some(&plan.payload))?;
        self.ttl_fits(ttl, Span::ZERO)?;
        let content = (plan.payload.len() + plan.terms.key_bytes()) as u64;
        let evicted = self.room_for(&place, plan.priority, &share_of(&plan.terms), content)?;
        if self.paused(&place).input.is_on() {
            return Err(RefusalKind::Paused);
        }
        let content = (plan.payload.len() + plan.terms.bytes() + name.len()) as u64;
        self.has_room(self.room_of_queue(&plan.queue) + TASK_OVERHEAD_BYTES + content)?;
        for number in evicted {
            self.evict(number);
        }
        self.last_number += 1;
        let number = self.last_number;
        let ids = if settings.ids == Ids::Given { Ids::Uuid } else { settings.ids };
        let id = self.new_id(ids, number);
        let expires_at = ttl.map(|ttl| self.now.after(ttl));
        let task = TaskRecord {
            number,
            queue: plan.queue,
            lane: None,
            id: id.clone(),
            put_at: self.now,
            terms: plan.terms,
            progress: Progress { expires_at, ..Progress::fresh(number, plan.priority) },
            past: Past::of(None, Some(Scheduled { schedule: name, slot }), None),
            payload: plan.payload,
            away: None,
            shared: false,
        };
        self.enter(&place, task);
        Ok((id, number))
    }

    fn miss_until_now(&mut self, number: u64) {
        let known = &self.schedules[&number];
        let missed = self.slots_between(known, known.course.done_until);
        let now = self.now;
        let course = &mut self.schedule(number).course;
        course.missed += missed;
        course.done_until = now;
    }

    fn slots_between(&self, known: &Schedule, from: Timestamp) -> u64 {
        self.calendars.count_between(&known.plan.form, from, self.now)
    }

    fn known_schedule(&self, name: &[u8]) -> Result<u64, RefusalKind> {
        let known = self.schedules.iter().find(|(_, known)| *known.name == *name);
        known.map(|(number, _)| *number).ok_or(RefusalKind::NotFound)
    }

    fn schedule(&mut self, number: u64) -> &mut Schedule {
        let Some(known) = self.schedules.get_mut(&number) else {
            unreachable!("there is no schedule {number}")
        };
        known
    }

    fn tell_store(&mut self, number: u64) {
        let known = self.schedule(number);
        known.told = known.course.clone();
        self.note_due(Some(Timestamp::ZERO));
    }

    /// The schedules as a store keeps them.
    pub(super) fn kept_schedules(&self) -> Vec<ScheduleRecord> {
        let records = self.schedules.iter().map(|(number, known)| ScheduleRecord {
            number: *number,
            name: known.name.clone(),
            plan: known.plan.clone(),
            course: known.told.clone(),
        });
        records.collect()
    }

    /// Continues with schedules that a store has kept. Of the slots while the server was down, some
    /// are made up later.
    pub(super) fn revive_schedules(&mut self, kept: Vec<ScheduleRecord>) {
        for ScheduleRecord { number, name, plan, mut course } in kept {
            if !course.paused {
                let most = match plan.on_missed {
                    OnMissed::One => 1,
                    OnMissed::All => 1_000,
                    OnMissed::None => 0,
                };
                let (form, from) = (&plan.form, course.done_until);
                let passed = self.calendars.count_between(form, from, self.now);
                let latest = self.calendars.latest_between(form, from, self.now, most);
                if passed > latest.len() as u64 {
                    course.missed += passed - latest.len() as u64;
                    course.done_until = match latest.first() {
                        Some(first) => Timestamp::from_ms(first.ms() - 1),
                        None => self.now,
                    };
                }
            }
            self.schedules.insert(number, Schedule::new(name, plan, course));
        }
        self.note_due(Some(Timestamp::ZERO));
    }
}

/// What a schedule occupies.
pub(super) fn bytes_of(known: &Schedule) -> u64 {
    let Plan { queue, payload, terms, form, .. } = &known.plan;
    let form = match form {
        Recurrence::Every { .. } => 0,
        Recurrence::Cron { expression, zone } => {
            expression.len() + zone.as_ref().map_or(0, |zone| zone.len())
        }
    };
    let content = known.name.len() + queue.len() + payload.len() + terms.bytes() + form;
    SCHEDULE_OVERHEAD_BYTES + content as u64
}
