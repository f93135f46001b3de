//! The data directory: which journals are in it, for one shard or for several.
//!
//! With one shard the directory is the journal itself. With several it holds a directory for each
//! of them, which is a journal, and a small file that says how many there are. That file comes
//! first, and goes by a new name until it is whole, so that a start can be cut off anywhere and
//! done again. A tool that fills a new directory has the file say so until it is done. What is in
//! a journal is none of this file's business.

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Entry, EntryKind, OpenMode, read_full_at, write_all_at};
use crate::journal::{Expected, lock, read_head, take_inventory};
use crate::real_disk::RealDisk;
use crate::shards::SHARDS_MAX;
use crate::store::StoreError;

/// The file that says how many shards there are, and the number that the directory has to itself.
pub const MARKER_NAME: &str = "shards";

/// The name of that file while it is written. Left over by a crash it means nothing.
const MARKER_NEW_NAME: &str = "shards.new";

/// What the file says while a tool fills the directory.
const UNFINISHED: &str = "unfinished\n";

/// More than the file ever holds.
const MARKER_BYTES_MAX: usize = 64;

/// The name of the directory of a shard of several.
#[must_use]
pub fn shard_name(shard: usize) -> String {
    format!("shard-{shard:02}")
}

/// How many shards a data directory holds, from 1 to [`SHARDS_MAX`]; none if there is no directory,
/// or no journal in it. Changes nothing.
///
/// Refuses a directory that was not written to its end, and one whose files do not go together.
pub fn shards_in(data: &Path) -> Result<Option<usize>, StoreError> {
    open_if_there(data)?.map_or(Ok(None), |disk| count_shards(&disk))
}

/// The journals of so many shards, in order, to start a server on: the data directory itself for
/// one shard, which is left as it is, and the directories of the shards for several, which are made
/// if they are not there. A new data directory has `drawn`, a random number, to itself.
///
/// Refuses a directory that holds another number of shards, or what [`shards_in`] refuses, and
/// changes nothing then; refuses one that another process prepares just now. A crash at any point
/// leaves a directory that the same call accepts.
///
/// # Panics
/// If there are to be no shards, or more than [`SHARDS_MAX`].
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
    // Somebody else may have been here before the lock.
    let found = count_shards(&disk)?;
    expect_shards(found, shards)?;
    let directories = directories(data, shards);
    if found.is_none() {
        write_marker(&disk, &marker_text(shards, drawn))?;
    } else {
        refuse_lost_shards(&directories)?;
        // A process that was killed may have left a name that is not on the disk yet.
        sync(&disk)?;
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

/// All shards of a data directory were loaded and are about to begin: gives the directory the
/// number that its journals expect, if it has none.
pub fn give_number(data: &Path, journals: &[JournalAt]) -> Result<(), StoreError> {
    let [first, _, ..] = journals else { return Ok(()) };
    let Some(number) = first.expected.directory else { return Ok(()) };
    let disk = create(data)?;
    match read_marker(&disk)? {
        (_, Some(_)) => Ok(()),
        (shards, None) => write_marker(&disk, &marker_text(shards, number)),
    }
}

/// The journals of an existing data directory, to look at: see [`shard_directories`]. One that
/// holds nothing has itself. Directories of several shards may be missing. Changes nothing, and
/// refuses what [`shards_in`] does.
pub fn existing_journals(data: &Path) -> Result<Vec<JournalAt>, StoreError> {
    journals(data, shards_in(data)?.unwrap_or(1))
}

/// Where a journal is, and which one belongs there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalAt {
    /// Its directory.
    pub directory: PathBuf,
    /// Which journal it must be.
    pub expected: Expected,
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

/// Makes a new data directory that nothing accepts before [`finish`]. Returns where its journals
/// are to be.
///
/// Refuses a directory that is not empty.
pub(crate) fn begin(data: &Path, shards: usize, drawn: u64) -> Result<Vec<JournalAt>, StoreError> {
    refuse_unless_empty(data)?;
    let whole = marker_text(shards, drawn);
    write_marker(&create(data)?, if planted!(NewTakenForWhole) { &whole } else { UNFINISHED })?;
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

/// The journals of a new data directory are complete and durable: from now on it is one like any
/// other.
pub(crate) fn finish(data: &Path, shards: usize, drawn: u64) -> Result<(), StoreError> {
    let disk = create(data)?;
    if shards > 1 {
        return write_marker(&disk, &marker_text(shards, drawn));
    }
    let fail = |error| StoreError::from_io("remove", MARKER_NAME, 0, error);
    disk.remove(MARKER_NAME).map_err(fail)?;
    sync(&disk)
}

/// Refuses a directory that is there and not empty. Changes nothing.
pub(crate) fn refuse_unless_empty(data: &Path) -> Result<(), StoreError> {
    let Some(disk) = open_if_there(data)? else { return Ok(()) };
    let listed = disk.list();
    let entries = listed.map_err(|error| StoreError::from_io("list", "the directory", 0, error))?;
    match entries.into_iter().next() {
        Some(entry) => Err(StoreError::NotEmpty { file: entry.name }),
        None => Ok(()),
    }
}

/// Opens a directory for reading and writing, made if it is not there.
pub(crate) fn create(directory: &Path) -> Result<RealDisk, StoreError> {
    let name = directory.file_name().unwrap_or(directory.as_os_str()).to_string_lossy();
    RealDisk::create(directory).map_err(|error| StoreError::from_io("make", &name, 0, error))
}

fn directories(data: &Path, shards: usize) -> Vec<PathBuf> {
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

/// Journals begin only after all directories were made: once there is one, none may be missing.
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

/// Opens a directory for reading, if there is one.
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

/// What the file says: how many shards there are, and the number of the directory if it has one.
fn marker_text(shards: usize, number: u64) -> String {
    format!("{shards}\ndirectory {number:016x}\n")
}

fn read_marker(disk: &dyn Disk) -> Result<(usize, Option<u64>), StoreError> {
    let fail = |error| StoreError::from_io("read", MARKER_NAME, 0, error);
    let file = disk.open(MARKER_NAME, OpenMode::Read).map_err(fail)?;
    let mut bytes = vec![0; MARKER_BYTES_MAX];
    let length = read_full_at(&*file, 0, &mut bytes).map_err(fail)?;
    bytes.truncate(length);
    let text = String::from_utf8_lossy(&bytes);
    if text == UNFINISHED {
        return Err(StoreError::Unfinished);
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

/// Writes the file that says how many shards there are, in one step, durably.
fn write_marker(disk: &dyn Disk, text: &str) -> Result<(), StoreError> {
    let fail = |what, error| StoreError::from_io(what, MARKER_NAME, 0, error);
    match disk.remove(MARKER_NEW_NAME) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail("remove", error)),
        _ => {}
    }
    let made = disk.open(MARKER_NEW_NAME, OpenMode::CreateNew);
    let file = made.map_err(|error| fail("make", error))?;
    write_all_at(&*file, 0, text.as_bytes()).map_err(|error| fail("write", error))?;
    file.sync_data().map_err(|error| fail("sync", error))?;
    disk.rename(MARKER_NEW_NAME, MARKER_NAME).map_err(|error| fail("rename", error))?;
    sync(disk)
}

fn sync(disk: &dyn Disk) -> Result<(), StoreError> {
    disk.sync_dir().map_err(|error| StoreError::from_io("sync", "the directory", 0, error))
}
