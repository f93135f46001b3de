//! The disk as the journal sees it: one flat directory of files.
//!
//! The traits are small so that a simulator can replace the real disk and lose, tear, corrupt and
//! refuse. Nothing is durable before it is synced: the bytes of a file by [`DiskFile::sync_data`],
//! its creation, renaming and removal by [`Disk::sync_dir`]. This module has no caching, no paths
//! and no policy.

use std::{fmt, io};

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// For reading. The file must exist.
    Read,
    /// For reading and writing in place. The file must exist.
    ReadWrite,
    /// For reading and writing. The file must not exist yet.
    CreateNew,
}

/// One entry of the directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Entry {
    /// Its name within the directory.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its kind.
    pub kind: EntryKind,
}

/// What a name in the directory refers to. A link has the kind of its target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A named pipe. Opening it may block for ever.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// A link whose target does not exist.
    DeadLink,
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::DeadLink => "a link that leads nowhere",
        })
    }
}

/// Something else exists where a file or a directory is required. Carried by an [`io::Error`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("it is {found}, not {wanted}")]
pub struct WrongKind {
    /// What exists.
    pub found: EntryKind,
    /// What is required.
    pub wanted: EntryKind,
}

impl From<WrongKind> for io::Error {
    fn from(wrong: WrongKind) -> Self {
        Self::new(io::ErrorKind::InvalidInput, wrong)
    }
}

/// Which file it is, whatever its name: two files that exist at the same time differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileId {
    /// The device that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// What is no longer where it was, although it is still open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gone {
    /// The directory: its path leads nowhere, or to another one.
    Directory,
    /// The file: its name leads nowhere, or to another one.
    File,
    /// The file that carries the lock.
    Lock,
}

/// Why the directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("another process holds the lock")]
    Held,
    /// The operating system failed to lock.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The name of the file that carries the lock.
pub const LOCK_NAME: &str = "LOCK";

/// The name of the file that records how far a journal has advanced.
pub const HEAD_NAME: &str = "head";

/// The name of the file that tells the first start after a restore what it has to know.
pub const RESTORED_NAME: &str = "restored";

/// One flat directory. Every method blocks until the operating system has answered.
pub trait Disk: Send + Sync {
    /// Opens the file of this name. Never blocks on anybody else: anything but a file is refused at
    /// once, with a [`WrongKind`].
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Box<dyn DiskFile>>;

    /// Returns every entry with its kind, sorted by name.
    fn list(&self) -> io::Result<Vec<Entry>>;

    /// Renames a file and replaces any file with the new name. Durable after [`Disk::sync_dir`].
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Durable after [`Disk::sync_dir`].
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes every creation, renaming and removal so far durable.
    fn sync_dir(&self) -> io::Result<()>;

    /// Locks the directory until the guard is dropped. Excludes everybody or, if the disk was
    /// opened for reading only, writers. Never blocks, and refuses as [`Disk::open`] does. Removing
    /// a file does not end it.
    fn lock(&self) -> Result<Box<dyn Send>, LockError>;

    /// Returns what of this is no longer where a later start will look for it: the directory, or
    /// the open file under this name. What cannot be looked at counts as there. A disk from which
    /// no other process can remove files has nothing to look at.
    fn gone(&self, _name: &str, _file: &dyn DiskFile) -> Option<Gone> {
        None
    }
}

/// One open file. Reads and writes carry their offset, so there is no shared position.
pub trait DiskFile: Send + Sync {
    /// Its length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Which file it is, on a disk that looks for files that are [gone](Disk::gone).
    fn id(&self) -> Option<FileId> {
        None
    }

    /// Whether it holds no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads into `buffer` and returns the number of bytes read. Fewer bytes than requested are no
    /// error; 0 means the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Returns the first offset at or after `offset` that may hold anything but zeros, or none if
    /// there is none before the end. A disk that does not know its holes returns `offset`.
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>>;

    /// Writes from `bytes` and returns the number of bytes written; see [`write_all_at`].
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Makes everything written so far durable, including the length. After a failure, nothing is
    /// known about what was written since the last success, and a second try proves nothing.
    fn sync_data(&self) -> io::Result<()>;

    /// Reserves space for the first `bytes` bytes, without changing the length. Fails with
    /// [`io::ErrorKind::StorageFull`] if the space is not available. On a file system that cannot
    /// reserve, it succeeds and does nothing.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
}

/// Writes all of `bytes`, despite short writes and interruptions.
pub fn write_all_at(file: &dyn DiskFile, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(offset + done as u64, &bytes[done..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads until `buffer` is full or the file ends, and returns the number of bytes read.
pub fn read_full_at(file: &dyn DiskFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(offset + done as u64, &mut buffer[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// A file offset as an index into memory. An offset that memory cannot address is beyond the end of
/// every buffer.
#[must_use]
pub fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
