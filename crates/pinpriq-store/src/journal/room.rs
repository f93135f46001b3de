//! Finds room for the new segment of a start, even on a full disk.
//!
//! The usual size is reserved if possible. Otherwise segments that are only kept until they are
//! archived go first. If that does not suffice, useless room is given back: the unused rest of old
//! segments, and incomplete spares. Then the segment becomes as large as there is room for, at
//! least as large as the file that is kept for this. Only then a spare is taken, which would
//! otherwise be the reserve of the running server. Nothing here decides what is in the log.

use std::io;

use super::chores::fill_step;
use super::left_over::Row;
use super::reader::{FoundLog, FoundSegment};
use super::segment::{segment_name, spare_name};
use super::spare::{Found, SPARES_MAX, Sizes, Spare};
use super::writer::{remove_if_there, sync_dir, sync_file};
use crate::disk::{Disk, OpenMode};
use crate::store::{StoreError, is_full};

/// Numbers of spares are drawn from 1 upwards. Numbers from here on name files that exist only
/// while a segment is made.
const TEMPORARY_FROM: u32 = u32::MAX / 2;

/// Removes what an interrupted clean-up left behind, except what is kept of it, and useless spares.
/// Returns what remains.
pub(crate) fn tidy_up(
    disk: &dyn Disk,
    found: &FoundLog,
    row: &Row,
    sizes: Sizes,
) -> Result<Found, StoreError> {
    let inventory = &found.inventory;
    let kept: Vec<u32> = row.segments.iter().map(|segment| segment.header.number).collect();
    let needed = found.segments.iter().map(|segment| segment.header.number);
    let oldest = kept.iter().copied().chain(needed).next().unwrap_or(0);
    // What cannot be read now may be kept by the next start.
    let older = if row.may_go_on { 0 } else { oldest };
    let mut surplus: Vec<String> =
        inventory.segments.range(..older).map(|(&number, _)| segment_name(number)).collect();
    let lasting = || inventory.spares.range(..TEMPORARY_FROM);
    let mut left = Found {
        highest: lasting().next_back().map_or(0, |(&number, _)| number),
        for_start: lasting().find(|spare| *spare.1 == sizes.start).map(|(&number, _)| number),
        kept,
        ..Found::default()
    };
    for (&number, &bytes) in &inventory.spares {
        let kept = left.whole.len() + left.partial.len();
        if left.for_start == Some(number) {
            continue;
        }
        if kept == SPARES_MAX || number >= TEMPORARY_FROM || bytes > sizes.usual {
            surplus.push(spare_name(number));
        } else if bytes == sizes.usual {
            left.whole.push_back(number);
        } else {
            left.partial.push(number);
        }
    }
    for name in &surplus {
        disk.remove(name).map_err(|error| StoreError::from_io("remove", name, 0, error))?;
    }
    if !surplus.is_empty() {
        sync_dir(disk)?;
    }
    Ok(left)
}

/// Returns the file for the new segment of this number, and how large the segment may grow.
pub(crate) fn prepare(
    disk: &dyn Disk,
    segment: u32,
    old: &[FoundSegment],
    sizes: Sizes,
    left: &mut Found,
) -> Result<Spare, StoreError> {
    // With two of them, the disk was not full. A single one may be the reserve of a full disk.
    if left.whole.len() > 1
        && let Some(number) = left.whole.pop_front()
    {
        return Ok(Spare { number, bytes: sizes.usual });
    }
    let number = u32::MAX - segment;
    let name = spare_name(number);
    let fail = |error| StoreError::from_io("reserve space for", &name, 0, error);
    remove_if_there(disk, &name)?;
    let refused = match reserve(disk, &name, sizes.usual) {
        Ok(()) => return Ok(Spare { number, bytes: sizes.usual }),
        Err(error) if is_full(&error) => error,
        Err(error) => return Err(fail(error)),
    };
    if !left.kept.is_empty() {
        give_up_kept(disk, left)?;
        if reserve(disk, &name, sizes.usual).is_ok() {
            return Ok(Spare { number, bytes: sizes.usual });
        }
    }
    left.is_full = true;
    give_back(disk, old, sizes, left)?;
    // Room for the next start comes before this start takes the rest.
    if left.for_start.is_none() {
        make_for_start(disk, sizes, left);
    }
    if reserve(disk, &name, sizes.usual).is_ok() {
        return Ok(Spare { number, bytes: sizes.usual });
    }
    match reserve_most(disk, &name, sizes.start, sizes).map_err(fail)? {
        0 => {}
        bytes => return Ok(Spare { number, bytes }),
    }
    if let Some(number) = left.for_start.take() {
        return Ok(Spare { number, bytes: sizes.start });
    }
    if let Some(number) = left.whole.pop_front() {
        return Ok(Spare { number, bytes: sizes.usual });
    }
    // As the last resort, use the little that nearly full segments have left over.
    cut_off(disk, old);
    match reserve_most(disk, &name, sizes.start, sizes).map_err(fail)? {
        0 => Err(fail(refused)),
        bytes => Ok(Spare { number, bytes }),
    }
}

/// Makes the spares that a start has found durable, so that they can be used at once.
pub(crate) fn sync_whole(disk: &dyn Disk, left: &Found) -> Result<(), StoreError> {
    for &number in &left.whole {
        let name = spare_name(number);
        let fail = |error| StoreError::from_io("open", &name, 0, error);
        sync_file(&*disk.open(&name, OpenMode::ReadWrite).map_err(fail)?, &name)?;
    }
    Ok(())
}

/// Gives back the unused rest of old segments, and what was reserved for them beyond their length.
/// Only truncating them at their end does that. A segment that is nearly full keeps the rest, so
/// that its whole file can be reused. The end is recorded in the next segment, and what follows it
/// never counts. So this may come before that record, may fail, or be lost in a crash: the next
/// start repeats it.
pub(crate) fn trim(disk: &dyn Disk, old: &[FoundSegment], sizes: Sizes) {
    let serves_again = sizes.usual / 8 * 7..=sizes.usual;
    cut_off(disk, old.iter().filter(|segment| !serves_again.contains(&segment.end)));
}

fn cut_off<'a>(disk: &dyn Disk, segments: impl IntoIterator<Item = &'a FoundSegment>) {
    for segment in segments {
        let name = segment_name(segment.header.number);
        let opened = disk.open(&name, OpenMode::ReadWrite);
        if let Err(error) = opened.and_then(|file| file.set_len(segment.end)) {
            tracing::warn!(file = name, %error, "the unused rest of a segment was not given back");
        }
    }
}

/// Removes the segments that are not needed, oldest first: what a crash leaves of them is a row
/// again.
fn give_up_kept(disk: &dyn Disk, left: &mut Found) -> Result<(), StoreError> {
    for number in left.kept.drain(..) {
        remove_if_there(disk, &segment_name(number))?;
    }
    sync_dir(disk)
}

fn give_back(
    disk: &dyn Disk,
    old: &[FoundSegment],
    sizes: Sizes,
    left: &mut Found,
) -> Result<(), StoreError> {
    trim(disk, old, sizes);
    for number in left.partial.drain(..) {
        remove_if_there(disk, &spare_name(number))?;
    }
    sync_dir(disk)
}

/// Makes the file for the next start, if there is room for it. Without it the next start looks for
/// room as this one did.
pub(crate) fn make_for_start(disk: &dyn Disk, sizes: Sizes, left: &mut Found) {
    let number = left.highest + 1;
    let name = spare_name(number);
    match fill_step(disk, &name, sizes.start, &mut Vec::new()) {
        Ok(_) => (left.for_start, left.highest) = (Some(number), number),
        // Half of it would only occupy room.
        Err(_) => _ = disk.remove(&name),
    }
}

fn reserve(disk: &dyn Disk, name: &str, bytes: u64) -> io::Result<()> {
    let file = disk.open(name, OpenMode::CreateNew)?;
    let reserved = file.allocate(bytes);
    drop(file);
    if reserved.is_err() {
        disk.remove(name)?;
    }
    reserved
}

/// Reserves as much as there is room for, in steps of a few hundredths of the usual size, and
/// returns that size. If it would be less than `least`, returns 0 and leaves no file.
pub(crate) fn reserve_most(
    disk: &dyn Disk,
    name: &str,
    least: u64,
    sizes: Sizes,
) -> io::Result<u64> {
    let file = match disk.open(name, OpenMode::CreateNew) {
        Err(error) if is_full(&error) => return Ok(0),
        opened => opened?,
    };
    let step = (sizes.usual / 512).next_multiple_of(4096);
    let (mut reserved, mut too_many) = (0, sizes.usual);
    let mut bytes = least;
    while bytes > reserved && bytes < too_many {
        match file.allocate(bytes) {
            Ok(()) => reserved = bytes,
            Err(error) if is_full(&error) => too_many = bytes,
            Err(error) => return Err(error),
        }
        if reserved == 0 {
            break;
        }
        bytes = reserved + (too_many - reserved) / 2 / step * step;
    }
    drop(file);
    if reserved == 0 {
        disk.remove(name)?;
    }
    Ok(reserved)
}
