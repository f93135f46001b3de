//! Where a store keeps a record.

use std::num::NonZeroU32;

/// Where a store keeps one record.
///
/// The store issues a place, and the engine keeps it with the task, queue, publication, lane,
/// member or schedule of the record. The engine returns the place when the record is no longer
/// needed, and never interprets it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The volume of the store. For the journal, this is the number of a segment.
    pub volume: u32,
    /// The offset in the volume.
    pub offset: u32,
    /// The number of bytes. (That it is never zero lets an `Option` of a place take no more room.)
    pub length: NonZeroU32,
}
