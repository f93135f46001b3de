//! The interface between the engine and whatever makes its changes durable.
//!
//! A store is one ordered log of atomic batches for one shard. Each batch carries the incarnation
//! of the server that made it, so that a store shared by several machines can refuse an owner that
//! was replaced. Nothing here assumes a local disk: a position only says how far the log has come.
//!
//! The order of calls: [`Store::load`], then [`Reclaims::obsolete`] for every record that loading
//! found replaced or gone, then [`Store::begin`], and from there turns of [`Store::append`],
//! [`Reclaims::obsolete`], [`Store::drive`] and [`Reclaims::poll_rewrite`].

use std::io;
use std::sync::Arc;

use pinpriq_proto::carried::Carried;
use pinpriq_proto::change::{Change, Header, Place, RecordKey};
pub use pinpriq_proto::room::{Room, Shortage};
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::Timestamp;
use rustix::io::Errno;

use crate::disk::{Disk, DiskFile, EntryKind, Gone, LOCK_NAME, WrongKind};
use crate::histogram::Histogram;

/// The number of a batch. Positions only grow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position(pub u64);

/// How soon a batch has to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urgency {
    /// A client waits for it.
    Soon,
    /// No client waits for it: only grants, or records that are written again. It is written with
    /// the next batch or after [`LAZY_MS`], and synced with the next synced batch or after
    /// [`INTERVAL_MS`].
    Lazy,
}

/// How long a lazy batch may stay in memory, in milliseconds.
pub const LAZY_MS: u64 = 5;

/// How long written batches may stay unsynced if no client waits for a sync, in milliseconds.
pub const INTERVAL_MS: u64 = 50;

/// The most bytes of records that one call of [`Reclaims::poll_rewrite`] returns. One record may be
/// larger.
pub const REWRITE_BYTES_MAX: u64 = 1 << 20;

/// The most records that one call of [`Reclaims::poll_rewrite`] returns.
pub const REWRITE_KEYS_MAX: usize = 1_024;

/// How far the log has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Every batch up to here has reached the durability level.
    pub reached: Position,
}

/// The number of tasks. Each of them will end one day.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskCounts {
    /// In any state.
    pub present: u64,
    /// Under a lease.
    pub taken: u64,
}

/// What [`Store::load`] found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    /// The highest incarnation, the latest moment and the highest task number in the log.
    pub header: Header,
    /// The number of batches read.
    pub batches: u64,
    /// The number of records in them.
    pub records: u64,
    /// The number of bytes in use.
    pub bytes: u64,
    /// Where an unfinished last write was cut off, if there was one.
    pub torn_tail: Option<TornTail>,
    /// Whether the log was taken over: its owner before has not ended in order, and may not know
    /// yet. Only a store that [may be taken over](Store::may_be_taken_over) says so, and not of a
    /// log in which there is nothing. See [`takeover`](crate::takeover).
    pub is_takeover: bool,
    /// What the owner before has left, if it has ended in order: see [`Store::leave`].
    pub carried: Option<Carried>,
}

/// An unfinished last write. Nothing in it was ever acknowledged as durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TornTail {
    /// The file.
    pub file: String,
    /// Where in the file the log ends.
    pub offset: u64,
}

/// Figures for people. All are zero where a store has nothing to count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Segments that are still needed.
    pub segments: u64,
    /// Bytes in use in these segments.
    pub bytes_used: u64,
    /// Bytes of records in these segments that still count.
    pub bytes_live: u64,
    /// Bytes in memory that were not handed to the disk yet.
    pub bytes_pending: u64,
    /// Writes that were synced since the start.
    pub syncs: u64,
    /// Batches that were written since the start.
    pub batches: u64,
    /// Writes since the start. Batches divided by writes is the size of a group commit.
    pub writes: u64,
    /// Records handed out to be written again since the start.
    pub rewrites: u64,
    /// Answers that said nothing about what became of a write, since the start. Only where another
    /// process keeps the log.
    pub unknown: u64,
    /// How long each synced write took, including its sync, in microseconds. All zero if the store
    /// has no stopwatch.
    pub commit_us: Histogram,
    /// How many records each write held.
    pub commit_records: Histogram,
}

impl Figures {
    /// Returns the figures of both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            segments: self.segments + other.segments,
            bytes_used: self.bytes_used + other.bytes_used,
            bytes_live: self.bytes_live + other.bytes_live,
            bytes_pending: self.bytes_pending + other.bytes_pending,
            syncs: self.syncs + other.syncs,
            batches: self.batches + other.batches,
            writes: self.writes + other.writes,
            rewrites: self.rewrites + other.rewrites,
            unknown: self.unknown + other.unknown,
            commit_us: self.commit_us.and(&other.commit_us),
            commit_records: self.commit_records.and(&other.commit_records),
        }
    }
}

/// A record that the store wants written again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rewrite {
    /// Which record.
    pub key: RecordKey,
    /// Where it is.
    pub place: Place,
    /// The payload in it, if it is the record of a task and the store read it anyway.
    pub payload: Option<Bytes>,
}

/// How far a log has come that another server may take over, as the numbers of its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// The last entry that is known to be in the log.
    pub head: u64,
    /// The last entry whose changes were carried out, in the log or on their way.
    pub applied: u64,
}

/// A part of a store. It stays readable as long as anybody holds it, even after the store has given
/// the part up.
pub trait Volume: Send + Sync {
    /// Reads the record at this place, which must be in this volume and have been reached. Blocks
    /// as long as the disk takes.
    fn read(&self, place: Place) -> Result<Change, StoreError>;
}

/// Records to read back, each with its volume.
pub type ReadJob = Vec<(Place, Arc<dyn Volume>)>;

/// Where changes become durable: the log itself. What is read back from it, and what room it has,
/// is in [`Reclaims`].
pub trait Store: Reclaims {
    /// Whether anything that is appended is ever read again.
    fn keeps_changes(&self) -> bool {
        true
    }

    /// Whether another server may own the log without notice. Then an answer to a command that may
    /// change something waits for an append, even if nothing has changed: only this shows that what
    /// it says was still true. And a lease is handed out only once its grant is durable.
    fn may_be_taken_over(&self) -> bool {
        false
    }

    /// Until when the owner may answer, in milliseconds of the steady clock that the store was
    /// given, or none if that never ends. It is put off by every append that is answered, and by
    /// renewals, for which [`Store::drive`] has to be called at [`Store::poll_timeout`].
    fn answers_until(&self) -> Option<u64> {
        None
    }

    /// Whether the moment of [`Store::answers_until`] has passed. Then another server may own the
    /// log by now: nothing may be answered that rests on memory alone, and nothing new should
    /// begin. It may end again. Costs a look at the steady clock, if there is one.
    fn is_suspended(&self) -> bool {
        false
    }

    /// Whether what keeps the log has not answered for over a second, so that nothing new should
    /// begin. It may end again. Costs a look at the steady clock while anything is asked.
    fn is_down(&self) -> bool {
        false
    }

    /// How far the log has come, if it is one that another server may take over.
    fn extent(&self) -> Option<Extent> {
        None
    }

    /// Reads the log and passes every change that still counts to `sink`, oldest first. A change
    /// with a [`Change::key`] comes with its place. Called once, before anything else.
    ///
    /// Changes nothing in the store. Refuses a log that is locked, damaged or of a newer format;
    /// then the caller must discard what the sink received. Costs one pass over the log.
    fn load(&mut self, sink: &mut dyn FnMut(Change, Option<Place>)) -> Result<Loaded, StoreError>;

    /// Begins an incarnation, durably. Called once, after [`Store::load`] and before the first
    /// request is served. Blocks.
    fn begin(&mut self, header: &Header) -> Result<(), StoreError>;

    /// Notes that every shard that serves together with this one has begun this incarnation: from
    /// now on a journal that knows less is detected. Called once, after [`Store::begin`] and before
    /// the first request is served. Blocks.
    fn all_begun(&mut self, _header: &Header) -> Result<(), StoreError> {
        Ok(())
    }

    /// Appends a batch, which will be durable as a whole or not at all, and returns its position.
    /// Reports the place of each change with a [`Change::key`] by its index in `changes`.
    ///
    /// After a failure it always refuses. Never waits for a disk if a writer thread runs. Costs a
    /// copy of the changes.
    fn append(
        &mut self,
        header: &Header,
        changes: &[Change],
        urgency: Urgency,
        placed: &mut dyn FnMut(usize, Place),
    ) -> Result<Position, StoreError>;

    /// Notes what has finished and starts what is due. Call it after each turn, when the store
    /// wakes its caller, and at [`Store::poll_timeout`].
    ///
    /// Fails when a batch could not be made durable; from then on it always fails.
    fn drive(&mut self, now: Timestamp) -> Result<Progress, StoreError>;

    /// Whether another thread asks for a cut, so that [`Store::note_cuts`] should be called. Costs
    /// next to nothing: it is called in every turn.
    fn has_cut_request(&self) -> bool {
        false
    }

    /// Notes the cuts that other threads ask for: all that was appended so far belongs to them, and
    /// every later batch gets a later moment than theirs, the millisecond before `now`. They are
    /// handed out once all that belongs to them is durable. Only a store that others can copy is
    /// ever asked: see [`Journal::tapped_by`](crate::Journal::tapped_by).
    fn note_cuts(&mut self, _now: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether a write has ended and the next one, which may be due, waits for
    /// [`Store::end_gathering`].
    ///
    /// Clients that have just learned that their changes are durable soon send more. If the next
    /// write waits for these, it takes them along: there are fewer writes with more in each. Only
    /// a store that was told to gathers, and only while little waits to be written.
    fn is_gathering(&self) -> bool {
        false
    }

    /// Lets the next [`Store::drive`] begin a write.
    fn end_gathering(&mut self) {}

    /// When [`Store::drive`] has to be called next, if nothing else calls it before.
    fn poll_timeout(&self) -> Option<Timestamp>;

    /// Whether nothing more should be appended for a moment. Then less room is reserved than the
    /// coming changes may need, and it is not known yet whether there is more. What is appended
    /// nevertheless may fail.
    fn is_outpaced(&self) -> bool {
        false
    }

    /// Makes everything that was appended durable. Blocks. The store stays usable.
    fn finish(&mut self, now: Timestamp) -> Result<(), StoreError>;

    /// Says what the next owner has to know, if this one ends in order now: [`Store::close`] comes
    /// next. Only a store that [may be taken over](Store::may_be_taken_over) keeps it.
    fn leave(&mut self, _carried: &Carried) {}

    /// Makes everything that was appended durable, for an orderly stop: nothing is appended after
    /// it. Blocks. A store that can also makes sure that later damage to the last batch is not
    /// mistaken for an unfinished write. Having no room for that is no failure. A store that may be
    /// taken over notes that it has ended in order: see [`Loaded::is_takeover`].
    fn close(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.finish(now)
    }

    /// The bytes in memory that were not handed to the disk yet. Costs little: it is called in
    /// every turn.
    fn pending_bytes(&self) -> u64 {
        self.figures().bytes_pending
    }

    /// Figures for people.
    fn figures(&self) -> Figures;
}

/// What a store does about records that were written earlier: it reads them back, has them written
/// again, and gives up those that are no longer needed.
pub trait Reclaims {
    /// Marks the record at this place as no longer needed: a batch that was appended before this
    /// call replaces it or says that it is gone. Called exactly once for each such place.
    fn obsolete(&mut self, place: Place);

    /// Returns records that the store wants written again: at most [`REWRITE_BYTES_MAX`] bytes and
    /// [`REWRITE_KEYS_MAX`] keys at a time. Returns none if there is nothing to do or too much
    /// under way. For each record whose place is still the current one, the caller appends its
    /// current form with [`Urgency::Lazy`], and then calls [`Reclaims::obsolete`] for the old
    /// place, as for any replaced record. The caller ignores the others.
    fn poll_rewrite(&mut self) -> Vec<Rewrite>;

    /// Keeps the volume of this place readable, for a payload that was left in the store. The batch
    /// of the place must have been reached, and the place must not have been given up yet. A store
    /// without a disk has nothing to read and refuses.
    fn hold(&mut self, _place: Place) -> Result<Arc<dyn Volume>, StoreError> {
        Err(StoreError::OutOfOrder { call: "hold" })
    }

    /// The bytes of volumes that the store has given up but that still exist because a reader holds
    /// them.
    fn held_bytes(&mut self) -> u64 {
        0
    }

    /// Starts to read records back, on a thread of the store's own if it has one. Only one job runs
    /// at a time: the result of the last one must have been taken.
    fn start_read(&mut self, _job: ReadJob) -> Result<(), StoreError> {
        Err(StoreError::OutOfOrder { call: "start_read" })
    }

    /// Returns the records of the job, in its order, once it is done. With `wait` it blocks until
    /// then.
    fn take_read(&mut self, _wait: bool) -> Result<Option<Vec<Change>>, StoreError> {
        Ok(None)
    }

    /// What there is room for with this number of tasks. Costs little: it is called after every
    /// turn.
    fn room(&mut self, tasks: &dyn Fn() -> TaskCounts) -> Room;

    /// Why there is not [`Room::Enough`], if there is not.
    fn shortage(&self) -> Shortage {
        Shortage::Space
    }
}

/// Why a store does not work. Each message says what an operator can do about it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {what} {file} at offset {offset}: {source}; see to the disk, then restart")]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The file.
        file: String,
        /// The offset in it, in bytes.
        offset: u64,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
    /// A write had no room.
    #[error("no room on the disk to {what} {file} ({source}); free some space, then restart")]
    Full {
        /// The operation that failed.
        what: &'static str,
        /// The file.
        file: String,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
    /// The process, or the machine, has too many files open.
    #[error(
        "cannot {what} {file}: no file descriptor is free ({source}); raise the limit on open \
         files, for example with LimitNOFILE of systemd, then restart"
    )]
    NoDescriptor {
        /// The operation that failed.
        what: &'static str,
        /// The file.
        file: String,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
    /// A file that the store writes, or its directory, is no longer where it was.
    #[error(
        "{what} is no longer in its place: it was removed, moved or replaced while it was in use, \
         so what is written to it now would be lost; bring it back if it was moved, then restart"
    )]
    Gone {
        /// The directory or the file.
        what: String,
    },
    /// The log is damaged.
    #[error(
        "{file} is damaged at offset {offset}: {what}; no file was changed. `pinpriq check` lists \
         the damage, `pinpriq salvage` writes all that can be read into a new directory"
    )]
    Corrupt {
        /// The file.
        file: String,
        /// The offset in it, in bytes.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// Another process uses the directory.
    #[error("another process uses this directory (it holds {file}); stop it or use another one")]
    Locked {
        /// The file that carries the lock.
        file: String,
    },
    /// A newer server wrote this.
    #[error(
        "{file} has format version {version}, this server knows {known}; no file was changed. Use \
         the newer server"
    )]
    NewerFormat {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
        /// The highest version that this server knows.
        known: u32,
    },
    /// A newer server wrote this record, which contains something that this server does not know.
    #[error(
        "{file} holds at byte {offset} what this server does not know ({what}); no file was \
         changed. Use the newer server"
    )]
    NewerRecord {
        /// The file.
        file: String,
        /// The offset of the record.
        offset: u64,
        /// What is unknown.
        what: String,
    },
    /// There is no journal to look at.
    #[error("there is no journal here: the directory holds no segment file")]
    NotAJournal,
    /// A directory that must be empty is not.
    #[error("the directory holds {file}; give a new, empty directory")]
    NotEmpty {
        /// One of its files.
        file: String,
    },
    /// A data directory has another number of shards.
    #[error(
        "the directory holds {found} shard{}, and {asked} {} asked for: start with --shards \
         {found}, or move it with `pinpriq reshard`",
        if *found == 1 { "" } else { "s" },
        if *asked == 1 { "is" } else { "are" }
    )]
    ShardsDiffer {
        /// The number of shards it has.
        found: usize,
        /// The number of shards requested.
        asked: usize,
    },
    /// A tool wrote a new data directory and was interrupted.
    #[error(
        "the directory is unfinished: `pinpriq restore`, `pinpriq reshard`, `pinpriq salvage` or \
         `pinpriq cluster export` was interrupted while it wrote it; remove it and run that again"
    )]
    Unfinished,
    /// A data directory follows an archive, and nobody has begun to serve it.
    #[error(
        "the directory follows an archive: go on following with `pinpriq restore --follow`, or \
         start a server on it, after which it never follows again"
    )]
    Following,
    /// The files of a data directory do not belong together.
    #[error("{what}; no file was changed")]
    Mixed {
        /// What is wrong, and what to do.
        what: String,
    },
    /// Something else exists where a file or a directory of the store is required.
    #[error("{file} is {found}, not {wanted}; no file was changed. Move it elsewhere")]
    WrongKind {
        /// Its name.
        file: String,
        /// What exists.
        found: EntryKind,
        /// What is required.
        wanted: EntryKind,
    },
    /// One batch is larger than any segment may be.
    #[error("one commit has {bytes} bytes, more than the {most} that a segment can hold")]
    BatchTooLarge {
        /// Its size.
        bytes: u64,
        /// The bound.
        most: u64,
    },
    /// Another server owns the log now. Only a store on a distributed engine returns this.
    #[error("incarnation {incarnation} no longer owns this store; another server took over")]
    Fenced {
        /// The incarnation that was refused.
        incarnation: u64,
    },
    /// An entry of a log on a distributed engine cannot be what it should be.
    #[error(
        "entry {seq} of the log is damaged: {what}; nothing was changed. Restore the engine from a \
         backup"
    )]
    BadEntry {
        /// The number of the entry.
        seq: u64,
        /// What is wrong.
        what: String,
    },
    /// A distributed engine has lost what it had said to keep.
    #[error(
        "the engine was rolled back: this node has seen {expected}, and finds {found}. Nothing is \
         answered from the past. If the engine was restored from a backup on purpose, run \
         `pinpriq cluster accept-rollback`; otherwise bring back the newer engine"
    )]
    RolledBack {
        /// What was known to be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A distributed engine has no room for the log.
    #[error("the engine has no room for the log; give it more room, then start again")]
    EngineFull,
    /// A distributed engine has not answered.
    #[error("the engine does not answer: {why}")]
    NoAnswer {
        /// What happened.
        why: String,
    },
    /// The load was asked to stop.
    #[error("the start was stopped before everything was loaded; nothing was changed")]
    Stopped,
    /// An earlier failure ended the store.
    #[error("nothing is accepted since an earlier failure: {cause}")]
    Poisoned {
        /// That failure.
        cause: Box<Self>,
    },
    /// A thread of the store ended unexpectedly.
    #[error("the thread {thread} of the store has ended; restart, and report this as a bug")]
    ThreadEnded {
        /// Its name.
        thread: &'static str,
    },
    /// The calls came in the wrong order.
    #[error("{call} was called at the wrong time; report this as a bug")]
    OutOfOrder {
        /// The call.
        call: &'static str,
    },
}

impl StoreError {
    /// Whether it says what a data directory is, rather than what happened while it was used.
    #[must_use]
    pub const fn is_of_directory(&self) -> bool {
        matches!(
            self,
            Self::Corrupt { .. }
                | Self::Locked { .. }
                | Self::NewerFormat { .. }
                | Self::NewerRecord { .. }
                | Self::NotAJournal
                | Self::ShardsDiffer { .. }
                | Self::Unfinished
                | Self::Following
                | Self::WrongKind { .. }
                | Self::Mixed { .. }
        )
    }

    /// Wraps an error of the operating system. Distinguishes a lack of room, a lack of file
    /// descriptors and an entry of the wrong kind.
    #[must_use]
    pub fn from_io(what: &'static str, file: &str, offset: u64, source: io::Error) -> Self {
        if let Some(wrong) = source.get_ref().and_then(|inner| inner.downcast_ref::<WrongKind>()) {
            return Self::wrong_kind(file, wrong.found, wrong.wanted);
        }
        let (file, source) = (file.to_owned(), Arc::new(source));
        if is_full(&source) {
            Self::Full { what, file, source }
        } else if lacks_descriptor(&source) {
            Self::NoDescriptor { what, file, source }
        } else {
            Self::Io { what, file, offset, source }
        }
    }

    /// Fails if this open file, or its directory, is no longer where a later start will look for
    /// it.
    pub fn refuse_gone(disk: &dyn Disk, name: &str, file: &dyn DiskFile) -> Result<(), Self> {
        let what = match disk.gone(name, file) {
            None => return Ok(()),
            Some(Gone::Directory) => "the data directory",
            Some(Gone::File) => name,
            Some(Gone::Lock) => LOCK_NAME,
        };
        Err(Self::Gone { what: what.to_owned() })
    }

    /// Something else than what is required exists under this name.
    #[must_use]
    pub fn wrong_kind(file: &str, found: EntryKind, wanted: EntryKind) -> Self {
        Self::WrongKind { file: file.to_owned(), found, wanted }
    }

    /// Reports damage at this offset of this file.
    #[must_use]
    pub fn damage(file: &str, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt { file: file.to_owned(), offset, what: what.into() }
    }
}

/// Whether the operating system refused for lack of room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Whether the operating system refused because too many files are open.
fn lacks_descriptor(error: &io::Error) -> bool {
    let codes = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}
