//! Putting, publishing, and putting popped tasks back. Who receives a new task is decided in
//! `serve`.

use std::collections::BTreeMap;

use pinpriq_proto::command::{Delay, Put, TimeToLive, Wait};
use pinpriq_proto::fanout::{Deadline, Publish};
use pinpriq_proto::limits::{
    NAME_BYTES_MAX, TASK_OVERHEAD_BYTES, WAIT_OVERHEAD_BYTES, given_id_bytes,
};
use pinpriq_proto::reply::{Outcome, RefusalKind, Reply};
use pinpriq_proto::settings::{Ids, Settings};
use pinpriq_proto::task::{
    ClientId, Counts, Past, Progress, RequestId, State, StateKind, TaskId, TaskRecord, Trace,
};
use pinpriq_proto::time::{Span, Timestamp};

use super::bonds::{bonds_make_sense, waits_for_batches};
use super::turns::share_of;
use super::waits::{PutAwaited, with_result};
use super::{Answer, Model, Place, fits, id_fits, is_placeholder, number_of};

/// That a task is buried when it is put, and why, if that is said.
pub(super) struct Buried<'a> {
    pub(super) reason: Option<&'a [u8]>,
}

impl Model {
    pub(super) fn put(&mut self, client: ClientId, request: RequestId, put: &Put<'_>) -> Answer {
        self.put_as(client, request, put, None)
    }

    /// Puts a task, which may be buried at once.
    pub(super) fn put_as(
        &mut self,
        client: ClientId,
        request: RequestId,
        put: &Put<'_>,
        buried: Option<&Buried<'_>>,
    ) -> Answer {
        fits(put.queue.len() <= NAME_BYTES_MAX)?;
        let place = Place::Queue(put.queue.into());
        let settings = self.settings(&place);
        let expires_at = self.put_fits(put, &settings)?;
        if let Some(unique) = &put.unique
            && let Some(duplicate) = self.duplicate(put.queue, unique.key)
        {
            return self.put_again(client, request, put, (unique, expires_at), duplicate);
        }
        self.bonds_fit(put.bonds)?;
        if let Some(id) = put.id
            && self.find(put.queue.into(), id)?.is_some()
        {
            return Err(RefusalKind::Exists);
        }
        let content = (put.payload.len() + put.terms.key_bytes()) as u64;
        let evicted = self.room_for(&place, put.priority, &share_of(&put.terms), content)?;
        if self.paused(&place).input.is_on() {
            return Err(RefusalKind::Paused);
        }
        self.window_fits(put.unique.as_ref())?;
        self.has_room_for(put)?;
        let until = self.end_of_wait(put);
        if until.is_some() {
            self.may_wait(client, WAIT_OVERHEAD_BYTES)?;
        }

        self.make_if_new(put.bonds.batch);
        for number in evicted {
            self.evict(number);
        }
        let (number, id) = self.enter_new(&place, put, expires_at, buried);
        self.open_window(number, put.queue, put.unique);
        let awaited = PutAwaited { id, unique: put.unique.map(|_| true) };
        match (put.wait, until) {
            (None, _) => self.reply(client, request, awaited.reply(None)),
            (Some(_), None) => {
                let reply = awaited.reply(Some(Outcome::Timeout));
                self.reply(client, request, with_result(reply, put.result, None));
            }
            (Some(_), Some(until)) => {
                self.add_awaiter((client, request), number, until, Some(awaited), put.result);
            }
        }
        if put.ttl == TimeToLive::Instant {
            self.end_instant(number);
        }
        self.free_if_nothing_is_left(number);
        Ok(None)
    }

    /// A task that is put enters its place. Returns its number and its id.
    fn enter_new(
        &mut self,
        place: &Place,
        put: &Put<'_>,
        expires_at: Option<Timestamp>,
        buried: Option<&Buried<'_>>,
    ) -> (u64, TaskId) {
        self.last_number += 1;
        let number = self.last_number;
        self.last_put = number;
        let id = match put.id {
            Some(id) => TaskId::Given(id.into()),
            None => self.new_id(self.settings(place).ids, number),
        };
        let progress = Progress { expires_at, ..self.progress_of_new(number, put, buried) };
        let mut task = TaskRecord {
            number,
            queue: put.queue.into(),
            lane: None,
            id: id.clone(),
            put_at: self.now,
            terms: put.terms.kept(),
            progress,
            past: Past::of(None, None, put.unique.map(|unique| unique.key.into())),
            payload: put.payload.into(),
            away: None,
            shared: false,
        };
        let batch = self.join_new(number, put.bonds.batch);
        task.set_batch(batch);
        self.enter(place, task);
        (number, id)
    }

    fn progress_of_new(
        &mut self,
        number: u64,
        put: &Put<'_>,
        buried: Option<&Buried<'_>>,
    ) -> Progress {
        let fresh = Progress::fresh(number, put.priority);
        if let Some(Buried { reason }) = buried {
            return Progress {
                reason: reason.map(Into::into),
                trace: Trace::of(Span::ZERO, Counts { buries: 1, ..Counts::NONE }),
                state: State::Buried(self.draw_burial()),
                ..fresh
            };
        }
        let delay = self.length_of(put.delay);
        if let after @ Some(_) = self.after_of(put) {
            // Its delay counts from the moment at which it is freed.
            let trace = Trace { delay, after, ..Trace::NONE }.kept();
            return Progress { trace, state: State::HELD, ..fresh };
        }
        let state = put.delay.state(self.now);
        Progress { trace: Trace::of(delay, Counts::NONE), state, ..fresh }
    }

    /// Returns how long a delay is, if it begins now.
    pub(super) fn length_of(&self, delay: Delay) -> Span {
        match delay {
            Delay::For(span) => span,
            Delay::Until(at) => Span::from_ms(at.ms().saturating_sub(self.now.ms())),
            Delay::Held => Span::ZERO,
        }
    }

    fn has_room_for(&self, put: &Put<'_>) -> Result<(), RefusalKind> {
        let given = put.terms.bytes() + given_id_bytes(put.id.map_or(0, <[u8]>::len));
        let bonds = put.bonds.bytes() as u64 + self.room_of_batch(put.bonds.batch);
        let content = (put.payload.len() + given) as u64 + Self::bytes_of_unique(put) + bonds;
        self.has_room(self.room_of_queue(put.queue) + TASK_OVERHEAD_BYTES + content)
    }

    /// Until when a put blocks, if it does.
    #[expect(clippy::option_option, reason = "it blocks not at all, for ever, or for a time")]
    pub(super) fn end_of_wait(&self, put: &Put<'_>) -> Option<Option<Timestamp>> {
        match put.wait {
            None | Some(Wait::No) => None,
            Some(Wait::For(span)) => (!span.is_zero()).then(|| Some(self.now.after(span))),
            Some(Wait::Forever) => Some(None),
        }
    }

    pub(super) fn new_id(&mut self, ids: Ids, number: u64) -> TaskId {
        match ids {
            Ids::Sequence | Ids::Given => TaskId::Number(number),
            Ids::Time64 | Ids::Uuid => self.bindings.id_of(number),
        }
    }

    /// Ends the lifetime of a task with an instant TTL: it expires unless it is handed out now.
    pub(super) fn end_instant(&mut self, number: u64) {
        if let Some(put_off) = &mut self.put_off {
            return put_off.instants.push(number);
        }
        self.serve();
        if !self.places.contains_key(&number) {
            return;
        }
        let now = self.now;
        match self.task(number).progress.state.kind() {
            StateKind::Ready => self.expire(number),
            StateKind::Taken => self.task_mut(number).progress.expires_at = Some(now),
            _ => {}
        }
    }

    /// Checks the arguments of a put. Returns when its TTL is over.
    fn put_fits(
        &self,
        put: &Put<'_>,
        settings: &Settings,
    ) -> Result<Option<Timestamp>, RefusalKind> {
        put.terms.check().map_err(|refusal| refusal.kind)?;
        fits(u64::from(put.terms.cost()) <= settings.cost_max)?;
        self.payload_fits(Some(put.payload))?;
        self.unique_fits(put.unique.as_ref())?;
        self.span_fits(put.terms.ttr, false)?;
        let delay = self.length_of(put.delay);
        self.span_fits(Some(delay), true)?;
        let delays = put.delay != Delay::For(Span::ZERO);
        let is_held = put.delay == Delay::Held;
        let waits_for_batches = waits_for_batches(put);
        bonds_make_sense(put)?;
        fits(!delays || is_held || waits_for_batches || put.wait.is_none())?;
        fits(!(delays && put.ttl == TimeToLive::Instant))?;
        if let Some(Wait::For(wait)) = put.wait {
            self.span_fits(Some(wait), true)?;
        }
        match (settings.ids, put.id) {
            (Ids::Given, None) => return Err(RefusalKind::IdRequired),
            (Ids::Given, Some(id)) => id_fits(id)?,
            (_, Some(_)) => return Err(RefusalKind::BadArgument),
            (_, None) => {}
        }
        let ttl = match put.ttl {
            TimeToLive::Default => settings.ttl.filter(|_| !is_held && !waits_for_batches),
            TimeToLive::For(ttl) => Some(ttl),
            TimeToLive::Endless | TimeToLive::Instant => None,
        };
        self.ttl_fits(ttl, delay)?;
        Ok(ttl.map(|ttl| self.now.after(ttl)))
    }

    pub(super) fn publish(&mut self, publish: &Publish<'_>) -> Answer {
        fits(publish.topic.len() <= NAME_BYTES_MAX)?;
        let cost_max = Settings::default().cost_max;
        publish.terms.check().map_err(|refusal| refusal.kind)?;
        fits(u64::from(publish.terms.cost()) <= cost_max)?;
        self.payload_fits(Some(publish.payload))?;
        let expires_at = match publish.deadline {
            Deadline::OfLane => None,
            Deadline::At(at) => Some(at),
            Deadline::After(ttl) => {
                self.ttl_fits(Some(ttl), Span::ZERO)?;
                Some(self.now.after(ttl))
            }
        };
        if expires_at.is_some_and(|at| at <= self.now) {
            return Ok(Some(Reply::Count(0)));
        }
        let content = publish.payload.len() + publish.terms.key_bytes();
        let share = share_of(&publish.terms);
        let is_shut = |place: &Place| {
            let home = &self.homes[place];
            let is_full = home.is_full_for(content as u64) || home.share_is_full(&share);
            is_full || home.paused.input.is_on()
        };
        let (shut, open): (Vec<Place>, Vec<Place>) =
            self.lanes_of(publish.topic).into_iter().partition(is_shut);
        let content = (publish.payload.len() + publish.terms.bytes()) as u64;
        let bytes = content + TASK_OVERHEAD_BYTES * open.len() as u64;
        // A task without a receiver needs no room.
        if !open.is_empty() {
            self.has_room(bytes)?;
        }
        self.kept.publish(self.last_number + 1, open.len() as u64, content);
        for place in shut {
            self.home(&place).lane.iter_mut().for_each(|lane| lane.missed += 1);
        }
        let payload = publish.payload.into();
        for place in &open {
            self.last_number += 1;
            let number = self.last_number;
            let settings = self.settings(place);
            let id = self.new_id(settings.ids, number);
            let now = self.now;
            let home = self.home(place);
            let task = TaskRecord {
                number,
                queue: home.name.clone(),
                lane: home.lane.as_ref().map(|lane| lane.name.clone()),
                id,
                put_at: now,
                terms: publish.terms.kept(),
                progress: Progress {
                    expires_at: expires_at.or_else(|| settings.ttl.map(|ttl| now.after(ttl))),
                    ..Progress::fresh(number, publish.priority)
                },
                past: None,
                payload: std::sync::Arc::clone(&payload),
                away: None,
                shared: false,
            };
            self.enter(place, task);
        }
        Ok(Some(Reply::Count(open.len() as u64)))
    }

    pub(super) fn put_back(&mut self, records: &[TaskRecord]) -> Reply {
        let count = records.iter().filter(|record| self.put_back_one(record)).count();
        Reply::Count(count as u64)
    }

    fn put_back_one(&mut self, record: &TaskRecord) -> bool {
        if record.progress.cancelled().is_some() {
            return false;
        }
        let mut record = record.clone();
        record.progress.forget_text();
        let record = &record;
        let place = Place::of(record);
        if record.lane.is_some() && (!self.homes.contains_key(&place) || self.has_ended(&place)) {
            return false;
        }
        if self.places.contains_key(&record.number) {
            // It was kept after the pop. If a client has brought it back since, it stays.
            let finished = matches!(
                self.task(record.number).progress.state,
                State::Zombie { .. } | State::Done
            );
            if finished {
                self.shift(record.number, State::Ready);
                let batch = self.join_again(record.number, record.batch());
                self.task_mut(record.number).set_batch(batch);
                self.refund(record);
                self.expire_if_over(record.number);
            }
            return finished;
        }
        self.tell_emptied(|number| number == record.number);
        let fits = match (self.settings(&place).ids, &record.id) {
            (Ids::Sequence, id) => *id == TaskId::Number(record.number),
            (Ids::Time64, TaskId::Number(_))
            | (Ids::Uuid, TaskId::Uuid(_))
            | (Ids::Given, TaskId::Given(_)) => true,
            _ => false,
        };
        let same_id = |task: &TaskRecord| task.id == record.id;
        let is_taken = self.homes.get(&place).is_some_and(|home| home.tasks.values().any(same_id));
        if !fits || is_taken {
            return false;
        }
        let mut task = TaskRecord {
            progress: Progress { state: State::Ready, ..record.clone().progress },
            ..record.clone()
        };
        self.forget_ending(&task);
        let batch = self.join_again(record.number, record.batch());
        task.set_batch(batch);
        self.age_as_before(&place, &mut task);
        self.note_due(super::time::due(&task));
        self.kept.put_back(&task);
        self.places.insert(task.number, place.clone());
        self.since.insert(task.number, self.now);
        let home = self.home(&place);
        home.tasks.insert(task.number, task);
        home.tally.enter_again();
        self.settle(&place);
        self.refund(record);
        self.totals.enter_again();
        self.claim_key(record.number);
        self.expire_if_over(record.number);
        true
    }

    fn expire_if_over(&mut self, number: u64) {
        if self.is_over(self.task(number)) {
            self.expire(number);
        }
    }

    /// Supplies the ids that the engine drew for the next tasks, by number. Predictable ids are not
    /// needed.
    pub fn foretell(&mut self, drawn: BTreeMap<u64, TaskId>) {
        self.bindings.drawn = drawn;
    }

    /// Returns the real id for an id that may be a placeholder, if it is known.
    #[must_use]
    pub fn resolve(&self, id: &TaskId) -> Option<TaskId> {
        self.bindings.resolve(id)
    }

    /// Whether the id of a task is still unknown.
    #[must_use]
    pub fn awaits_id(&self, number: u64) -> bool {
        self.places.contains_key(&number) && is_placeholder(&self.task(number).id)
    }

    /// Records the id that the server gave a task. Returns whether the id is new or equals the
    /// known one.
    pub fn bind(&mut self, number: u64, id: &TaskId) -> bool {
        let is_right = self.bindings.bind(number, id);
        if self.places.contains_key(&number) && is_placeholder(&self.task(number).id) {
            let task = self.task_mut(number);
            task.id = match task.id {
                TaskId::Given(_) => TaskId::Given(id.to_string().into_bytes().into()),
                _ => id.clone(),
            };
        }
        // It may have gone elsewhere as a dead letter in the call that put it.
        for task in self.homes.values_mut().flat_map(|home| home.tasks.values_mut()) {
            let origin = task.past.as_mut().and_then(|past| past.origin.as_mut());
            if let Some(origin) = origin.filter(|origin| number_of(&origin.id) == Some(number)) {
                origin.id = id.clone();
            }
        }
        if let Some(window) = self.windows.get_mut(&number) {
            window.id = id.clone();
        }
        is_right
    }
}

impl super::Tally {
    /// Counts a task that has been popped and is ready again: X to R.
    fn enter_again(&mut self) {
        self.revived += 1;
        self.note(None, Some(StateKind::Ready));
    }
}
