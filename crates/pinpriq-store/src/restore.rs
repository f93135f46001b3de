//! Writes a data directory from the segments of logs, as these were at some moment.
//!
//! The segments get the number of the new directory in their headers; their commits are written
//! byte for byte. Each shard then begins anew after them, as at a start. Nothing accepts the
//! directory before all of it is durable. Where the segments come from is not known here.
//!
//! A directory that follows a log which still grows ([`Standby`]) gets its segments bit by bit, and
//! becomes one that a server can serve when somebody wants to ([`finish_following`]).

mod finishing;
mod standby;
mod tally;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pinpriq_proto::change::{Change, Header};
use pinpriq_proto::time::Timestamp;

use crate::disk::{Disk, OpenMode, write_all_at};
use crate::journal::raw::{self, RawHeader, RawWalk};
use crate::journal::{COUNT_MAX, Identity, Journal, JournalOptions, Runner, segment_name};
use crate::layout::{self, AfterRestore, JournalAt, create, write_restored};
use crate::reshard::{DirectoryError, ReshardReport, about};
use crate::shards::SHARDS_MAX;
use crate::store::{Store as _, StoreError, Urgency};
use tally::Tally;

pub use finishing::finish_following;
pub use standby::Standby;

/// The most records in one batch that pauses something.
const BATCH_RECORDS: usize = 256;

/// What a restored directory differs in from what was copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// Input and output of every queue and lane are paused, and every schedule is.
    pub paused: bool,
    /// Slots of schedules up to the first start count as missed and are not made up.
    pub skips_slots: bool,
}

/// A data directory that is being written.
pub struct Restoring {
    data: PathBuf,
    options: JournalOptions,
    /// Its own number.
    number: u64,
    shards: Vec<Shard>,
    /// The number of the data directory that the segments come from, once one has named it.
    from: Option<u64>,
}

/// One of its shards.
struct Shard {
    place: JournalAt,
    disk: Arc<dyn Disk>,
    /// The number of the first segment that was added.
    first: u32,
    /// The last segment that was added.
    last: Option<RawWalk>,
    /// Whether the last segment that was given goes on after the moment in question.
    is_cut: bool,
}

impl Restoring {
    /// Makes the directory. Nothing accepts it before [`Restoring::finish`].
    ///
    /// The salt seed of the options must be random: the number of the directory comes from it.
    /// Refuses a directory that is not empty, and a number of shards that no server can have.
    pub fn begin(
        data: &Path,
        shards: usize,
        options: JournalOptions,
    ) -> Result<Self, DirectoryError> {
        if !(1..=SHARDS_MAX).contains(&shards) {
            let what = format!("there is no server with {shards} shards");
            return Err(about(data)(StoreError::Mixed { what }));
        }
        let number = options.drawn();
        let places = layout::begin(data, shards, number).map_err(about(data))?;
        let mut made: Vec<Shard> = Vec::new();
        for place in places {
            let disk = create(&place.directory).map_err(about(&place.directory))?;
            let disk: Arc<dyn Disk> = Arc::new(disk);
            made.push(Shard { place, disk, first: 0, last: None, is_cut: false });
        }
        Ok(Self { data: data.to_owned(), options, number, shards: made, from: None })
    }

    /// The number that the new directory has to itself: [`Identity::directory`].
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Adds the next segment of a shard, oldest first: its bytes from the header on. Commits later
    /// than `until` are left out. Returns what was added. After one that [is cut](RawWalk::is_cut)
    /// no more of this shard may follow.
    ///
    /// Refuses damage, a segment that does not follow the one before, and one of another shard or
    /// another data directory than the others. Blocks until the segment is on the disk.
    pub fn add(
        &mut self,
        shard: usize,
        bytes: Vec<u8>,
        until: Option<Timestamp>,
    ) -> Result<RawWalk, DirectoryError> {
        let Some(known) = self.shards.get(shard).filter(|known| !known.is_cut) else {
            return Err(about(&self.data)(StoreError::OutOfOrder { call: "add" }));
        };
        let directory = known.place.directory.clone();
        self.write(shard, bytes, until).map_err(about(&directory))
    }

    fn write(
        &mut self,
        shard: usize,
        mut bytes: Vec<u8>,
        until: Option<Timestamp>,
    ) -> Result<RawWalk, StoreError> {
        let name = segment_name(raw::header(&bytes)?.number);
        let walk = raw::walk(&name, &bytes, until)?;
        self.expect_identity(shard, &name, &walk.header)?;
        let identity = self.identity(shard);
        let known = &mut self.shards[shard];
        known.expect_next(&name, &walk)?;
        if walk.last.is_some() {
            bytes.truncate(walk.end);
            raw::readdress(&mut bytes, identity)?;
            let fail = |what, error| StoreError::from_io(what, &name, 0, error);
            let file = known.disk.open(&name, OpenMode::CreateNew);
            let file = file.map_err(|error| fail("make", error))?;
            write_all_at(&*file, 0, &bytes).map_err(|error| fail("write", error))?;
            file.sync_data().map_err(|error| fail("sync", error))?;
            if known.last.is_none() {
                known.first = walk.header.number;
            }
            known.last = Some(walk);
        }
        known.is_cut = walk.is_cut;
        Ok(walk)
    }

    /// The identity of a shard of the new directory.
    fn identity(&self, shard: usize) -> Identity {
        let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Identity { directory: self.number, shard: narrow(shard), shards: narrow(self.shards.len()) }
    }

    /// Refuses a segment of another shard, or of another data directory than those before it.
    fn expect_identity(
        &mut self,
        shard: usize,
        name: &str,
        header: &RawHeader,
    ) -> Result<(), StoreError> {
        let Some(found) = header.identity else { return Ok(()) };
        let expected = self.identity(shard);
        if (found.shard, found.shards) != (expected.shard, expected.shards) {
            let what = format!(
                "{name} belongs to shard {} of {}, and was given for shard {} of {}",
                found.shard, found.shards, expected.shard, expected.shards
            );
            return Err(StoreError::Mixed { what });
        }
        if *self.from.get_or_insert(found.directory) != found.directory {
            let what = format!("{name} belongs to another data directory than those before it");
            return Err(StoreError::Mixed { what });
        }
        Ok(())
    }

    /// Completes the directory, which is valid from now on: removes segments that the last commit
    /// no longer needs, and begins each shard anew with its header: incarnation, moment, and the
    /// number before that of the next task. Returns what each shard holds.
    ///
    /// Refuses damage, segments that are missing, and a header below what the log of its shard
    /// says. Costs one pass over the segments, and some hundred bytes of memory for each task.
    pub fn finish(
        self,
        starts: &[Header],
        wishes: Wishes,
    ) -> Result<Vec<ReshardReport>, DirectoryError> {
        let Self { data, options, number, shards, .. } = self;
        if starts.len() != shards.len() {
            return Err(about(&data)(StoreError::OutOfOrder { call: "finish" }));
        }
        let mut reports = Vec::new();
        for (shard, start) in shards.iter().zip(starts) {
            let report = shard.complete(start, wishes.paused, options);
            reports.push(report.map_err(about(&shard.place.directory))?);
        }
        let after = wishes.skips_slots.then_some(AfterRestore::SkipSlots);
        write_restored(&data, after).map_err(about(&data))?;
        layout::finish(&data, shards.len(), number).map_err(about(&data))?;
        Ok(reports)
    }
}

impl Shard {
    /// Refuses a segment that does not follow the one before, and a first one that is too new.
    fn expect_next(&self, name: &str, walk: &RawWalk) -> Result<(), StoreError> {
        let header = &walk.header;
        let Some(before) = &self.last else {
            if walk.last.is_some() || header.number == 1 {
                return Ok(());
            }
            let what = format!(
                "{name} is the first segment that was given, and nothing in it is old enough: \
                 older ones are missing"
            );
            return Err(StoreError::Mixed { what });
        };
        if header.number == before.header.number + 1 && before.goes_on_with(header) {
            return Ok(());
        }
        let what = format!(
            "it does not follow {}, which ends at offset {} before commit {}",
            segment_name(before.header.number),
            before.end,
            before.next_lsn()
        );
        Err(StoreError::damage(name, 0, what))
    }

    /// Reads what was added as a start would, and begins anew after it.
    fn complete(
        &self,
        start: &Header,
        paused: bool,
        options: JournalOptions,
    ) -> Result<ReshardReport, StoreError> {
        let last = self.last.and_then(|walk| walk.last);
        if let Some(needed) = last.map(|last| last.oldest).filter(|oldest| *oldest < self.first) {
            let what = format!(
                "the last commit needs {}, and {} is the first segment that was given",
                segment_name(needed),
                segment_name(self.first)
            );
            return Err(StoreError::Mixed { what });
        }
        let begins = |log: &Header| refuse_below(start, log).map(|()| *start);
        self.begin_anew(&begins, paused, options, &Arc::default())
    }

    /// Reads the log as a start would, and begins anew after it. `begins` says where, from what the
    /// log knows. Stops before it has begun if the flag is set.
    fn begin_anew(
        &self,
        begins: &dyn Fn(&Header) -> Result<Header, StoreError>,
        paused: bool,
        options: JournalOptions,
        stop: &Arc<AtomicBool>,
    ) -> Result<ReshardReport, StoreError> {
        let journal = Journal::open(Arc::clone(&self.disk), options, Runner::Inline)?;
        let journal = journal.expecting(self.place.expected);
        let mut journal = journal.stoppable(Arc::clone(stop));
        let mut tally = Tally::default();
        let loaded = journal.load(&mut |change, _| tally.note(change))?;
        let start = &begins(&loaded.header)?;
        journal.begin(start)?;
        let records: Vec<Change> = if paused { tally.pauses() } else { Vec::new() };
        for changes in records.chunks(BATCH_RECORDS) {
            journal.append(start, changes, Urgency::Soon, &mut |_, _| {})?;
            journal.finish(start.now)?;
        }
        // An empty batch says that all batches before it are on the disk. Without it, damage to the
        // last of them would be mistaken for an unfinished write.
        journal.append(start, &[], Urgency::Soon, &mut |_, _| {})?;
        journal.finish(start.now)?;
        Ok(tally.report(start))
    }
}

/// Refuses a start that could give something again that the log has given, or that no journal can
/// write down.
fn refuse_below(start: &Header, log: &Header) -> Result<(), StoreError> {
    let is_below = start.incarnation < log.incarnation
        || start.now < log.now
        || start.last_number < log.last_number;
    let is_beyond = start.incarnation.max(start.last_number) >= COUNT_MAX;
    if !is_below && !is_beyond {
        return Ok(());
    }
    let what = format!(
        "the shard cannot go on from incarnation {}, moment {} and number {}: its log knows \
         incarnation {}, moment {} and number {}",
        start.incarnation,
        start.now.ms(),
        start.last_number,
        log.incarnation,
        log.now.ms(),
        log.last_number
    );
    Err(StoreError::Mixed { what })
}
