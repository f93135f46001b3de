//! A disk that does not do what it reports, for planted bugs.

use std::io;

use crate::faulty_disk::FaultyDisk;
use pinpriq_store::Disk;
use pinpriq_store::disk::{DiskFile, Entry, LockError, OpenMode};

use crate::sim::bugs::Bug;

/// A disk with a bug in front of it.
pub(crate) struct SpoiltDisk {
    pub(crate) disk: FaultyDisk,
    pub(crate) bug: Bug,
}

struct SpoiltFile {
    file: Box<dyn DiskFile>,
    bug: Bug,
}

impl Disk for SpoiltDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.open(name, mode)?;
        Ok(Box::new(SpoiltFile { file, bug: self.bug }))
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        self.disk.list()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        if self.bug == Bug::NoDirectorySync { Ok(()) } else { self.disk.sync_dir() }
    }

    fn lock(&self) -> Result<Box<dyn Send>, LockError> {
        self.disk.lock()
    }
}

impl DiskFile for SpoiltFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        self.file.next_data(offset)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(offset, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        match self.bug {
            Bug::NoSync => Ok(()),
            Bug::IgnoreSyncError => self.file.sync_data().or(Ok(())),
            _ => self.file.sync_data(),
        }
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.file.allocate(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }
}
