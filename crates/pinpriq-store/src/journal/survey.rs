//! Reads everything that can be read of a log, damaged or not.
//!
//! Loading stops at the first damage. This continues after it: at the next whole batch of the same
//! file, and in the next file. What a server would cut off as a torn tail is cut off here too.
//! Nothing is changed. `check` reports the result, `salvage` writes it out.

use std::collections::BTreeSet;

use pinpriq_proto::change::{Change, Header, Place};

use super::expected::{Expected, check_age, check_files, check_identity};
use super::head::read_head;
use super::reader::{
    Behind, Inventory, Walk, decode_batch, note_moment, read_header, take_inventory, walk,
};
use super::segment::{BatchHeader, Identity, SEGMENT_START, SegmentHeader, aligned, segment_name};
use super::window::Window;
use crate::codec::Names;
use crate::disk::Disk;
use crate::fold::Fold;
use crate::store::{StoreError, TornTail};

/// A part of a file that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// The offset at which it begins, in bytes.
    pub offset: u64,
    /// The number of bytes it covers, as far as can be determined; 0 for a missing file.
    pub bytes: u64,
    /// What is wrong.
    pub what: String,
}

/// Batches that are missing, by number, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LsnRange {
    /// The first one.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

/// One segment file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentReport {
    /// Its name.
    pub file: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where its batches end.
    pub end: u64,
    /// The number of batches in it that can be read.
    pub batches: u64,
    /// The number of records in them.
    pub records: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// The highest version of a segment that is needed.
    pub(crate) version: u32,
    pub(crate) inventory: Inventory,
    /// The identity in the segments, if any has one and they agree.
    pub(crate) identity: Option<Identity>,
    pub(crate) segments: Vec<SegmentReport>,
    /// Segments that are no longer needed.
    pub(crate) left_over: Vec<String>,
    pub(crate) header: Header,
    pub(crate) fold: Fold,
    pub(crate) torn_tail: Option<TornTail>,
    pub(crate) damage: Vec<Damage>,
    pub(crate) missing: Vec<LsnRange>,
    /// Tasks that are mentioned and whose record was not seen.
    pub(crate) mentioned: BTreeSet<u64>,
    last_lsn: Option<u64>,
    names: Names,
}

/// A segment of the chain, with what is known about its end.
struct Link {
    number: u32,
    header: SegmentHeader,
    /// Where it ends, if its successor records it.
    end: Option<u64>,
    newest: bool,
}

/// Reads everything. Refuses a directory without segments and one of a newer format.
pub(crate) fn survey(disk: &dyn Disk, expected: Option<&Expected>) -> Result<Survey, StoreError> {
    let head = read_head(disk)?;
    let mut survey = Survey { inventory: take_inventory(disk)?, ..Survey::default() };
    let numbers: Vec<u32> = survey.inventory.segments.keys().copied().collect();
    let Some(&newest) = numbers.last() else {
        check_files(&survey.inventory, head)?;
        check_age(0, head, expected)?;
        return Err(StoreError::NotAJournal);
    };
    let mut headers: Vec<(u32, SegmentHeader)> = Vec::new();
    let mut unreadable: Vec<(u32, StoreError)> = Vec::new();
    for &number in &numbers {
        match read_header(disk, number) {
            Ok(header) => headers.push((number, header)),
            Err(error @ StoreError::NewerFormat { .. }) => return Err(error),
            Err(error) => unreadable.push((number, error)),
        }
    }
    let oldest = oldest_needed(disk, &headers, &survey.inventory);
    // Files that are not needed may be in any state.
    for (number, error) in unreadable.iter().filter(|(number, _)| *number >= oldest) {
        survey.damage_whole(*number, error);
    }
    survey.judge_files(oldest, newest);
    let judged = check_files(&survey.inventory, head);
    survey.damage_mixed(newest, judged);
    let needed = headers.iter().map(|(_, header)| header);
    let needed = needed.filter(|header| header.number >= oldest);
    match check_identity(needed, expected) {
        Ok(identity) => survey.identity = identity,
        mixed => survey.damage_mixed(newest, mixed.map(drop)),
    }
    for (place, &(number, header)) in headers.iter().enumerate() {
        if number < oldest {
            continue;
        }
        survey.version = survey.version.max(header.version);
        let next = headers.get(place + 1).filter(|next| next.0 == number + 1);
        let end = next.map(|next| next.1.previous_end);
        let link = Link { number, header, end, newest: number == newest };
        match Window::open(disk, &segment_name(number), end.unwrap_or(u64::MAX)) {
            Ok(mut file) => survey.read_link(&link, &mut file),
            Err(error) => survey.damage_whole(number, &error),
        }
    }
    let judged = check_age(survey.header.incarnation, head, expected);
    survey.damage_mixed(newest, judged);
    survey.fold.forget_unshared(&mut Vec::new());
    Ok(survey)
}

/// The oldest segment that the newest readable batch names.
fn oldest_needed(disk: &dyn Disk, headers: &[(u32, SegmentHeader)], inventory: &Inventory) -> u32 {
    let Some((number, header)) = headers.last() else {
        return inventory.segments.first_key_value().map_or(0, |(&number, _)| number);
    };
    let mut oldest = header.oldest;
    if let Ok(mut file) = Window::open(disk, &segment_name(*number), u64::MAX) {
        let start = (SEGMENT_START, header.first_lsn);
        // What cannot be read is reported when its contents are read.
        _ = walk(&mut file, header, start, &mut |_, batch, _| {
            oldest = batch.oldest;
            Ok(())
        });
    }
    oldest
}

impl Survey {
    /// Records damage if the files do not belong together.
    fn damage_mixed(&mut self, newest: u32, judged: Result<(), StoreError>) {
        let (file, what) = match judged {
            Ok(()) => return,
            Err(StoreError::Corrupt { file, what, .. }) => (file, what),
            Err(StoreError::Mixed { what }) => (segment_name(newest), what),
            Err(other) => (segment_name(newest), other.to_string()),
        };
        self.damage.push(Damage { file, offset: 0, bytes: 0, what });
    }

    fn damage_whole(&mut self, number: u32, error: &StoreError) {
        let bytes = self.inventory.segments.get(&number).copied().unwrap_or(0);
        let what = match error {
            StoreError::Corrupt { what, .. } => what.clone(),
            other => other.to_string(),
        };
        self.damage.push(Damage { file: segment_name(number), offset: 0, bytes, what });
    }

    /// Separates left-over segments from needed ones, and detects missing ones.
    fn judge_files(&mut self, oldest: u32, newest: u32) {
        let left_over = self.inventory.segments.range(..oldest);
        self.left_over = left_over.map(|(&number, _)| segment_name(number)).collect();
        let present: Vec<u32> =
            self.inventory.segments.range(oldest..=newest).map(|(&number, _)| number).collect();
        let mut expected = oldest;
        for number in present {
            // One entry for a gap, regardless of how many files it spans.
            if number > expected {
                let last = segment_name(number - 1);
                let what = format!("the files from this one to {last} are missing");
                let file = segment_name(expected);
                self.damage.push(Damage { file, offset: 0, bytes: 0, what });
            }
            expected = number + 1;
        }
    }

    /// Reads one segment and skips every gap in it.
    fn read_link(&mut self, link: &Link, file: &mut Window) {
        let mut report = SegmentReport {
            file: segment_name(link.number),
            bytes: file.file_bytes(),
            end: SEGMENT_START,
            batches: 0,
            records: 0,
        };
        if self.last_lsn.is_none() {
            self.last_lsn = Some(link.header.first_lsn - 1);
        }
        note_moment(&mut self.header, link.header.incarnation, link.header.now, 0);
        if let Err(error) = self.read_batches(link, file, &mut report) {
            let (offset, what) = (report.end, error.to_string());
            let bytes = file.end().saturating_sub(offset);
            self.damage.push(Damage { file: report.file.clone(), offset, bytes, what });
        }
        self.segments.push(report);
    }

    fn read_batches(
        &mut self,
        link: &Link,
        file: &mut Window,
        report: &mut SegmentReport,
    ) -> Result<(), StoreError> {
        let mut start = (SEGMENT_START, link.header.first_lsn);
        loop {
            let mut each = |at, batch: &BatchHeader, body: &[u8]| {
                self.take_batch(link.number, at, batch, body, report)?;
                report.end = aligned(at + batch.batch_bytes() as u64);
                Ok(())
            };
            let mut stop = walk(file, &link.header, start, &mut each)?;
            if link.newest {
                // A server may have appended while these batches were processed.
                file.forget();
                let from = (stop.end, stop.next_lsn);
                stop = walk(file, &link.header, from, &mut each)?;
            }
            report.end = stop.end;
            match self.next_start(link, file, &stop)? {
                Some(next) => start = next,
                None => return Ok(()),
            }
        }
    }

    /// Where to continue after a walk stopped, if anything follows.
    fn next_start(
        &mut self,
        link: &Link,
        readable: &mut Window,
        stop: &Walk,
    ) -> Result<Option<(u64, u64)>, StoreError> {
        if link.end == Some(stop.end) {
            return Ok(None);
        }
        let file = segment_name(link.number);
        let next = if link.newest {
            let behind = Behind::search(readable, &link.header, stop)?;
            // What was never acknowledged is no damage. Only the newest segment can end like that.
            if behind.proof.is_none() {
                if behind.next.is_some() {
                    self.torn_tail = Some(TornTail { file, offset: stop.end });
                }
                return Ok(None);
            }
            behind.next
        } else {
            readable.find(&link.header, stop.end, &|batch| batch.lsn >= stop.next_lsn)?
        };
        if next.is_none() && link.end.is_none() {
            // The successor is lost, and with it the record of where this file ends.
            return Ok(None);
        }
        let next = next.map(|(at, batch)| (at, batch.lsn));
        let end = next.map(|(at, _)| at).or(link.end).unwrap_or(stop.end);
        let what = format!("commit {} is missing or broken", stop.next_lsn);
        let bytes = end.saturating_sub(stop.end);
        self.damage.push(Damage { file, offset: stop.end, bytes, what });
        Ok(next)
    }

    fn take_batch(
        &mut self,
        segment: u32,
        offset: u64,
        batch: &BatchHeader,
        body: &[u8],
        report: &mut SegmentReport,
    ) -> Result<(), StoreError> {
        let first = self.last_lsn.map_or(batch.lsn, |last| last + 1);
        if batch.lsn > first {
            self.missing.push(LsnRange { first, last: batch.lsn - 1 });
        }
        self.last_lsn = Some(batch.lsn);
        note_moment(&mut self.header, batch.incarnation, batch.now, batch.last_number);
        // A batch counts as a whole or not at all, so nothing is folded before all of it was read.
        let mut changes: Vec<(Change, Option<Place>)> = Vec::new();
        let mut keep = |change, place| changes.push((change, place));
        match decode_batch(segment, offset, batch, body, &mut self.names, &mut keep) {
            Ok(_) => {
                report.batches += 1;
                report.records += u64::from(batch.records);
                for (change, place) in changes {
                    self.note_mention(&change);
                    self.fold.apply(&change, place, &mut Vec::new());
                }
            }
            Err(newer @ StoreError::NewerRecord { .. }) => return Err(newer),
            Err(error) => {
                let what = match error {
                    StoreError::Corrupt { what, .. } => what,
                    other => other.to_string(),
                };
                let bytes = batch.batch_bytes() as u64;
                let file = segment_name(segment);
                self.damage.push(Damage { file, offset, bytes, what });
            }
        }
        Ok(())
    }

    fn note_mention(&mut self, change: &Change) {
        let (number, known) = match change {
            Change::Task(task) => (task.number, true),
            Change::Gone(number) => (*number, true),
            Change::Moved(moved) => (moved.number, false),
            Change::Granted(granted) => (granted.number, false),
            Change::Published(publication, copies) => {
                for copied in copies {
                    self.mentioned.remove(&copied.number);
                }
                (publication.last, true)
            }
            Change::Lane(lane) => return self.note_number(lane.number),
            Change::Member(member) => return self.note_number(member.incarnation),
            Change::Schedule(schedule) => return self.note_number(schedule.number),
            Change::Detail(detail) => return self.note_number(detail.number()),
            Change::Queue(_)
            | Change::QueueGone(_)
            | Change::Emptied(_)
            | Change::LaneGone(_)
            | Change::LaneEmptied(_)
            | Change::MemberGone(_)
            | Change::ScheduleMoved(_)
            | Change::ScheduleGone(_)
            | Change::DetailGone(..) => return,
        };
        self.note_number(number);
        if known {
            self.mentioned.remove(&number);
        } else if !self.fold.tasks.contains_key(&number) {
            self.mentioned.insert(number);
        }
    }

    fn note_number(&mut self, number: u64) {
        self.header.last_number = self.header.last_number.max(number);
    }
}

/// Returns the identity in the newest segment that can be read, with the incarnation that began it.
pub(crate) fn shard_of_journal(disk: &dyn Disk) -> Result<Option<(Identity, u64)>, StoreError> {
    let inventory = take_inventory(disk)?;
    let headers =
        inventory.segments.keys().rev().filter_map(|&number| read_header(disk, number).ok());
    let mut known = headers.filter_map(|header| Some((header.identity?, header.incarnation)));
    Ok(known.next())
}
