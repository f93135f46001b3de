//! From the configuration to the store of a shard and the engine over it.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinpriq_proto::change::Header;
use pinpriq_proto::limits::Limits as EngineLimits;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::durable::{Durable, Loading};
use pinpriq_store::journal::{Expected, LoadProgress, Tap};
use pinpriq_store::layout::{
    AfterRestore, JournalAt, give_number, read_restored, remove_restored, shard_directories,
};
use pinpriq_store::restore::finish_following;
use pinpriq_store::shards::first_number;
use pinpriq_store::{
    Disk, Journal, JournalOptions, Level, MemoryStore, RealDisk, Runner, Store, StoreError,
};
use tokio::sync::Notify;

use crate::calendars::Calendars;
use crate::clock::stopwatch;
use crate::cluster::data::is_of_node;
use crate::config::{Config, Durability, Limits};
use crate::error::ServeError;
use crate::random::random;

/// The minimum that blocked requests and subscriptions of a shard may occupy: some ten thousand.
const WAITING_BYTES_MIN: u64 = 16 << 20;

/// One shard of a server that is about to start.
pub(crate) struct Opening {
    /// The number of the shard.
    pub(crate) shard: usize,
    /// The number of shards.
    pub(crate) shards: usize,
    /// Where it keeps its data, and which journal must be there.
    pub(crate) journal: JournalAt,
    /// Rung by its store.
    pub(crate) bell: Arc<Notify>,
    /// How others ask its journal how far it is, if it keeps anything.
    pub(crate) tap: Option<Arc<Tap>>,
    /// Whether slots of its schedules up to the start are not made up.
    pub(crate) skips_slots: bool,
    /// The incarnation after which a server that keeps nothing continues.
    pub(crate) incarnations_before: u64,
    /// Set when the start must stop.
    pub(crate) stop: Arc<AtomicBool>,
    /// Where the progress of loading goes.
    pub(crate) progress: Arc<LoadProgress>,
    /// Held while a shard begins. On a full disk a shard frees room and takes it again, and no
    /// other shard may take it in between.
    pub(crate) begins: Arc<Mutex<()>>,
}

impl Opening {
    /// Loads the tasks of the shard without changing its journal. Blocks until this is done or the
    /// start must stop.
    pub(crate) fn load(&self, config: &Config) -> Result<Loading, ServeError> {
        let store = self.open_store(config)?;
        let limits = engine_limits(config, self.shards);
        let loading = Loading::load(store, limits, random());
        let loading = loading.map_err(|source| self.failed(source))?;
        if let Some(torn) = &loading.loaded().torn_tail {
            tracing::info!(
                file = torn.file,
                offset = torn.offset,
                "an unfinished write was cut off"
            );
        }
        Ok(loading)
    }

    /// Begins to serve what was loaded.
    pub(crate) fn begin(
        &self,
        loading: Loading,
        start: Start,
        config: &Config,
    ) -> Result<Durable, ServeError> {
        let begun = {
            let _one_at_a_time = self.begins.lock().unwrap_or_else(PoisonError::into_inner);
            let calendars = Calendars::ahead_of(start.wall, start.now).skipping(self.skips_slots);
            loading.with_calendars(Arc::new(calendars)).begin(start.now, start.incarnation)
        };
        let durable = begun.map_err(|source| self.failed(source))?;
        tracing::info!(
            data = %self.journal.directory.display(),
            durability = config.durability.word(),
            tasks = durable.engine().totals().in_any_state(),
            incarnation = durable.engine().header().incarnation,
            "opened"
        );
        Ok(durable)
    }

    /// Notes that all shards have begun: see [`Durable::all_begun`].
    pub(crate) fn all_begun(&self, durable: &mut Durable) -> Result<(), ServeError> {
        durable.all_begun().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: StoreError) -> ServeError {
        match source {
            StoreError::Stopped => ServeError::Stopped,
            source => ServeError::Store { data: self.journal.directory.clone(), source },
        }
    }

    fn open_store(&self, config: &Config) -> Result<Box<dyn Store>, ServeError> {
        let level = match config.durability {
            Durability::Memory => {
                let store = MemoryStore::after(self.incarnations_before);
                return Ok(Box::new(store.numbering_after(first_number(self.shard))));
            }
            Durability::Sync => Level::Sync,
            Durability::Interval => Level::Interval,
        };
        let data = &self.journal.directory;
        let disk = RealDisk::create(data)
            .map_err(|source| ServeError::Directory { data: data.clone(), source })?;
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let options = JournalOptions {
            level,
            salt_seed: random(),
            leaves_payloads: config.limits.memory_limit.is_some(),
            gathers: true,
            watches: true,
            ..JournalOptions::default()
        };
        let bell = self.bell.clone();
        let wake = Arc::new(move || bell.notify_one());
        let journal = Journal::open(disk, options, Runner::Thread { wake });
        let journal = journal.map_err(|source| self.failed(source))?;
        tracing::info!(data = %data.display(), "loading");
        let journal = journal.numbering_after(first_number(self.shard));
        let journal = journal.expecting(self.journal.expected).timed_by(stopwatch());
        let mut journal = journal.telling(self.progress.clone());
        if let Some(tap) = &self.tap {
            journal = journal.tapped_by(tap.clone());
        }
        Ok(Box::new(journal.stoppable(self.stop.clone())))
    }
}

/// The moment at which all shards begin, and their incarnation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) now: Timestamp,
    /// What the wall clock showed then.
    pub(crate) wall: Timestamp,
    pub(crate) incarnation: u64,
}

impl Start {
    /// Returns the earliest start after what one shard knows, not before `now`.
    pub(crate) fn after(loading: &Loading, now: Timestamp) -> Self {
        let Header { incarnation, now: latest, .. } = loading.loaded().header;
        Self { now: now.max(latest), wall: now, incarnation: incarnation + 1 }
    }

    /// Returns the earliest start after what both know.
    pub(crate) fn and(self, other: Self) -> Self {
        let incarnation = self.incarnation.max(other.incarnation);
        Self { now: self.now.max(other.now), wall: self.wall.max(other.wall), incarnation }
    }
}

/// The journals of a data directory, if it has any.
pub(crate) struct Journals {
    data: PathBuf,
    all: Vec<JournalAt>,
    keeps: bool,
    /// Whether it was restored to an earlier moment, and this is its first start.
    skips_slots: bool,
}

impl Journals {
    /// Refuses a directory that was made for another number of shards. Going on from an archive
    /// stops when the flag is set.
    pub(crate) fn of(config: &Config, stop: &Arc<AtomicBool>) -> Result<Self, ServeError> {
        let (data, shards) = (config.data.clone(), config.shards);
        if config.durability == Durability::Memory {
            let journal = JournalAt { directory: data.clone(), expected: Expected::alone() };
            let all = vec![journal; shards];
            return Ok(Self { data, all, keeps: false, skips_slots: false });
        }
        if is_of_node(&data) {
            return Err(ServeError::OfNode { data });
        }
        go_on_from_archive(&data, shards, stop)?;
        let journals = shard_directories(&data, shards, random());
        let failed = |source| ServeError::Store { data: data.clone(), source };
        let all = journals.map_err(failed)?;
        let after = read_restored(&data).map_err(failed)?;
        let skips_slots = after == Some(AfterRestore::SkipSlots);
        Ok(Self { all, data, keeps: true, skips_slots })
    }

    /// Returns what each shard is to be opened with, beginning with the first one. The start stops
    /// when the flag is set.
    pub(crate) fn openings(
        &self,
        incarnations_before: u64,
        stop: &Arc<AtomicBool>,
        progress: &Arc<LoadProgress>,
    ) -> Vec<Opening> {
        let begins = Arc::default();
        let opening = |(shard, journal): (usize, &JournalAt)| {
            let bell = Arc::new(Notify::new());
            let tap = self.keeps.then(|| {
                let bell = bell.clone();
                Arc::new(Tap::new(move || bell.notify_one()))
            });
            Opening {
                shard,
                shards: self.all.len(),
                journal: journal.clone(),
                bell,
                tap,
                skips_slots: self.skips_slots,
                incarnations_before,
                stop: stop.clone(),
                progress: progress.clone(),
                begins: Arc::clone(&begins),
            }
        };
        self.all.iter().enumerate().map(opening).collect()
    }

    /// Notes that all shards were loaded and are about to begin.
    pub(crate) fn loaded(&self) -> Result<(), ServeError> {
        if !self.keeps {
            return Ok(());
        }
        let failed = |source| ServeError::Store { data: self.data.clone(), source };
        give_number(&self.data, &self.all).map_err(failed)
    }

    /// Notes that all shards have begun.
    pub(crate) fn begun(&self) -> Result<(), ServeError> {
        if !self.skips_slots {
            return Ok(());
        }
        // A start that ends before this has missed its slots for good, and the next one its own.
        let failed = |source| ServeError::Store { data: self.data.clone(), source };
        remove_restored(&self.data).map_err(failed)
    }
}

/// Completes a data directory that follows an archive, before anything else opens it. The next
/// start goes on with one that was stopped.
fn go_on_from_archive(
    data: &Path,
    shards: usize,
    stop: &Arc<AtomicBool>,
) -> Result<(), ServeError> {
    let options = JournalOptions { salt_seed: random(), ..JournalOptions::default() };
    let finished = finish_following(data, shards, options, stop);
    let finished = finished.map_err(|error| match error.source {
        StoreError::Stopped => ServeError::Stopped,
        source => ServeError::Store { data: error.directory, source },
    })?;
    if let Some(reports) = finished {
        let tasks: u64 = reports.iter().map(|report| report.tasks).sum();
        tracing::info!(data = %data.display(), tasks, "going on from an archive");
    }
    Ok(())
}

/// Returns the limits of one shard of `shards`. Limits for all tasks together are divided evenly.
pub(crate) fn shares(limits: &Limits, shards: usize) -> Limits {
    let share = |bytes: u64| bytes.div_ceil(shards as u64);
    Limits {
        task_bytes_max: share(limits.task_bytes_max),
        memory_limit: limits.memory_limit.map(share),
        lingering_queues_max: limits.lingering_queues_max.div_ceil(shards),
        unique_max: share(limits.unique_max),
        ..*limits
    }
}

/// Returns the limits of the engine of one shard of `shards`.
pub(crate) fn engine_limits(config: &Config, shards: usize) -> EngineLimits {
    let limits = shares(&config.limits, shards);
    EngineLimits {
        payload_bytes_max: limits.payload_bytes_max,
        bytes_max: limits.task_bytes_max,
        waiting_bytes_max: waiting_bytes_max(&limits),
        memory_bytes: limits.memory_limit.filter(|_| config.durability != Durability::Memory),
        queues_per_client_max: limits.subscriptions_max,
        queue_linger: span_of(limits.queue_linger),
        unique_max: limits.unique_max,
        endings_max: limits.endings_max,
        batches_max: limits.batches_max,
        batch_retain: span_of(limits.batch_retain),
        batch_abandon: span_of(limits.batch_abandon),
        topic_lanes_max: limits.topic_lanes_max,
        lingering_queues_max: limits.lingering_queues_max,
        ..EngineLimits::default()
    }
}

fn span_of(duration: Duration) -> Span {
    Span::from_ms(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Returns how many bytes blocked requests and subscriptions may occupy in addition to the tasks: a
/// quarter as much, but not less than a minimum.
fn waiting_bytes_max(limits: &Limits) -> u64 {
    (limits.task_bytes_max / 4).max(WAITING_BYTES_MIN)
}
