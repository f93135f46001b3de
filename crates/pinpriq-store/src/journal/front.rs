//! The journal as its shard sees it: the [`Store`] over segment files.
//!
//! It goes through its stages in order: opened, loaded, running. The first failed write or sync
//! ends it for good: no position advances after it, and every later call fails. What happens while
//! it runs is decided in `running`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::time::Timestamp;

use super::accounts::{Accounts, Segment};
use super::chores::Chores;
use super::cuts::Cuts;
use super::expected::Expected;
use super::fetch::Volumes;
use super::head::update_head;
use super::lane::Runner;
use super::open::begin;
use super::options::{JournalOptions, Stopwatch, lock};
use super::progress::LoadProgress;
use super::reader::{self, FoundLog};
use super::running::Running;
use super::tap::Tap;
use super::writer::Writer;
use crate::disk::Disk;
use crate::store::{
    Figures, Loaded, Position, Progress, ReadJob, Reclaims, Rewrite, Room, Shortage, Store,
    StoreError, TaskCounts, Urgency, Volume,
};

/// How often a load that waits for the disk checks whether it has to stop.
const STOP_LOOK: Duration = Duration::from_millis(50);

/// The store over segment files in one directory.
pub struct Journal {
    stage: Stage,
    disk: Arc<dyn Disk>,
    options: JournalOptions,
    runner: Runner,
    failure: Option<StoreError>,
    /// A lower bound for the highest number that loading reports.
    numbers_after: u64,
    /// Whether a load has to stop.
    stop: Arc<AtomicBool>,
    /// Where the progress of a load goes.
    progress: Arc<LoadProgress>,
    /// Which journal belongs here, if known.
    expected: Option<Expected>,
    stopwatch: Stopwatch,
    /// The cuts that others can ask for, until the journal runs.
    cuts: Option<Cuts>,
    /// The last field, so that it is dropped after the threads.
    _lock: Box<dyn Send>,
}

enum Stage {
    Opened,
    Loaded(Box<FoundLog>, Accounts),
    Running(Box<Running>),
}

impl Journal {
    /// Locks the directory. Reads nothing yet, and changes nothing else.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: JournalOptions,
        runner: Runner,
    ) -> Result<Self, StoreError> {
        let lock = lock(&*disk)?;
        let (stage, failure, numbers_after) = (Stage::Opened, None, 0);
        let (stop, progress, expected) = (Arc::default(), Arc::default(), None);
        let stopwatch: Stopwatch = Arc::new(|| Duration::ZERO);
        let cuts = None;
        Ok(Self {
            stage,
            disk,
            options,
            runner,
            failure,
            numbers_after,
            stop,
            progress,
            expected,
            stopwatch,
            cuts,
            _lock: lock,
        })
    }

    /// Makes every task number higher than `number`: loading then returns `number` as the highest
    /// number, unless the log knows a higher one. For one of several shards, with
    /// [`first_number`](crate::shards::first_number). Call this before [`Store::load`].
    #[must_use]
    pub fn numbering_after(self, number: u64) -> Self {
        Self { numbers_after: number, ..self }
    }

    /// Makes [`Store::load`] stop soon after any thread sets this flag: it fails with
    /// [`StoreError::Stopped`] and has changed nothing. [`Store::begin`] does the same. Call this
    /// before both. The flag is ignored later.
    #[must_use]
    pub fn stoppable(self, stop: Arc<AtomicBool>) -> Self {
        Self { stop, ..self }
    }

    /// Makes [`Store::load`] tell here how far it is. Call this before it.
    #[must_use]
    pub fn telling(self, progress: Arc<LoadProgress>) -> Self {
        Self { progress, ..self }
    }

    /// Makes [`Store::load`] refuse any journal other than this one. Call this before it.
    #[must_use]
    pub fn expecting(self, expected: Expected) -> Self {
        Self { expected: Some(expected), ..self }
    }

    /// Measures the time that commits take with this stopwatch. Without one they seem to take none.
    /// Call this before [`Store::begin`].
    #[must_use]
    pub fn timed_by(self, stopwatch: Stopwatch) -> Self {
        Self { stopwatch, ..self }
    }

    /// Lets others copy the journal while it runs. They ask for cuts through this tap, which
    /// belongs to this journal alone. It answers in [`Store::note_cuts`] and, once everything is
    /// durable, in [`Store::drive`]. Segments that are kept for them are not put away before these
    /// are dropped or the disk is full; with [`Tap::keep_all`] a start keeps them too. When the
    /// journal fails or is dropped, all waits end and nothing is kept any more. Call this before
    /// [`Store::begin`].
    #[must_use]
    pub fn tapped_by(self, tap: Arc<Tap>) -> Self {
        Self { cuts: Some(Cuts::new(tap)), ..self }
    }

    /// Whether a job is running on a thread, so that a wake-up is still to come. The woken thread
    /// also ends the gathering.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.running().is_some_and(|running| running.is_busy() || running.is_gathering())
    }

    const fn running(&self) -> Option<&Running> {
        match &self.stage {
            Stage::Running(running) => Some(running),
            Stage::Opened | Stage::Loaded(..) => None,
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs one step, and remembers its failure for good.
    fn attempt<T>(
        &mut self,
        call: &'static str,
        step: impl FnOnce(&mut Running) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(cause) = &self.failure {
            return Err(StoreError::Poisoned { cause: Box::new(cause.clone()) });
        }
        let Stage::Running(running) = &mut self.stage else {
            return Err(StoreError::OutOfOrder { call });
        };
        let result = step(running);
        if let Err(error) = &result {
            tracing::error!(%error, "the journal has failed");
            running.end_cuts();
            self.failure = Some(error.clone());
        }
        result
    }
}

impl Store for Journal {
    fn load(&mut self, sink: &mut dyn FnMut(Change, Option<Place>)) -> Result<Loaded, StoreError> {
        if !matches!(self.stage, Stage::Opened) {
            return Err(StoreError::OutOfOrder { call: "load" });
        }
        let found = match self.runner {
            Runner::Inline | Runner::Gated { .. } => {
                let watched = (&*self.progress, &*self.stop);
                reader::load(&*self.disk, self.expected.as_ref(), watched, sink)
            }
            Runner::Thread { .. } => {
                let watched = (self.progress.clone(), self.stop.clone());
                load_ahead(self.disk.clone(), self.expected, watched, sink)
            }
        };
        if self.is_stopped() {
            return Err(StoreError::Stopped);
        }
        let found = found?;
        let mut accounts = Accounts::default();
        for segment in &found.segments {
            accounts.push(Segment {
                header: segment.header,
                end: segment.end,
                live: segment.placed_bytes,
                usual_size: segment.end <= self.options.segment_bytes(),
            });
        }
        let mut loaded = found.loaded.clone();
        loaded.header.last_number = loaded.header.last_number.max(self.numbers_after);
        self.stage = Stage::Loaded(Box::new(found), accounts);
        Ok(loaded)
    }

    fn begin(&mut self, header: &Header) -> Result<(), StoreError> {
        if self.is_stopped() {
            return Err(StoreError::Stopped);
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Opened);
        let Stage::Loaded(found, mut accounts) = stage else {
            self.stage = stage;
            return Err(StoreError::OutOfOrder { call: "begin" });
        };
        // Older journals do not record their identity.
        let drawn = self.options.drawn();
        let expected = self.expected.unwrap_or(Expected::alone());
        let identity = found.identity.unwrap_or_else(|| expected.identity(drawn));
        let facts = (header, identity);
        let writer = Writer::new(Arc::clone(&self.disk), self.stopwatch.clone());
        let keeps_all = self.cuts.as_ref().is_some_and(Cuts::keeps_all);
        let back = (&self.disk, writer);
        let begun = begin(back, &self.options, &found, &mut accounts, facts, keeps_all)?;
        update_head(&*self.disk, |head| head.incarnation = header.incarnation)?;
        let chores = Chores::new(Arc::clone(&self.disk), self.options.leaves_payloads);
        let volumes = Volumes::new(Arc::clone(&self.disk));
        let hands = (chores, volumes);
        let (runner, cuts) = (&self.runner, self.cuts.take());
        let running = Running::start(self.options, accounts, begun, hands, header, runner, cuts)?;
        self.stage = Stage::Running(Box::new(running));
        Ok(())
    }

    fn all_begun(&mut self, header: &Header) -> Result<(), StoreError> {
        update_head(&*self.disk, |head| head.served = header.incarnation)
    }

    fn append(
        &mut self,
        header: &Header,
        changes: &[Change],
        urgency: Urgency,
        placed: &mut dyn FnMut(usize, Place),
    ) -> Result<Position, StoreError> {
        self.attempt("append", |running| running.append(header, changes, urgency, placed))
    }

    fn drive(&mut self, now: Timestamp) -> Result<Progress, StoreError> {
        self.attempt("drive", |running| running.drive(now))
    }

    fn has_cut_request(&self) -> bool {
        self.running().is_some_and(Running::has_cut_request)
    }

    fn note_cuts(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.attempt("note_cuts", |running| {
            running.note_cuts(now);
            Ok(())
        })
    }

    fn is_gathering(&self) -> bool {
        self.running().is_some_and(Running::is_gathering)
    }

    fn end_gathering(&mut self) {
        if let Stage::Running(running) = &mut self.stage {
            running.end_gathering();
        }
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.running().filter(|_| self.failure.is_none())?.poll_timeout()
    }

    fn is_outpaced(&self) -> bool {
        self.running().is_some_and(Running::is_outpaced)
    }

    fn finish(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.attempt("finish", |running| running.finish(now))
    }

    fn close(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.finish(now)?;
        let mut no_room = None;
        let closed = self.attempt("close", |running| match running.note_end(now) {
            Err(error @ StoreError::Full { .. }) => {
                no_room = Some(error);
                Ok(())
            }
            noted => noted,
        });
        if let Some(error) = no_room {
            tracing::warn!(%error, "the log ends without a closing commit");
            // Nothing may build on an abandoned write.
            self.failure = Some(error);
        }
        closed
    }

    fn pending_bytes(&self) -> u64 {
        self.running().map_or(0, Running::pending_bytes)
    }

    fn figures(&self) -> Figures {
        self.running().map_or_else(Figures::default, Running::figures)
    }
}

impl Reclaims for Journal {
    fn obsolete(&mut self, place: Place) {
        match &mut self.stage {
            Stage::Opened => {}
            Stage::Loaded(_, accounts) => accounts.obsolete(place),
            Stage::Running(running) => running.obsolete(place),
        }
    }

    fn poll_rewrite(&mut self) -> Vec<Rewrite> {
        // A failure in here is remembered, and returned by the next call that can return it.
        self.attempt("poll_rewrite", Running::poll_rewrite).unwrap_or_default()
    }

    fn hold(&mut self, place: Place) -> Result<Arc<dyn Volume>, StoreError> {
        self.attempt("hold", |running| running.hold(place))
    }

    fn held_bytes(&mut self) -> u64 {
        match &mut self.stage {
            Stage::Running(running) => running.held_bytes(),
            Stage::Opened | Stage::Loaded(..) => 0,
        }
    }

    fn start_read(&mut self, job: ReadJob) -> Result<(), StoreError> {
        self.attempt("start_read", |running| running.start_read(job))
    }

    fn take_read(&mut self, wait: bool) -> Result<Option<Vec<Change>>, StoreError> {
        self.attempt("take_read", |running| running.take_read(wait))
    }

    fn room(&mut self, tasks: &dyn Fn() -> TaskCounts) -> Room {
        match &mut self.stage {
            Stage::Running(running) => running.room(tasks),
            Stage::Opened | Stage::Loaded(..) => Room::Enough,
        }
    }

    fn shortage(&self) -> Shortage {
        self.running().map_or(Shortage::Space, Running::shortage)
    }
}

/// Reads the log on a second thread while the caller applies what was read, which takes about as
/// long. If the load has to stop, it does not wait for the thread, which ends with its next batch.
fn load_ahead(
    disk: Arc<dyn Disk>,
    expected: Option<Expected>,
    (progress, stop): (Arc<LoadProgress>, Arc<AtomicBool>),
    sink: &mut dyn FnMut(Change, Option<Place>),
) -> Result<FoundLog, StoreError> {
    const CHANGES_AT_A_TIME: usize = 1_024;
    const PORTIONS_AHEAD: usize = 16;
    let (sender, receiver) = sync_channel(PORTIONS_AHEAD);
    let is_stopped = Arc::clone(&stop);
    let reading = std::thread::spawn(move || {
        let mut portion = Vec::with_capacity(CHANGES_AT_A_TIME);
        let watched = (&*progress, &*stop);
        let found = reader::load(&*disk, expected.as_ref(), watched, &mut |change, place| {
            portion.push((change, place));
            if portion.len() == CHANGES_AT_A_TIME {
                let full = std::mem::replace(&mut portion, Vec::with_capacity(CHANGES_AT_A_TIME));
                // Without a receiver it is not wanted.
                drop(sender.send(full));
            }
        });
        drop(sender.send(portion));
        found
    });
    loop {
        match receiver.recv_timeout(STOP_LOOK) {
            _ if is_stopped.load(Ordering::Relaxed) => return Err(StoreError::Stopped),
            Ok(portion) => portion.into_iter().for_each(|(change, place)| sink(change, place)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    reading.join().unwrap_or(Err(StoreError::ThreadEnded { thread: "journal-load" }))
}
