//! Reads the log: finds its files and its end, and detects damage.
//!
//! Nothing here changes a file, and everything is checked: the chain of segments, the checksum of
//! every batch, the numbering of batches, and every record. The rules are those of
//! `docs/internals/journal.md`, "What a damaged end means". `window` reads the files, and the
//! caller decides what to do about damage.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};

use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::records::Malformed;
use pinpriq_proto::time::Timestamp;

use super::expected::{Expected, check_age, check_files, check_identity};
use super::head::read_head;
use super::progress::LoadProgress;
use super::segment::{
    BATCH_HEADER_BYTES, BatchHeader, FORMAT_VERSION, FileKind, HEADER_COPY_BYTES, Identity,
    ParsedHeader, SEGMENT_START, SegmentHeader, aligned, file_kind, segment_name,
};
use super::window::Window;
use crate::codec::{Names, decode};
use crate::disk::{Disk, Entry, EntryKind};
use crate::store::{Loaded, StoreError, TornTail};

/// The files of a directory, classified by name.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    /// Segments by number, with the length of the file.
    pub(crate) segments: BTreeMap<u32, u64>,
    /// Spares by number, with the length of the file.
    pub(crate) spares: BTreeMap<u32, u64>,
    /// Entries that are not part of a journal.
    pub(crate) foreign: Vec<Entry>,
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
    /// Whether it holds any records, rather than only empty batches.
    pub(crate) has_records: bool,
}

/// Everything that the server needs to continue after loading.
#[derive(Debug, Default)]
pub(crate) struct FoundLog {
    /// The segments that are needed, oldest first.
    pub(crate) segments: Vec<FoundSegment>,
    /// The number of the last batch.
    pub(crate) last_lsn: u64,
    /// Where in the last segment the batches begin that no later batch calls durable.
    pub(crate) unproven_from: u64,
    /// The identity in the segments, if any of them has one.
    pub(crate) identity: Option<Identity>,
    pub(crate) inventory: Inventory,
    pub(crate) loaded: Loaded,
}

/// Called with the offset, the header and the body of each batch. Can end the walk.
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

/// Lists the files. Refuses a directory in which anything but a file has the name of a file of the
/// journal.
pub(crate) fn take_inventory(disk: &dyn Disk) -> Result<Inventory, StoreError> {
    let entries =
        disk.list().map_err(|error| StoreError::from_io("list", "the directory", 0, error))?;
    let mut inventory = Inventory::default();
    for entry in entries {
        let kind = file_kind(&entry.name);
        if kind != FileKind::Foreign && entry.kind != EntryKind::File {
            return Err(StoreError::wrong_kind(&entry.name, entry.kind, EntryKind::File));
        }
        match kind {
            FileKind::Segment(number) => _ = inventory.segments.insert(number, entry.bytes),
            FileKind::Spare(number) => _ = inventory.spares.insert(number, entry.bytes),
            FileKind::Lock => inventory.lock = true,
            FileKind::Head | FileKind::Restored => {}
            FileKind::Foreign => inventory.foreign.push(entry),
        }
    }
    Ok(inventory)
}

/// The header of a segment, from either copy.
pub(crate) fn read_header(disk: &dyn Disk, number: u32) -> Result<SegmentHeader, StoreError> {
    let name = segment_name(number);
    let mut front = Window::open(disk, &name, SEGMENT_START)?;
    match SegmentHeader::parse(front.bytes_at(0, HEADER_COPY_BYTES)?) {
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

/// Follows the batches of a segment from `from`, where the batch `next_lsn` is due. Stops at the
/// end of what is read of the file, or at the first place without a valid batch of the next number.
pub(crate) fn walk(
    file: &mut Window,
    header: &SegmentHeader,
    (from, next_lsn): (u64, u64),
    each: &mut EachBatch<'_>,
) -> Result<Walk, StoreError> {
    let mut walk = Walk { end: from, next_lsn, last: None };
    while let Some(batch) = file.header_at(walk.end)? {
        let is_due = batch.lsn == walk.next_lsn
            && batch.makes_sense()
            && (1..=header.number).contains(&batch.oldest);
        if !is_due || !file.confirms(walk.end, &batch, header.salt)? {
            break;
        }
        let length = batch.batch_bytes();
        let bytes = file.bytes_at(walk.end, length)?;
        let Some(body) = bytes.get(BATCH_HEADER_BYTES..length) else { break };
        each(walk.end, &batch, body)?;
        walk.end = aligned(walk.end + length as u64);
        walk.next_lsn += 1;
        walk.last = Some(batch);
    }
    Ok(walk)
}

/// What follows the place where a walk stopped.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// Whether a write was begun where the walk stopped: the header of the batch that was due is
    /// there.
    pub(crate) begun: bool,
    /// The first whole batch of this file with the number that was due, or a later one.
    pub(crate) next: Option<(u64, BatchHeader)>,
    /// Whether any batch has a later number.
    pub(crate) later: bool,
    /// The offset of the first batch that proves that the missing one was on disk: it has a later
    /// number, and was written when the missing one was known to be durable.
    pub(crate) proof: Option<u64>,
}

impl Behind {
    /// Searches the rest of the file, as far as necessary. Costs one pass over it.
    pub(crate) fn search(
        file: &mut Window,
        header: &SegmentHeader,
        stop: &Walk,
    ) -> Result<Self, StoreError> {
        let is_due = |batch: BatchHeader| {
            batch.lsn == stop.next_lsn && batch.incarnation == header.incarnation
        };
        let begun = file.header_at(stop.end)?.is_some_and(is_due);
        let mut behind = Self { begun, ..Self::default() };
        // The walk has found that this one is broken.
        let mut from = if begun { stop.end + 8 } else { stop.end };
        let proves =
            |batch: &BatchHeader| batch.lsn >= stop.next_lsn && batch.durable_lsn >= stop.next_lsn;
        while behind.proof.is_none() {
            let is_news = |batch: &BatchHeader| {
                (behind.next.is_none() && batch.lsn >= stop.next_lsn)
                    || (!behind.later && batch.lsn > stop.next_lsn)
                    || proves(batch)
            };
            let Some((at, batch)) = file.find(header, from, &is_news)? else { break };
            behind.next.get_or_insert((at, batch));
            behind.later |= batch.lsn > stop.next_lsn;
            behind.proof = proves(&batch).then_some(at);
            from = at + 8;
        }
        Ok(behind)
    }
}

/// How the newest segment ends.
pub(crate) struct Ending {
    pub(crate) walk: Walk,
    /// Where the batches begin that no later batch calls durable.
    unproven_from: u64,
    /// Whether an unfinished write follows the last batch.
    is_torn: bool,
}

/// Finds the end of the newest segment. Passes on no records.
pub(crate) fn find_end(
    file: &mut Window,
    header: &SegmentHeader,
    stop: &AtomicBool,
) -> Result<Ending, StoreError> {
    let start = (SEGMENT_START, header.first_lsn);
    let mut unproven: VecDeque<(u64, u64)> = VecDeque::new();
    let walk = walk(file, header, start, &mut |offset, batch, _| {
        refuse_if_stopped(stop)?;
        unproven.push_back((offset, batch.lsn));
        while unproven.front().is_some_and(|(_, lsn)| *lsn <= batch.durable_lsn) {
            unproven.pop_front();
        }
        Ok(())
    })?;
    let behind = Behind::search(file, header, &walk)?;
    if let Some(proof) = behind.proof {
        let what = format!(
            "commit {} is missing or broken, and the commit at offset {proof} says that it was on \
             disk",
            walk.next_lsn
        );
        return Err(StoreError::damage(&segment_name(header.number), walk.end, what));
    }
    let unproven_from = unproven.front().map_or(walk.end, |(offset, _)| *offset);
    Ok(Ending { walk, unproven_from, is_torn: behind.begun || behind.later })
}

/// Passes every record of a batch to `sink`, and returns the bytes of those that have a place.
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
            let (file, offset, what) = (segment_name(segment), at(start), error.to_string());
            match error {
                // The checksum of the batch is right, so this is not damage.
                Malformed::UnknownKind { .. } | Malformed::UnknownAttribute(_) => {
                    StoreError::NewerRecord { file, offset, what }
                }
                _ => StoreError::damage(&file, offset, what),
            }
        })?;
        let length = u32::try_from(start.len() - rest.len()).unwrap_or(u32::MAX);
        let length = NonZeroU32::new(length).filter(|_| change.key().is_some());
        let offset = u32::try_from(at(start)).unwrap_or(u32::MAX);
        let place = length.map(|length| Place { volume: segment, offset, length });
        placed_bytes += place.map_or(0, |place| u64::from(place.length.get()));
        sink(change, place);
    }
    if rest.is_empty() {
        Ok(placed_bytes)
    } else {
        let what = format!("{} bytes are left over after the records of a commit", rest.len());
        Err(StoreError::damage(&segment_name(segment), at(rest), what))
    }
}

/// Ends what can be done again later, if that is asked for.
pub(crate) fn refuse_if_stopped(stop: &AtomicBool) -> Result<(), StoreError> {
    if stop.load(Ordering::Relaxed) { Err(StoreError::Stopped) } else { Ok(()) }
}

/// Reads the whole log and checks all of it. Changes nothing. Tells how far it is, and ends soon
/// once it has to stop.
pub(crate) fn load(
    disk: &dyn Disk,
    expected: Option<&Expected>,
    (progress, stop): (&LoadProgress, &AtomicBool),
    sink: &mut dyn FnMut(Change, Option<Place>),
) -> Result<FoundLog, StoreError> {
    let head = read_head(disk)?;
    let inventory = take_inventory(disk)?;
    refuse_newer(disk, &inventory)?;
    check_files(&inventory, head)?;
    let Some((&newest, _)) = inventory.segments.last_key_value() else {
        check_age(0, head, expected)?;
        return Ok(FoundLog { inventory, ..FoundLog::default() });
    };
    let last_header = read_header(disk, newest)?;
    let ending = {
        let mut file = Window::open(disk, &segment_name(newest), u64::MAX)?;
        find_end(&mut file, &last_header, stop)?
    };
    let oldest = ending.walk.last.map_or(last_header.oldest, |batch| batch.oldest);
    let headers = chain(disk, &inventory, oldest, newest)?;
    let mut log = FoundLog {
        unproven_from: ending.unproven_from,
        identity: check_identity(headers.iter(), expected)?,
        inventory,
        ..FoundLog::default()
    };
    let ends = headers.iter().skip(1).map(|next| next.previous_end).chain([ending.walk.end]);
    progress.expect(ends.map(|end| end.saturating_sub(SEGMENT_START)).sum());
    let mut names = Names::default();
    for (place, header) in headers.iter().enumerate() {
        let next = headers.get(place + 1);
        let limit = next.map_or(ending.walk.end, |next| next.previous_end);
        let mut file = Window::open(disk, &segment_name(header.number), limit)?;
        let records = log.loaded.records;
        let to = (&mut log.loaded, progress, stop);
        let found = read_segment(&mut file, header, &mut names, to, sink)?;
        check_link(header, &found.0, next)?;
        log.segments.push(FoundSegment {
            header: *header,
            end: found.0.end,
            placed_bytes: found.1,
            has_records: log.loaded.records > records,
        });
        log.last_lsn = found.0.next_lsn - 1;
    }
    check_age(log.loaded.header.incarnation, head, expected)?;
    if ending.is_torn {
        let file = segment_name(newest);
        log.loaded.torn_tail = Some(TornTail { file, offset: ending.walk.end });
    }
    Ok(log)
}

/// A newer version anywhere is refused before any damage is reported.
fn refuse_newer(disk: &dyn Disk, inventory: &Inventory) -> Result<(), StoreError> {
    for &number in inventory.segments.keys() {
        if let Err(error @ StoreError::NewerFormat { .. }) = read_header(disk, number) {
            return Err(error);
        }
    }
    Ok(())
}

/// The headers of the segments from `oldest` to `newest`, none of which may be missing.
pub(crate) fn chain(
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
    file: &mut Window,
    header: &SegmentHeader,
    names: &mut Names,
    (loaded, progress, stop): (&mut Loaded, &LoadProgress, &AtomicBool),
    sink: &mut dyn FnMut(Change, Option<Place>),
) -> Result<(Walk, u64), StoreError> {
    note_moment(&mut loaded.header, header.incarnation, header.now, 0);
    let mut placed_bytes = 0;
    let start = (SEGMENT_START, header.first_lsn);
    let walk = walk(file, header, start, &mut |offset, batch, body| {
        refuse_if_stopped(stop)?;
        placed_bytes += decode_batch(header.number, offset, batch, body, names, sink)?;
        note_moment(&mut loaded.header, batch.incarnation, batch.now, batch.last_number);
        loaded.batches += 1;
        progress.pass((BATCH_HEADER_BYTES + body.len()) as u64);
        loaded.records += u64::from(batch.records);
        Ok(())
    })?;
    loaded.bytes += walk.end;
    Ok((walk, placed_bytes))
}

/// Raises the highest incarnation, moment and task number seen.
pub(crate) fn note_moment(seen: &mut Header, incarnation: u64, now: u64, last_number: u64) {
    seen.incarnation = seen.incarnation.max(incarnation);
    seen.now = seen.now.max(Timestamp::from_ms(now));
    seen.last_number = seen.last_number.max(last_number);
}

/// Checks that the next segment names the end of this one and the number of its own first batch.
pub(crate) fn check_link(
    header: &SegmentHeader,
    found: &Walk,
    next: Option<&SegmentHeader>,
) -> Result<(), StoreError> {
    let Some(next) = next else { return Ok(()) };
    let file = segment_name(header.number);
    if found.end != next.previous_end {
        let what = format!(
            "commit {} is missing or broken; the commits of this file should go on to offset {}",
            found.next_lsn, next.previous_end
        );
        return Err(StoreError::damage(&file, found.end, what));
    }
    if found.next_lsn != next.first_lsn {
        let what = format!(
            "the file ends before commit {}, but the next one begins with commit {}",
            found.next_lsn, next.first_lsn
        );
        return Err(StoreError::damage(&file, found.end, what));
    }
    Ok(())
}
