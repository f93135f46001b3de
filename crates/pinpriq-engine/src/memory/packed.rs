//! The layout of a task in memory: 56 bytes in addition to its payload.
//!
//! Fields that most tasks do not need take no room. A ready task that was never taken, without key,
//! TTL and the like, is only this struct; a TTR of whole seconds, as beanstalkd's clients give one
//! to each job, has its place in it too. The other fields are in a separate allocation, made when
//! it is first needed. The parts that leave the engine are described at [`TaskRecord`]. This module
//! knows nothing about the meaning of a task.

mod besides;
mod birth;
mod rare;

use self::besides::{Besides, past};
use self::birth::Birth;
use crate::memory::payloads::{Kept, Payloads};
use crate::memory::ranked::Rank;
use crate::memory::slots::QueueSlot;
use pinpriq_proto::change::{Change, Granted, Moved, Place, Publication};
use pinpriq_proto::limits::NARROW_PAYLOAD_BYTES_MAX;
use pinpriq_proto::task::{
    Aged, Away, Bytes, COST_USUAL, Counts, GivenTerms, LaneName, Lease, Past, Progress, State,
    StateKind, TaskId, TaskRecord, Terms, Trace, history,
};
use pinpriq_proto::time::{Span, Timestamp};

/// How much of a task must be reported to the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Unsaved {
    /// Nothing.
    Nothing,
    /// Only that a lease was granted.
    Grant,
    /// Its progress.
    Progress,
    /// All of it.
    Whole,
}

/// See the start of this file.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The number in the lower bytes, and the flags in the highest byte.
    number_and_flags: u64,
    /// The length of the payload, wherever it is.
    payload_bytes: u32,
    /// The index of the payload, or its checksum if it was left in the store.
    payload_index: u32,
    /// The fields that only some tasks need.
    besides: Option<Box<Besides>>,
    birth: Birth,
    /// Where the store keeps its newest whole record.
    place: Option<Place>,
    pub(crate) queue: QueueSlot,
    /// The epoch of the queue when the task entered. If the queue has another epoch now, it was
    /// emptied since, and the task only waits for its memory to be freed.
    pub(crate) epoch: u32,
    /// The priority, if there is one and it fits into this field, with a sign or without.
    small_priority: i32,
}

/// What a task is made of that was just put.
#[derive(Debug)]
pub(crate) struct NewTask {
    pub(crate) number: u64,
    pub(crate) queue: QueueSlot,
    pub(crate) epoch: u32,
    pub(crate) id: TaskId,
    pub(crate) put_at: Timestamp,
    pub(crate) terms: Terms,
    pub(crate) priority: Option<i64>,
    pub(crate) expires_at: Option<Timestamp>,
    /// The end of its delay, if it has one.
    pub(crate) ready_at: Option<Timestamp>,
    pub(crate) payload: Kept,
}

/// The highest number. At ten million tasks a second, it is reached after some two hundred years.
const NUMBER_MAX: u64 = (1 << 56) - 1;

/// The flags are bits of the highest byte. The lowest two bits hold an [`Unsaved`].
const UNSAVED_SHIFT: u32 = 56;
const UNSAVED_BITS: u64 = 3 << UNSAVED_SHIFT;
const RECORDED: u64 = 1 << 58;
const SHARES: u64 = 1 << 59;
const SMALL_PRIORITY: u64 = 1 << 60;
const LARGE_PRIORITY: u64 = 1 << 61;
/// Together they say that the field of the task has a priority without a sign.
const UNSIGNED_PRIORITY: u64 = SMALL_PRIORITY | LARGE_PRIORITY;
const PAYLOAD_AWAY: u64 = 1 << 62;
const PAYLOAD_SMALL: u64 = 1 << 63;

static READY: State = State::Ready;

/// The name of the queue of a task, and for a lane, its member.
#[derive(Clone, Copy)]
pub(crate) struct Names<'q> {
    pub(crate) queue: &'q Bytes,
    pub(crate) lane: Option<&'q LaneName>,
}

impl Task {
    /// Creates a task that the store does not know yet.
    ///
    /// # Panics
    /// If the number is above [`NUMBER_MAX`].
    pub(crate) fn new(new: NewTask) -> Self {
        assert!(new.number <= NUMBER_MAX, "number {} is beyond the last", new.number);
        let mut task = Self {
            number_and_flags: new.number,
            payload_bytes: 0,
            payload_index: 0,
            besides: None,
            birth: Birth::at(new.put_at),
            place: None,
            queue: new.queue,
            epoch: new.epoch,
            small_priority: 0,
        };
        task.put_payload(new.payload);
        if new.id != TaskId::Number(new.number) {
            task.besides_mut().own_id = Some(new.id);
        }
        task.set_terms(new.terms);
        task.set_priority(new.priority);
        task.set_expires_at(new.expires_at);
        if let Some(ready_at) = new.ready_at {
            task.set_state(State::Waiting { ready_at: Some(ready_at) });
            task.set_delay(ready_at.since(new.put_at));
        }
        task
    }

    /// Creates a task from its record, with its payload already kept. The store does not know it
    /// yet.
    pub(crate) fn of(record: TaskRecord, payload: Kept, queue: QueueSlot, epoch: u32) -> Self {
        let mut task = Self::new(NewTask {
            number: record.number,
            queue,
            epoch,
            id: record.id,
            put_at: record.put_at,
            terms: record.terms,
            priority: None,
            expires_at: None,
            ready_at: None,
            payload,
        });
        task.set_progress(record.progress);
        if let Some(past) = record.past {
            task.set_origin(past.origin.map(Box::new));
            task.set_scheduled(past.scheduled.map(Box::new));
            task.set_unique_key(past.unique);
        }
        task
    }

    /// Makes it a new task with the same payload, for another queue. The store does not know it
    /// yet. A task that shared its payload has it alone from now on.
    pub(crate) fn renew(&mut self, number: u64, id: TaskId, queue: QueueSlot, epoch: u32) {
        assert!(number <= NUMBER_MAX, "number {number} is beyond the last");
        let kept = self.number_and_flags & (UNSIGNED_PRIORITY | PAYLOAD_AWAY | PAYLOAD_SMALL);
        self.number_and_flags = number | kept;
        (self.queue, self.epoch) = (queue, epoch);
        if let Some(besides) = &mut self.besides {
            (besides.seq, besides.own_id, besides.armed) = (number, None, None);
        }
        self.set_unique_key(None);
        self.set_counts(Counts::NONE);
        if self.after().is_none() {
            self.set_delay(Span::ZERO);
        }
        self.set_aged(Aged::NONE);
        self.set_progress_text(None);
        if id != TaskId::Number(number) {
            self.besides_mut().own_id = Some(id);
        }
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number_and_flags & NUMBER_MAX
    }

    pub(crate) fn seq(&self) -> u64 {
        self.besides.as_ref().map_or_else(|| self.number(), |besides| besides.seq)
    }

    pub(crate) fn set_seq(&mut self, seq: u64) {
        if seq != self.seq() {
            self.besides_mut().seq = seq;
        }
    }

    pub(crate) fn priority(&self) -> Option<i64> {
        match self.number_and_flags & UNSIGNED_PRIORITY {
            0 => None,
            SMALL_PRIORITY => Some(i64::from(self.small_priority)),
            UNSIGNED_PRIORITY => Some(i64::from(self.small_priority.cast_unsigned())),
            _ => self.besides.as_ref().map(|besides| besides.large_priority),
        }
    }

    #[inline]
    pub(crate) fn set_priority(&mut self, priority: Option<i64>) {
        self.mark(UNSIGNED_PRIORITY, false);
        self.small_priority = 0;
        let Some(priority) = priority else { return };
        if let Ok(small) = i32::try_from(priority) {
            self.small_priority = small;
            self.mark(SMALL_PRIORITY, true);
        } else if let Ok(unsigned) = u32::try_from(priority) {
            self.small_priority = unsigned.cast_signed();
            self.mark(UNSIGNED_PRIORITY, true);
        } else {
            self.besides_mut().large_priority = priority;
            self.mark(LARGE_PRIORITY, true);
        }
    }

    /// When it was put.
    #[inline]
    pub(crate) const fn put_at(&self) -> Timestamp {
        self.birth.put_at()
    }

    pub(crate) fn set_put_at(&mut self, put_at: Timestamp) {
        self.birth = self.birth.moved(put_at);
    }

    /// The terms that its producer set for good.
    #[inline]
    pub(crate) fn terms(&self) -> Terms {
        match &self.besides {
            Some(besides) => besides.terms(self.birth.ttr()),
            None => Terms::of(None, self.birth.ttr()),
        }
    }

    #[inline]
    pub(crate) fn set_terms(&mut self, terms: Terms) {
        let ttr = self.birth.keep_ttr(terms.ttr);
        let is_any = terms.key.is_some() || ttr.is_some() || !terms.are_plain();
        if is_any || self.besides.is_some() {
            let besides = self.besides_mut();
            if besides.rare.is_some() || !terms.are_plain() {
                besides.set_extras(&terms);
            }
            (besides.key, besides.ttr) = (terms.key, ttr);
        }
    }

    /// Gives it those of its terms that few puts name.
    #[inline(never)]
    pub(crate) fn set_extras(&mut self, terms: &GivenTerms<'_>) {
        self.besides_mut().set_extras(terms);
    }

    pub(crate) fn key(&self) -> Option<&Bytes> {
        self.besides.as_ref().and_then(|besides| besides.key.as_ref())
    }

    /// On whose behalf it runs, if its put said that.
    pub(crate) fn share(&self) -> Option<&Bytes> {
        self.besides.as_ref().and_then(|besides| besides.share())
    }

    /// Its headers, if it has some.
    pub(crate) fn headers(&self) -> Option<&Bytes> {
        self.besides.as_ref().and_then(|besides| besides.headers())
    }

    pub(crate) fn headers_bytes(&self) -> u64 {
        self.besides.as_ref().map_or(0, |besides| besides.headers_bytes() as u64)
    }

    /// The bytes of what few terms have.
    pub(crate) fn extras_bytes(&self) -> u64 {
        self.besides.as_ref().map_or(0, |besides| besides.extras_bytes() as u64)
    }

    /// What a take of it costs.
    pub(crate) fn cost(&self) -> u32 {
        self.besides.as_ref().map_or(COST_USUAL, |besides| besides.cost())
    }

    /// Returns its current progress.
    #[inline]
    pub(crate) fn progress(&self) -> Progress {
        let priority = self.priority();
        let Some(besides) = &self.besides else { return Progress::fresh(self.number(), priority) };
        let Besides { seq, expires_at, attempts, failures, delay, ref state, .. } = **besides;
        let (reason, state) = (besides.reason().cloned(), state.clone());
        let trace = besides.trace(delay);
        Progress { priority, seq, expires_at, attempts, failures, reason, trace, state }
    }

    #[inline]
    pub(crate) fn set_progress(&mut self, progress: Progress) {
        self.set_priority(progress.priority);
        if self.besides.is_some() || !progress.is_fresh(self.number()) {
            let Progress { priority: _, seq, expires_at, attempts, failures, .. } = progress;
            let Progress { reason, trace, state, .. } = progress;
            let besides = self.besides_mut();
            (besides.seq, besides.expires_at) = (seq, expires_at);
            (besides.attempts, besides.failures) = (attempts, failures);
            besides.state = state;
            besides.set_reason(reason);
            match trace {
                Some(trace) => besides.set_trace(*trace),
                None if besides.rare.is_some() => besides.set_trace(Trace::NONE),
                None => besides.delay = Span::ZERO,
            }
        }
    }

    /// Where the payload is kept in memory, unless it was left in the store.
    pub(crate) const fn payload(&self) -> Option<Kept> {
        if self.has(PAYLOAD_AWAY) {
            return None;
        }
        Some(Kept::of((self.payload_bytes, self.payload_index, self.has(PAYLOAD_SMALL))))
    }

    /// The length of the payload in bytes, wherever it is.
    pub(crate) const fn payload_bytes(&self) -> usize {
        self.payload_bytes as usize
    }

    /// Whether the payload could be left in the store: it is in memory, it is not shared, and the
    /// store has a record of the task.
    pub(crate) fn can_leave_payload(&self) -> bool {
        !self.has(PAYLOAD_AWAY) && !self.shares() && self.place().is_some()
    }

    /// Records that the payload was left in the store. Returns where it was kept in memory.
    pub(crate) fn leave_payload(&mut self, checksum: u32) -> Option<Kept> {
        let former = self.payload();
        self.mark(PAYLOAD_AWAY, true);
        self.payload_index = checksum;
        former
    }

    /// Records that the payload is in memory again.
    pub(crate) fn bring_back_payload(&mut self, payload: Kept) {
        self.put_payload(payload);
    }

    /// How to find the payload, if it was left in the store.
    fn away(&self) -> Option<Away> {
        if !self.has(PAYLOAD_AWAY) {
            return None;
        }
        let place = self.place()?;
        Some(Away { place, bytes: self.payload_bytes, checksum: self.payload_index })
    }

    /// Gives the task a payload of its own. Returns where the former one was kept.
    pub(crate) fn replace_payload(&mut self, payload: Kept) -> Option<Kept> {
        let former = self.payload();
        self.put_payload(payload);
        self.mark(SHARES, false);
        former
    }

    fn put_payload(&mut self, payload: Kept) {
        let is_small;
        (self.payload_bytes, self.payload_index, is_small) = payload.parts();
        self.mark(PAYLOAD_SMALL, is_small);
        self.mark(PAYLOAD_AWAY, false);
    }

    /// Gives the task the terms of the publication that its number belongs to, whose payload is
    /// kept at `payload`. Returns where the former payload was kept.
    pub(crate) fn adopt(&mut self, published: &Publication, payload: Kept) -> Option<Kept> {
        let former = self.replace_payload(payload);
        self.set_terms(published.terms.clone());
        self.set_shares(true);
        former
    }

    /// Whether terms and payload are still those of the publication of this number.
    pub(crate) const fn shares(&self) -> bool {
        self.has(SHARES)
    }

    pub(crate) const fn set_shares(&mut self, shares: bool) {
        self.mark(SHARES, shares);
    }

    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        self.besides.as_ref().and_then(|besides| besides.expires_at)
    }

    #[inline]
    pub(crate) fn set_expires_at(&mut self, expires_at: Option<Timestamp>) {
        if expires_at != self.expires_at() {
            self.besides_mut().expires_at = expires_at;
        }
    }

    /// Its own time to release.
    pub(crate) fn ttr(&self) -> Option<Span> {
        self.birth.ttr().or_else(|| self.besides.as_ref().and_then(|besides| besides.ttr))
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.besides.as_ref().map_or(0, |besides| besides.attempts)
    }

    pub(crate) fn set_attempts(&mut self, attempts: u32) {
        if attempts != self.attempts() {
            self.besides_mut().attempts = attempts;
        }
    }

    pub(crate) fn failures(&self) -> u32 {
        self.besides.as_ref().map_or(0, |besides| besides.failures)
    }

    /// Sets them. A task that begins again holds nothing back.
    pub(crate) fn set_failures(&mut self, failures: u32) {
        if failures == 0 {
            self.set_held(false);
        }
        if failures != self.failures() {
            self.besides_mut().failures = failures;
        }
    }

    pub(crate) fn state(&self) -> &State {
        self.besides.as_ref().map_or(&READY, |besides| &besides.state)
    }

    pub(crate) fn set_state(&mut self, state: State) {
        if self.besides.is_some() || state != State::Ready {
            self.besides_mut().state = state;
        }
    }

    /// When the state began, if that was not the put, and since the server has started.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.besides.as_ref().and_then(|besides| besides.since)
    }

    /// Since when a ready task is ready, or at the latest since when it is in the queue.
    #[inline]
    pub(crate) fn ready_since(&self) -> Timestamp {
        self.since().unwrap_or_else(|| self.put_at())
    }

    /// Notes that the state has begun now. A task that is ready since its put needs no note.
    #[inline]
    pub(crate) fn note_since(&mut self, now: Timestamp) {
        if let Some(besides) = &mut self.besides {
            besides.since = Some(now);
        }
    }

    /// Notes that the state has begun now, whatever room that takes.
    pub(crate) fn set_since(&mut self, now: Timestamp) {
        self.besides_mut().since = Some(now);
    }

    /// The lease, if the task is taken.
    pub(crate) fn lease(&self) -> Option<&Lease> {
        match self.state() {
            State::Taken(lease) => Some(lease),
            _ => None,
        }
    }

    /// Like [`Self::lease`], but mutable.
    pub(crate) fn lease_mut(&mut self) -> Option<&mut Lease> {
        match &mut self.besides.as_mut()?.state {
            State::Taken(lease) => Some(lease),
            _ => None,
        }
    }

    /// The moment under which the task is in the index of deadlines.
    pub(crate) fn armed(&self) -> Option<Timestamp> {
        self.besides.as_ref().and_then(|besides| besides.armed)
    }

    pub(crate) fn set_armed(&mut self, armed: Option<Timestamp>) {
        if armed != self.armed() {
            self.besides_mut().armed = armed;
        }
    }

    /// Where the store keeps its newest whole record.
    pub(crate) const fn place(&self) -> Option<Place> {
        self.place
    }

    /// Sets the place of the newest whole record. Returns the former place.
    pub(crate) const fn replace_place(&mut self, place: Option<Place>) -> Option<Place> {
        std::mem::replace(&mut self.place, place)
    }

    /// Whether a whole record was ever reported. If so, the end of the task must be reported too.
    pub(crate) const fn is_recorded(&self) -> bool {
        self.has(RECORDED)
    }

    pub(crate) const fn set_recorded(&mut self) {
        self.mark(RECORDED, true);
    }

    pub(crate) const fn unsaved(&self) -> Unsaved {
        match (self.number_and_flags & UNSAVED_BITS) >> UNSAVED_SHIFT {
            0 => Unsaved::Nothing,
            1 => Unsaved::Grant,
            2 => Unsaved::Progress,
            _ => Unsaved::Whole,
        }
    }

    /// Notes that the store knows all of it.
    pub(crate) const fn set_saved(&mut self) {
        self.number_and_flags = self.number_and_flags & !UNSAVED_BITS | RECORDED;
    }

    pub(crate) const fn set_unsaved(&mut self, unsaved: Unsaved) {
        self.number_and_flags &= !UNSAVED_BITS;
        self.number_and_flags |= (unsaved as u64) << UNSAVED_SHIFT;
    }

    /// Whether its payload is small enough for every door.
    pub(crate) fn is_narrow(&self) -> bool {
        self.payload_bytes() <= NARROW_PAYLOAD_BYTES_MAX
    }

    /// Whether its time to live has passed.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at().is_some_and(|at| now >= at)
    }

    /// The next moment at which time changes this task: its TTL applies in R and W, its delay in W,
    /// its lease in T, and the end of its stay in Z.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        let besides = self.besides.as_ref()?;
        match &besides.state {
            State::Ready => besides.expires_at,
            State::Waiting { ready_at } => {
                let ends = [*ready_at, besides.expires_at];
                ends.into_iter().flatten().min()
            }
            State::Taken(lease) => lease.deadline,
            State::Zombie { purge_at } => Some(*purge_at),
            State::Buried(_) | State::Done => None,
        }
    }

    /// The name of the task within its queue.
    pub(crate) fn id(&self) -> TaskId {
        let own = self.besides.as_ref().and_then(|besides| besides.own_id.clone());
        own.unwrap_or_else(|| TaskId::Number(self.number()))
    }

    /// Its number, if that is its id and it has no reason.
    #[inline]
    pub(crate) fn plain_number(&self) -> Option<u64> {
        let is_plain = |besides: &Besides| besides.own_id.is_none() && besides.reason().is_none();
        self.besides.as_deref().is_none_or(is_plain).then(|| self.number())
    }

    /// Its place in the order of selection, if it has a priority.
    pub(crate) fn rank(&self) -> Option<Rank> {
        self.priority().map(|priority| (priority, self.seq()))
    }

    /// The state without its data.
    pub(crate) fn kind(&self) -> StateKind {
        self.state().kind()
    }

    /// The number of bytes that it counts in statistics: what the client passed in.
    pub(crate) fn content_bytes(&self) -> u64 {
        (self.payload_bytes() + self.key().map_or(0, |key| key.len())) as u64
    }

    /// The number of bytes of memory that only this task occupies, without its bookkeeping.
    #[inline]
    pub(crate) fn own_bytes(&self) -> u64 {
        let is_elsewhere = self.shares() || self.has(PAYLOAD_AWAY);
        let payload = if is_elsewhere { 0 } else { self.payload_bytes() };
        let besides = self.besides.as_ref();
        payload as u64 + besides.map_or(0, |besides| besides.own_bytes(self.shares()))
    }

    /// Like [`Self::own_bytes`], but with a payload of its own of `payload` bytes and a reason of
    /// `reason` bytes.
    pub(crate) fn own_bytes_with(&self, payload: usize, reason: usize) -> u64 {
        let besides = self.besides.as_ref().map_or(0, |besides| besides.own_bytes(false));
        besides - self.reason_bytes() + (payload + reason) as u64
    }

    /// The length of the payload in bytes if it was left in the store, or else 0.
    pub(crate) fn away_bytes(&self) -> u64 {
        if self.has(PAYLOAD_AWAY) { self.payload_bytes() as u64 } else { 0 }
    }

    /// The bytes that its attempts count.
    pub(crate) fn history_bytes(&self) -> u64 {
        self.history().map_or(0, |attempts| history::bytes(attempts) as u64)
    }

    /// The length of its checkpoint.
    pub(crate) fn checkpoint_bytes(&self) -> u64 {
        self.checkpoint().map_or(0, |checkpoint| checkpoint.len() as u64)
    }

    /// The length of the reason.
    pub(crate) fn reason_bytes(&self) -> u64 {
        self.reason().map_or(0, |reason| reason.len() as u64)
    }

    /// Whether nothing has happened to it since it was published.
    pub(crate) fn is_as_published(&self, published: &Publication) -> bool {
        let is_plain = self.besides.as_ref().is_none_or(|besides| {
            besides.seq == self.number()
                && besides.own_id.is_none()
                && besides.attempts == 0
                && besides.failures == 0
                && besides.delay.is_zero()
                && besides.has_no_past()
                && besides.state == State::Ready
        });
        is_plain
            && self.shares()
            && self.priority() == published.priority
            && self.expires_at() == published.expires_at
    }

    /// The record of the task as it leaves the engine.
    #[inline(never)]
    pub(crate) fn record(&self, queue: Names<'_>, payloads: &Payloads) -> TaskRecord {
        TaskRecord {
            number: self.number(),
            queue: queue.queue.clone(),
            lane: queue.lane.cloned(),
            id: self.id(),
            put_at: self.put_at(),
            terms: self.terms(),
            progress: self.progress(),
            past: self.past(),
            payload: self.payload_to_show(payloads),
            away: self.away(),
            shared: false,
        }
    }

    /// The record of the task for the store. A lane is known by its number, shared fields are left
    /// out, and a lease has no holder since no holder outlives the server.
    #[inline]
    fn record_to_keep(&self, queue: Names<'_>, payloads: &Payloads) -> TaskRecord {
        let is_shared = self.shares();
        TaskRecord {
            number: self.number(),
            queue: if queue.lane.is_none() { queue.queue.clone() } else { Bytes::default() },
            lane: queue.lane.map(|lane| LaneName::numbered(lane.number)),
            id: self.id(),
            put_at: self.put_at(),
            terms: if is_shared { Terms::NONE } else { self.terms() },
            progress: self.progress_to_keep(),
            past: self.past(),
            payload: if is_shared { Bytes::default() } else { self.payload_to_show(payloads) },
            away: self.away(),
            shared: is_shared,
        }
    }

    #[inline]
    fn past(&self) -> Option<Box<Past>> {
        let rare = self.besides.as_ref()?.rare.as_ref()?;
        past(rare)
    }

    fn progress_to_keep(&self) -> Progress {
        // Most tasks of which the store has to hear all were just put.
        if self.besides.is_none() {
            return Progress::fresh(self.number(), self.priority());
        }
        let mut progress = self.progress();
        if let State::Taken(lease) = &progress.state
            && lease.is_unstarted()
        {
            // To the store it was never delivered.
            progress.state = State::Ready;
            progress.attempts = progress.attempts.saturating_sub(1);
        }
        progress.to_keep()
    }

    /// The change that reports what the store does not know yet.
    #[inline(never)]
    pub(crate) fn unsaved_change(&self, queue: Names<'_>, payloads: &Payloads) -> Option<Change> {
        match (self.unsaved(), self.state()) {
            (Unsaved::Nothing, _) => None,
            (Unsaved::Whole, _) => {
                Some(Change::Task(Box::new(self.record_to_keep(queue, payloads))))
            }
            (Unsaved::Grant, State::Taken(lease)) if !lease.is_unstarted() => {
                let Lease { grant, deadline, ttr, .. } = lease.to_keep();
                Some(Change::Granted(Granted {
                    number: self.number(),
                    incarnation: grant.incarnation,
                    serial: grant.serial,
                    deadline,
                    ttr,
                    attempts: self.attempts(),
                }))
            }
            (Unsaved::Grant | Unsaved::Progress, _) => {
                let (number, progress) = (self.number(), self.progress_to_keep());
                Some(Change::Moved(Box::new(Moved { number, progress })))
            }
        }
    }

    fn payload_to_show(&self, payloads: &Payloads) -> Bytes {
        self.payload().map_or_else(Bytes::default, |kept| payloads.bytes(kept))
    }

    const fn has(&self, flag: u64) -> bool {
        self.number_and_flags & flag != 0
    }

    const fn mark(&mut self, flag: u64, set: bool) {
        if set {
            self.number_and_flags |= flag;
        } else {
            self.number_and_flags &= !flag;
        }
    }

    #[inline]
    fn besides_mut(&mut self) -> &mut Besides {
        let number = self.number();
        self.besides.get_or_insert_with(|| Box::new(Besides::of(number)))
    }
}

#[cfg(test)]
mod tests;
