//! Reading the log: which files there are, where the log ends, and what is damage.
//!
//! Nothing here changes a file, and everything is checked: the chain of segments, the checksum of
//! every batch, the numbering of batches, and every record. The rules are those of
//! `docs/journal.md`, "What a damaged end means". What to do about damage is the caller's choice.

use std::collections::BTreeMap;

use pinpriq_engine::change::{Change, Header, Place};
use pinpriq_engine::time::Timestamp;

use super::segment::{
    BATCH_HEADER_BYTES, BatchHeader, FORMAT_VERSION, FileKind, HEADER_COPY_BYTES, ParsedHeader,
    SEGMENT_START, SegmentHeader, aligned, file_kind, segment_name,
};
use crate::codec::{Names, decode};
use crate::disk::{Disk, OpenMode, index, read_full_at};
use crate::store::{Loaded, StoreError, TornTail};

/// The files of a directory, by what their names say.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    /// Segments by number, with the length of the file.
    pub(crate) segments: BTreeMap<u32, u64>,
    /// Spares by number, with the length of the file.
    pub(crate) spares: BTreeMap<u32, u64>,
    pub(crate) foreign: Vec<String>,
    pub(crate) lock: bool,
}

/// A segment as loading found it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundSegment {
    pub(crate) header: SegmentHeader,
    /// Where its batches end.
    pub(crate) end: u64,
    /// The bytes of all records in it that have a place.
    pub(crate) placed_bytes: u64,
    /// Whether it holds any records, or empty batches alone.
    pub(crate) has_records: bool,
}

/// Everything that the server has to know to go on after loading.
#[derive(Debug, Default)]
pub(crate) struct FoundLog {
    /// The segments that are needed, oldest first.
    pub(crate) segments: Vec<FoundSegment>,
    /// The number of the last batch.
    pub(crate) last_lsn: u64,
    /// Where, in the last segment, the batches begin that no later batch calls durable.
    pub(crate) unproven_from: u64,
    pub(crate) inventory: Inventory,
    pub(crate) loaded: Loaded,
}

/// Is told the offset, the header and the body of each batch, and can end the walk.
pub(crate) type EachBatch<'a> = dyn FnMut(u64, &BatchHeader, &[u8]) -> Result<(), StoreError> + 'a;

/// How far the batches of one segment go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    /// Where the next batch would begin.
    pub(crate) end: u64,
    /// Its number.
    pub(crate) next_lsn: u64,
    /// The last batch, if there is any.
    pub(crate) last: Option<BatchHeader>,
}

pub(crate) fn take_inventory(disk: &dyn Disk) -> Result<Inventory, StoreError> {
    let entries =
        disk.list().map_err(|error| StoreError::from_io("list", "the directory", 0, error))?;
    let mut inventory = Inventory::default();
    for entry in entries {
        match file_kind(&entry.name) {
            FileKind::Segment(number) => _ = inventory.segments.insert(number, entry.bytes),
            FileKind::Spare(number) => _ = inventory.spares.insert(number, entry.bytes),
            FileKind::Lock => inventory.lock = true,
            FileKind::Foreign => inventory.foreign.push(entry.name),
        }
    }
    Ok(inventory)
}

/// Reads the first `bytes` bytes of a file, fewer if it is shorter.
pub(crate) fn read_front(
    disk: &dyn Disk,
    name: &str,
    bytes: u64,
    into: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let fail = |error| StoreError::from_io("read", name, 0, error);
    let file = disk.open(name, OpenMode::Read).map_err(fail)?;
    let length = file.len().map_err(fail)?.min(bytes);
    into.resize(index(length), 0);
    let read = read_full_at(&*file, 0, into).map_err(fail)?;
    into.truncate(read);
    Ok(())
}

/// The header of a segment, from either copy.
pub(crate) fn read_header(disk: &dyn Disk, number: u32) -> Result<SegmentHeader, StoreError> {
    let name = segment_name(number);
    let mut bytes = Vec::new();
    read_front(disk, &name, SEGMENT_START, &mut bytes)?;
    match SegmentHeader::parse(&bytes) {
        ParsedHeader::Valid(header) if header.number == number => Ok(header),
        ParsedHeader::Valid(header) => Err(StoreError::damage(
            &name,
            0,
            format!("its header says that it is segment {}", header.number),
        )),
        ParsedHeader::Newer(version) => {
            Err(StoreError::NewerFormat { file: name, version, known: FORMAT_VERSION })
        }
        ParsedHeader::Damaged => Err(StoreError::damage(
            &name,
            0,
            format!("both copies of the segment header (at 0 and {HEADER_COPY_BYTES}) are bad"),
        )),
    }
}

/// Follows the batches of a segment from `from`, where the batch `next_lsn` is due, up to `limit`
/// or the first place where no valid batch with the next number stands. `bytes` is the file from
/// its start.
pub(crate) fn walk(
    bytes: &[u8],
    header: &SegmentHeader,
    (from, next_lsn): (u64, u64),
    limit: u64,
    each: &mut EachBatch<'_>,
) -> Result<Walk, StoreError> {
    let bytes = &bytes[..bytes.len().min(index(limit))];
    let mut walk = Walk { end: from, next_lsn, last: None };
    while let Some(rest) = bytes.get(index(walk.end)..) {
        let found = BatchHeader::verify(rest, header.salt, walk.end);
        let due = |batch: &BatchHeader| {
            batch.lsn == walk.next_lsn && (1..=header.number).contains(&batch.oldest)
        };
        let Some(batch) = found.filter(due) else { break };
        each(walk.end, &batch, &rest[BATCH_HEADER_BYTES..batch.batch_bytes()])?;
        walk.end = aligned(walk.end + batch.batch_bytes() as u64);
        walk.next_lsn += 1;
        walk.last = Some(batch);
    }
    Ok(walk)
}

/// Looks behind the place where a walk stopped for a batch of this file that proves that the
/// missing one was on disk: a later number, and written when the missing one was known durable.
pub(crate) fn find_proof(bytes: &[u8], header: &SegmentHeader, stop: &Walk) -> Option<u64> {
    find_batch(bytes, header, stop.end, |batch| {
        batch.lsn >= stop.next_lsn && batch.durable_lsn >= stop.next_lsn
    })
}

/// The first offset from `from` on where a whole batch of this file stands that `fits`.
pub(crate) fn find_batch(
    bytes: &[u8],
    header: &SegmentHeader,
    from: u64,
    fits: impl Fn(&BatchHeader) -> bool,
) -> Option<u64> {
    let mut offset = from;
    while let Some(rest) = bytes.get(index(offset)..).filter(|rest| !rest.is_empty()) {
        // The cheap questions come first, so that a file full of look-alikes costs no checksums.
        let plausible = BatchHeader::peek(rest).filter(|batch| {
            batch.incarnation == header.incarnation
                && batch.makes_sense()
                && batch.lsn >= header.first_lsn
                && (1..=header.number).contains(&batch.oldest)
                && fits(batch)
        });
        if plausible.is_some_and(|batch| batch.confirms(rest, header.salt, offset)) {
            return Some(offset);
        }
        offset += 8;
    }
    None
}

/// Whether a write was begun where the walk stopped: the start of the batch that was due.
fn was_begun(bytes: &[u8], header: &SegmentHeader, stop: &Walk) -> bool {
    let rest = bytes.get(index(stop.end)..).unwrap_or_default();
    let due =
        |batch: &BatchHeader| batch.lsn == stop.next_lsn && batch.incarnation == header.incarnation;
    BatchHeader::peek(rest).is_some_and(|batch| due(&batch))
        || find_batch(bytes, header, stop.end, |batch| batch.lsn > stop.next_lsn).is_some()
}

/// Hands every record of a batch to `sink`, and tells how many bytes of them have a place.
pub(crate) fn decode_batch(
    segment: u32,
    offset: u64,
    batch: &BatchHeader,
    body: &[u8],
    names: &mut Names,
    sink: &mut dyn FnMut(Change, Option<Place>),
) -> Result<u64, StoreError> {
    let mut rest = body;
    let mut placed_bytes = 0;
    let at = |rest: &[u8]| offset + (BATCH_HEADER_BYTES + body.len() - rest.len()) as u64;
    for _ in 0..batch.records {
        let start = rest;
        let change = decode(&mut rest, names).map_err(|error| {
            StoreError::damage(&segment_name(segment), at(start), error.to_string())
        })?;
        let place = change.key().is_some().then(|| Place {
            volume: segment,
            offset: u32::try_from(at(start)).unwrap_or(u32::MAX),
            length: u32::try_from(start.len() - rest.len()).unwrap_or(u32::MAX),
        });
        placed_bytes += place.map_or(0, |place| u64::from(place.length));
        sink(change, place);
    }
    if rest.is_empty() {
        Ok(placed_bytes)
    } else {
        let what = format!("{} bytes are left over after the records of a batch", rest.len());
        Err(StoreError::damage(&segment_name(segment), at(rest), what))
    }
}

/// Reads the whole log and checks all of it. Changes nothing.
pub(crate) fn load(
    disk: &dyn Disk,
    sink: &mut dyn FnMut(Change, Option<Place>),
) -> Result<FoundLog, StoreError> {
    let inventory = take_inventory(disk)?;
    let Some((&newest, &newest_bytes)) = inventory.segments.last_key_value() else {
        return Ok(FoundLog { inventory, ..FoundLog::default() });
    };
    refuse_newer(disk, &inventory)?;
    let mut last_bytes = Vec::new();
    read_front(disk, &segment_name(newest), newest_bytes, &mut last_bytes)?;
    let last_header = read_header(disk, newest)?;
    let start = (SEGMENT_START, last_header.first_lsn);
    let mut batches = Vec::new();
    let last_walk = walk(&last_bytes, &last_header, start, u64::MAX, &mut |offset, batch, _| {
        batches.push((offset, batch.lsn));
        Ok(())
    })?;
    let proven = last_walk.last.map_or(0, |batch| batch.durable_lsn);
    let unproven = batches.iter().find(|(_, lsn)| *lsn > proven);
    if let Some(proof) = find_proof(&last_bytes, &last_header, &last_walk)
        && !planted!(DamageTakenForTheEnd)
    {
        let what = format!(
            "batch {} is missing or broken, and the batch at offset {proof} says that it was on \
             disk",
            last_walk.next_lsn
        );
        return Err(StoreError::damage(&segment_name(newest), last_walk.end, what));
    }
    let oldest = last_walk.last.map_or(last_header.oldest, |batch| batch.oldest);
    let headers = chain(disk, &inventory, oldest, newest)?;
    let mut log = FoundLog {
        unproven_from: unproven.map_or(last_walk.end, |(offset, _)| *offset),
        inventory,
        ..FoundLog::default()
    };
    let mut names = Names::default();
    let mut bytes = Vec::new();
    for (place, header) in headers.iter().enumerate() {
        let next = headers.get(place + 1);
        if let Some(next) = next {
            read_front(disk, &segment_name(header.number), next.previous_end, &mut bytes)?;
        } else {
            std::mem::swap(&mut bytes, &mut last_bytes);
        }
        let limit = next.map_or(last_walk.end, |next| next.previous_end);
        let records = log.loaded.records;
        let found = read_segment(&bytes, header, limit, &mut names, &mut log.loaded, sink)?;
        check_link(header, &found, next)?;
        log.segments.push(FoundSegment {
            header: *header,
            end: found.0.end,
            placed_bytes: found.1,
            has_records: log.loaded.records > records,
        });
        log.last_lsn = found.0.next_lsn - 1;
    }
    if was_begun(&bytes, &last_header, &last_walk) {
        let file = segment_name(newest);
        log.loaded.torn_tail = Some(TornTail { file, offset: last_walk.end });
    }
    Ok(log)
}

/// A newer version anywhere ends everything, before any damage is spoken of.
fn refuse_newer(disk: &dyn Disk, inventory: &Inventory) -> Result<(), StoreError> {
    for &number in inventory.segments.keys() {
        if let Err(error @ StoreError::NewerFormat { .. }) = read_header(disk, number) {
            return Err(error);
        }
    }
    Ok(())
}

/// The headers of the segments from `oldest` to `newest`, none of which may be missing.
fn chain(
    disk: &dyn Disk,
    inventory: &Inventory,
    oldest: u32,
    newest: u32,
) -> Result<Vec<SegmentHeader>, StoreError> {
    let mut headers = Vec::new();
    for number in oldest..=newest {
        if !inventory.segments.contains_key(&number) {
            let what = format!("the file is missing, and {} needs it", segment_name(newest));
            return Err(StoreError::damage(&segment_name(number), 0, what));
        }
        headers.push(read_header(disk, number)?);
    }
    Ok(headers)
}

fn read_segment(
    bytes: &[u8],
    header: &SegmentHeader,
    limit: u64,
    names: &mut Names,
    loaded: &mut Loaded,
    sink: &mut dyn FnMut(Change, Option<Place>),
) -> Result<(Walk, u64), StoreError> {
    note_moment(&mut loaded.header, header.incarnation, header.now, 0);
    let mut placed_bytes = 0;
    let start = (SEGMENT_START, header.first_lsn);
    let walk = walk(bytes, header, start, limit, &mut |offset, batch, body| {
        placed_bytes += decode_batch(header.number, offset, batch, body, names, sink)?;
        note_moment(&mut loaded.header, batch.incarnation, batch.now, batch.last_number);
        loaded.batches += 1;
        loaded.records += u64::from(batch.records);
        Ok(())
    })?;
    loaded.bytes += walk.end;
    Ok((walk, placed_bytes))
}

/// Raises the highest incarnation, moment and task number that were seen.
pub(crate) fn note_moment(seen: &mut Header, incarnation: u64, now: u64, last_number: u64) {
    if !planted!(IncarnationForgotten) {
        seen.incarnation = seen.incarnation.max(incarnation);
    }
    if !planted!(MomentForgotten) {
        seen.now = seen.now.max(Timestamp::from_ms(now));
    }
    seen.last_number = seen.last_number.max(last_number);
}

/// The next segment says where this one ends and which batch comes first there.
fn check_link(
    header: &SegmentHeader,
    found: &(Walk, u64),
    next: Option<&SegmentHeader>,
) -> Result<(), StoreError> {
    let Some(next) = next.filter(|_| !planted!(EndOfSegmentNotCompared)) else { return Ok(()) };
    let file = segment_name(header.number);
    if found.0.end != next.previous_end {
        let what = format!(
            "batch {} is missing or broken; the batches of this file should go on to offset {}",
            found.0.next_lsn, next.previous_end
        );
        return Err(StoreError::damage(&file, found.0.end, what));
    }
    if found.0.next_lsn != next.first_lsn {
        let what = format!(
            "the file ends before batch {}, but the next one begins with batch {}",
            found.0.next_lsn, next.first_lsn
        );
        return Err(StoreError::damage(&file, found.0.end, what));
    }
    Ok(())
}
