//! From the configuration to the store of a shard and the engine over it.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pinpriq_engine::limits::Limits as EngineLimits;
use pinpriq_engine::time::Timestamp;
use pinpriq_store::durable::Durable;
use pinpriq_store::layout::shard_directories;
use pinpriq_store::shards::first_number;
use pinpriq_store::{
    Disk, Journal, JournalOptions, Level, MemoryStore, RealDisk, Runner, Store, StoreError,
};
use tokio::sync::Notify;

use crate::config::{Config, Durability, Limits};
use crate::error::ServeError;

/// The least that blocked requests and subscriptions of a shard may occupy: some ten thousand.
const WAITING_BYTES_MIN: u64 = 16 << 20;

/// One shard of a server that is about to start.
pub(crate) struct Opening {
    /// Which one it is.
    pub(crate) shard: usize,
    /// How many there are.
    pub(crate) shards: usize,
    /// Where it keeps its data.
    pub(crate) directory: PathBuf,
    /// The moment of the start by the wall clock.
    pub(crate) now: Timestamp,
    /// The number of an incarnation that a server which keeps nothing goes on from.
    pub(crate) incarnations_before: u64,
    /// Set when the start is to stop.
    pub(crate) stop: Arc<AtomicBool>,
}

impl Opening {
    /// Loads the tasks of the shard. Blocks until that is done, or until it is to stop.
    pub(crate) fn open(&self, config: &Config, bell: Arc<Notify>) -> Result<Durable, ServeError> {
        let store = self.open_store(config, bell)?;
        let limits = shares(&config.limits, self.shards);
        let limits = EngineLimits {
            payload_bytes_max: limits.payload_bytes_max,
            bytes_max: limits.task_bytes_max,
            waiting_bytes_max: waiting_bytes_max(&limits),
            memory_bytes: limits
                .memory_limit_bytes
                .filter(|_| config.durability != Durability::Memory),
            queues_per_client_max: limits.subscriptions_max,
            ..EngineLimits::default()
        };
        let opened = Durable::open(store, limits, self.now, random());
        let failed = |source| match source {
            StoreError::Stopped => ServeError::Stopped,
            source => ServeError::Store { data: self.directory.clone(), source },
        };
        let (durable, loaded) = opened.map_err(failed)?;
        if let Some(torn) = &loaded.torn_tail {
            tracing::info!(
                file = torn.file,
                offset = torn.offset,
                "an unfinished write was cut off"
            );
        }
        tracing::info!(
            data = %self.directory.display(),
            durability = config.durability.word(),
            tasks = durable.engine().totals().present(),
            incarnation = durable.engine().header().incarnation,
            "opened"
        );
        Ok(durable)
    }

    fn open_store(&self, config: &Config, bell: Arc<Notify>) -> Result<Box<dyn Store>, ServeError> {
        let level = match config.durability {
            Durability::Memory => {
                let store = MemoryStore::after(self.incarnations_before);
                return Ok(Box::new(store.numbering_after(first_number(self.shard))));
            }
            Durability::Sync => Level::Sync,
            Durability::Interval => Level::Interval,
        };
        let data = &self.directory;
        let failed = |source| ServeError::Store { data: data.clone(), source };
        let disk = RealDisk::create(data)
            .map_err(|source| ServeError::Directory { data: data.clone(), source })?;
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let options = JournalOptions {
            level,
            salt_seed: random(),
            leaves_payloads: config.limits.memory_limit_bytes.is_some(),
            ..JournalOptions::default()
        };
        let wake = Arc::new(move || bell.notify_one());
        let journal = Journal::open(disk, options, Runner::Thread { wake }).map_err(failed)?;
        tracing::info!(data = %data.display(), "loading");
        let journal = journal.numbering_after(first_number(self.shard));
        Ok(Box::new(journal.stoppable(self.stop.clone())))
    }
}

/// Where each shard keeps its data. Refuses a directory that was made for another number of them.
pub(crate) fn directories(config: &Config) -> Result<Vec<PathBuf>, ServeError> {
    let (data, shards) = (&config.data, config.shards);
    if config.durability == Durability::Memory {
        return Ok(vec![data.clone(); shards]);
    }
    let failed = |source| ServeError::Store { data: data.clone(), source };
    shard_directories(data, shards).map_err(failed)
}

/// The bounds of one of so many shards: what is meant for all tasks together is shared out evenly.
pub(crate) fn shares(limits: &Limits, shards: usize) -> Limits {
    let share = |bytes: u64| bytes.div_ceil(shards as u64);
    Limits {
        task_bytes_max: share(limits.task_bytes_max),
        memory_limit_bytes: limits.memory_limit_bytes.map(share),
        ..*limits
    }
}

/// How many bytes blocked requests and subscriptions may occupy beside so many of tasks: a quarter
/// as much, and some in any case.
fn waiting_bytes_max(limits: &Limits) -> u64 {
    (limits.task_bytes_max / 4).max(WAITING_BYTES_MIN)
}

/// A number that nobody can guess: the standard library seeds its hashers from the system.
fn random() -> u64 {
    RandomState::new().hash_one(0_u64)
}
