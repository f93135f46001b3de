//! A disk whose files can no longer be read once a flag is set, so that a reader of a log ends
//! soon. It knows nothing about what is read; the caller explains the refusals.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::{Disk, DiskFile, Entry, LockError, OpenMode};

/// A disk with a flag. Clones share both.
#[derive(Clone)]
pub(crate) struct Stoppable {
    disk: Arc<dyn Disk>,
    stop: Arc<AtomicBool>,
}

/// A file of it.
struct File {
    file: Box<dyn DiskFile>,
    stop: Arc<AtomicBool>,
}

impl Stoppable {
    /// Creates a disk that can be read until `stop` is set.
    pub(crate) fn new(disk: Arc<dyn Disk>, stop: Arc<AtomicBool>) -> Self {
        Self { disk, stop }
    }

    /// Whether the flag is set.
    pub(crate) fn is_stopped(&self) -> bool {
        is_set(&self.stop)
    }
}

fn is_set(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}

impl Disk for Stoppable {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.open(name, mode)?;
        Ok(Box::new(File { file, stop: self.stop.clone() }))
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
        self.disk.sync_dir()
    }

    fn lock(&self) -> Result<Box<dyn Send>, LockError> {
        self.disk.lock()
    }
}

impl DiskFile for File {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if is_set(&self.stop) {
            return Err(io::Error::other("told to stop"));
        }
        self.file.read_at(offset, buffer)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        self.file.next_data(offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(offset, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.file.allocate(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }
}
