//! The journal as its shard sees it: the [`Store`] over segment files.
//!
//! It goes through its stages in order: opened, loaded, running. The first failed write or sync
//! ends it for good: no position advances after it, and every later call says so. What happens
//! while it runs is decided in `running`.

use std::sync::Arc;

use pinpriq_engine::change::{Change, Header, Place, RecordKey};
use pinpriq_engine::time::Timestamp;

use super::chores::Chores;
use super::fetch::Fetcher;
use super::fresh::lock;
use super::lane::Runner;
use super::ledger::{Ledger, Segment};
use super::open::begin;
use super::reader::{self, FoundLog};
use super::running::Running;
use crate::disk::Disk;
use crate::store::{
    Figures, Loaded, Position, Progress, Room, Store, StoreError, TaskCounts, Urgency,
};

/// The smallest segment, so that the two headers stay the smaller part of it.
const SEGMENT_BYTES_MIN: u32 = 24 << 10;

/// What a position that was reached stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Level {
    /// The batch is on the disk.
    #[default]
    Sync,
    /// The batch is with the operating system, and on the disk at most
    /// [`INTERVAL_MS`](crate::store::INTERVAL_MS) later.
    Interval,
}

/// What can be chosen for a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalOptions {
    /// What a reached position stands for.
    pub level: Level,
    /// The size of a segment file in bytes, 24 KiB at least. Larger ones are made for batches
    /// that need them.
    pub segment_bytes: u32,
    /// Random, and unknown to those who write payloads: with it no payload can imitate a batch.
    pub salt_seed: u64,
    /// How many bytes the log may hold beyond twice the bytes that count.
    pub slack_bytes: u64,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { level: Level::Sync, segment_bytes: 32 << 20, salt_seed: 0, slack_bytes: 64 << 20 }
    }
}

impl JournalOptions {
    pub(crate) fn segment_bytes(&self) -> u64 {
        u64::from(self.segment_bytes.clamp(SEGMENT_BYTES_MIN, 1 << 30) & !7)
    }
}

/// The store over segment files in one directory.
pub struct Journal {
    stage: Stage,
    disk: Arc<dyn Disk>,
    options: JournalOptions,
    runner: Runner,
    failure: Option<StoreError>,
    /// The highest number counts as this at least.
    numbers_after: u64,
    /// Last, so that it goes after the threads.
    _lock: Box<dyn Send>,
}

enum Stage {
    Opened,
    Loaded(Box<FoundLog>, Ledger),
    Running(Box<Running>),
}

impl Journal {
    /// Locks the directory. Reads nothing yet and changes nothing else.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: JournalOptions,
        runner: Runner,
    ) -> Result<Self, StoreError> {
        let lock = lock(&*disk)?;
        let (stage, failure, numbers_after) = (Stage::Opened, None, 0);
        Ok(Self { stage, disk, options, runner, failure, numbers_after, _lock: lock })
    }

    /// Sees to it that no task is numbered lower than this or the same: what is loaded then names
    /// it as the highest number, unless the log knows a higher one. For a shard of several, with
    /// [`first_number`](crate::shards::first_number); to be said before [`Store::load`].
    #[must_use]
    pub fn numbering_after(self, number: u64) -> Self {
        Self { numbers_after: number, ..self }
    }

    /// Whether a job is under way on a thread, so that a wake-up is still to come.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        match &self.stage {
            Stage::Running(running) => running.is_busy(),
            Stage::Opened | Stage::Loaded(..) => false,
        }
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
            Runner::Inline | Runner::Gated { .. } => reader::load(&*self.disk, sink)?,
            Runner::Thread { .. } => load_ahead(&*self.disk, sink)?,
        };
        let mut ledger = Ledger::default();
        for segment in &found.segments {
            ledger.push(Segment {
                header: segment.header,
                end: segment.end,
                live: segment.placed_bytes,
                usual_size: segment.end <= self.options.segment_bytes(),
            });
        }
        let mut loaded = found.loaded.clone();
        loaded.header.last_number = loaded.header.last_number.max(self.numbers_after);
        self.stage = Stage::Loaded(Box::new(found), ledger);
        Ok(loaded)
    }

    fn begin(&mut self, header: &Header) -> Result<(), StoreError> {
        let stage = std::mem::replace(&mut self.stage, Stage::Opened);
        let Stage::Loaded(found, mut ledger) = stage else {
            self.stage = stage;
            return Err(StoreError::OutOfOrder { call: "begin" });
        };
        let begun = begin(&self.disk, &self.options, &found, &mut ledger, header)?;
        let chores = Chores::new(Arc::clone(&self.disk));
        let fetcher = Fetcher::new(Arc::clone(&self.disk));
        let running =
            Running::start(self.options, ledger, begun, (chores, fetcher), header, &self.runner)?;
        self.stage = Stage::Running(Box::new(running));
        Ok(())
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

    fn obsolete(&mut self, place: Place) {
        match &mut self.stage {
            Stage::Opened => {}
            Stage::Loaded(_, ledger) => ledger.obsolete(place),
            Stage::Running(running) => running.obsolete(place),
        }
    }

    fn drive(&mut self, now: Timestamp) -> Result<Progress, StoreError> {
        self.attempt("drive", |running| running.drive(now))
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        match &self.stage {
            Stage::Running(running) if self.failure.is_none() => running.poll_timeout(),
            _ => None,
        }
    }

    fn poll_rewrite(&mut self) -> Vec<(RecordKey, Place)> {
        // A failure in here is remembered, and told by the next call that can tell it.
        self.attempt("poll_rewrite", Running::poll_rewrite).unwrap_or_default()
    }

    fn fetch(&mut self, place: Place) -> Result<Change, StoreError> {
        self.attempt("fetch", |running| running.fetch(place))
    }

    fn room(&mut self, tasks: TaskCounts) -> Room {
        match &mut self.stage {
            Stage::Running(running) => running.room(tasks),
            Stage::Opened | Stage::Loaded(..) => Room::Enough,
        }
    }

    fn finish(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.attempt("finish", |running| running.finish(now))
    }

    fn figures(&self) -> Figures {
        match &self.stage {
            Stage::Running(running) => running.figures(),
            _ => Figures::default(),
        }
    }
}

/// Reads the log on a second thread while the caller takes in what was read, which takes about as
/// long.
fn load_ahead(
    disk: &dyn Disk,
    sink: &mut dyn FnMut(Change, Option<Place>),
) -> Result<FoundLog, StoreError> {
    const CHANGES_AT_A_TIME: usize = 1_024;
    const PORTIONS_AHEAD: usize = 16;
    let (sender, receiver) = std::sync::mpsc::sync_channel(PORTIONS_AHEAD);
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let mut portion = Vec::with_capacity(CHANGES_AT_A_TIME);
            let found = reader::load(disk, &mut |change, place| {
                portion.push((change, place));
                if portion.len() == CHANGES_AT_A_TIME {
                    let full =
                        std::mem::replace(&mut portion, Vec::with_capacity(CHANGES_AT_A_TIME));
                    // The receiver stays until this thread has ended.
                    drop(sender.send(full));
                }
            });
            drop(sender.send(portion));
            found
        });
        for (change, place) in receiver.into_iter().flatten() {
            sink(change, place);
        }
        reading.join().unwrap_or(Err(StoreError::ThreadEnded { thread: "journal-load" }))
    })
}
