//! Lists the segments of a journal that nobody writes, as a cut of a running one lists them.
//!
//! Changes nothing, and checks only what it reads: the headers, and the commits of the last
//! segment. Whoever copies the segments checks the others.

use std::sync::atomic::AtomicBool;

use pinpriq_proto::time::Timestamp;

use super::expected::{check_files, check_identity};
use super::head::read_head;
use super::left_over::left_over;
use super::reader::{Inventory, chain, check_link, find_end, read_header, take_inventory, walk};
use super::segment::{BatchHeader, SEGMENT_START, SegmentHeader, segment_name};
use super::tap::SegmentEnd;
use super::window::Window;
use crate::disk::Disk;
use crate::store::StoreError;

/// What there is of a journal that nobody writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AtRest {
    /// Its segments, oldest first and without a gap, up to the last whole commit. There may be more
    /// than the journal needs.
    pub segments: Vec<SegmentEnd>,
    /// The moment of the last commit. All later moments have the same state.
    pub at: Timestamp,
}

/// Where a log ends.
struct End {
    header: SegmentHeader,
    bytes: u64,
    last: BatchHeader,
}

/// Returns the segments of a journal that nobody writes: all that lie in a row and end with the
/// newest, not only those that it needs. None if there is no commit. An unfinished write at the end
/// is left out, as a start would do.
///
/// Refuses what a start would refuse, as far as the headers and the commits of the last segment
/// show it.
pub fn at_rest(disk: &dyn Disk) -> Result<Option<AtRest>, StoreError> {
    let head = read_head(disk)?;
    let inventory = take_inventory(disk)?;
    check_files(&inventory, head)?;
    let Some(End { header, bytes, last }) = end_of(disk, &inventory)? else { return Ok(None) };
    let needed = chain(disk, &inventory, last.oldest, header.number)?;
    let identity = check_identity(needed.iter(), None)?;
    let ended = |header: &SegmentHeader, bytes: u64| SegmentEnd {
        number: header.number,
        incarnation: header.incarnation,
        bytes,
    };
    let mut segments = Vec::new();
    if let Some(first) = needed.first() {
        let others = left_over(disk, &inventory, first, identity);
        segments.extend(others.segments.iter().map(|other| ended(&other.header, other.end)));
    }
    let ends = needed.iter().skip(1).map(|next| next.previous_end).chain([bytes]);
    segments.extend(needed.iter().zip(ends).map(|(header, end)| ended(header, end)));
    Ok(Some(AtRest { segments, at: Timestamp::from_ms(last.now) }))
}

/// Finds the last commit. Returns none if there is none.
fn end_of(disk: &dyn Disk, inventory: &Inventory) -> Result<Option<End>, StoreError> {
    let Some((&newest, _)) = inventory.segments.last_key_value() else { return Ok(None) };
    let header = read_header(disk, newest)?;
    let mut file = Window::open(disk, &segment_name(newest), u64::MAX)?;
    let ending = find_end(&mut file, &header, &AtomicBool::new(false))?;
    if let Some(last) = ending.walk.last {
        return Ok(Some(End { header, bytes: ending.walk.end, last }));
    }
    // The server ended before it could write the first commit of its new segment.
    let headers = chain(disk, inventory, header.oldest, newest)?;
    let [.., before, _] = headers.as_slice() else { return Ok(None) };
    let mut file = Window::open(disk, &segment_name(before.number), header.previous_end)?;
    let start = (SEGMENT_START, before.first_lsn);
    let found = walk(&mut file, before, start, &mut |_, _, _| Ok(()))?;
    check_link(before, &found, Some(&header))?;
    Ok(found.last.map(|last| End { header: *before, bytes: found.end, last }))
}
