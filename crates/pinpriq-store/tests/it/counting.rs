//! A disk that counts reads, and knows which files are open.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pinpriq_store::Disk;
use pinpriq_store::disk::{DiskFile, Entry, LockError, OpenMode};

/// A disk that counts reads.
#[derive(Clone)]
pub(crate) struct CountingDisk {
    disk: Arc<dyn Disk>,
    counts: Arc<Counts>,
    /// Whether the file system knows its holes.
    knows_holes: bool,
}

#[derive(Default)]
struct Counts {
    bytes: AtomicU64,
    largest: AtomicU64,
    open: Mutex<Vec<String>>,
}

struct CountingFile {
    /// Its name when it was opened, if it was opened for reading.
    name: Option<String>,
    file: Box<dyn DiskFile>,
    counts: Arc<Counts>,
    knows_holes: bool,
}

impl CountingDisk {
    pub(crate) fn new(disk: Arc<dyn Disk>, knows_holes: bool) -> Self {
        Self { disk, counts: Arc::default(), knows_holes }
    }

    /// Returns how many bytes were read since the last call, and the most bytes in one read.
    pub(crate) fn take_counts(&self) -> (u64, u64) {
        let Counts { bytes, largest, .. } = &*self.counts;
        (bytes.swap(0, Ordering::Relaxed), largest.swap(0, Ordering::Relaxed))
    }

    /// The names of the files that are open for reading now.
    pub(crate) fn open_files(&self) -> Vec<String> {
        self.counts.open.lock().unwrap().clone()
    }
}

impl Drop for CountingFile {
    fn drop(&mut self) {
        let Some(name) = &self.name else { return };
        let mut open = self.counts.open.lock().unwrap();
        let at = open.iter().position(|known| known == name).unwrap();
        open.swap_remove(at);
    }
}

impl Disk for CountingDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.open(name, mode)?;
        let counts = Arc::clone(&self.counts);
        let name = (mode == OpenMode::Read).then(|| name.to_owned());
        counts.open.lock().unwrap().extend(name.clone());
        Ok(Box::new(CountingFile { name, file, counts, knows_holes: self.knows_holes }))
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

impl DiskFile for CountingFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.counts.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.counts.largest.fetch_max(buffer.len() as u64, Ordering::Relaxed);
        self.file.read_at(offset, buffer)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        if self.knows_holes { self.file.next_data(offset) } else { Ok(Some(offset)) }
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
