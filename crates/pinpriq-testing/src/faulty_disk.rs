//! A disk in memory that loses, tears, corrupts and refuses on request.
//!
//! For tests and simulators: everything follows from the seed. It knows, for each sector of 512
//! bytes and each directory entry, whether it was synced. [`FaultyDisk::crash`] decides what else
//! survives. Faults are programmed with [`FaultyDisk::fail`] and counted when they strike, so that
//! a test can check that its fault really occurred. It models a disk that keeps what it has
//! confirmed, and knows nothing about journals.

mod file;
mod state;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use state::{CrashPolicy, Losses, Operation, Repeat, SECTOR_BYTES};

use file::OpenFile;
use pinpriq_store::disk::{Disk, DiskFile, Entry, EntryKind, Gone, LockError, OpenMode};
use state::{DirChange, Inode, State};

/// A disk in memory. Clones are handles to the same disk.
#[derive(Clone)]
pub struct FaultyDisk {
    state: Arc<Mutex<State>>,
}

/// Frees the lock when it is dropped, unless the disk has crashed since.
struct Guard {
    disk: FaultyDisk,
    generation: u64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.generation == self.generation {
            state.locked = false;
        }
    }
}

impl FaultyDisk {
    /// Creates an empty disk without faults and without a capacity limit.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(seed))) }
    }

    /// Creates a disk with these files, all of them durable.
    #[must_use]
    pub fn with_files(seed: u64, files: &BTreeMap<String, Vec<u8>>) -> Self {
        let disk = Self::new(seed);
        let mut state = disk.state();
        for (name, bytes) in files {
            state.insert_durable(name, bytes.clone());
        }
        drop(state);
        disk
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that failed while it held the lock has already reported that.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the `nth` operation of this kind from now on fail (1 is the next one), once or from
    /// then on. A failed sync marks what was written as clean, as Linux does: it can be read, and
    /// no later sync makes it durable.
    pub fn fail(&self, operation: Operation, nth: u64, repeat: Repeat, kind: io::ErrorKind) {
        self.state().add_fault(operation, nth, repeat, kind);
    }

    /// Removes all programmed faults, including a coming crash.
    pub fn heal(&self) {
        self.state().heal();
    }

    /// Makes this many of a hundred writes short or interrupted.
    pub fn shorten_writes(&self, percent: u64) {
        self.state().short_percent = percent;
    }

    /// Makes this many of a hundred reads short or interrupted.
    pub fn shorten_reads(&self, percent: u64) {
        self.state().short_read_percent = percent;
    }

    /// Limits the total bytes of all files, including reserved bytes. The limit and the
    /// reservations survive a crash.
    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = bytes;
    }

    /// The total bytes of all files, including reserved bytes.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.state().used()
    }

    /// Stops the machine in the middle of the `nth` operation from now on (1 is the next one): that
    /// operation and all later ones fail until [`FaultyDisk::crash`].
    pub fn stop_at(&self, nth: u64) {
        let mut state = self.state();
        state.stop_at = Some(state.operations + nth);
    }

    /// Whether the machine has stopped.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.state().stopped
    }

    /// The number of operations so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// The number of operations of this kind so far.
    #[must_use]
    pub fn count(&self, operation: Operation) -> u64 {
        self.state().counts.get(&operation).copied().unwrap_or(0)
    }

    /// The number of programmed faults of this kind that struck.
    #[must_use]
    pub fn struck(&self, operation: Operation) -> u64 {
        self.state().struck.get(&operation).copied().unwrap_or(0)
    }

    /// The number of writes that were made short or interrupted.
    #[must_use]
    pub fn shortened(&self) -> u64 {
        self.state().shortened
    }

    /// The number of reads that were made short or interrupted.
    #[must_use]
    pub fn shortened_reads(&self) -> u64 {
        self.state().shortened_reads
    }

    /// What crashes have removed so far.
    #[must_use]
    pub fn losses(&self) -> Losses {
        self.state().losses
    }

    /// Ends everything that uses the disk, decides what survives, and starts again: old handles and
    /// the lock become invalid, and programmed faults are removed.
    pub fn crash(&self, policy: CrashPolicy) {
        self.state().crash(policy);
    }

    /// Flips one bit of a file, durably.
    ///
    /// # Panics
    /// If the file has no such byte: a fault that does not strike would prove nothing.
    pub fn flip(&self, name: &str, offset: u64, bit: u8) {
        let flipped = self.state().flip(name, offset, bit);
        assert!(flipped, "{name} has no byte at {offset}");
    }

    /// All files as a reader would see them now.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.state().files()
    }

    /// The bytes that each file occupies, including reserved bytes.
    #[must_use]
    pub fn sizes(&self) -> BTreeMap<String, u64> {
        let state = self.state();
        let bytes = |inode: &Inode| (inode.bytes.len() as u64).max(inode.reserved);
        let of = |id| state.inodes.get(id).map_or(0, bytes);
        state.directory.iter().map(|(name, id)| (name.clone(), of(id))).collect()
    }

    /// Stores a file durably, and replaces any file of that name.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        self.state().insert_durable(name, bytes);
    }

    /// Removes a file durably.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn take_away(&self, name: &str) {
        let removed = self.state().remove_durable(name);
        assert!(removed, "there is no {name}");
    }
}

impl Disk for FaultyDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        let generation = state.generation;
        state.enter(Operation::Open, generation)?;
        let inode = match (state.directory.get(name).copied(), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (None, OpenMode::Read | OpenMode::ReadWrite) => {
                return Err(io::ErrorKind::NotFound.into());
            }
            (Some(inode), _) => inode,
            (None, OpenMode::CreateNew) => {
                let inode = state.add_inode(Inode::default());
                state.directory.insert(name.to_owned(), inode);
                state.unsynced.push(DirChange::Create(name.to_owned(), inode));
                inode
            }
        };
        let writable = mode != OpenMode::Read;
        Ok(Box::new(OpenFile { disk: self.clone(), inode, generation, writable }))
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        let mut state = self.state();
        let generation = state.generation;
        state.enter(Operation::List, generation)?;
        let lengths = state.directory.iter().map(|(name, inode)| Entry {
            name: name.clone(),
            bytes: state.inodes[inode].bytes.len() as u64,
            kind: EntryKind::File,
        });
        Ok(lengths.collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        let generation = state.generation;
        let entered = state.enter(Operation::Rename, generation);
        // A machine that stops in the middle may or may not have done it.
        if entered.is_ok() || state.stops_late() {
            let Some(inode) = state.directory.remove(from) else {
                return Err(io::ErrorKind::NotFound.into());
            };
            state.directory.insert(to.to_owned(), inode);
            state.unsynced.push(DirChange::Rename(from.to_owned(), to.to_owned(), inode));
        }
        entered
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        let generation = state.generation;
        let entered = state.enter(Operation::Remove, generation);
        if entered.is_ok() || state.stops_late() {
            let Some(inode) = state.directory.remove(name) else {
                return Err(io::ErrorKind::NotFound.into());
            };
            state.unsynced.push(DirChange::Remove(name.to_owned(), inode));
        }
        entered
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.state();
        let generation = state.generation;
        let entered = state.enter(Operation::SyncDir, generation);
        if entered.is_ok() || state.stops_late() {
            state.sync_directory();
        }
        entered
    }

    /// Not counted, and never fails.
    fn gone(&self, name: &str, file: &dyn DiskFile) -> Option<Gone> {
        let state = self.state();
        let named = state.directory.get(name).copied();
        let is_gone = !state.stopped && file.id().map(|file| file.inode) != named;
        is_gone.then_some(Gone::File)
    }

    fn lock(&self) -> Result<Box<dyn Send>, LockError> {
        let mut state = self.state();
        if state.stopped {
            return Err(LockError::Io(io::Error::other("the machine has stopped")));
        }
        if state.locked {
            return Err(LockError::Held);
        }
        state.locked = true;
        Ok(Box::new(Guard { disk: self.clone(), generation: state.generation }))
    }
}
