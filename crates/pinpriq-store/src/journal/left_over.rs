//! Finds the segments that a journal no longer needs and that lie right before those it needs.
//!
//! A start removes them, unless they are kept because they were not archived yet. Only headers are
//! read here: they say whether one segment follows another, and whoever copies the segments checks
//! the rest. How long they stay is decided by `tap` and `running`.

use std::collections::VecDeque;

use super::reader::{Inventory, read_header};
use super::segment::{BATCH_HEADER_BYTES, Identity, SEGMENT_START, SegmentHeader};
use crate::disk::Disk;
use crate::store::StoreError;

/// A segment that is no longer needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeftOver {
    pub(crate) header: SegmentHeader,
    /// Where its batches end, as the segment after it says.
    pub(crate) end: u64,
    /// The length of the file.
    pub(crate) file_bytes: u64,
}

/// The segments that lie in a row right before those that are needed.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// Oldest first.
    pub(crate) segments: Vec<LeftOver>,
    /// Whether there may be more before them, since the disk did not answer.
    pub(crate) may_go_on: bool,
}

/// Returns the segments that lie in a row right before the one with this header. The row ends at
/// the first number that is missing, or whose header is damaged or does not fit.
pub(crate) fn left_over(
    disk: &dyn Disk,
    inventory: &Inventory,
    first: &SegmentHeader,
    identity: Option<Identity>,
) -> Row {
    let (mut found, mut may_go_on) = (VecDeque::new(), false);
    let mut next = *first;
    while let Some(number) = next.number.checked_sub(1)
        && let Some(&file_bytes) = inventory.segments.get(&number)
    {
        let header = match read_header(disk, number) {
            Ok(header) => header,
            Err(error) => {
                may_go_on = matches!(error, StoreError::Io { .. });
                break;
            }
        };
        let before = LeftOver { header, end: next.previous_end, file_bytes };
        if !before.is_followed_by(&next, identity) {
            break;
        }
        next = before.header;
        found.push_front(before);
    }
    Row { segments: found.into(), may_go_on }
}

impl LeftOver {
    /// Whether this can be the segment before the one with this header.
    fn is_followed_by(&self, next: &SegmentHeader, identity: Option<Identity>) -> bool {
        let header = &self.header;
        let most = self.end.saturating_sub(SEGMENT_START) / BATCH_HEADER_BYTES as u64;
        let batches = next.first_lsn.checked_sub(header.first_lsn);
        // Every segment begins with a batch.
        batches.is_some_and(|batches| (1..=most).contains(&batches))
            && self.end <= self.file_bytes
            && header.incarnation <= next.incarnation
            && header.oldest <= next.oldest
            && (header.identity.is_none() || header.identity == identity)
    }
}
