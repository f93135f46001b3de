//! A place that is a directory: each object is a file, and each prefix a directory.
//!
//! An object is written under another name, synced, and then linked to its own, which fails if that
//! is taken. So an object is whole from the moment it has its name. Files are readable by their
//! owner alone. A crash may leave a file whose name begins with `.new-`: it means nothing, is
//! listed like others, and goes with what [`prune`](mod@crate::prune) removes. Everything goes
//! through the store's `Disk`, except for links and for removing directories that became empty.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pinpriq_store::disk::{Disk as _, DiskFile, EntryKind, OpenMode, read_full_at, write_all_at};
use pinpriq_store::real_disk::RealDisk;
use rustix::io::Errno;

use crate::names::UNFINISHED;
use crate::place::{Listing, Place, PlaceError};

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
}

/// Why an object was not written.
enum Trouble {
    /// The directory was removed.
    Gone,
    Other(PlaceError),
}

impl DirectoryPlace {
    /// Prepares to use a directory. It need not exist yet: then it is empty, and it is made when
    /// the first object is written. The directory around it must exist.
    pub fn open(root: &Path) -> Result<Self, PlaceError> {
        if root.metadata().is_ok_and(|found| !found.is_dir()) {
            let what = format!("{} is no directory: name another place", root.display());
            return Err(PlaceError::Bad { what });
        }
        Ok(Self { root: root.to_owned(), made: Mutex::default() })
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
    fn make(&self, prefix: &str) -> Result<RealDisk, PlaceError> {
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
            RealDisk::create(&path).map_err(|error| self.failed("make", level, &error))?;
            made.insert(level.to_owned());
        }
        drop(made);
        let path = self.path(prefix)?;
        RealDisk::open(&path).map_err(|error| self.failed("open", prefix, &error))
    }

    /// A place whose surroundings are missing is a slip of the pen, or was not mounted.
    fn refuse_without_parent(&self) -> Result<(), PlaceError> {
        let parent = self.root.parent().filter(|parent| !parent.as_os_str().is_empty());
        match parent.filter(|parent| !parent.is_dir()) {
            Some(parent) => Err(PlaceError::NotThere { place: parent.display().to_string() }),
            None => Ok(()),
        }
    }

    fn forget_made(&self) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Writes an object whose directory exists, unless it is there already.
    fn write(&self, disk: &RealDisk, name: &str, bytes: &[u8]) -> Result<bool, Trouble> {
        let fail = |what, error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Trouble::Gone,
            _ => Trouble::Other(self.failed(what, name, &error)),
        };
        let (prefix, last) = split(name);
        match disk.open(last, OpenMode::Read) {
            // Whoever made it may not have come to sync its name.
            Ok(_) => return disk.sync_dir().map(|()| false).map_err(|error| fail("sync", error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail("open", error)),
        }
        let directory = self.path(prefix).map_err(Trouble::Other)?;
        let (draft, file) = Self::draft(disk).map_err(|error| fail("write", error))?;
        let written = write_all_at(&*file, 0, bytes).and_then(|()| file.sync_data());
        let linked = match written {
            Ok(()) => rustix::fs::link(directory.join(&draft), directory.join(last)),
            Err(error) => {
                // The name must not outlive the attempt, and what counts is why it failed.
                drop(disk.remove(&draft));
                return Err(fail("write", error));
            }
        };
        // If this fails, the file stays under both names, and the other one means nothing.
        drop(disk.remove(&draft));
        let is_new = match linked {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
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
            let disk = self.make(split(name).0);
            match disk.map_err(Trouble::Other).and_then(|disk| self.write(&disk, name, bytes)) {
                Ok(is_new) => return Ok(is_new),
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
        let Some(disk) = self.look(prefix)? else { return Ok(Listing::default()) };
        let entries = disk.list().map_err(|error| self.failed("list", prefix, &error))?;
        let directory = self.path(prefix)?;
        let mut listing = Listing::default();
        for entry in entries {
            match entry.kind {
                EntryKind::File => listing.objects.push((entry.name, entry.bytes)),
                EntryKind::Directory if holds_anything(&directory.join(&entry.name)) => {
                    listing.prefixes.push(entry.name);
                }
                _ => {}
            }
        }
        listing.sort();
        Ok(listing)
    }

    fn remove(&self, name: &str) -> Result<bool, PlaceError> {
        self.path(name)?;
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

/// The prefix of a name, and its last part.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}

/// Whether anything is in a directory. One that cannot be read counts as if there were.
fn holds_anything(directory: &Path) -> bool {
    directory.read_dir().map_or(true, |mut entries| entries.next().is_some())
}
