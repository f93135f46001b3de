//! The state of the disk in memory: what a reader sees, and what would survive.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::Dice;

/// The unit that is written as a whole or not at all.
pub const SECTOR_BYTES: usize = 512;

/// The kinds of operations, which are counted and can fail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operation {
    /// [`Disk::open`](pinpriq_store::disk::Disk::open)
    Open,
    /// [`Disk::list`](pinpriq_store::disk::Disk::list)
    List,
    /// [`Disk::rename`](pinpriq_store::disk::Disk::rename)
    Rename,
    /// [`Disk::remove`](pinpriq_store::disk::Disk::remove)
    Remove,
    /// [`Disk::sync_dir`](pinpriq_store::disk::Disk::sync_dir)
    SyncDir,
    /// [`DiskFile::read_at`](pinpriq_store::disk::DiskFile::read_at)
    Read,
    /// [`DiskFile::write_at`](pinpriq_store::disk::DiskFile::write_at)
    Write,
    /// [`DiskFile::sync_data`](pinpriq_store::disk::DiskFile::sync_data)
    Sync,
    /// [`DiskFile::allocate`](pinpriq_store::disk::DiskFile::allocate)
    Allocate,
    /// [`DiskFile::set_len`](pinpriq_store::disk::DiskFile::set_len)
    SetLen,
}

/// Whether a fault ends by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeat {
    /// It strikes once.
    Once,
    /// It strikes every time from then on.
    Forever,
}

/// Which unsynced data survives a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrashPolicy {
    /// All of it: only the process was killed.
    KeepAll,
    /// None of it.
    LoseUnsynced,
    /// Each sector and each directory entry survives with this chance, in percent.
    KeepSome(u64),
}

/// The unsynced data that crashes have removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Losses {
    /// Sectors whose latest content is gone.
    pub sectors: u64,
    /// Crashes after which some of the unsynced sectors of a file survived and others did not.
    pub torn: u64,
    /// Creations, renamings and removals that were undone.
    pub entries: u64,
}

pub(super) type InodeId = u64;

#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    /// What a reader sees.
    pub(super) bytes: Vec<u8>,
    /// What is certainly on the disk.
    pub(super) durable: Vec<u8>,
    /// Sectors that the next sync will write.
    pub(super) dirty: BTreeSet<usize>,
    /// Sectors that a sync failed to write, and that no later sync will write.
    pub(super) dropped: BTreeSet<usize>,
    pub(super) reserved: u64,
    /// Whether what a reader sees and what is on the disk may differ outside the sectors above,
    /// because the length was changed.
    pub(super) was_resized: bool,
}

#[derive(Clone, Debug)]
pub(super) enum DirChange {
    Create(String, InodeId),
    Rename(String, String, InodeId),
    Remove(String, InodeId),
}

#[derive(Clone, Copy, Debug)]
struct Fault {
    operation: Operation,
    countdown: u64,
    repeat: Repeat,
    kind: io::ErrorKind,
}

pub(super) struct State {
    pub(super) dice: Dice,
    pub(super) inodes: BTreeMap<InodeId, Inode>,
    pub(super) directory: BTreeMap<String, InodeId>,
    durable_directory: BTreeMap<String, InodeId>,
    pub(super) unsynced: Vec<DirChange>,
    next_inode: InodeId,
    pub(super) locked: bool,
    /// Rises with each crash, which makes old handles invalid.
    pub(super) generation: u64,
    faults: Vec<Fault>,
    pub(super) short_percent: u64,
    pub(super) short_read_percent: u64,
    pub(super) capacity: u64,
    pub(super) operations: u64,
    pub(super) stop_at: Option<u64>,
    pub(super) stopped: bool,
    pub(super) counts: BTreeMap<Operation, u64>,
    pub(super) struck: BTreeMap<Operation, u64>,
    pub(super) shortened: u64,
    pub(super) shortened_reads: u64,
    pub(super) losses: Losses,
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            inodes: BTreeMap::new(),
            directory: BTreeMap::new(),
            durable_directory: BTreeMap::new(),
            unsynced: Vec::new(),
            next_inode: 1,
            locked: false,
            generation: 0,
            faults: Vec::new(),
            short_percent: 0,
            short_read_percent: 0,
            capacity: u64::MAX,
            operations: 0,
            stop_at: None,
            stopped: false,
            counts: BTreeMap::new(),
            struck: BTreeMap::new(),
            shortened: 0,
            shortened_reads: 0,
            losses: Losses::default(),
        }
    }

    /// Every operation begins here. It is counted, and fails here if it has to.
    pub(super) fn enter(&mut self, operation: Operation, generation: u64) -> io::Result<()> {
        if self.stopped || generation != self.generation {
            return Err(io::Error::other("the machine has stopped"));
        }
        self.operations += 1;
        *self.counts.entry(operation).or_default() += 1;
        if self.stop_at.is_some_and(|at| self.operations >= at) {
            self.stopped = true;
            return Err(io::Error::other("the machine stops"));
        }
        let mut failed = None;
        for fault in self.faults.iter_mut().filter(|fault| fault.operation == operation) {
            fault.countdown = fault.countdown.saturating_sub(1);
            if fault.countdown == 0 {
                failed = Some(fault.kind);
            }
        }
        self.faults.retain(|fault| fault.countdown > 0 || fault.repeat == Repeat::Forever);
        let Some(kind) = failed else { return Ok(()) };
        *self.struck.entry(operation).or_default() += 1;
        Err(kind.into())
    }

    /// Whether the operation at which the machine stops took effect nevertheless.
    pub(super) fn stops_late(&mut self) -> bool {
        self.stopped && self.dice.chance(50) && self.stop_at.take().is_some()
    }

    pub(super) fn add_fault(
        &mut self,
        operation: Operation,
        nth: u64,
        repeat: Repeat,
        kind: io::ErrorKind,
    ) {
        self.faults.push(Fault { operation, countdown: nth.max(1), repeat, kind });
    }

    pub(super) fn heal(&mut self) {
        self.faults.clear();
        self.short_percent = 0;
        self.short_read_percent = 0;
        self.stop_at = None;
    }

    pub(super) fn used(&self) -> u64 {
        let named = self.directory.values().collect::<BTreeSet<_>>();
        let sizes = named.iter().filter_map(|inode| self.inodes.get(inode));
        sizes.map(|inode| (inode.bytes.len() as u64).max(inode.reserved)).sum()
    }

    /// Like `used`, including what a crash would bring back: files whose removal is not durable,
    /// and the ends of truncated files.
    fn held(&self) -> u64 {
        let named = self.directory.values().chain(self.durable_directory.values());
        let named = named.collect::<BTreeSet<_>>();
        named.iter().filter_map(|inode| self.inodes.get(inode)).map(Inode::held).sum()
    }

    /// Returns for how many more bytes there is room, if `wanted` are requested. Like a real file
    /// system, it makes removals durable before it refuses for lack of the room that they give
    /// back.
    pub(super) fn room(&mut self, wanted: u64) -> u64 {
        if self.capacity == u64::MAX {
            return u64::MAX;
        }
        let room = self.capacity.saturating_sub(self.held());
        if room >= wanted {
            return room;
        }
        self.sync_directory();
        for inode in self.inodes.values_mut() {
            inode.durable.truncate(inode.bytes.len());
        }
        self.capacity.saturating_sub(self.held())
    }

    pub(super) fn add_inode(&mut self, inode: Inode) -> InodeId {
        let id = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(id, inode);
        id
    }

    pub(super) fn insert_durable(&mut self, name: &str, bytes: Vec<u8>) {
        let inode = Inode { durable: bytes.clone(), bytes, ..Inode::default() };
        let id = self.add_inode(inode);
        self.directory.insert(name.to_owned(), id);
        self.durable_directory.insert(name.to_owned(), id);
    }

    pub(super) fn remove_durable(&mut self, name: &str) -> bool {
        self.durable_directory.remove(name);
        self.directory.remove(name).is_some()
    }

    pub(super) fn flip(&mut self, name: &str, offset: u64, bit: u8) -> bool {
        let Some(inode) = self.directory.get(name).and_then(|id| self.inodes.get_mut(id)) else {
            return false;
        };
        let at = index(offset);
        let Some(byte) = inode.bytes.get_mut(at) else { return false };
        *byte ^= 1 << (bit % 8);
        if let Some(byte) = inode.durable.get_mut(at) {
            *byte ^= 1 << (bit % 8);
        }
        true
    }

    pub(super) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let bytes = |id| self.inodes.get(id).map(|inode: &Inode| inode.bytes.clone());
        self.directory
            .iter()
            .map(|(name, id)| (name.clone(), bytes(id).unwrap_or_default()))
            .collect()
    }

    pub(super) fn sync_directory(&mut self) {
        self.durable_directory = self.directory.clone();
        self.unsynced.clear();
    }

    pub(super) fn crash(&mut self, policy: CrashPolicy) {
        let percent = match policy {
            CrashPolicy::KeepAll => 100,
            CrashPolicy::LoseUnsynced => 0,
            CrashPolicy::KeepSome(percent) => percent,
        };
        // The page cache outlives the process, and still holds what a failed sync dropped. That
        // does not make any of it durable.
        if policy != CrashPolicy::KeepAll {
            for change in std::mem::take(&mut self.unsynced) {
                if self.dice.chance(percent) {
                    apply(&mut self.durable_directory, &change);
                } else {
                    self.losses.entries += 1;
                }
            }
            self.directory = self.durable_directory.clone();
            let (dice, losses) = (&mut self.dice, &mut self.losses);
            self.inodes.values_mut().for_each(|inode| inode.crash(percent, dice, losses));
        }
        let named = self.directory.values().chain(self.durable_directory.values()).copied();
        let renamed = self.unsynced.iter().map(|change| match change {
            DirChange::Create(_, inode)
            | DirChange::Rename(_, _, inode)
            | DirChange::Remove(_, inode) => *inode,
        });
        let named: BTreeSet<InodeId> = named.chain(renamed).collect();
        self.inodes.retain(|id, _| named.contains(id));
        self.generation += 1;
        self.locked = false;
        self.stopped = false;
        self.heal();
    }
}

fn apply(directory: &mut BTreeMap<String, InodeId>, change: &DirChange) {
    match change {
        DirChange::Create(name, inode) => _ = directory.insert(name.clone(), *inode),
        DirChange::Rename(from, to, inode) => {
            if directory.get(from) == Some(inode) {
                directory.remove(from);
                directory.insert(to.clone(), *inode);
            }
        }
        DirChange::Remove(name, inode) => {
            if directory.get(name) == Some(inode) {
                directory.remove(name);
            }
        }
    }
}

impl Inode {
    /// The bytes that it occupies, including reserved bytes.
    pub(super) fn held(&self) -> u64 {
        (self.bytes.len().max(self.durable.len()) as u64).max(self.reserved)
    }

    /// Marks the sectors of a write as dirty.
    pub(super) fn touch(&mut self, offset: usize, length: usize) {
        if length > 0 {
            for sector in offset / SECTOR_BYTES..=(offset + length - 1) / SECTOR_BYTES {
                self.dirty.insert(sector);
                self.dropped.remove(&sector);
            }
        }
    }

    pub(super) fn sync(&mut self) {
        self.durable.resize(self.bytes.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            self.harden(sector);
        }
    }

    /// Records a failed sync: what was dirty counts as clean and is not on the disk.
    pub(super) fn fail_sync(&mut self) {
        self.dropped.append(&mut self.dirty);
    }

    fn harden(&mut self, sector: usize) {
        let start = sector * SECTOR_BYTES;
        let end = (start + SECTOR_BYTES).min(self.bytes.len()).min(self.durable.len());
        if start < end {
            self.durable[start..end].copy_from_slice(&self.bytes[start..end]);
        }
    }

    /// The opposite: a reader sees again what is on the disk.
    fn soften(&mut self, sector: usize) {
        let start = sector * SECTOR_BYTES;
        let end = (start + SECTOR_BYTES).min(self.bytes.len()).min(self.durable.len());
        if start < end {
            self.bytes[start..end].copy_from_slice(&self.durable[start..end]);
        }
    }

    fn crash(&mut self, percent: u64, dice: &mut Dice, losses: &mut Losses) {
        // The length is separate: it may survive where the content does not.
        if self.bytes.len() != self.durable.len() && dice.chance(percent) {
            self.durable.resize(self.bytes.len(), 0);
        }
        self.dirty.append(&mut self.dropped);
        let unsynced = std::mem::take(&mut self.dirty);
        let (all, mut lost) = (unsynced.len() as u64, 0);
        for sector in unsynced {
            if dice.chance(percent) {
                self.harden(sector);
            } else {
                lost += 1;
                self.soften(sector);
            }
        }
        losses.sectors += lost;
        losses.torn += u64::from(lost > 0 && lost < all);
        if self.was_resized || self.bytes.len() != self.durable.len() {
            self.bytes.clone_from(&self.durable);
            self.was_resized = false;
        }
    }
}

/// A file offset as an index into memory. An offset that memory cannot address is beyond the end of
/// every buffer.
pub(super) fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
