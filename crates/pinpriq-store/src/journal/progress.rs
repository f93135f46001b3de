//! How far the loading of journals is, for another thread that wants to know. It decides nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes of journals were loaded, and how many there are. Journals that are loaded at the
/// same time can share one; any thread may look at it. Costs an addition for each batch.
#[derive(Debug, Default)]
pub struct LoadProgress {
    loaded: AtomicU64,
    whole: AtomicU64,
}

impl LoadProgress {
    /// The bytes of batches that were loaded so far.
    #[must_use]
    pub fn loaded_bytes(&self) -> u64 {
        self.loaded.load(Ordering::Relaxed)
    }

    /// The bytes of the journals that are known to be loaded. 0 until the first one is opened.
    #[must_use]
    pub fn whole_bytes(&self) -> u64 {
        self.whole.load(Ordering::Relaxed)
    }

    /// Adds a journal of this size.
    pub(crate) fn expect(&self, bytes: u64) {
        self.whole.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds bytes that were loaded.
    pub(crate) fn pass(&self, bytes: u64) {
        self.loaded.fetch_add(bytes, Ordering::Relaxed);
    }
}
