//! The directories of the journals of a data directory, without their expected identities.

use std::path::{Path, PathBuf};

use pinpriq_store::StoreError;
use pinpriq_store::journal::Expected;
use pinpriq_store::layout::{self, JournalAt};

/// The random number of every directory in these tests.
pub(crate) const DRAWN: u64 = 7;

fn directories(journals: Vec<JournalAt>) -> Vec<PathBuf> {
    journals.into_iter().map(|journal| journal.directory).collect()
}

/// See [`layout::shard_directories`].
pub(crate) fn shard_directories(data: &Path, shards: usize) -> Result<Vec<PathBuf>, StoreError> {
    layout::shard_directories(data, shards, DRAWN).map(directories)
}

/// The journal that belongs in a directory: that of a shard if the parent is a data directory of
/// several.
pub(crate) fn expected_at(directory: &Path) -> Expected {
    let journals = directory.parent().map(layout::existing_journals);
    let journals = journals.and_then(Result::ok).unwrap_or_default();
    let known = journals.into_iter().find(|journal| journal.directory == directory);
    known.map_or(Expected::alone(), |journal| journal.expected)
}

/// See [`layout::existing_journals`].
pub(crate) fn existing_directories(data: &Path) -> Result<Vec<PathBuf>, StoreError> {
    layout::existing_journals(data).map(directories)
}
