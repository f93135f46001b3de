//! Beginning an incarnation: from a log that was read and found whole to one that is written.
//!
//! Everything here blocks and happens before the first request is served. Nothing was changed
//! before this point, and each step leaves a log that loads to the same state.

use std::collections::VecDeque;
use std::sync::Arc;

use pinpriq_engine::change::{Header, Place};

use super::front::JournalOptions;
use super::lane::Worker;
use super::ledger::{Ledger, Segment};
use super::pending::{Pending, Target};
use super::reader::FoundLog;
use super::segment::{
    FORMAT_VERSION, Identity, SEGMENT_START, SegmentHeader, draw_salt, segment_name, spare_name,
};
use super::spare::{SPARES_MAX, Spares};
use super::window::WINDOW_BYTES;
use super::writer::{Commit, Roll, Writer, sync_dir, sync_file};
use crate::disk::{Disk, OpenMode, index, read_full_at, write_all_at};
use crate::store::{StoreError, Urgency};

/// A log that was begun.
pub(crate) struct Begun {
    pub(crate) writer: Writer,
    pub(crate) spares: Spares,
    pub(crate) lsn: u64,
}

/// Opens a new segment with one empty batch, durably.
pub(crate) fn begin(
    disk: &Arc<dyn Disk>,
    options: &JournalOptions,
    found: &FoundLog,
    ledger: &mut Ledger,
    (facts, identity): (&Header, Identity),
) -> Result<Begun, StoreError> {
    secure_tail(&**disk, found)?;
    let (mut for_segment, left_over) = tidy_up(&**disk, found, options.segment_bytes())?;
    let last = found.segments.last();
    let newest = found.inventory.segments.last_key_value().map_or(0, |(&number, _)| number);
    let number = newest + 1;
    let header = SegmentHeader {
        version: FORMAT_VERSION,
        number,
        oldest: if last.is_some() { ledger.oldest_number() } else { number },
        salt: draw_salt(options.salt_seed, number, facts.incarnation),
        first_lsn: found.last_lsn + 1,
        previous_end: last.map_or(0, |last| last.end),
        incarnation: facts.incarnation,
        now: facts.now.ms(),
        identity: Some(identity),
    };
    ledger.push(Segment { header, end: SEGMENT_START, live: 0, usual_size: true });
    let lsn = header.first_lsn;
    let target = Target {
        segment: number,
        offset: SEGMENT_START,
        salt: header.salt,
        oldest: ledger.oldest_number(),
        lsn,
    };
    let mut pending = Pending::default();
    let encoded = pending.encode(&[]);
    pending.roll(Roll { header, capacity: options.segment_bytes(), spare: None });
    pending.place(encoded, &target, facts, Urgency::Soon, &mut |_, _: Place| {});
    ledger.add_batch(encoded.padded_bytes, 0);
    ledger.note(lsn);
    let mut commit =
        pending.seal(found.last_lsn, options.segment_bytes(), &mut for_segment, Commit::default());
    commit.sync = true;
    let mut writer = Writer::new(Arc::clone(disk));
    writer.run(commit).outcome?;
    ledger.durable(lsn);
    for segment in &found.segments {
        trim(&**disk, segment.header.number, segment.end);
    }
    let highest = found.inventory.spares.keys().copied().filter(|&n| n < u32::MAX / 2).max();
    Ok(Begun { writer, spares: Spares::new(&left_over, highest.unwrap_or(0)), lsn })
}

/// Makes sure that the end of the log is on the disk before a new segment relies on it.
///
/// What was read may exist in the page cache only: after a crash of the process, and even marked
/// clean after a sync that failed. So it is written once more, the same bytes to the same place.
fn secure_tail(disk: &dyn Disk, found: &FoundLog) -> Result<(), StoreError> {
    let Some(last) = found.segments.last() else { return Ok(()) };
    // So may its name: a process that was killed between giving it and syncing the directory.
    sync_dir(disk)?;
    if found.unproven_from >= last.end || planted!(TailNotSecured) {
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

/// Removes what an interrupted clean-up left behind, and spares that are of no use. Answers the
/// one for the new segment, which has the right size, and those to be completed later.
fn tidy_up(
    disk: &dyn Disk,
    found: &FoundLog,
    segment_bytes: u64,
) -> Result<(VecDeque<u32>, Vec<u32>), StoreError> {
    let inventory = &found.inventory;
    let oldest = found.segments.first().map_or(0, |segment| segment.header.number);
    let mut surplus: Vec<String> =
        inventory.segments.range(..oldest).map(|(&number, _)| segment_name(number)).collect();
    let mut for_segment = VecDeque::new();
    let mut left_over = Vec::new();
    for (&number, &bytes) in &inventory.spares {
        if bytes == segment_bytes && for_segment.is_empty() {
            for_segment.push_back(number);
        } else if bytes <= segment_bytes && left_over.len() < SPARES_MAX && number < u32::MAX / 2 {
            left_over.push(number);
        } else {
            surplus.push(spare_name(number));
        }
    }
    for name in &surplus {
        disk.remove(name).map_err(|error| StoreError::from_io("remove", name, 0, error))?;
    }
    if !surplus.is_empty() {
        sync_dir(disk)?;
    }
    Ok((for_segment, left_over))
}

/// Gives back the unused rest of a segment, and what was reserved for it beyond its length: only
/// cutting it off where it ends does that. Its end is written down in the next one, so that this
/// may fail, or be forgotten in a crash: the next start does it again.
fn trim(disk: &dyn Disk, number: u32, end: u64) {
    let name = segment_name(number);
    let trimmed = disk.open(&name, OpenMode::ReadWrite).and_then(|file| file.set_len(end));
    if let Err(error) = trimmed {
        tracing::warn!(file = name, %error, "the unused rest of a segment was not given back");
    }
}
