//! A place that is a directory: each object is a file, and each prefix a directory.
//!
//! An object is written under another name, synced, and then linked to its own, which fails if that
//! is taken. So an object is whole from the moment it has its name. Files are readable by their
//! owner alone. A crash may leave a file whose name begins with `.new-`: it means nothing, is
//! listed like others, and goes with what [`prune`](mod@crate::prune) removes. A directory that was
//! there, and is gone or on another file system, is not used: it was unmounted. Everything goes
//! through the store's `Disk`, except for links, listings, and removing directories that became
//! empty.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use pinpriq_store::disk::{Disk as _, DiskFile, OpenMode, read_full_at, write_all_at};
use pinpriq_store::real_disk::RealDisk;
use rustix::io::Errno;

use crate::names::UNFINISHED;
use crate::place::{Listing, Place, PlaceError};

/// The most bytes that are written at a time.
const SLICE_BYTES: usize = 1 << 20;

/// How many names are tried for a file that is not complete yet.
const NAMES_MAX: u64 = 100;

/// How often an object is tried again whose directory was removed meanwhile, because it was empty.
const TRIES_MAX: u32 = 5;

/// A directory with objects.
#[derive(Debug)]
pub struct DirectoryPlace {
    root: PathBuf,
    /// The prefixes whose directories are durable.
    made: Mutex<BTreeSet<String>>,
    /// The file system that the root was on when it was first seen.
    device: OnceLock<u64>,
}

/// Why an object was not written.
enum Trouble {
    /// The directory was removed.
    Gone,
    Other(PlaceError),
}

impl From<PlaceError> for Trouble {
    fn from(error: PlaceError) -> Self {
        Self::Other(error)
    }
}

/// What is in a directory, as far as a listing tells.
enum Holds {
    Nothing,
    /// Only files that were never completed.
    Unfinished,
    Anything,
}

impl DirectoryPlace {
    /// Prepares to use a directory. It need not exist yet: then it is empty, and it is made when
    /// the first object is written. The directory around it must exist.
    pub fn open(root: &Path) -> Result<Self, PlaceError> {
        if root.metadata().is_ok_and(|found| !found.is_dir()) {
            let what = format!("{} is no directory: name another place", root.display());
            return Err(PlaceError::Bad { what });
        }
        Ok(Self { root: root.to_owned(), made: Mutex::default(), device: OnceLock::new() })
    }

    /// Where something below the root is. Refuses what is no name of an object.
    fn path(&self, name: &str) -> Result<PathBuf, PlaceError> {
        let is_plain = |part: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
            !part.is_empty() && part != "." && part != ".." && part.bytes().all(plain)
        };
        if name.is_empty() {
            return Ok(self.root.clone());
        }
        if !name.split('/').all(is_plain) {
            return Err(PlaceError::Bad { what: format!("{name:?} is no name of an object") });
        }
        Ok(self.root.join(name))
    }

    /// Opens the directory of a prefix for reading, if it exists.
    fn look(&self, prefix: &str) -> Result<Option<RealDisk>, PlaceError> {
        match RealDisk::open_read_only(&self.path(prefix)?) {
            Ok(disk) => Ok(Some(disk)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("list", prefix, &error)),
        }
    }

    /// Opens the directory of a prefix for writing. If it does not exist, makes it with those
    /// around it, durably.
    fn make(&self, prefix: &str) -> Result<RealDisk, Trouble> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = prefix.match_indices('/').map(|(end, _)| end).chain([prefix.len()]);
        let mut levels: Vec<&str> = ends.map(|end| &prefix[..end]).collect();
        if !prefix.is_empty() {
            levels.insert(0, "");
        }
        for level in levels {
            if made.contains(level) {
                continue;
            }
            let path = self.path(level)?;
            if level.is_empty() {
                self.refuse_without_parent()?;
            }
            RealDisk::create(&path).map_err(|error| self.trouble("make", level, &error))?;
            made.insert(level.to_owned());
        }
        drop(made);
        let path = self.path(prefix)?;
        RealDisk::open(&path).map_err(|error| self.trouble("open", prefix, &error))
    }

    /// A place whose surroundings are missing is a slip of the pen, or was not mounted.
    fn refuse_without_parent(&self) -> Result<(), PlaceError> {
        let parent = self.root.parent().filter(|parent| !parent.as_os_str().is_empty());
        match parent.filter(|parent| !parent.is_dir()) {
            Some(parent) => Err(PlaceError::NotThere { place: parent.display().to_string() }),
            None => Ok(()),
        }
    }

    /// Refuses a root that was there and is gone, or is on another file system than before: if its
    /// file system is not mounted, nothing must be written to the one below.
    fn refuse_unmounted(&self, what: &'static str) -> Result<(), PlaceError> {
        let is_known = self.device.get().is_some();
        let why = match self.root.metadata() {
            Ok(found) if *self.device.get_or_init(|| found.dev()) == found.dev() => return Ok(()),
            Ok(_) => "it is on another file system than before: is it mounted?",
            Err(error) if is_known && error.kind() == io::ErrorKind::NotFound => {
                "it was there before and is gone: is it mounted?"
            }
            // What is done next says what is wrong, if anything is.
            Err(_) => return Ok(()),
        };
        let name = self.root.display().to_string();
        Err(PlaceError::Away { what, name, why: why.to_owned() })
    }

    fn forget_made(&self) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Writes an object whose directory exists, unless it is there already.
    fn write(&self, disk: &RealDisk, name: &str, bytes: &[u8]) -> Result<bool, Trouble> {
        let fail = |what, error: io::Error| self.trouble(what, name, &error);
        let (prefix, last) = split(name);
        match disk.open(last, OpenMode::Read) {
            // Whoever made it may not have come to sync its name.
            Ok(_) => return disk.sync_dir().map(|()| false).map_err(|error| fail("sync", error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail("open", error)),
        }
        let directory = self.path(prefix)?;
        let (draft, file) = Self::draft(disk).map_err(|error| fail("write", error))?;
        let written = write_slowly(&*file, bytes);
        let linked = match written {
            Ok(()) => rustix::fs::link(directory.join(&draft), directory.join(last)),
            Err(error) => {
                // The name must not outlive the attempt, and what counts is why it failed.
                drop(disk.remove(&draft));
                return Err(fail("write", error));
            }
        };
        // On a network the answer to a first try may be lost. Then the link is ours, and counted.
        let is_ours = linked == Err(Errno::EXIST)
            && rustix::fs::stat(directory.join(&draft)).is_ok_and(|draft| draft.st_nlink == 2);
        // If this fails, the file stays under both names, and the other one means nothing.
        drop(disk.remove(&draft));
        let is_new = match linked {
            Ok(()) => true,
            Err(Errno::EXIST) => is_ours,
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {
                let place = self.root.display();
                let what = format!("{place} is on a file system without hard links: use another");
                return Err(Trouble::Other(PlaceError::Bad { what }));
            }
            Err(error) => return Err(fail("link", error.into())),
        };
        disk.sync_dir().map_err(|error| fail("sync", error))?;
        Ok(is_new)
    }

    /// Makes a file under a name that nobody else uses.
    fn draft(disk: &RealDisk) -> io::Result<(String, Box<dyn DiskFile>)> {
        let random = RandomState::new();
        let mut tries = 0;
        loop {
            let name = format!("{UNFINISHED}{:016x}", random.hash_one(tries));
            match disk.open(&name, OpenMode::CreateNew) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < NAMES_MAX => {
                    tries += 1;
                }
                opened => return opened.map(|file| (name, file)),
            }
        }
    }

    /// Removes the directories of a prefix that are empty now.
    fn tidy(&self, prefix: &str) {
        let mut level = prefix;
        while !level.is_empty() {
            let Ok(path) = self.path(level) else { return };
            // It fails if anything is in it, and then those around it are not empty either.
            if rustix::fs::rmdir(path).is_err() {
                return;
            }
            self.forget_made();
            level = split(level).0;
        }
    }

    /// What is not there while an object is written was removed.
    fn trouble(&self, what: &'static str, name: &str, error: &io::Error) -> Trouble {
        match error.kind() {
            io::ErrorKind::NotFound => Trouble::Gone,
            _ => Trouble::Other(self.failed(what, name, error)),
        }
    }

    fn failed(&self, what: &'static str, name: &str, error: &io::Error) -> PlaceError {
        let name = self.root.join(name).display().to_string();
        let why = error.to_string();
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                PlaceError::Denied { what, name, why }
            }
            io::ErrorKind::NotADirectory => {
                PlaceError::Bad { what: format!("{name} cannot be used: {why}") }
            }
            _ => PlaceError::Away { what, name, why },
        }
    }
}

impl Place for DirectoryPlace {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, PlaceError> {
        self.path(name)?;
        let mut tries = 0;
        loop {
            self.refuse_unmounted("write into")?;
            let disk = self.make(split(name).0);
            match disk.and_then(|disk| self.write(&disk, name, bytes)) {
                Ok(is_new) => {
                    self.refuse_unmounted("write into")?;
                    return Ok(is_new);
                }
                // Somebody removed the directory because it was empty.
                Err(Trouble::Gone) if tries < TRIES_MAX => self.forget_made(),
                Err(Trouble::Gone) => {
                    let name = self.root.join(name).display().to_string();
                    let why = "its directory is removed again and again".to_owned();
                    return Err(PlaceError::Away { what: "write", name, why });
                }
                Err(Trouble::Other(error)) => return Err(error),
            }
            tries += 1;
        }
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        self.path(name)?;
        self.refuse_unmounted("read from")?;
        let (prefix, last) = split(name);
        let Some(disk) = self.look(prefix)? else { return Ok(None) };
        let fail = |error: io::Error| self.failed("read", name, &error);
        let file = match disk.open(last, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(error)),
        };
        let length = usize::try_from(file.len().map_err(fail)?).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        if let Err(error) = bytes.try_reserve_exact(length) {
            return Err(fail(io::Error::new(io::ErrorKind::OutOfMemory, error)));
        }
        bytes.resize(length, 0);
        let read = read_full_at(&*file, 0, &mut bytes).map_err(fail)?;
        bytes.truncate(read);
        Ok(Some(bytes))
    }

    fn list(&self, prefix: &str) -> Result<Listing, PlaceError> {
        let fail = |error: io::Error| self.failed("list", prefix, &error);
        self.refuse_unmounted("list")?;
        let mut listing = Listing::default();
        let entries = match self.path(prefix)?.read_dir() {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listing),
            Err(error) => return Err(fail(error)),
        };
        for entry in entries {
            let entry = entry.map_err(fail)?;
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            match path.metadata() {
                Ok(found) if found.is_file() => listing.objects.push((name, found.len())),
                Ok(found) if found.is_dir() => match holds(&path) {
                    Holds::Nothing => {}
                    Holds::Unfinished => listing.unfinished.push(name),
                    Holds::Anything => listing.prefixes.push(name),
                },
                Ok(_) => {}
                // It went since its name was read, or is a link that leads nowhere.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(fail(error)),
            }
        }
        listing.sort();
        Ok(listing)
    }

    fn remove(&self, name: &str) -> Result<bool, PlaceError> {
        self.path(name)?;
        self.refuse_unmounted("remove from")?;
        let (prefix, last) = split(name);
        let fail = |error: io::Error| self.failed("remove", name, &error);
        let disk = match RealDisk::open(&self.path(prefix)?) {
            Ok(disk) => disk,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(fail(error)),
        };
        match disk.remove(last) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(fail(error)),
        }
        disk.sync_dir().map_err(fail)?;
        self.tidy(prefix);
        Ok(true)
    }

    fn name(&self) -> String {
        self.root.display().to_string()
    }

    fn settle(&self, name: &str) -> Result<(), PlaceError> {
        self.refuse_unmounted("sync")?;
        let mut level = split(name).0;
        loop {
            let opened = RealDisk::open(&self.path(level)?).and_then(|disk| disk.sync_dir());
            opened.map_err(|error| self.failed("sync", level, &error))?;
            if level.is_empty() {
                return Ok(());
            }
            level = split(level).0;
        }
    }
}

/// Writes all bytes and syncs them, a little at a time: what others write to the same disk has to
/// wait for no more than that.
fn write_slowly(file: &dyn DiskFile, bytes: &[u8]) -> io::Result<()> {
    let mut at = 0;
    for slice in bytes.chunks(SLICE_BYTES) {
        write_all_at(file, at, slice)?;
        file.sync_data()?;
        at += slice.len() as u64;
    }
    Ok(())
}

/// The prefix of a name, and its last part.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}

/// What is in a directory. One that cannot be read counts as if it held objects.
fn holds(directory: &Path) -> Holds {
    let Ok(entries) = directory.read_dir() else { return Holds::Anything };
    let mut holds = Holds::Nothing;
    for entry in entries {
        let is_unfinished =
            entry.is_ok_and(|it| it.file_name().to_string_lossy().starts_with(UNFINISHED));
        if !is_unfinished {
            return Holds::Anything;
        }
        holds = Holds::Unfinished;
    }
    holds
}
