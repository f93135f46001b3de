//! The backups of a running server: what belongs to each, and for how long its files are kept.
//!
//! A backup is a cut of all shards at one moment. Each shard tells, between two turns, how far its
//! journal is. Its files are then read beside it, so no shard ever waits for a backup. Who may ask,
//! and how that is said over HTTP, is up to `api::backups`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{fmt, io};

use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::disk::DiskFile;
use pinpriq_store::journal::{Purpose, SegmentEnd, ShardCut, segment_name};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;
use crate::clock::{Clock, Tell, later};
use crate::cuts::{CUT_WITHIN, Copied, cut_of_all, open, read_piece};
use crate::random::random;
use crate::runtime::beside;

/// The most backups at once.
const BACKUPS_MAX: usize = 4;

/// For how long a backup is kept after its last request.
const KEPT: Span = Span::from_ms(60_000);

/// How often it is looked whether a shard has given up its files.
const LOOK: Span = Span::from_ms(1_000);

/// The most bytes that are read at a time.
const PIECE_BYTES_MAX: u64 = 1 << 20;

/// The most segments that are read at the same time.
const READINGS_MAX: usize = 16;

/// Something, or why there is none here.
pub(crate) type OrWhyNot<T> = Result<T, &'static str>;

/// The backups of a server.
pub(crate) struct Backups {
    /// The journal of each shard.
    copied: Vec<Copied>,
    tell: Tell,
    kept: Mutex<Kept>,
    /// Room for segments that are being read.
    readings: Arc<Semaphore>,
    /// Rung when a backup has begun.
    bell: Notify,
}

#[derive(Default)]
struct Kept {
    /// By their names.
    all: BTreeMap<String, Arc<Backup>>,
    /// The number of those that begin.
    beginning: usize,
}

/// One backup. Its files are kept as long as it exists.
pub(crate) struct Backup {
    /// Its name.
    pub(crate) id: String,
    /// All changes up to this moment belong to it.
    pub(crate) at: Timestamp,
    /// What belongs to it of each shard.
    cuts: Vec<ShardCut>,
    /// The moment of the last request for it, in milliseconds.
    asked_at: AtomicU64,
}

/// The place of a backup that begins.
struct Reserved<'b>(&'b Backups);

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.0.kept().beginning -= 1;
    }
}

impl fmt::Debug for Backups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backups").finish_non_exhaustive()
    }
}

impl Backups {
    /// Returns the backups of these journals: none so far.
    pub(crate) fn new(copied: Vec<Copied>, tell: Tell) -> Arc<Self> {
        let readings = Arc::new(Semaphore::new(READINGS_MAX));
        Arc::new(Self { copied, tell, kept: Mutex::default(), readings, bell: Notify::new() })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a backup of all that was confirmed to anybody before this call.
    pub(crate) async fn begin(&self) -> Result<Arc<Backup>, Problem> {
        let _reserved = self.reserve()?;
        // What was confirmed has a moment that a cut from now on includes.
        later().await;
        let taps: Vec<_> = self.copied.iter().map(|it| it.tap.clone()).collect();
        let cut =
            beside(move || cut_of_all(&taps, Purpose::Reading)).await.ok_or_else(no_thread)?;
        let (at, cuts) = cut.ok_or_else(|| {
            let within = CUT_WITHIN.as_secs();
            let sentence = format!(
                "a shard has not said within {within} s how far its journal is: the disk does not \
                 keep up, or the server stops"
            );
            Problem::new("BUSY", sentence)
        })?;
        let (id, asked_at) = (format!("{:016x}", random()), AtomicU64::new((self.tell)().ms()));
        let backup = Arc::new(Backup { id, at, cuts, asked_at });
        self.kept().all.insert(backup.id.clone(), backup.clone());
        self.bell.notify_one();
        Ok(backup)
    }

    /// Reserves a place for a backup.
    fn reserve(&self) -> Result<Reserved<'_>, Problem> {
        self.end_late();
        let mut kept = self.kept();
        if kept.all.len() + kept.beginning >= BACKUPS_MAX {
            // Those whose files are gone are of no use.
            kept.all.retain(|_, it| !it.is_lost());
        }
        if kept.all.len() + kept.beginning >= BACKUPS_MAX {
            let kept_s = KEPT.ms() / 1_000;
            let sentence = format!(
                "there are {BACKUPS_MAX} backups at once: wait, or end one. One whose command is \
                 gone ends {kept_s} s after its last request"
            );
            return Err(Problem::new("BUSY", sentence));
        }
        kept.beginning += 1;
        Ok(Reserved(self))
    }

    /// Returns the backup of this name, which is kept longer by that.
    pub(crate) fn find(&self, id: &str) -> Result<Arc<Backup>, Problem> {
        self.end_late();
        let found = self.kept().all.get(id).cloned();
        let backup = found.ok_or_else(unknown)?;
        self.touch(&backup);
        Ok(backup)
    }

    /// Ends the backup of this name.
    pub(crate) fn end(&self, id: &str) -> Result<(), Problem> {
        self.end_late();
        let ended = self.kept().all.remove(id);
        ended.map(drop).ok_or_else(unknown)
    }

    /// Ends backups when their time is over. Never ends.
    pub(crate) async fn end_in_time(&self, clock: &dyn Clock) {
        loop {
            match self.end_late() {
                None => self.bell.notified().await,
                Some(at) => tokio::select! {
                    () = self.bell.notified() => {}
                    () = clock.until(at.min(clock.now().after(LOOK))) => {}
                },
            }
        }
    }

    /// Ends the backups whose time is over. Returns when that of the next one is. If a shard has
    /// given up its files, the others do too: the disk is full.
    fn end_late(&self) -> Option<Timestamp> {
        let now = (self.tell)();
        let mut kept = self.kept();
        for lost in kept.all.values().filter(|backup| backup.is_lost()) {
            lost.cuts.iter().for_each(|cut| cut.keep.give_up());
        }
        kept.all.retain(|_, backup| backup.ends_at() > now);
        kept.all.values().map(|backup| backup.ends_at()).min()
    }

    fn touch(&self, backup: &Backup) {
        backup.asked_at.fetch_max((self.tell)().ms(), Ordering::Relaxed);
    }

    /// Begins to read bytes of a segment of a shard, which must be among those of the backup.
    pub(crate) async fn read(
        self: &Arc<Self>,
        backup: &Arc<Backup>,
        (shard, segment): (usize, SegmentEnd),
        bytes: Range<u64>,
    ) -> Result<Reading, Problem> {
        let permit = self.readings.clone().try_acquire_owned().map_err(|_| {
            let sentence = format!("{READINGS_MAX} segments are being read: ask again");
            Problem::new("BUSY", sentence)
        })?;
        let Some(copied) = self.copied.get(shard) else { return Err(no_segment()) };
        let (directory, name) = (copied.directory.clone(), segment_name(segment.number));
        let opened = beside(move || open(&directory, &name)).await.ok_or_else(no_thread)?;
        if backup.is_lost() {
            return Err(lost());
        }
        let file = opened.map_err(|error| unreadable(&error))?;
        let (backups, backup) = (self.clone(), Arc::downgrade(backup));
        Ok(Reading { backups, backup, file, left: bytes, _permit: permit })
    }
}

impl Backup {
    /// The moment at which it ends if nobody asks for it any more.
    pub(crate) fn ends_at(&self) -> Timestamp {
        Timestamp::from_ms(self.asked_at.load(Ordering::Relaxed)).after(KEPT)
    }

    /// The segments of each shard, the oldest first.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &[SegmentEnd]> {
        self.cuts.iter().map(|cut| &*cut.segments)
    }

    /// Returns the segment of a shard with this number.
    pub(crate) fn segment(&self, shard: usize, number: u32) -> Result<SegmentEnd, Problem> {
        if self.is_lost() {
            return Err(lost());
        }
        let segments = self.cuts.get(shard).map_or(&[][..], |cut| cut.segments.as_slice());
        let found = segments.iter().find(|segment| segment.number == number);
        found.copied().ok_or_else(no_segment)
    }

    /// Whether its files are no longer kept. Bytes that were read before are right.
    fn is_lost(&self) -> bool {
        self.cuts.iter().any(|cut| cut.keep.is_lost())
    }
}

/// Bytes of a segment that are being read, piece by piece.
pub(crate) struct Reading {
    backups: Arc<Backups>,
    /// The backup may end before all is read.
    backup: Weak<Backup>,
    file: Arc<dyn DiskFile>,
    /// The bytes that were not read yet.
    left: Range<u64>,
    _permit: OwnedSemaphorePermit,
}

impl Reading {
    /// Reads the next piece. Nothing comes after the last one.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let backup = self.backup.upgrade().ok_or_else(unknown)?;
        let (file, at) = (self.file.clone(), self.left.start);
        let bytes = (self.left.end - at).min(PIECE_BYTES_MAX);
        // The files are kept until the piece is read, also if nobody waits for it any more.
        let read = move || {
            let mut piece = Vec::new();
            (read_piece(&*file, at, bytes, &mut piece).map(|()| piece), backup)
        };
        let read = beside(read).await;
        let (piece, backup) = read.ok_or_else(no_thread)?;
        if backup.is_lost() {
            return Err(lost());
        }
        let piece = piece.map_err(|error| unreadable(&error))?;
        self.backups.touch(&backup);
        self.left.start += bytes;
        Ok(Some(piece))
    }
}

fn unknown() -> Problem {
    let kept_s = KEPT.ms() / 1_000;
    let sentence = format!("there is no such backup: one ends {kept_s} s after its last request");
    Problem::new("NOTFOUND", sentence)
}

fn no_segment() -> Problem {
    Problem::new("NOTFOUND", "there is no such segment in this backup")
}

fn lost() -> Problem {
    let sentence = "the files of this backup were given up, since the disk was full or the \
                    journal has ended: begin another";
    Problem::new("GONE", sentence)
}

fn unreadable(error: &io::Error) -> Problem {
    Problem::new("STORE", format!("a segment cannot be read: {error}"))
}

fn no_thread() -> Problem {
    Problem::new("BUSY", "the system has no thread for this at the moment: ask again")
}

#[cfg(test)]
mod tests;
