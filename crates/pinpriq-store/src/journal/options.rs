//! The options of a journal, and the lock on its directory: what the other files of the journal
//! need before one is open.

use std::sync::Arc;
use std::time::Duration;

use super::segment::draw_salt;
use crate::disk::{Disk, LOCK_NAME, LockError};
use crate::store::StoreError;

/// Returns the time since some fixed moment, from any thread. Used to measure how long the disk
/// takes.
pub type Stopwatch = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The smallest segment size, so that the two headers remain the smaller part of a segment.
const SEGMENT_BYTES_MIN: u32 = 24 << 10;

/// What it means that a position was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Level {
    /// The batch is on the disk.
    #[default]
    Sync,
    /// The batch was handed to the operating system, and is on the disk at most
    /// [`INTERVAL_MS`](crate::store::INTERVAL_MS) later.
    Interval,
}

/// The options of a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalOptions {
    /// What it means that a position was reached.
    pub level: Level,
    /// The size of a segment file in bytes, at least 24 KiB. Larger segments are made for batches
    /// that need them.
    pub segment_bytes: u32,
    /// Must be random, and unknown to those who write payloads: with it no payload can imitate a
    /// batch.
    pub salt_seed: u64,
    /// How many bytes the log may hold beyond twice the bytes that count.
    pub slack_bytes: u64,
    /// Whether payloads are left in the journal. If so, the journal returns them with the records
    /// that it wants written again, so that the caller need not read them.
    pub leaves_payloads: bool,
    /// Whether the journal gathers changes after a sync:
    /// see [`Store::is_gathering`](crate::Store::is_gathering).
    pub gathers: bool,
    /// Whether the journal looks every second whether its files are where they were. With each new
    /// segment it always does.
    pub watches: bool,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            level: Level::Sync,
            segment_bytes: 32 << 20,
            salt_seed: 0,
            slack_bytes: 64 << 20,
            leaves_payloads: false,
            gathers: false,
            watches: false,
        }
    }
}

impl JournalOptions {
    /// A random number for a data directory that has none yet.
    pub(crate) fn drawn(&self) -> u64 {
        draw_salt(self.salt_seed, 0, 0)
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        u64::from(self.segment_bytes.clamp(SEGMENT_BYTES_MIN, 1 << 30) & !7)
    }
}

/// Locks a directory until the guard is dropped, see [`Disk::lock`].
pub fn lock(disk: &dyn Disk) -> Result<Box<dyn Send>, StoreError> {
    disk.lock().map_err(|error| match error {
        LockError::Held => StoreError::Locked { file: LOCK_NAME.to_owned() },
        LockError::Io(error) => StoreError::from_io("lock", LOCK_NAME, 0, error),
    })
}
