//! Reads a whole journal into memory, and writes a new journal from memory.
//!
//! For tools that move the contents of a journal elsewhere while no server uses it. Unlike a server
//! they keep every payload in memory.

use std::sync::Arc;

use pinpriq_proto::change::Header;

use super::expected::Expected;
use super::front::Journal;
use super::lane::Runner;
use super::options::JournalOptions;
use super::survey::survey;
use crate::disk::Disk;
use crate::fold::Fold;
use crate::store::{Store as _, StoreError, Urgency};

/// The most records in one batch of the new journal.
const BATCH_RECORDS: usize = 256;

/// The number of payload bytes that make a batch full, and the number of bytes gathered before a
/// write.
const WRITE_BYTES: u64 = 8 << 20;

/// What the log of a shard holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contents {
    /// The highest incarnation, the latest moment and the highest number.
    pub header: Header,
    /// The state.
    pub fold: Fold,
}

impl Contents {
    /// Reads a journal as a server would, but writes nothing: an unfinished last write does not
    /// count. Refuses a damaged journal. Costs one pass over the log.
    pub(crate) fn read(disk: &dyn Disk, expected: &Expected) -> Result<Self, StoreError> {
        let survey = survey(disk, Some(expected))?;
        match survey.damage.into_iter().next() {
            Some(damage) => Err(StoreError::damage(&damage.file, damage.offset, damage.what)),
            None => Ok(Self { header: survey.header, fold: survey.fold }),
        }
    }
}

/// Writes a new journal, durably. `to` must not contain one.
pub(crate) fn write(
    fold: &Fold,
    header: &Header,
    to: &Arc<dyn Disk>,
    (options, expected): (JournalOptions, Expected),
) -> Result<(), StoreError> {
    let journal = Journal::open(Arc::clone(to), options, Runner::Inline)?;
    let mut journal = journal.expecting(expected);
    journal.load(&mut |_, _| {})?;
    journal.begin(header)?;
    for batch in fold.batches(BATCH_RECORDS, WRITE_BYTES) {
        journal.append(header, &batch, Urgency::Lazy, &mut |_, _| {})?;
        if journal.figures().bytes_pending >= WRITE_BYTES {
            journal.finish(header.now)?;
        }
    }
    journal.finish(header.now)?;
    // An empty batch says that all batches before it are on the disk. Without it, damage to the
    // last of them would be mistaken for an unfinished write.
    journal.append(header, &[], Urgency::Soon, &mut |_, _| {})?;
    journal.finish(header.now)
}
