//! What can be backed up: a running server, or whatever else has the segments of its shards.
//!
//! How it is asked is not decided here.

use pinpriq_proto::time::Timestamp;
pub use pinpriq_store::journal::SegmentEnd;

/// What belongs to a cut: of every shard all commits up to a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CutInfo {
    /// Every commit up to this moment is in the segments.
    pub at: Timestamp,
    /// For each shard its segments, oldest first, without a gap. Their bytes from 0 on never change
    /// as long as the source keeps the cut.
    pub shards: Vec<Vec<SegmentEnd>>,
}

/// A cut of a running server, or of whatever else can be copied.
pub trait Source {
    /// What belongs to the cut. It is always the same.
    fn cut(&self) -> &CutInfo;

    /// Adds the bytes of a segment from `from` up to `to` to those of `into`: exactly as many, and
    /// never more than 8 MiB at once. After a failure some of them may be there.
    fn read(
        &mut self,
        shard: usize,
        segment: u32,
        from: u64,
        to: u64,
        into: &mut Vec<u8>,
    ) -> Result<(), SourceError>;
}

/// Why the source did not give what it was asked for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}")]
pub struct SourceError {
    /// A sentence with the remedy, if there is one.
    pub what: String,
}

impl SourceError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}
