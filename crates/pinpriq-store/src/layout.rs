//! The data directory: which journals are in it, for one shard or for several.
//!
//! With one shard the directory is the journal itself. With several it holds a directory for each
//! shard, which is a journal, and a small marker file with the number of shards. The marker is
//! written first, under a temporary name until it is complete, so that a start can be interrupted
//! anywhere and repeated. A tool that fills a new directory marks it as unfinished until it is
//! done. A directory that was restored to an earlier moment says so in a file of its own until its
//! first start, and one that follows an archive says in another one how far it is. This module
//! knows nothing about the contents of a journal.

pub(crate) mod following;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Entry, EntryKind, OpenMode, RESTORED_NAME, read_full_at, write_all_at};
use crate::journal::{Expected, lock, read_head, remove_if_there, sync_dir, take_inventory};
use crate::real_disk::RealDisk;
use crate::shards::SHARDS_MAX;
use crate::store::StoreError;

pub use following::{
    Following, FollowingSegment, FollowingShard, FollowingStart, Phase, read_following,
};

/// The file with the number of shards and the directory's own number.
pub const MARKER_NAME: &str = "shards";

/// The name of that file while it is written. One left over by a crash has no meaning.
const MARKER_NEW_NAME: &str = "shards.new";

/// The content of the file while a tool fills the directory.
const UNFINISHED: &str = "unfinished\n";

/// The name of the file [`RESTORED_NAME`] while it is written.
const RESTORED_NEW_NAME: &str = "restored.new";

/// The content of that file for [`AfterRestore::SkipSlots`].
const SKIP_SLOTS: &str = "skip slots\n";

/// An upper bound on the size of each of these files.
const TEXT_BYTES_MAX: usize = 64;

/// The name of the directory of one of several shards.
#[must_use]
pub fn shard_name(shard: usize) -> String {
    format!("shard-{shard:02}")
}

/// Returns the number of shards in a data directory, from 1 to [`SHARDS_MAX`], or none if there is
/// no directory, or no journal in it. Changes nothing.
///
/// Refuses a directory that is unfinished, and one whose files do not belong together.
pub fn shards_in(data: &Path) -> Result<Option<usize>, StoreError> {
    open_if_there(data)?.map_or(Ok(None), |disk| count_shards(&disk))
}

/// Returns the journals for this number of shards, in order, to start a server on. With one shard
/// that is the data directory itself, which is left unchanged. With several it is the directories
/// of the shards, which are created if they do not exist. A new data directory gets `drawn`, a
/// random number, as its own number.
///
/// Refuses a directory with another number of shards, and whatever [`shards_in`] refuses, without
/// changing anything. Refuses a directory that another process is preparing. A crash at any point
/// leaves a directory that the same call accepts.
///
/// # Panics
/// If `shards` is 0 or more than [`SHARDS_MAX`].
pub fn shard_directories(
    data: &Path,
    shards: usize,
    drawn: u64,
) -> Result<Vec<JournalAt>, StoreError> {
    assert!((1..=SHARDS_MAX).contains(&shards), "{shards} shards");
    expect_shards(shards_in(data)?, shards)?;
    if shards == 1 {
        return Ok(vec![JournalAt { directory: data.to_owned(), expected: Expected::alone() }]);
    }
    let disk = create(data)?;
    let _guard = lock(&disk)?;
    // Another process may have been here before the lock.
    let found = count_shards(&disk)?;
    expect_shards(found, shards)?;
    let directories = directories(data, shards);
    if found.is_none() {
        write_marker(&disk, &marker_text(shards, drawn))?;
    } else {
        refuse_lost_shards(&directories)?;
        // A killed process may have left a name that is not durable yet.
        sync_dir(&disk)?;
    }
    for directory in &directories {
        create(directory)?;
    }
    let mut journals = journals(data, shards)?;
    for journal in &mut journals {
        // Older servers gave the directory no number.
        journal.expected.directory.get_or_insert(drawn);
    }
    Ok(journals)
}

/// Gives the directory the number that its journals expect, if it has none. Call this when all
/// shards of a data directory were loaded and are about to begin.
pub fn give_number(data: &Path, journals: &[JournalAt]) -> Result<(), StoreError> {
    let [first, _, ..] = journals else { return Ok(()) };
    let Some(number) = first.expected.directory else { return Ok(()) };
    let disk = create(data)?;
    match read_marker(&disk)? {
        (_, Some(_)) => Ok(()),
        (shards, None) => write_marker(&disk, &marker_text(shards, number)),
    }
}

/// Returns the journals of an existing data directory, for reading: see [`shard_directories`]. A
/// data directory that holds nothing counts as a single journal. Directories of several shards may
/// be missing. Changes nothing, and refuses what [`shards_in`] does.
pub fn existing_journals(data: &Path) -> Result<Vec<JournalAt>, StoreError> {
    journals(data, shards_in(data)?.unwrap_or(1))
}

/// The location of a journal, and which journal belongs there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalAt {
    /// Its directory.
    pub directory: PathBuf,
    /// Which journal it must be.
    pub expected: Expected,
}

/// What the first start after a restore has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterRestore {
    /// Slots of schedules up to the start count as missed and are not made up.
    SkipSlots,
}

/// Returns what the first start of this data directory has to do, if it was restored and has not
/// served since. Changes nothing.
pub fn read_restored(data: &Path) -> Result<Option<AfterRestore>, StoreError> {
    let Some(disk) = open_if_there(data)? else { return Ok(None) };
    match read_text(&disk, RESTORED_NAME)? {
        None => Ok(None),
        Some(text) if text == SKIP_SLOTS => Ok(Some(AfterRestore::SkipSlots)),
        Some(text) => Err(StoreError::Mixed {
            what: format!(
                "the file {RESTORED_NAME} holds {:?}, which this server does not know: use the \
                 newer server, or remove the file",
                text.trim_end()
            ),
        }),
    }
}

/// Notes that the first start after a restore has done what it had to. Call this when all shards
/// have begun.
pub fn remove_restored(data: &Path) -> Result<(), StoreError> {
    let disk = create(data)?;
    remove_if_there(&disk, RESTORED_NAME)?;
    sync_dir(&disk)
}

/// Says what the first start of a new data directory has to do. It is durable when this returns.
/// Call this before [`finish`].
pub(crate) fn write_restored(data: &Path, after: Option<AfterRestore>) -> Result<(), StoreError> {
    match after {
        None => Ok(()),
        Some(AfterRestore::SkipSlots) => {
            let names = (RESTORED_NAME, RESTORED_NEW_NAME);
            replace_file(&create(data)?, names, SKIP_SLOTS.as_bytes())
        }
    }
}

fn journals(data: &Path, shards: usize) -> Result<Vec<JournalAt>, StoreError> {
    if shards == 1 {
        return Ok(vec![JournalAt { directory: data.to_owned(), expected: Expected::alone() }]);
    }
    let number = match open_if_there(data)? {
        Some(disk) => read_marker(&disk)?.1,
        None => None,
    };
    let directories = directories(data, shards);
    let mut served = 0;
    for directory in &directories {
        if let Some(disk) = open_if_there(directory)? {
            served = served.max(read_head(&disk)?.map_or(0, |head| head.served));
        }
    }
    let journals = directories.into_iter().zip(0..).map(|(directory, shard)| {
        let shards = u32::try_from(shards).unwrap_or(u32::MAX);
        JournalAt { directory, expected: Expected { directory: number, shard, shards, served } }
    });
    Ok(journals.collect())
}

/// Marks a directory as one that nothing accepts before [`finish`].
pub(crate) fn mark_unfinished(disk: &dyn Disk) -> Result<(), StoreError> {
    write_marker(disk, UNFINISHED)
}

/// Whether a directory is [marked](mark_unfinished) so.
pub(crate) fn is_unfinished(disk: &dyn Disk) -> Result<bool, StoreError> {
    Ok(read_text(disk, MARKER_NAME)?.is_some_and(|text| text == UNFINISHED))
}

/// Refuses to open a directory with another number of shards than there are.
pub(crate) fn refuse_other_shards(found: usize, asked: usize) -> Result<(), StoreError> {
    expect_shards(Some(found), asked)
}

/// Creates a new data directory that nothing accepts before [`finish`]. Returns where its journals
/// belong.
///
/// Refuses a directory that is not empty.
pub(crate) fn begin(data: &Path, shards: usize, drawn: u64) -> Result<Vec<JournalAt>, StoreError> {
    refuse_unless_empty(data)?;
    write_marker(&create(data)?, UNFINISHED)?;
    let directories = directories(data, shards);
    for directory in &directories {
        create(directory)?;
    }
    let journals = directories.into_iter().zip(0..).map(|(directory, shard)| {
        let shards = u32::try_from(shards).unwrap_or(u32::MAX);
        let expected = Expected { directory: Some(drawn), shard, shards, served: 0 };
        JournalAt { directory, expected }
    });
    Ok(journals.collect())
}

/// Completes a new data directory whose journals are complete and durable. It is valid from now on.
pub(crate) fn finish(data: &Path, shards: usize, drawn: u64) -> Result<(), StoreError> {
    let disk = create(data)?;
    if shards > 1 {
        return write_marker(&disk, &marker_text(shards, drawn));
    }
    let fail = |error| StoreError::from_io("remove", MARKER_NAME, 0, error);
    disk.remove(MARKER_NAME).map_err(fail)?;
    sync_dir(&disk)
}

/// Refuses a directory that exists and is not empty. Changes nothing.
pub(crate) fn refuse_unless_empty(data: &Path) -> Result<(), StoreError> {
    let Some(disk) = open_if_there(data)? else { return Ok(()) };
    let listed = disk.list();
    let entries = listed.map_err(|error| StoreError::from_io("list", "the directory", 0, error))?;
    match entries.into_iter().next() {
        Some(entry) => Err(StoreError::NotEmpty { file: entry.name }),
        None => Ok(()),
    }
}

/// Opens a directory for reading and writing, and creates it if it does not exist.
pub(crate) fn create(directory: &Path) -> Result<RealDisk, StoreError> {
    let name = directory.file_name().unwrap_or(directory.as_os_str()).to_string_lossy();
    RealDisk::create(directory).map_err(|error| StoreError::from_io("make", &name, 0, error))
}

/// Where the journals of the shards are.
pub(crate) fn directories(data: &Path, shards: usize) -> Vec<PathBuf> {
    if shards == 1 {
        return vec![data.to_owned()];
    }
    (0..shards).map(|shard| data.join(shard_name(shard))).collect()
}

fn expect_shards(found: Option<usize>, asked: usize) -> Result<(), StoreError> {
    match found {
        Some(found) if found != asked => Err(StoreError::ShardsDiffer { found, asked }),
        _ => Ok(()),
    }
}

/// Journals begin only after all directories were made. Once one has begun, none may be missing.
fn refuse_lost_shards(directories: &[PathBuf]) -> Result<(), StoreError> {
    let mut begun = false;
    let mut lost = None;
    for (shard, directory) in directories.iter().enumerate() {
        match open_if_there(directory)? {
            Some(disk) => begun |= !take_inventory(&disk)?.segments.is_empty(),
            None => lost = lost.or(Some(shard)),
        }
    }
    let Some(shard) = lost.filter(|_| begun) else { return Ok(()) };
    let what = format!(
        "{} is missing, and other shards hold journals: bring it back, or save the others with \
         `pinpriq salvage`",
        shard_name(shard)
    );
    Err(StoreError::Mixed { what })
}

/// Opens a directory for reading, if it exists.
pub(crate) fn open_if_there(directory: &Path) -> Result<Option<RealDisk>, StoreError> {
    match RealDisk::open_read_only(directory) {
        Ok(disk) => Ok(Some(disk)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::from_io("open", "the directory", 0, error)),
    }
}

/// See [`shards_in`].
fn count_shards(disk: &dyn Disk) -> Result<Option<usize>, StoreError> {
    let inventory = take_inventory(disk)?;
    let has_journal = !inventory.segments.is_empty();
    let entries = &inventory.foreign;
    let is_shard = |entry: &&Entry, shards| (0..shards).any(|it| entry.name == shard_name(it));
    let Some(marker) = entries.iter().find(|entry| entry.name == MARKER_NAME) else {
        return match entries.iter().find(|entry| is_shard(entry, SHARDS_MAX)) {
            Some(shard) => Err(StoreError::Mixed {
                what: format!(
                    "the directory holds {} and no file {MARKER_NAME}: write the number of shards \
                     that there were into that file",
                    shard.name
                ),
            }),
            None => Ok(has_journal.then_some(1)),
        };
    };
    expect_kind(marker, EntryKind::File)?;
    let (shards, _) = read_marker(disk)?;
    for shard in entries.iter().filter(|entry| is_shard(entry, shards)) {
        expect_kind(shard, EntryKind::Directory)?;
    }
    if has_journal {
        let what = format!(
            "the directory holds a journal of its own beside {shards} shards: move its segments \
             elsewhere, they are no part of the shards"
        );
        return Err(StoreError::Mixed { what });
    }
    Ok(Some(shards))
}

fn expect_kind(entry: &Entry, wanted: EntryKind) -> Result<(), StoreError> {
    if entry.kind == wanted {
        Ok(())
    } else {
        Err(StoreError::wrong_kind(&entry.name, entry.kind, wanted))
    }
}

/// The content of the file: the number of shards, and the directory's own number.
fn marker_text(shards: usize, number: u64) -> String {
    format!("{shards}\ndirectory {number:016x}\n")
}

/// Reads the beginning of a file, if it exists.
fn read_text(disk: &dyn Disk, name: &str) -> Result<Option<String>, StoreError> {
    let fail = |error| StoreError::from_io("read", name, 0, error);
    let file = match disk.open(name, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let mut bytes = vec![0; TEXT_BYTES_MAX];
    let length = read_full_at(&*file, 0, &mut bytes).map_err(fail)?;
    Ok(Some(String::from_utf8_lossy(&bytes[..length]).into_owned()))
}

fn read_marker(disk: &dyn Disk) -> Result<(usize, Option<u64>), StoreError> {
    let text = read_text(disk, MARKER_NAME)?.unwrap_or_default();
    if text == UNFINISHED {
        let follows = following::is_there(disk)?;
        return Err(if follows { StoreError::Following } else { StoreError::Unfinished });
    }
    let (shards, number) = text.split_once('\n').unwrap_or((&text, ""));
    let shards = shards.trim_end().parse().ok().filter(|it| (2..=SHARDS_MAX).contains(it));
    let number = match number.trim_end() {
        "" => Some(None),
        line => line
            .strip_prefix("directory ")
            .and_then(|number| u64::from_str_radix(number, 16).ok())
            .map(Some),
    };
    shards.zip(number).ok_or_else(|| StoreError::Mixed {
        what: format!(
            "the file {MARKER_NAME} holds {:?} instead of the number of shards, 2 to {SHARDS_MAX}: \
             write it there",
            text.trim_end()
        ),
    })
}

fn write_marker(disk: &dyn Disk, text: &str) -> Result<(), StoreError> {
    replace_file(disk, (MARKER_NAME, MARKER_NEW_NAME), text.as_bytes())
}

/// Replaces a file, or makes it, atomically. It is durable when this returns. Until it is complete
/// it has the second name; one that a crash has left there has no meaning.
pub fn replace_file(
    disk: &dyn Disk,
    (name, new_name): (&str, &str),
    content: &[u8],
) -> Result<(), StoreError> {
    let fail = |what, error| StoreError::from_io(what, name, 0, error);
    match disk.remove(new_name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail("remove", error)),
        _ => {}
    }
    let file = disk.open(new_name, OpenMode::CreateNew).map_err(|error| fail("make", error))?;
    write_all_at(&*file, 0, content).map_err(|error| fail("write", error))?;
    file.sync_data().map_err(|error| fail("sync", error))?;
    disk.rename(new_name, name).map_err(|error| fail("rename", error))?;
    sync_dir(disk)
}
