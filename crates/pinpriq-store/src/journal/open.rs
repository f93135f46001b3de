//! Begins an incarnation: turns a log that was read and found whole into one that is written.
//!
//! Everything here blocks and happens before the first request is served. Nothing was changed
//! before this point, and each step leaves a log that loads to the same state.

use std::sync::Arc;

use pinpriq_proto::change::{Header, Place};

use super::accounts::{Accounts, Segment};
use super::lane::Worker;
use super::left_over::{LeftOver, Row, left_over};
use super::options::JournalOptions;
use super::pending::{Pending, Target};
use super::reader::{FoundLog, FoundSegment};
use super::room::{make_for_start, prepare, sync_whole, tidy_up, trim};
use super::segment::{
    FORMAT_VERSION, Identity, SEGMENT_START, SegmentHeader, draw_salt, segment_name,
};
use super::spare::{Sizes, Spare, Spares};
use super::window::WINDOW_BYTES;
use super::writer::{Commit, Roll, Writer, sync_dir, sync_file};
use crate::disk::{Disk, OpenMode, index, read_full_at, write_all_at};
use crate::store::{StoreError, Urgency};

/// A log whose incarnation has begun.
pub(crate) struct Begun {
    pub(crate) writer: Writer,
    pub(crate) spares: Spares,
    /// How large the new segment may grow.
    pub(crate) capacity: u64,
    pub(crate) lsn: u64,
    /// Whether the disk is too full for anything that is only kept.
    pub(crate) lacks_room: bool,
}

/// Opens a new segment with one empty batch, durably.
///
/// A segment in which an earlier start has written nothing is replaced: the new one takes its
/// number and its place in the log, so that starts alone never make the log longer.
///
/// If everything is kept, segments that are no longer needed stay as long as there is room.
pub(crate) fn begin(
    (disk, mut writer): (&Arc<dyn Disk>, Writer),
    options: &JournalOptions,
    found: &FoundLog,
    accounts: &mut Accounts,
    (facts, identity): (&Header, Identity),
    keeps_all: bool,
) -> Result<Begun, StoreError> {
    secure_tail(&**disk, found)?;
    let sizes = Sizes::of(options.segment_bytes());
    let kept = if keeps_all { kept_of(&**disk, found) } else { Row::default() };
    let mut left = tidy_up(&**disk, found, &kept, sizes)?;
    let idle = found.segments.last().filter(|last| !last.has_records);
    let old = found.segments.as_slice();
    let old = if idle.is_some() { &old[..old.len() - 1] } else { old };
    let header = header_after(found, idle, accounts, options, (facts, identity));
    let Spare { number: file, bytes: capacity } =
        prepare(&**disk, header.number, &found.segments, sizes, &mut left)?;
    sync_whole(&**disk, &left)?;
    let lacks_room = left.is_full || left.kept.len() < kept.segments.len();
    if !lacks_room {
        push_kept(accounts, &kept.segments, sizes);
    }
    let usual_size = capacity == sizes.usual;
    let segment = Segment { header, end: SEGMENT_START, live: 0, usual_size };
    if idle.is_some() {
        accounts.replace_active(segment);
    } else {
        accounts.push(segment);
    }
    let lsn = header.first_lsn;
    let target = Target {
        segment: header.number,
        offset: SEGMENT_START,
        salt: header.salt,
        oldest: accounts.oldest_number(),
        lsn,
    };
    let mut pending = Pending::default();
    let encoded = pending.encode(&[]);
    pending.roll(Roll { header, capacity, spare: Some(file) });
    pending.place(encoded, &target, facts, Urgency::Soon, &mut |_, _: Place| {});
    accounts.add_batch(encoded.padded_bytes, 0);
    accounts.note(lsn);
    let mut commit = pending.seal(lsn - 1, |_| None, Commit::default());
    commit.sync = true;
    writer.run(commit).outcome?;
    accounts.durable(lsn);
    trim(&**disk, old, sizes);
    // The file that was kept for this start may have been used just now, which may have freed room.
    if left.is_full && left.for_start.is_none() {
        make_for_start(&**disk, sizes, &mut left);
    }
    let spares = Spares::new(sizes, &left);
    Ok(Begun { writer, spares, capacity, lsn, lacks_room })
}

/// The segments right before those that the log needs.
fn kept_of(disk: &dyn Disk, found: &FoundLog) -> Row {
    let Some(first) = found.segments.first() else { return Row::default() };
    left_over(disk, &found.inventory, &first.header, found.identity)
}

/// Adds segments that are not needed, so that they are put away once nobody keeps them.
fn push_kept(accounts: &mut Accounts, kept: &[LeftOver], sizes: Sizes) {
    for segment in kept.iter().rev() {
        let LeftOver { header, end, file_bytes } = *segment;
        let usual_size = file_bytes <= sizes.usual;
        accounts.push_left_over(Segment { header, end, live: 0, usual_size });
    }
}

/// The header of the segment that begins now. It replaces a segment in which nothing was written,
/// or follows the last one.
fn header_after(
    found: &FoundLog,
    idle: Option<&FoundSegment>,
    accounts: &Accounts,
    options: &JournalOptions,
    (facts, identity): (&Header, Identity),
) -> SegmentHeader {
    let last = found.segments.last();
    let newest = found.inventory.segments.last_key_value().map_or(0, |(&number, _)| number);
    let number = idle.map_or(newest + 1, |idle| idle.header.number);
    SegmentHeader {
        version: FORMAT_VERSION,
        number,
        oldest: if last.is_some() { accounts.oldest_number() } else { number },
        salt: draw_salt(options.salt_seed, number, facts.incarnation),
        first_lsn: idle.map_or(found.last_lsn + 1, |idle| idle.header.first_lsn),
        previous_end: match (idle, last) {
            (Some(idle), _) => idle.header.previous_end,
            (None, last) => last.map_or(0, |last| last.end),
        },
        incarnation: facts.incarnation,
        now: facts.now.ms(),
        identity: Some(identity),
    }
}

/// Makes sure that the end of the log is on the disk before a new segment relies on it.
///
/// What was read may exist in the page cache only: after a crash of the process, and even marked
/// clean after a sync that failed. So the same bytes are written to the same place once more.
fn secure_tail(disk: &dyn Disk, found: &FoundLog) -> Result<(), StoreError> {
    let Some(last) = found.segments.last() else { return Ok(()) };
    // Its name may not be on the disk either: a process may have been killed between renaming the
    // file and syncing the directory.
    sync_dir(disk)?;
    if found.unproven_from >= last.end {
        return Ok(());
    }
    let name = segment_name(last.header.number);
    let fail = |what, error| StoreError::from_io(what, &name, found.unproven_from, error);
    let file = disk.open(&name, OpenMode::ReadWrite).map_err(|error| fail("open", error))?;
    let mut buffer = Vec::new();
    let mut at = found.unproven_from;
    while at < last.end {
        buffer.resize(WINDOW_BYTES.min(index(last.end - at)), 0);
        read_full_at(&*file, at, &mut buffer).map_err(|error| fail("read", error))?;
        write_all_at(&*file, at, &buffer).map_err(|error| fail("write", error))?;
        at += buffer.len() as u64;
    }
    sync_file(&*file, &name)
}
