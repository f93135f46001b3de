//! Schedules: what the commands on them do, and what happens at a slot.
//!
//! A slot puts one task, or counts as missed, and then it is done. Both are in one batch of
//! changes, so a slot never puts two tasks, whatever crashes. The engine cannot compute slots: see
//! [`Calendars`](pinpriq_proto::schedule::Calendars).

use std::sync::Arc;

use crate::engine::{Answered, Engine};
use crate::memory::deadlines::Due;
use crate::memory::packed::{NewTask, Task};
use crate::memory::schedules::{Schedule, schedule_bytes};
use crate::operations::admin::page_of_names;
use crate::operations::arguments::{bad, check_positive, quoted};
use crate::operations::ids::uuid_v7;
use crate::transition::Operation;
use pinpriq_proto::change::{Change, Place, ScheduleMoved, ScheduleRecord};
use pinpriq_proto::command::{Put, TimeToLive};
use pinpriq_proto::names::NamesPage;
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::room::Room;
use pinpriq_proto::schedule::{
    Course, EVERY_MIN, NewSchedule, Overlap, Plan, Recurrence, ScheduleCommand, Scheduled,
    ShownSchedule, When,
};
use pinpriq_proto::settings::Ids;
use pinpriq_proto::task::{Bytes, TaskId};
use pinpriq_proto::time::{Span, Timestamp};

impl Engine {
    pub(crate) fn keep_schedules(&mut self, command: &ScheduleCommand<'_>) -> Answered {
        let reply = match *command {
            ScheduleCommand::Set(ref new) => self.set_schedule(new)?,
            ScheduleCommand::Show(name) => self.show_schedule(self.existing_schedule(name)?),
            ScheduleCommand::List(NamesPage { prefix, count, after }) => {
                page_of_names(self.schedules.names_after(prefix, after), count)
            }
            ScheduleCommand::Pause(name) => {
                self.pause_schedule(self.existing_schedule(name)?, true)
            }
            ScheduleCommand::Resume(name) => {
                self.pause_schedule(self.existing_schedule(name)?, false)
            }
            ScheduleCommand::Drop(name) => self.drop_schedule(name),
            ScheduleCommand::Fire(name) => self.fire_by_hand(self.existing_schedule(name)?)?,
        };
        Ok(Some(reply))
    }

    fn set_schedule(&mut self, new: &NewSchedule<'_>) -> Result<Reply, Refusal> {
        self.check_schedule(new)?;
        let plan = self.plan_of(new);
        let now = self.calendars.slot_time(&plan.form, self.now);
        let Some(next) = self.calendars.next_after(&plan.form, now) else {
            return Err(bad(format!("the schedule {} would never be due", quoted(new.name))));
        };
        let known = self.schedules.find(new.name);
        let former = known.map_or(0, |number| self.schedules.schedule(number).bytes());
        let current = schedule_bytes(new.name, &plan);
        if current > former {
            self.check_room(current - former)?;
        }
        self.bytes = self.bytes + current - former;
        let plan = Arc::new(plan);
        let number = if let Some(number) = known {
            // The slots of the former plan put no more tasks.
            self.miss_until_now(number);
            // The slots of both plans may go by different times.
            self.schedules.schedule_mut(number).course.done_until = now;
            self.schedules.replan(number, plan);
            number
        } else {
            let number = self.issued.next();
            let course = Course { done_until: now, ..Course::default() };
            let name = new.name.into();
            let schedule = Schedule { name, plan, course, armed: None, place: None };
            self.schedules.insert(number, schedule);
            number
        };
        self.arm_schedule(number);
        let record = self.schedules.schedule(number).record(number);
        self.report.add(Change::Schedule(Box::new(record)));
        Ok(Reply::Deadline(Some(next)))
    }

    pub(super) fn check_schedule(&self, new: &NewSchedule<'_>) -> Result<(), Refusal> {
        new.terms.check()?;
        self.check_cost(new.queue, new.terms.cost())?;
        self.check_payload(new.payload)?;
        check_positive("the TTR", new.terms.ttr)?;
        self.moment("the TTR", new.terms.ttr.unwrap_or(Span::ZERO))?;
        if let Some(ttl) = new.ttl {
            self.check_ttl(ttl, Span::ZERO)?;
        }
        match new.when {
            When::Every { every, .. } if every < EVERY_MIN => {
                let least = EVERY_MIN.ms();
                Err(bad(format!("the time between slots must be at least {least} ms")))
            }
            When::Every { every, .. } => self.moment("the time between slots", every).map(drop),
            When::Cron { .. } => Ok(()),
        }
    }

    fn plan_of(&self, new: &NewSchedule<'_>) -> Plan {
        let form = match new.when {
            When::Every { every, at } => {
                Recurrence::Every { every, anchor: at.unwrap_or_else(|| self.now.after(every)) }
            }
            When::Cron { expression, zone } => {
                Recurrence::Cron { expression: expression.into(), zone: zone.map(Bytes::from) }
            }
        };
        Plan {
            queue: new.queue.into(),
            payload: new.payload.into(),
            terms: new.terms.kept(),
            priority: new.priority,
            ttl: new.ttl,
            form,
            on_missed: new.on_missed,
            overlap: new.overlap,
        }
    }

    fn show_schedule(&self, number: u64) -> Reply {
        let schedule = self.schedules.schedule(number);
        let mut course = schedule.course.clone();
        let next_at = if course.paused {
            course.missed += self.slots_until_now(schedule);
            let form = &schedule.plan.form;
            self.calendars.next_after(form, self.calendars.slot_time(form, self.now))
        } else {
            self.next_slot(schedule)
        };
        let (name, plan) = (schedule.name.clone(), (*schedule.plan).clone());
        Reply::Schedule(Box::new(ShownSchedule { name, plan, course, next_at }))
    }

    fn pause_schedule(&mut self, number: u64, paused: bool) -> Reply {
        if self.schedules.schedule(number).course.paused != paused {
            if !paused {
                self.miss_until_now(number);
            }
            self.schedules.schedule_mut(number).course.paused = paused;
            self.arm_schedule(number);
            self.report_course(number);
        }
        Reply::Done
    }

    fn drop_schedule(&mut self, name: &[u8]) -> Reply {
        let Some(number) = self.schedules.find(name) else { return Reply::Count(0) };
        if let Some(schedule) = self.schedules.remove(number) {
            if let Some(at) = schedule.armed {
                self.deadlines.remove(at, Due::Schedule(number));
            }
            self.bytes -= schedule.bytes();
            self.report.add(Change::ScheduleGone(number));
            self.report.give_up(schedule.place);
        }
        Reply::Count(1)
    }

    fn fire_by_hand(&mut self, number: u64) -> Result<Reply, Refusal> {
        let (id, _) = self.put_scheduled(number, None)?;
        let course = &mut self.schedules.schedule_mut(number).course;
        course.fired += 1;
        course.last_id = Some(id.clone());
        self.report_course(number);
        Ok(Reply::Put(id))
    }

    /// Handles a slot that is due. Returns the number of bytes of the payload.
    pub(crate) fn fire_slot(&mut self, number: u64) -> usize {
        let slot = self.next_slot(self.schedules.schedule(number));
        let schedule = self.schedules.schedule_mut(number);
        let (Some(_), Some(slot)) = (schedule.armed.take(), slot) else {
            unreachable!("schedule {number} was due without a slot")
        };
        let bytes = schedule.plan.payload.len();
        let last = schedule.course.last_number;
        let is_skipped = schedule.plan.overlap == Overlap::Skip && self.is_unfinished(last);
        let put = if is_skipped { None } else { self.put_scheduled(number, Some(slot)).ok() };
        let course = &mut self.schedules.schedule_mut(number).course;
        course.done_until = slot;
        let has_put = put.is_some();
        if let Some((id, task)) = put {
            course.fired += 1;
            course.last_id = Some(id);
            course.last_slot = Some(slot);
            course.last_number = task;
        } else {
            course.missed += 1;
        }
        // What little room is left on a full disk is for what frees some. The slots missed
        // meanwhile are recorded with the next change of the schedule.
        if has_put || self.room < Room::Scarce {
            self.report_course(number);
        }
        self.arm_schedule(number);
        bytes
    }

    /// Whether a task is ready, taken, waiting or buried.
    fn is_unfinished(&self, number: u64) -> bool {
        let slot = self.live(number);
        slot.is_some_and(|slot| !self.tasks[slot].kind().is_finished())
    }

    /// Puts a task of a schedule, unless a put like that would be refused. Returns its id and
    /// number.
    fn put_scheduled(
        &mut self,
        number: u64,
        slot: Option<Timestamp>,
    ) -> Result<(TaskId, u64), Refusal> {
        let schedule = self.schedules.schedule(number);
        let (name, plan) = (schedule.name.clone(), Arc::clone(&schedule.plan));
        let existing = self.queues.find(&plan.queue);
        let (ids, queue_ttl) = existing.map_or_else(Default::default, |slot| {
            let settings = &self.queues[slot].settings;
            (settings.ids, settings.ttl)
        });
        let ttl = plan.ttl.or(queue_ttl);
        // The bounds of the server may have become stricter since.
        self.check_payload(&plan.payload)?;
        if let Some(ttl) = ttl {
            self.check_ttl(ttl, Span::ZERO)?;
        }
        let put = Put {
            terms: plan.terms.borrowed(),
            priority: plan.priority,
            ttl: plan.ttl.map_or(TimeToLive::Default, TimeToLive::For),
            ..Put::new(&plan.queue, &plan.payload)
        };
        let is_bounded = existing.is_some_and(|queue| self.queues[queue].is_bounded());
        self.check_put_of_schedule(&put, existing, is_bounded)?;
        let content = plan.payload.len() + plan.terms.bytes() + name.len();
        self.check_room(self.growth_by_put(existing, &plan.queue, content))?;

        if is_bounded {
            self.make_room();
        }
        // Making room may have ended the queue.
        let existing = existing.filter(|_| !is_bounded);
        let queue = existing.unwrap_or_else(|| self.queues.find_or_make(&plan.queue));
        self.count_queue(queue);
        let number = self.issued.next();
        let id = match ids {
            Ids::Given => {
                let uuid = TaskId::Uuid(uuid_v7(self.now, number, self.seed));
                TaskId::Given(uuid.to_string().into_bytes().into())
            }
            ids => self.new_id(ids, number),
        };
        let payload = self.tasks.keep(&plan.payload);
        let mut task = Task::new(NewTask {
            number,
            queue,
            epoch: self.queues[queue].epoch,
            id: id.clone(),
            put_at: self.now,
            terms: plan.terms.clone(),
            priority: plan.priority,
            expires_at: ttl.map(|ttl| self.now.after(ttl)),
            ready_at: None,
            payload,
        });
        task.set_scheduled(Some(Box::new(Scheduled { schedule: name, slot })));
        self.enter(task, Operation::Put);
        Ok((id, number))
    }

    /// Counts the slots up to now that are not done as missed.
    fn miss_until_now(&mut self, number: u64) {
        let schedule = self.schedules.schedule(number);
        let missed = self.slots_until_now(schedule);
        let now = self.calendars.slot_time(&schedule.plan.form, self.now);
        let course = &mut self.schedules.schedule_mut(number).course;
        course.missed += missed;
        course.done_until = now;
    }

    /// The number of slots up to now that are not done.
    fn slots_until_now(&self, schedule: &Schedule) -> u64 {
        let form = &schedule.plan.form;
        let now = self.calendars.slot_time(form, self.now);
        self.calendars.count_between(form, schedule.course.done_until, now)
    }

    /// The first slot that is not done.
    pub(crate) fn next_slot(&self, schedule: &Schedule) -> Option<Timestamp> {
        self.calendars.next_after(&schedule.plan.form, schedule.course.done_until)
    }

    /// When the first slot that is not done has come.
    pub(crate) fn due_at(&self, schedule: &Schedule) -> Option<Timestamp> {
        let slot = self.next_slot(schedule)?;
        Some(self.calendars.moment_of(&schedule.plan.form, slot))
    }

    /// Adds a schedule to the index of deadlines under its next slot, unless it is paused.
    fn arm_schedule(&mut self, number: u64) {
        let schedule = self.schedules.schedule(number);
        let next = self.due_at(schedule).filter(|_| !schedule.course.paused);
        let former = std::mem::replace(&mut self.schedules.schedule_mut(number).armed, next);
        if let Some(former) = former {
            self.deadlines.remove(former, Due::Schedule(number));
        }
        if let Some(next) = next {
            self.deadlines.insert(next, Due::Schedule(number));
        }
    }

    /// Reports how far a schedule has come.
    fn report_course(&mut self, number: u64) {
        let course = self.schedules.schedule(number).course.clone();
        self.report.add(Change::ScheduleMoved(Box::new(ScheduleMoved { number, course })));
    }

    fn existing_schedule(&self, name: &[u8]) -> Result<u64, Refusal> {
        self.schedules.find(name).ok_or_else(|| {
            let sentence = format!("there is no schedule {}", quoted(name));
            Refusal::new(RefusalKind::NotFound, sentence)
        })
    }

    /// Reports a schedule again if its record is still at `place`.
    pub(crate) fn rewrite_schedule(&mut self, number: u64, place: Place) {
        let known = self.schedules.find_mut(number).filter(|it| it.place == Some(place));
        if let Some(schedule) = known {
            let record = schedule.record(number);
            self.report.add(Change::Schedule(Box::new(record)));
        }
    }

    pub(crate) fn restore_schedule(&mut self, record: ScheduleRecord, place: Option<Place>) {
        self.issued.raise(record.number);
        let ScheduleRecord { number, name, plan, course } = record;
        let schedule = Schedule { name, plan: Arc::new(plan), course, armed: None, place };
        let former = self.schedules.insert(number, schedule);
        self.report.give_up(former.and_then(|former| former.place));
    }

    /// Makes restored schedules due. Of the slots that have passed while the server was down, those
    /// are due that are to be made up. The others are missed.
    pub(crate) fn revive_schedules(&mut self) {
        let numbers: Vec<u64> = self.schedules.iter().map(|(number, _)| number).collect();
        for number in numbers {
            self.revive_schedule(number);
        }
    }

    /// Makes a schedule due that comes from a store or from another server.
    pub(super) fn revive_schedule(&mut self, number: u64) {
        let schedule = self.schedules.schedule(number);
        self.bytes += schedule.bytes();
        let (plan, done_until) = (&schedule.plan, schedule.course.done_until);
        if !schedule.course.paused {
            let passed = self.slots_until_now(schedule);
            let most = plan.on_missed.made_up();
            let now = self.calendars.slot_time(&plan.form, self.now);
            let made_up = self.calendars.latest_between(&plan.form, done_until, now, most);
            let missed = passed.saturating_sub(made_up.len() as u64);
            if missed > 0 {
                let before = |slot: &Timestamp| Timestamp::from_ms(slot.ms().saturating_sub(1));
                let done_until = made_up.first().map_or(now, before);
                let course = &mut self.schedules.schedule_mut(number).course;
                course.missed += missed;
                course.done_until = done_until;
                self.report_course(number);
            }
        }
        self.arm_schedule(number);
    }
}
