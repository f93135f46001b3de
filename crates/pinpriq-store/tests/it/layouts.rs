//! The directories of the journals of a data directory, without their expected identities. A file
//! of a data directory is replaced in one step.

use std::path::{Path, PathBuf};

use pinpriq_store::StoreError;
use pinpriq_store::journal::Expected;
use pinpriq_store::layout::{self, JournalAt, replace_file};
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};

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

#[test]
fn a_file_is_replaced_in_one_step() {
    let write = |disk: &FaultyDisk, text: &str| replace_file(disk, ("f", "f.new"), text.as_bytes());
    let read = |disk: &FaultyDisk| disk.files().remove("f");
    let (mut old, mut new) = (0, 0);
    for (seed, before) in (0..8).flat_map(|seed| [(seed, None), (seed, Some("12\n"))]) {
        for policy in [CrashPolicy::LoseUnsynced, CrashPolicy::KeepSome(50), CrashPolicy::KeepAll] {
            for nth in 1.. {
                let disk = FaultyDisk::new(seed);
                if let Some(before) = before {
                    write(&disk, before).unwrap();
                }
                disk.stop_at(nth);
                let written = write(&disk, "345\n");
                disk.crash(policy);
                let found = read(&disk);
                let is_new = found.as_deref() == Some(b"345\n");
                let is_old = found.as_deref() == before.map(str::as_bytes);
                assert!(is_new || is_old && written.is_err(), "seed {seed}, operation {nth}");
                old += u32::from(is_old);
                new += u32::from(is_new);
                write(&disk, "345\n").unwrap();
                disk.crash(CrashPolicy::LoseUnsynced);
                assert_eq!(read(&disk).unwrap(), b"345\n");
                if written.is_ok() {
                    break;
                }
            }
        }
    }
    assert!(old > 50 && new > 30, "{old} times the old one, {new} times the new one");
}
