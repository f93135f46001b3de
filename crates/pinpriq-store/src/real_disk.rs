//! The disk of this machine: one directory of a real file system.
//!
//! This is the only module that names `std::fs`. Files are readable by the owner alone (0600), the
//! directory too (0700). The directory stays open, so that its entries can be synced. Nothing is
//! retried here: every error goes to the caller unchanged. Nothing is opened that could block its
//! opener.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, FileType, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{FallocateFlags, Mode, OFlags, SeekFrom, openat};
use rustix::io::Errno;

use crate::disk::{
    Disk, DiskFile, Entry, EntryKind, FileId, Gone, LOCK_NAME, LockError, OpenMode, WrongKind,
};

/// With these flags, opening a pipe or a terminal does not block and does not take over the
/// terminal. They make no difference for files.
const WITHOUT_WAITING: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// One directory of a real file system.
#[derive(Debug)]
pub struct RealDisk {
    path: PathBuf,
    directory: File,
    writable: bool,
    /// The file that carries the lock alone, on a file system that locks no directories.
    lock_alone: OnceLock<FileId>,
}

#[derive(Debug)]
struct RealFile(File);

impl RealDisk {
    /// Opens the directory for reading and writing, and creates it if it does not exist.
    pub fn create(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let disk = Self::open(path)?;
        if let Some(parent) = path.canonicalize()?.parent() {
            // Without this, a power loss could remove the whole new directory. A parent that must
            // not be read was not created here.
            match open_directory(parent) {
                Ok(parent) => parent.sync_all()?,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(error),
            }
        }
        Ok(disk)
    }

    /// Opens an existing directory for reading and writing.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::opened(path, true)
    }

    /// Opens an existing directory for reading. Nothing in it will be changed or created.
    pub fn open_read_only(path: &Path) -> io::Result<Self> {
        Self::opened(path, false)
    }

    fn opened(path: &Path, writable: bool) -> io::Result<Self> {
        let (path, directory) = (path.to_owned(), open_directory(path)?);
        Ok(Self { path, directory, writable, lock_alone: OnceLock::new() })
    }

    fn refuse_unless_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::ErrorKind::ReadOnlyFilesystem.into()) }
    }

    /// Opens the file that carries the lock, and creates it unless the disk is opened for reading
    /// only. Returns what was beside it if it is new.
    fn lock_file(&self) -> io::Result<Option<(File, Option<Vec<OsString>>)>> {
        let path = self.path.join(LOCK_NAME);
        if self.writable {
            let beside = names(&self.path)?;
            let mut options = OpenOptions::new();
            options.write(true).mode(0o600);
            return match open_file(options.create_new(true), &path) {
                Ok(file) => Ok(Some((file, Some(beside)))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let file = open_file(options.create_new(false).create(true), &path)?;
                    Ok(Some((file, None)))
                }
                Err(error) => Err(error),
            };
        }
        match open_file(OpenOptions::new().read(true), &path) {
            Ok(file) => Ok(Some((file, None))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The lock of a directory, which ends with this.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    file: Option<File>,
    /// What was beside the file when the lock created it.
    beside: Option<Vec<OsString>>,
    /// Keeps others out while the file goes.
    _directory: File,
}

impl Drop for Lock {
    /// Removes the file again if nothing has come of the lock, so that a start which is refused
    /// leaves the directory as it was.
    #[expect(clippy::disallowed_methods, reason = "this file is the one that names std::fs")]
    fn drop(&mut self) {
        let (Some(file), Some(beside)) = (&self.file, &self.beside) else { return };
        let path = self.path.join(LOCK_NAME);
        let is_ours = file.metadata().is_ok_and(|file| !leads_elsewhere(&path, id(&file)));
        let is_as_before = names(&self.path).is_ok_and(|names| names == *beside);
        if is_ours && is_as_before {
            // If it stays, it does no harm.
            drop(std::fs::remove_file(path));
        }
    }
}

/// The names of all entries except the lock, sorted.
fn names(directory: &Path) -> io::Result<Vec<OsString>> {
    let entries = directory.read_dir()?.map(|entry| Ok(entry?.file_name()));
    let mut names: Vec<_> = entries.collect::<io::Result<_>>()?;
    names.retain(|name| name != LOCK_NAME);
    names.sort();
    Ok(names)
}

/// Locks one of the two things that carry the lock.
fn try_lock(file: &File, writable: bool) -> Result<(), LockError> {
    let locked = if writable { file.try_lock() } else { file.try_lock_shared() };
    locked.map_err(|error| match error {
        TryLockError::WouldBlock => LockError::Held,
        TryLockError::Error(error) => LockError::Io(error),
    })
}

fn id(file: &Metadata) -> FileId {
    FileId { device: file.dev(), inode: file.ino() }
}

/// Whether the path leads to another file than this one, or nowhere.
fn leads_elsewhere(path: &Path, expected: FileId) -> bool {
    match path.metadata() {
        Ok(found) => id(&found) != expected,
        Err(error) => {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        }
    }
}

fn open_directory(path: &Path) -> io::Result<File> {
    let flags = flags(WITHOUT_WAITING.union(OFlags::DIRECTORY));
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Opens what must be a file.
fn open_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let wrong = |found| io::Error::from(WrongKind { found, wanted: EntryKind::File });
    match options.custom_flags(flags(WITHOUT_WAITING)).open(path) {
        Ok(file) => match kind(file.metadata()?.file_type()) {
            EntryKind::File => Ok(file),
            found => Err(wrong(found)),
        },
        // For what cannot be opened like this, such as a socket, report its kind.
        Err(error) => match path.metadata().map(|there| kind(there.file_type())) {
            Ok(EntryKind::File) | Err(_) => Err(error),
            Ok(found) => Err(wrong(found)),
        },
    }
}

fn flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

fn kind(file_type: FileType) -> EntryKind {
    if file_type.is_file() {
        EntryKind::File
    } else if file_type.is_dir() {
        EntryKind::Directory
    } else if file_type.is_fifo() {
        EntryKind::Pipe
    } else if file_type.is_socket() {
        EntryKind::Socket
    } else if file_type.is_symlink() {
        EntryKind::DeadLink
    } else {
        EntryKind::Device
    }
}

impl Disk for RealDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true);
        if mode != OpenMode::Read {
            self.refuse_unless_writable()?;
            options.write(true).mode(0o600).create_new(mode == OpenMode::CreateNew);
        }
        Ok(Box::new(RealFile(open_file(&mut options, &self.path.join(name))?)))
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in self.path.read_dir()? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let mut found = entry.metadata()?;
            if found.is_symlink() {
                found = entry.path().metadata().unwrap_or(found);
            }
            entries.push(Entry { name, bytes: found.len(), kind: kind(found.file_type()) });
        }
        entries.sort();
        Ok(entries)
    }

    #[expect(clippy::disallowed_methods, reason = "this file is the one that names std::fs")]
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.refuse_unless_writable()?;
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    #[expect(clippy::disallowed_methods, reason = "this file is the one that names std::fs")]
    fn remove(&self, name: &str) -> io::Result<()> {
        self.refuse_unless_writable()?;
        std::fs::remove_file(self.path.join(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    /// The directory itself carries the lock too, since the file may be removed.
    fn lock(&self) -> Result<Box<dyn Send>, LockError> {
        let (file, mut beside) = match self.lock_file()? {
            Some((file, beside)) => (Some(file), beside),
            None => (None, None),
        };
        if let Some(file) = &file {
            try_lock(file, self.writable)?;
        }
        // A lock belongs to what was opened, so the guard needs a descriptor of its own.
        let flags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
        let directory = openat(&self.directory, ".", flags, Mode::empty());
        let directory = File::from(directory.map_err(io::Error::from)?);
        match try_lock(&directory, self.writable) {
            Ok(()) => {}
            Err(LockError::Held) => return Err(LockError::Held),
            // Some network file systems lock files only.
            Err(LockError::Io(_)) => {
                // Without a lock of the directory, another process may hold the file by then.
                beside = None;
                if let Some(file) = &file {
                    let file = id(&file.metadata()?);
                    self.lock_alone.get_or_init(|| file);
                }
            }
        }
        let path = self.path.clone();
        Ok(Box::new(Lock { path, file, beside, _directory: directory }))
    }

    fn gone(&self, name: &str, file: &dyn DiskFile) -> Option<Gone> {
        let directory = self.directory.metadata().ok()?;
        if leads_elsewhere(&self.path, id(&directory)) {
            return Some(Gone::Directory);
        }
        if file.id().is_some_and(|file| leads_elsewhere(&self.path.join(name), file)) {
            return Some(Gone::File);
        }
        let lock = self.lock_alone.get().copied();
        let is_gone = lock.is_some_and(|lock| leads_elsewhere(&self.path.join(LOCK_NAME), lock));
        is_gone.then_some(Gone::Lock)
    }
}

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn id(&self) -> Option<FileId> {
        self.0.metadata().ok().map(|file| id(&file))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        match rustix::fs::seek(&self.0, SeekFrom::Data(offset)) {
            Ok(data) => Ok(Some(data)),
            Err(Errno::NXIO) => Ok(None),
            // A file system without holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Some(offset)),
            Err(error) => Err(error.into()),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        loop {
            match rustix::fs::fallocate(&self.0, FallocateFlags::KEEP_SIZE, 0, bytes) {
                Err(Errno::INTR) => {}
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }
}
