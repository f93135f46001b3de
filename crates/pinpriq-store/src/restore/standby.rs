//! A data directory that follows an archive: where segments are written while that grows.
//!
//! What the file `following` names is never touched, except that bytes are added behind those that
//! it names. So a crash at any point leaves what it says. Where the segments come from, and whether
//! they fit, is not known here.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskFile, LOCK_NAME, OpenMode, read_full_at, write_all_at};
use crate::journal::{lock, remove_if_there, sync_dir};
use crate::layout::following::{self, FILE_PREFIX, FOLLOWING_NEW_NAME};
use crate::layout::{
    Following, FollowingSegment, FollowingShard, Phase, create, directories, is_unfinished,
    mark_unfinished, open_if_there,
};
use crate::real_disk::RealDisk;
use crate::reshard::{DirectoryError, about};
use crate::store::StoreError;

/// A data directory that follows an archive. Nobody else can use it meanwhile.
pub struct Standby {
    data: PathBuf,
    disk: RealDisk,
    shards: Vec<Shard>,
    known: Following,
    /// The last field, so that it is dropped last.
    _lock: Box<dyn Send>,
}

/// The directory of a shard.
struct Shard {
    directory: PathBuf,
    disk: RealDisk,
    /// Whether a file was made there whose name may not be durable yet.
    is_new: bool,
}

impl Standby {
    /// Opens a directory that follows. None if it is not there, or holds nothing.
    ///
    /// Refuses a directory with anything else, and one from which a server has gone on.
    pub fn open(data: &Path) -> Result<Option<Self>, DirectoryError> {
        let Some(found) = open_if_there(data).map_err(about(data))? else { return Ok(None) };
        if !following::is_there(&found).map_err(about(data))? {
            return refuse_used(&found).map(|()| None).map_err(about(data));
        }
        let disk = create(data).map_err(about(data))?;
        let guard = lock(&disk).map_err(about(data))?;
        let known = following::read(&disk).map_err(about(data))?;
        let known = known.ok_or(StoreError::NotAJournal).map_err(about(data))?;
        if known.phase == Phase::Finishing {
            let what = "a server has gone on from here, so it cannot follow any more: start that \
                        server again, or follow into an empty directory"
                .to_owned();
            return Err(about(data)(StoreError::Mixed { what }));
        }
        Self::with(data, (disk, guard), known).map(Some)
    }

    /// Makes an empty directory follow, or one that is not there yet. `known` says what is known
    /// before anything is copied.
    ///
    /// Refuses a directory that is not empty.
    pub fn begin(data: &Path, known: Following) -> Result<Self, DirectoryError> {
        let disk = create(data).map_err(about(data))?;
        let guard = lock(&disk).map_err(about(data))?;
        refuse_used(&disk).map_err(about(data))?;
        // Before the marker, so that no crash leaves a directory that is only unfinished.
        following::write(&disk, &known).map_err(about(data))?;
        Self::with(data, (disk, guard), known)
    }

    fn with(
        data: &Path,
        (disk, guard): (RealDisk, Box<dyn Send>),
        known: Following,
    ) -> Result<Self, DirectoryError> {
        if !is_unfinished(&disk).map_err(about(data))? {
            mark_unfinished(&disk).map_err(about(data))?;
        }
        let mut shards = Vec::new();
        for (directory, of_shard) in directories(data, known.shards.len()).iter().zip(&known.shards)
        {
            let disk = create(directory).map_err(about(directory))?;
            tidy_up(&disk, of_shard).map_err(about(directory))?;
            shards.push(Shard { directory: directory.clone(), disk, is_new: false });
        }
        Ok(Self { data: data.to_owned(), disk, shards, known, _lock: guard })
    }

    /// How far it is.
    #[must_use]
    pub const fn known(&self) -> &Following {
        &self.known
    }

    /// Reads the first bytes of a segment that is here.
    pub fn read(
        &self,
        shard: usize,
        segment: &FollowingSegment,
        bytes: u64,
    ) -> Result<Vec<u8>, DirectoryError> {
        let shard = self.shard(shard, "read")?;
        read_start(&shard.disk, segment, bytes).map_err(about(&shard.directory))
    }

    /// Writes bytes of a segment from `from` on, which is where it ends so far. Nothing follows
    /// them then. Blocks until they are on the disk.
    pub fn write(
        &mut self,
        shard: usize,
        segment: &FollowingSegment,
        (from, bytes): (u64, &[u8]),
    ) -> Result<(), DirectoryError> {
        let is_written_over = self.known.shards.get(shard).is_some_and(|of_shard| {
            let all = of_shard.segments.iter().chain(&of_shard.ahead);
            let same = |it: &&FollowingSegment| it.file_name() == segment.file_name();
            all.filter(same).any(|it| it.bytes > from)
        });
        self.shard(shard, "write")?;
        let shard = &mut self.shards[shard];
        if is_written_over {
            return Err(about(&shard.directory)(StoreError::OutOfOrder { call: "write" }));
        }
        shard.write(segment, (from, bytes)).map_err(about(&shard.directory))
    }

    /// Notes how far it is now, durably, and removes the segments that are needed no more.
    pub fn note(&mut self, known: Following) -> Result<(), DirectoryError> {
        for shard in self.shards.iter_mut().filter(|shard| shard.is_new) {
            sync_dir(&shard.disk).map_err(about(&shard.directory))?;
            shard.is_new = false;
        }
        following::write(&self.disk, &known).map_err(about(&self.data))?;
        let before = std::mem::replace(&mut self.known, known);
        for ((shard, before), now) in self.shards.iter().zip(&before.shards).zip(&self.known.shards)
        {
            let needed = file_names(now);
            for name in file_names(before).difference(&needed) {
                remove_if_there(&shard.disk, name).map_err(about(&shard.directory))?;
            }
        }
        Ok(())
    }

    fn shard(&self, shard: usize, call: &'static str) -> Result<&Shard, DirectoryError> {
        let found = self.shards.get(shard).ok_or(StoreError::OutOfOrder { call });
        found.map_err(about(&self.data))
    }
}

impl Shard {
    fn write(
        &mut self,
        segment: &FollowingSegment,
        (from, bytes): (u64, &[u8]),
    ) -> Result<(), StoreError> {
        let name = segment.file_name();
        let fail = |what, error| StoreError::from_io(what, &name, from, error);
        let file = match self.disk.open(&name, OpenMode::ReadWrite) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && from == 0 => {
                self.is_new = true;
                let made = self.disk.open(&name, OpenMode::CreateNew);
                made.map_err(|error| fail("make", error))?
            }
            Err(error) => return Err(fail("open", error)),
        };
        write_all_at(&*file, from, bytes).map_err(|error| fail("write", error))?;
        // What an earlier try has left behind them does not count.
        set_len(&*file, from + bytes.len() as u64).map_err(|error| fail("cut", error))?;
        file.sync_data().map_err(|error| fail("sync", error))
    }
}

/// Reads the first bytes of a segment in the directory of its shard.
pub(super) fn read_start(
    disk: &dyn Disk,
    segment: &FollowingSegment,
    bytes: u64,
) -> Result<Vec<u8>, StoreError> {
    let name = segment.file_name();
    let fail = |error| StoreError::from_io("read", &name, 0, error);
    let file = disk.open(&name, OpenMode::Read).map_err(fail)?;
    let mut buffer = vec![0; usize::try_from(bytes).unwrap_or_default()];
    let read = read_full_at(&*file, 0, &mut buffer).map_err(fail)?;
    if read == buffer.len() { Ok(buffer) } else { Err(short(&name, read as u64, bytes)) }
}

fn short(name: &str, found: u64, expected: u64) -> StoreError {
    let what = format!(
        "{name} has {found} bytes, and had {expected}: remove the directory, and follow into an \
         empty one"
    );
    StoreError::Mixed { what }
}

fn set_len(file: &dyn DiskFile, bytes: u64) -> io::Result<()> {
    if file.len()? == bytes { Ok(()) } else { file.set_len(bytes) }
}

/// The names of the files that a shard needs.
fn file_names(shard: &FollowingShard) -> BTreeSet<String> {
    shard.segments.iter().chain(&shard.ahead).map(FollowingSegment::file_name).collect()
}

/// Removes what was being written when the last process ended. Refuses a shard that lacks something
/// of what was noted.
fn tidy_up(disk: &dyn Disk, shard: &FollowingShard) -> Result<(), StoreError> {
    let listed = disk.list();
    let entries = listed.map_err(|error| StoreError::from_io("list", "the directory", 0, error))?;
    for segment in shard.segments.iter().chain(&shard.ahead) {
        let name = segment.file_name();
        let found = entries.iter().find(|entry| entry.name == name).map_or(0, |entry| entry.bytes);
        if found < segment.bytes {
            return Err(short(&name, found, segment.bytes));
        }
    }
    let needed = file_names(shard);
    remove_followed(disk, &|name| !needed.contains(name))
}

/// Removes segments that a directory has got while it followed.
pub(super) fn remove_followed(
    disk: &dyn Disk,
    is_useless: &dyn Fn(&str) -> bool,
) -> Result<(), StoreError> {
    let listed = disk.list();
    let entries = listed.map_err(|error| StoreError::from_io("list", "the directory", 0, error))?;
    let names = entries.into_iter().map(|entry| entry.name);
    for name in names.filter(|name| name.starts_with(FILE_PREFIX) && is_useless(name)) {
        remove_if_there(disk, &name)?;
    }
    Ok(())
}

/// Refuses a directory with anything but what a process has left that was killed as it began.
fn refuse_used(disk: &dyn Disk) -> Result<(), StoreError> {
    let listed = disk.list();
    let entries = listed.map_err(|error| StoreError::from_io("list", "the directory", 0, error))?;
    let mut names = entries.into_iter().map(|entry| entry.name);
    match names.find(|name| ![LOCK_NAME, FOLLOWING_NEW_NAME].contains(&name.as_str())) {
        None => Ok(()),
        Some(_) if is_unfinished(disk)? => Err(StoreError::Unfinished),
        Some(file) => Err(StoreError::NotEmpty { file }),
    }
}
