//! Persist before reply: the engine and its store as one, and the loop that joins them.
//!
//! A turn is any number of calls of [`Durable::apply`] and one of [`Durable::commit`], which hands
//! the store everything that the turn changed as one atomic batch. [`Durable::poll_output`] returns
//! each output with the position that it must wait for. The caller sends it once
//! [`Durable::reached`] has come that far. No command decides for itself when it is durable.
//!
//! This is all that an embedder needs. There is no socket, no clock and no thread besides those of
//! the store.

mod holds;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use pinpriq_engine::{Applied, Engine};
use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::command::Command;
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::schedule::Calendars;
use pinpriq_proto::shares::SharesLook;
use pinpriq_proto::survey::{IsInUse, QueueNews};
use pinpriq_proto::task::history::Clients;
use pinpriq_proto::task::{
    Away, Bytes, ClientId, Farewell, RequestId, StateKind, payload_checksum,
};
use pinpriq_proto::time::{Span, Timestamp};

use crate::store::{
    Extent, Figures, Loaded, Position, Rewrite, Room, Store, StoreError, TaskCounts, Urgency,
};
use crate::takeover;

pub use holds::{Holds, Wanted};

/// A position that no store reaches.
const NEVER: Position = Position(u64::MAX);

/// An engine and its store that were loaded and have changed nothing yet.
pub struct Loading {
    engine: Engine,
    store: Box<dyn Store>,
    loaded: Loaded,
}

impl Loading {
    /// Loads what the store holds; see [`Durable::open`]. Changes nothing in the store.
    pub fn load(mut store: Box<dyn Store>, limits: Limits, seed: u64) -> Result<Self, StoreError> {
        let mut engine = Engine::new(limits, seed);
        let mut loaded = store.load(&mut |change, place| engine.restore(change, place))?;
        if let Some(carried) = loaded.carried.take() {
            engine.set_carried(carried);
        }
        Ok(Self { engine, store, loaded })
    }

    /// Sets what computes the slots of schedules: see [`Engine::set_calendars`].
    #[must_use]
    pub fn with_calendars(mut self, calendars: Arc<dyn Calendars>) -> Self {
        self.engine.set_calendars(calendars);
        self
    }

    /// Begins a new incarnation: see [`Durable::open`].
    pub fn open(self, now: Timestamp) -> Result<(Durable, Loaded), StoreError> {
        let loaded = self.loaded.clone();
        let incarnation = loaded.header.incarnation + 1;
        let durable = self.begin(now.max(loaded.header.now), incarnation)?;
        Ok((durable, loaded))
    }

    /// What was loaded.
    #[must_use]
    pub const fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// The moment at which the time line goes on, by a wall clock. After a take-over it does not
    /// leap further than time has passed, if it is known how much that is: see
    /// [`takeover::moment`].
    #[must_use]
    pub fn moment(&self, wall: Timestamp, since: Option<Span>) -> Timestamp {
        let since = since.filter(|_| self.loaded.is_takeover);
        takeover::moment(self.loaded.header.now, wall, since)
    }

    /// Begins this incarnation at the moment `now`. Shards that serve together begin the same
    /// incarnation, after all of them have loaded. The moment and the incarnation must not be
    /// before what the store knows: see [`Loading::moment`]. Leases go on after a take-over: see
    /// [`Engine::set_grace`]. Blocks until the beginning is durable.
    pub fn begin(self, now: Timestamp, incarnation: u64) -> Result<Durable, StoreError> {
        let Self { mut engine, mut store, loaded } = self;
        if loaded.is_takeover {
            engine.set_grace(takeover::GRACE);
        }
        let latest = loaded.header;
        let last_number = latest.last_number;
        // Places that loading found replaced or gone are given back before the log grows again.
        // Those of tasks that end at the start follow with the first batch.
        let mut obsolete = Vec::new();
        engine.take_obsolete(&mut obsolete);
        for place in obsolete.drain(..) {
            store.obsolete(place);
        }
        engine.start(now, incarnation, latest);
        let confirms = store.may_be_taken_over();
        let mut durable = Durable {
            engine,
            store,
            awaited: Position::default(),
            awaited_by_takes: Position::default(),
            reached: Position::default(),
            numbers: VecDeque::new(),
            settled_number: last_number,
            failure: None,
            refusals: VecDeque::new(),
            held: VecDeque::new(),
            reading: Vec::new(),
            at_hand: BTreeMap::new(),
            leaving: VecDeque::new(),
            changes: Vec::new(),
            placed: Vec::new(),
            obsolete,
            confirms,
            owes_append: false,
        };
        durable.store.begin(&Header { incarnation, now, last_number })?;
        if !durable.store.keeps_changes() {
            durable.engine.stop_reporting();
        }
        durable.commit()?;
        durable.store.finish(now)?;
        durable.drive(now)?;
        Ok(durable)
    }
}

/// An engine whose changes become durable.
pub struct Durable {
    engine: Engine,
    store: Box<dyn Store>,
    /// The last batch that any output may have to wait for.
    awaited: Position,
    /// The last batch that every take has to wait for.
    awaited_by_takes: Position,
    reached: Position,
    /// The last number known to each batch under way.
    numbers: VecDeque<(Position, u64)>,
    /// Tasks up to this number were durable once, if they were put.
    settled_number: u64,
    failure: Option<StoreError>,
    /// Replies of this layer itself, given after a failure.
    refusals: VecDeque<Output>,
    /// Outputs whose payloads are kept readable.
    held: VecDeque<(Output, Holds)>,
    /// The tasks whose payloads are being read back.
    reading: Vec<(u64, Away)>,
    /// Payloads that the store returned with the records that it wants written again.
    at_hand: BTreeMap<Place, Bytes>,
    /// Tasks whose payloads may be left in the store once their record has been reached.
    leaving: VecDeque<(Position, u64, Place)>,
    changes: Vec<Change>,
    placed: Vec<(usize, Place)>,
    obsolete: Vec<Place>,
    /// See [`Store::may_be_taken_over`].
    confirms: bool,
    /// Whether an answer of this turn has to wait for an append though nothing may have changed.
    owes_append: bool,
}

impl Durable {
    /// Loads what the store holds and begins a new incarnation at the moment `now`, or at the
    /// latest moment that the store knows, whichever is later. [`Durable::now`] returns that
    /// moment.
    ///
    /// `seed` makes generated uuids differ from those of other servers. Costs O(n log n) in the
    /// number of tasks, and blocks until the beginning is durable.
    pub fn open(
        store: Box<dyn Store>,
        limits: Limits,
        now: Timestamp,
        seed: u64,
    ) -> Result<(Self, Loaded), StoreError> {
        Loading::load(store, limits, seed)?.open(now)
    }

    /// Notes that every shard that serves together with this one has begun: see
    /// [`Store::all_begun`].
    pub fn all_begun(&mut self) -> Result<(), StoreError> {
        let header = self.engine.header();
        let begun = self.store.all_begun(&header);
        self.note_failure(begun)
    }

    /// Carries out one command; see [`Engine::apply`]. After a failure of the store every command
    /// is refused with STORE, since what is in memory may be ahead of what is on disk.
    #[inline]
    pub fn apply(
        &mut self,
        now: Timestamp,
        client: ClientId,
        request: RequestId,
        command: &Command<'_>,
    ) -> Applied {
        if self.failure.is_some() {
            return self.refuse(client, request);
        }
        if self.confirms {
            self.owes_append |= command.is_change();
        }
        self.engine.apply(now, client, request, command)
    }

    /// Refuses a command because the store has failed.
    #[cold]
    fn refuse(&mut self, client: ClientId, request: RequestId) -> Applied {
        let failure = self.failure.as_ref().map(StoreError::to_string).unwrap_or_default();
        let reply = Reply::Refused(Refusal::new(RefusalKind::Store, failure));
        self.refusals.push_back(Output::Reply { client, request, reply });
        Applied::Refused(RefusalKind::Store)
    }

    /// See [`Engine::disconnect`].
    pub fn disconnect(&mut self, now: Timestamp, client: ClientId, farewell: Farewell<'_>) {
        if self.failure.is_none() {
            self.engine.disconnect(now, client, farewell);
        }
    }

    /// See [`Engine::end_waits`].
    pub fn end_waits(&mut self, now: Timestamp, client: ClientId) {
        if self.failure.is_none() {
            self.engine.end_waits(now, client);
        }
    }

    /// See [`Engine::handle_timeout`].
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if self.failure.is_none() {
            self.engine.handle_timeout(now);
        }
    }

    /// See [`Engine::look_at_shares`].
    pub fn look_at_shares(&mut self, now: Timestamp, queue: &[u8]) -> SharesLook {
        match self.failure {
            None => self.engine.look_at_shares(now, queue),
            Some(_) => SharesLook::Nothing,
        }
    }

    /// Ends a turn: hands the store everything that has changed. Does not wait for a disk if the
    /// store has a thread of its own.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        self.check_failure()?;
        self.hold_outputs()?;
        self.engine.take_changes(&mut self.changes);
        let only_grants = self.changes.iter().all(|change| matches!(change, Change::Granted(_)));
        let stirred = self.engine.take_stirred() || self.changes.iter().any(concerns_takes);
        let is_lazy = only_grants && !self.confirms;
        self.append(if is_lazy { Urgency::Lazy } else { Urgency::Soon })?;
        if stirred || self.confirms {
            self.awaited_by_takes = self.awaited;
        }
        Ok(())
    }

    /// Notes the cuts of the log that other threads have asked for: see
    /// [`Journal::tapped_by`](crate::Journal::tapped_by). Call it in every turn, before
    /// [`Durable::drive`]. Costs next to nothing while nobody asks.
    #[inline]
    pub fn answer_cuts(&mut self, now: Timestamp) -> Result<(), StoreError> {
        if self.store.has_cut_request() { self.note_cuts(now) } else { Ok(()) }
    }

    #[inline(never)]
    fn note_cuts(&mut self, now: Timestamp) -> Result<(), StoreError> {
        // What was applied so far belongs to them.
        self.commit()?;
        let noted = self.store.note_cuts(now);
        self.note_failure(noted)
    }

    /// Notes what the store has finished, starts what is due, and moves records that the store
    /// wants moved. Call it after a turn, when the store wakes its caller, and at
    /// [`Durable::poll_timeout`].
    pub fn drive(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.check_failure()?;
        let driven = self.store.drive(now);
        let progress = self.note_failure(driven)?;
        self.reached = progress.reached;
        while let Some((position, number)) = self.numbers.front()
            && *position <= self.reached
        {
            self.settled_number = *number;
            self.numbers.pop_front();
        }
        self.leave_payloads();
        let totals = self.engine.totals();
        let tasks =
            || TaskCounts { present: totals.in_any_state(), taken: totals.count(StateKind::Taken) };
        let room = self.store.room(&tasks);
        if room != Room::Enough {
            self.engine.set_shortage(self.store.shortage());
        }
        if self.engine.set_room(room) {
            self.commit()?;
        }
        let wanted = self.store.poll_rewrite();
        if wanted.is_empty() {
            return Ok(());
        }
        // The changes made earlier in this turn must not become as urgent, or as lazy, as these.
        self.commit()?;
        for Rewrite { key, place, payload } in wanted {
            self.engine.rewrite(&key, place);
            self.at_hand.extend(payload.map(|payload| (place, payload)));
        }
        self.engine.take_changes(&mut self.changes);
        let appended = self.append(Urgency::Lazy);
        self.at_hand.clear();
        appended
    }

    /// Returns the next output, and the position that it must wait for.
    ///
    /// An output depends on every change before it, including those of others, since it may reveal
    /// them. Only grants of leases do not count. A take reveals less, so it waits for less: for the
    /// tasks that it hands over, and for what decided the choice of these tasks. It need not wait
    /// for the puts of other tasks, nor for the end of other leases. Call this after
    /// [`Durable::commit`].
    ///
    /// Blocks to read back payloads that were left in the store; [`Durable::poll_held`] does not.
    pub fn poll_output(&mut self) -> Option<(Position, Output)> {
        let (position, mut output, holds) = self.poll_held()?;
        if let Err(error) = self.complete(&mut output, &holds) {
            // It must not leave without its payload, and nothing leaves after this.
            if let Output::Reply { reply, .. } = &mut output {
                *reply = Reply::Refused(Refusal::new(RefusalKind::Store, error.to_string()));
            }
        }
        Some((position, output))
    }

    /// Like [`Durable::poll_output`], but leaves payloads in the store that were left there. They
    /// stay readable as long as the returned [`Holds`] exists: see [`Durable::start_read`].
    pub fn poll_held(&mut self) -> Option<(Position, Output, Holds)> {
        let (position, _) = self.peek_held()?;
        let (output, holds) = self.pop_held()?;
        Some((position, output, holds))
    }

    /// The output that [`Durable::pop_held`] returns next, and the position that it must wait for.
    #[inline]
    pub fn peek_held(&mut self) -> Option<(Position, &Output)> {
        if !self.refusals.is_empty() {
            return self.refusals.front().map(|refusal| (Position::default(), refusal));
        }
        let output = if self.engine.leaves_payloads() {
            self.hold_next();
            self.held.front().map(|(output, _)| output)
        } else {
            self.engine.peek_output()
        };
        output.map(|output| (self.needs(output), output))
    }

    /// Returns the output that [`Durable::peek_held`] has shown. See [`Durable::poll_held`].
    #[inline]
    pub fn pop_held(&mut self) -> Option<(Output, Holds)> {
        if self.refusals.is_empty() && !self.engine.leaves_payloads() {
            return self.engine.poll_output().map(|output| (output, Holds::default()));
        }
        self.pop_unusual()
    }

    #[inline(never)]
    fn pop_unusual(&mut self) -> Option<(Output, Holds)> {
        let refusal = self.refusals.pop_front().map(|refusal| (refusal, Holds::default()));
        refusal.or_else(|| {
            self.hold_next();
            self.held.pop_front()
        })
    }

    /// Keeps the payloads of the next output readable, if that was not done yet.
    #[inline(never)]
    fn hold_next(&mut self) {
        if self.held.is_empty()
            && let Some(mut output) = self.engine.poll_output()
        {
            let holds = self.hold(&mut output);
            self.held.push_back((output, holds));
        }
    }

    /// Starts to read back payloads that were left in the store. The payloads of the last call must
    /// have been taken.
    pub fn start_read(&mut self, wanted: Vec<Wanted>) -> Result<(), StoreError> {
        self.check_failure()?;
        self.reading.clear();
        self.reading.extend(wanted.iter().map(|wanted| (wanted.number, wanted.away)));
        let job = wanted.into_iter().map(|wanted| (wanted.away.place, wanted.volume)).collect();
        let started = self.store.start_read(job);
        self.note_failure(started)
    }

    /// Returns the payloads that were read back, in the requested order, once they are available.
    /// With `wait` it blocks until they are. If the store does not return them unaltered, this
    /// fails, and nothing more is accepted.
    pub fn take_read(&mut self, wait: bool) -> Result<Option<Vec<Bytes>>, StoreError> {
        self.check_failure()?;
        let taken = self.store.take_read(wait);
        let Some(changes) = self.note_failure(taken)? else { return Ok(None) };
        let reading = std::mem::take(&mut self.reading);
        let payloads = reading.iter().zip(changes);
        let payloads = payloads.map(|((number, away), change)| payload_of(change, *number, *away));
        let payloads = payloads.collect();
        self.note_failure(payloads).map(Some)
    }

    /// See [`Store::answers_until`].
    #[must_use]
    pub fn answers_until(&self) -> Option<u64> {
        self.store.answers_until()
    }

    /// See [`Store::is_suspended`]. Without a store that may be taken over this costs nothing.
    #[must_use]
    #[inline]
    pub fn is_suspended(&self) -> bool {
        self.confirms && self.store.is_suspended()
    }

    /// See [`Store::is_down`]. Without a store that may be taken over this costs nothing.
    #[must_use]
    #[inline]
    pub fn is_down(&self) -> bool {
        self.confirms && self.store.is_down()
    }

    /// See [`Store::extent`].
    #[must_use]
    pub fn extent(&self) -> Option<Extent> {
        self.store.extent()
    }

    /// See [`Store::is_gathering`].
    #[must_use]
    pub fn is_gathering(&self) -> bool {
        self.store.is_gathering()
    }

    /// See [`Store::end_gathering`].
    pub fn end_gathering(&mut self) {
        self.store.end_gathering();
    }

    /// See [`Store::is_outpaced`].
    #[must_use]
    pub fn is_outpaced(&self) -> bool {
        self.store.is_outpaced()
    }

    /// See [`Reclaims::held_bytes`](crate::Reclaims::held_bytes).
    #[inline]
    pub fn held_bytes(&mut self) -> u64 {
        if self.engine.leaves_payloads() { self.store.held_bytes() } else { 0 }
    }

    /// The position that an output must wait for.
    fn needs(&self, output: &Output) -> Position {
        // The changes that it reveals may not even have been appended.
        if self.failure.is_some() {
            return NEVER;
        }
        // With nothing under way there is nothing to distinguish.
        if self.awaited <= self.reached {
            return self.awaited;
        }
        match output {
            Output::Reply { reply: Reply::Tasks { tasks, popped: false }, .. }
            | Output::Delivery { tasks, popped: false, .. }
                if tasks.iter().all(|task| task.number <= self.settled_number) =>
            {
                self.awaited_by_takes
            }
            _ => self.awaited,
        }
    }

    /// The position of the latest change, or one that is never reached if the store has failed.
    #[must_use]
    pub const fn awaited(&self) -> Position {
        if self.failure.is_some() { NEVER } else { self.awaited }
    }

    /// The position up to which every batch has reached its level.
    #[must_use]
    pub const fn reached(&self) -> Position {
        self.reached
    }

    /// When [`Durable::handle_timeout`] and [`Durable::drive`] must be called at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if self.failure.is_some() {
            return None;
        }
        match (self.engine.poll_timeout(), self.poll_drive()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// When [`Durable::drive`] must be called at the latest. That is all there is to do while time
    /// stands still for the engine.
    #[must_use]
    pub fn poll_drive(&self) -> Option<Timestamp> {
        if self.failure.is_some() { None } else { self.store.poll_timeout() }
    }

    /// The moment of the latest call.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.engine.now()
    }

    /// The engine, for reading.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// See [`Engine::set_clients`].
    pub fn set_clients(&mut self, clients: Arc<dyn Clients>) {
        self.engine.set_clients(clients);
    }

    /// See [`Engine::charge`].
    pub fn charge(&mut self, account: Option<&Bytes>) {
        self.engine.charge(account);
    }

    /// See [`Engine::take_charges`].
    pub fn take_charges(&mut self, changes: &mut Vec<(Bytes, i64)>) {
        self.engine.take_charges(changes);
    }

    /// See [`Engine::take_given_up`].
    pub fn take_given_up(&mut self) -> Vec<Bytes> {
        self.engine.take_given_up()
    }

    /// See [`Engine::keep_figures_while`].
    pub fn keep_figures_while(&mut self, is_in_use: IsInUse) {
        self.engine.keep_figures_while(is_in_use);
    }

    /// See [`Engine::keep_queue_news`].
    pub fn keep_queue_news(&mut self, most: usize) {
        self.engine.keep_queue_news(most);
    }

    /// See [`Engine::take_queue_news`].
    pub fn take_queue_news(&mut self) -> (Vec<QueueNews>, bool) {
        self.engine.take_queue_news()
    }

    /// See [`Store::may_be_taken_over`].
    #[must_use]
    pub const fn may_be_taken_over(&self) -> bool {
        self.confirms
    }

    /// Why the store accepts nothing, if it has failed.
    #[must_use]
    pub const fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// The bytes in memory that were not handed to the disk yet.
    #[must_use]
    pub fn pending_bytes(&self) -> u64 {
        self.store.pending_bytes()
    }

    /// The figures of the store.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.store.figures()
    }

    /// Makes everything durable and blocks until it is. The queue stays usable.
    pub fn finish(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.commit()?;
        let finished = self.store.finish(now);
        self.note_failure(finished)?;
        self.drive(now)
    }

    /// Like [`Durable::finish`], for an orderly stop. Nothing may be asked of it afterwards: see
    /// [`Store::close`].
    pub fn close(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.finish(now)?;
        if self.confirms {
            self.store.leave(&self.engine.carried());
        }
        let closed = self.store.close(now);
        self.note_failure(closed)
    }

    fn append(&mut self, urgency: Urgency) -> Result<(), StoreError> {
        let header = self.engine.header();
        let owes_append = std::mem::take(&mut self.owes_append);
        if !self.changes.is_empty() || owes_append {
            self.fetch_changes()?;
            let (changes, placed) = (&self.changes, &mut self.placed);
            let appended = self.store.append(&header, changes, urgency, &mut |index, place| {
                placed.push((index, place));
            });
            let position = self.note_failure(appended)?;
            let is_short = self.engine.is_short_of_memory();
            for (index, place) in self.placed.drain(..) {
                let change = &self.changes[index];
                self.engine.placed(change, place);
                if let Change::Task(record) = change
                    && is_short
                {
                    self.leaving.push_back((position, record.number, place));
                }
            }
            self.changes.clear();
            if urgency == Urgency::Soon {
                self.awaited = position;
                self.numbers.push_back((position, header.last_number));
            }
        }
        self.engine.take_obsolete(&mut self.obsolete);
        for place in self.obsolete.drain(..) {
            self.store.obsolete(place);
        }
        Ok(())
    }

    /// While memory is short, leaves payloads in the store whose records have been reached.
    fn leave_payloads(&mut self) {
        while let Some(&(position, number, place)) = self.leaving.front()
            && position <= self.reached
        {
            self.leaving.pop_front();
            if self.engine.is_short_of_memory() {
                self.engine.leave_payload(number, place);
            }
        }
    }

    /// Keeps the payloads of outputs readable. Call this before the places of removed tasks are
    /// given up.
    fn hold_outputs(&mut self) -> Result<(), StoreError> {
        if !self.engine.leaves_payloads() {
            return Ok(());
        }
        while let Some(mut output) = self.engine.poll_output() {
            let holds = self.hold(&mut output);
            self.held.push_back((output, holds));
        }
        self.check_failure()
    }

    /// Keeps the payloads of an output readable. If the store has failed, they are not.
    fn hold(&mut self, output: &mut Output) -> Holds {
        let mut holds = Holds::default();
        for away in output.tasks_mut().iter().filter_map(|task| task.away) {
            if holds.volume(away.place).is_some() {
                continue;
            }
            let volume = match &self.failure {
                Some(failure) => Err(failure.clone()),
                None => self.store.hold(away.place),
            };
            holds.add(away.place, self.note_failure(volume).ok());
        }
        holds
    }

    /// Reads back the payloads of one output.
    fn complete(&mut self, output: &mut Output, holds: &Holds) -> Result<(), StoreError> {
        for task in output.tasks_mut() {
            let Some(away) = task.away.take() else { continue };
            let Some(volume) = holds.volume(away.place) else { continue };
            let read = volume.read(away.place);
            let payload = read.and_then(|change| payload_of(change, task.number, away));
            task.payload = self.note_failure(payload)?;
        }
        Ok(())
    }

    /// Adds the payloads to records that are to be written again.
    fn fetch_changes(&mut self) -> Result<(), StoreError> {
        if !self.engine.leaves_payloads() {
            return Ok(());
        }
        let mut changes = std::mem::take(&mut self.changes);
        for change in &mut changes {
            let Change::Task(task) = change else { continue };
            let Some(away) = task.away.take() else { continue };
            let payload = match self.at_hand.remove(&away.place) {
                Some(payload) => check_payload(payload, task.number, away),
                None => self
                    .store
                    .hold(away.place)
                    .and_then(|volume| volume.read(away.place))
                    .and_then(|change| payload_of(change, task.number, away)),
            };
            task.payload = self.note_failure(payload)?;
        }
        self.changes = changes;
        Ok(())
    }

    fn check_failure(&self) -> Result<(), StoreError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn note_failure<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(failure) = &result {
            self.failure = Some(failure.clone());
        }
        result
    }
}

/// Whether a change, other than one about a single task, may decide what a take is handed.
const fn concerns_takes(change: &Change) -> bool {
    !matches!(
        change,
        Change::Task(_)
            | Change::Moved(_)
            | Change::Granted(_)
            | Change::Gone(_)
            | Change::Schedule(_)
            | Change::ScheduleMoved(_)
            | Change::ScheduleGone(_)
            | Change::Detail(_)
            | Change::DetailGone(..)
    )
}

/// The payload in the record of a task. A task that has just come from another queue is still in
/// the record that it had there, under another number.
fn payload_of(change: Change, number: u64, away: Away) -> Result<Bytes, StoreError> {
    let payload = match change {
        Change::Task(record) => record.payload,
        _ => Bytes::default(),
    };
    check_payload(payload, number, away)
}

/// Refuses a payload that differs from what was written.
fn check_payload(payload: Bytes, number: u64, away: Away) -> Result<Bytes, StoreError> {
    let is_right =
        payload.len() == away.bytes as usize && payload_checksum(&payload) == away.checksum;
    if is_right {
        return Ok(payload);
    }
    let Place { volume, offset, .. } = away.place;
    let what = format!("the payload of task {number} is not what was written");
    Err(StoreError::damage(&format!("volume {volume}"), offset.into(), what))
}
