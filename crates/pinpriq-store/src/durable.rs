//! Persist before reply: the engine and its store as one, and the one loop that joins them.
//!
//! A turn is any number of calls of [`Durable::apply`] and one of [`Durable::commit`], which hands
//! the store everything that the turn changed as one atomic batch. Each output comes out of
//! [`Durable::poll_output`] with the position that it must wait for; the caller sends it once
//! [`Durable::reached`] has come that far. No command decides for itself when it is durable.
//!
//! What is embedded here is all that an embedder needs: there is no socket, no clock and no
//! thread besides those of the store.

use std::collections::VecDeque;

use pinpriq_engine::change::{Change, Header, Place};
use pinpriq_engine::command::Command;
use pinpriq_engine::limits::Limits;
use pinpriq_engine::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_engine::task::{Bytes, ClientId, RequestId, StateKind, TaskRecord, payload_checksum};
use pinpriq_engine::time::Timestamp;
use pinpriq_engine::{Applied, Engine};

use crate::store::{Figures, Loaded, Position, Room, Store, StoreError, TaskCounts, Urgency};

/// An engine whose changes become durable.
pub struct Durable {
    engine: Engine,
    store: Box<dyn Store>,
    /// The last batch that anybody may have to wait for.
    awaited: Position,
    /// The last batch that every take has to wait for.
    awaited_by_takes: Position,
    reached: Position,
    /// The last number that each batch under way knew.
    numbers: VecDeque<(Position, u64)>,
    /// Tasks up to this number were durable once, if they were put.
    settled_number: u64,
    failure: Option<StoreError>,
    /// Answers of this layer itself, given after a failure.
    refusals: VecDeque<Output>,
    /// Outputs for which payloads were fetched from the store.
    fetched: VecDeque<Output>,
    /// Tasks whose payloads may be left in the store once their record is there.
    leaving: VecDeque<(Position, u64, Place)>,
    changes: Vec<Change>,
    placed: Vec<(usize, Place)>,
    obsolete: Vec<Place>,
}

impl Durable {
    /// Loads what the store holds and begins a new incarnation at the moment `now`, or at the
    /// latest moment that the store knows, whichever is later: [`Durable::now`] tells which.
    ///
    /// `seed` makes generated uuids differ from those of other servers. Costs O(n log n) in the
    /// number of tasks, and blocks until the beginning is durable.
    pub fn open(
        mut store: Box<dyn Store>,
        limits: Limits,
        now: Timestamp,
        seed: u64,
    ) -> Result<(Self, Loaded), StoreError> {
        let mut engine = Engine::new(limits, seed);
        let loaded = store.load(&mut |change, place| engine.restore(change, place))?;
        let latest = loaded.header;
        let now = now.max(latest.now);
        let incarnation = latest.incarnation + 1;
        let last_number = latest.last_number;
        // Places found replaced or gone while loading go back before the log grows again; those
        // of tasks that end at the start follow with the first batch.
        let mut obsolete = Vec::new();
        engine.take_obsolete(&mut obsolete);
        for place in obsolete.drain(..) {
            store.obsolete(place);
        }
        engine.start(now, incarnation, latest);
        let mut durable = Self {
            engine,
            store,
            awaited: Position::default(),
            awaited_by_takes: Position::default(),
            reached: Position::default(),
            numbers: VecDeque::new(),
            settled_number: last_number,
            failure: None,
            refusals: VecDeque::new(),
            fetched: VecDeque::new(),
            leaving: VecDeque::new(),
            changes: Vec::new(),
            placed: Vec::new(),
            obsolete,
        };
        durable.store.begin(&Header { incarnation, now, last_number })?;
        if !durable.store.keeps_changes() {
            durable.engine.stop_reporting();
        }
        durable.commit()?;
        durable.store.finish(now)?;
        durable.drive(now)?;
        Ok((durable, loaded))
    }

    /// Carries out one command; see [`Engine::apply`]. After a failure of the store every command
    /// is refused with STORE, since what is in memory may be ahead of what is on disk.
    pub fn apply(
        &mut self,
        now: Timestamp,
        client: ClientId,
        request: RequestId,
        command: &Command<'_>,
    ) -> Applied {
        if let Some(failure) = &self.failure {
            let refusal = Refusal::new(RefusalKind::Store, failure.to_string());
            let reply = Reply::Refused(refusal);
            self.refusals.push_back(Output::Reply { client, request, reply });
            return Applied::Refused(RefusalKind::Store);
        }
        self.engine.apply(now, client, request, command)
    }

    /// See [`Engine::disconnect`].
    pub fn disconnect(&mut self, now: Timestamp, client: ClientId) {
        if self.failure.is_none() {
            self.engine.disconnect(now, client);
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

    /// Ends a turn: hands the store what has changed. Nothing waits for a disk here if the store
    /// has a thread of its own.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        self.check_failure()?;
        self.fetch_outputs()?;
        self.engine.take_changes(&mut self.changes);
        let only_grants = self.changes.iter().all(|change| matches!(change, Change::Granted(_)));
        let stirred = self.engine.take_stirred() || self.changes.iter().any(concerns_takes);
        let urgency = if only_grants { Urgency::Lazy } else { Urgency::Soon };
        self.append(urgency)?;
        if stirred && !planted!(TakeAfterUnsavedMove) {
            self.awaited_by_takes = self.awaited;
        }
        Ok(())
    }

    /// Notes what the store has finished and starts what is due; moves records that the store
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
        let (present, taken) = (totals.present(), totals.count(StateKind::Taken));
        let tasks = TaskCounts { present, taken };
        let room = if planted!(FullDiskNotNoticed) { Room::Enough } else { self.store.room(tasks) };
        if self.engine.set_room(room) {
            self.commit()?;
        }
        let wanted = self.store.poll_rewrite();
        if wanted.is_empty() {
            return Ok(());
        }
        // What this turn changed before must not go out as urgently, or as lazily, as this.
        self.commit()?;
        for (key, place) in wanted {
            self.engine.rewrite(&key, place);
        }
        self.engine.take_changes(&mut self.changes);
        self.append(Urgency::Lazy)
    }

    /// The next output, and the position that it must wait for.
    ///
    /// Everything that was changed before the output was made counts, also by others, since the
    /// output may tell of it; only grants of leases do not. A take tells of less, and waits for
    /// less: for the tasks that it hands over, and for what decided that it is they. So it need not
    /// wait for the puts of other tasks, nor for the end of other leases. Call this after
    /// [`Durable::commit`].
    pub fn poll_output(&mut self) -> Option<(Position, Output)> {
        if let Some(refusal) = self.refusals.pop_front() {
            return Some((Position::default(), refusal));
        }
        let output = self.fetched.pop_front().or_else(|| self.engine.poll_output());
        output.map(|output| (self.needs(&output), output))
    }

    /// The position that an output must wait for.
    fn needs(&self, output: &Output) -> Position {
        if planted!(AnswerBeforeSync) {
            return Position::default();
        }
        // With nothing under way there is nothing to tell apart.
        if self.awaited <= self.reached {
            return self.awaited;
        }
        match output {
            Output::Reply { reply: Reply::Tasks { tasks, popped: false }, .. }
            | Output::Delivery { tasks, popped: false, .. }
                if tasks.iter().all(|task| task.number <= self.settled_number)
                    || planted!(TakeBeforePutIsDurable) =>
            {
                self.awaited_by_takes
            }
            _ => self.awaited,
        }
    }

    /// How far the store has come.
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
        let (engine, store) = (self.engine.poll_timeout(), self.store.poll_timeout());
        match (engine, store) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// The moment of the latest call.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.engine.now()
    }

    /// The engine, to look at.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Why nothing is accepted any more, if that is so.
    #[must_use]
    pub const fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// The figures of the store.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.store.figures()
    }

    /// Makes everything durable and blocks until it is. For an orderly stop.
    pub fn finish(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.commit()?;
        let finished = self.store.finish(now);
        self.note_failure(finished)?;
        self.drive(now)
    }

    fn append(&mut self, urgency: Urgency) -> Result<(), StoreError> {
        let header = self.engine.header();
        if !self.changes.is_empty() {
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

    /// Leaves payloads in the store whose records are there by now, while memory is short.
    fn leave_payloads(&mut self) {
        while let Some(&(position, number, place)) = self.leaving.front()
            && (position <= self.reached || planted!(PayloadLeftTooEarly))
        {
            self.leaving.pop_front();
            if self.engine.is_short_of_memory() {
                self.engine.leave_payload(number, place);
            }
        }
    }

    /// Fetches the payloads that outputs are to show. This comes before the places of tasks that
    /// are gone are given up.
    fn fetch_outputs(&mut self) -> Result<(), StoreError> {
        if !self.engine.leaves_payloads() {
            return Ok(());
        }
        let mut failed = Ok(());
        while let Some(mut output) = self.engine.poll_output() {
            if failed.is_ok() {
                failed = self.complete(&mut output);
            }
            if let Err(error) = &failed {
                // Without its payload it must not leave, and nothing leaves any more after this.
                let Output::Reply { reply, .. } = &mut output else { continue };
                *reply = Reply::Refused(Refusal::new(RefusalKind::Store, error.to_string()));
            }
            self.fetched.push_back(output);
        }
        failed
    }

    /// Fetches the payloads of one output.
    fn complete(&mut self, output: &mut Output) -> Result<(), StoreError> {
        match output {
            Output::Reply { reply: Reply::Tasks { tasks, .. } | Reply::Shown(tasks), .. }
            | Output::Delivery { tasks, .. } => self.fetch(tasks),
            Output::Reply { reply: Reply::Task(Some(task)), .. } => {
                self.fetch(std::slice::from_mut(&mut **task))
            }
            Output::Reply { .. } => Ok(()),
        }
    }

    /// Fetches the payloads of records that are to be written again.
    fn fetch_changes(&mut self) -> Result<(), StoreError> {
        if !self.engine.leaves_payloads() || planted!(CompactionLosesPayload) {
            return Ok(());
        }
        let mut changes = std::mem::take(&mut self.changes);
        for change in &mut changes {
            if let Change::Task(task) = change {
                self.fetch(std::slice::from_mut(&mut **task))?;
            }
        }
        self.changes = changes;
        Ok(())
    }

    fn fetch(&mut self, tasks: &mut [TaskRecord]) -> Result<(), StoreError> {
        for task in tasks {
            let Some(away) = task.away.take() else { continue };
            let fetched = self.store.fetch(away.place);
            let fetched = self.note_failure(fetched)?;
            let payload = match fetched {
                Change::Task(record) if record.number == task.number => record.payload,
                _ => Bytes::default(),
            };
            let is_right =
                payload.len() == away.bytes as usize && payload_checksum(&payload) == away.checksum;
            if !is_right && !planted!(FetchedPayloadNotCompared) {
                let Place { volume, offset, .. } = away.place;
                let what = format!("the payload of task {} is not what was written", task.number);
                let damage = StoreError::damage(&format!("volume {volume}"), offset.into(), what);
                return self.note_failure(Err(damage));
            }
            task.payload = payload;
        }
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

/// Whether a change besides those of single tasks may decide what a take is handed.
const fn concerns_takes(change: &Change) -> bool {
    !matches!(change, Change::Task(_) | Change::Moved(_) | Change::Granted(_) | Change::Gone(_))
}
