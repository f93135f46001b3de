//! Checks that a journal is the one that belongs in its directory, and that all of it exists.
//!
//! Each segment names its shard and its data directory, and the file `head` records how far the
//! journal had come. This module does not look at the contents of batches and records.

use super::head::Head;
use super::reader::Inventory;
use super::segment::{Identity, SegmentHeader, segment_name};
use crate::store::StoreError;

/// Which journal is expected in a directory. Unknown facts are not compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected {
    /// The data directory's own number, if it is known.
    pub directory: Option<u64>,
    /// Which of its shards the journal is, from 0.
    pub shard: u32,
    /// How many shards the data directory has.
    pub shards: u32,
    /// The highest incarnation that all shards of the data directory had begun. No shard may know
    /// less.
    pub served: u64,
}

impl Expected {
    /// The only journal of a data directory.
    #[must_use]
    pub const fn alone() -> Self {
        Self { directory: None, shard: 0, shards: 1, served: 0 }
    }

    /// The identity of a new journal. `drawn` is a random number.
    pub(crate) fn identity(&self, drawn: u64) -> Identity {
        let directory = self.directory.unwrap_or(drawn);
        Identity { directory, shard: self.shard, shards: self.shards }
    }
}

/// Refuses a directory in which segments are missing. `head` must have been read before the files
/// were listed.
pub(crate) fn check_files(inventory: &Inventory, head: Option<Head>) -> Result<(), StoreError> {
    let newest = inventory.segments.last_key_value().map(|(&number, _)| number);
    let named = head.map_or(0, |head| head.newest);
    if newest.unwrap_or(0) < named {
        let what = "the file is missing, and the file head names it";
        return Err(StoreError::damage(&segment_name(named), 0, what));
    }
    // An interrupted first start leaves a file of another kind: see `create_growing`.
    let spare = inventory.spares.keys().find(|number| **number < u32::MAX / 2);
    if newest.is_none() && spare.is_some() {
        let what = "the directory holds spare files and no segment: all segments are missing";
        return Err(StoreError::Mixed { what: what.to_owned() });
    }
    Ok(())
}

/// Compares the identities of segments with each other and with what is expected. Returns the
/// identity, if any segment has one.
pub(crate) fn check_identity<'a>(
    headers: impl Iterator<Item = &'a SegmentHeader>,
    expected: Option<&Expected>,
) -> Result<Option<Identity>, StoreError> {
    let mut known: Option<Identity> = None;
    for header in headers {
        let Some(identity) = header.identity else { continue };
        let segment = segment_name(header.number);
        if let Some(expected) = expected {
            let Expected { shard, shards, .. } = *expected;
            if (identity.shard, identity.shards) != (shard, shards) {
                let what = format!(
                    "{segment} belongs to shard {} of {}, and was found in the place of shard \
                     {shard} of {shards}: directories were mixed up; put each back under its name",
                    identity.shard, identity.shards
                );
                return Err(StoreError::Mixed { what });
            }
            if expected.directory.is_some_and(|directory| directory != identity.directory) {
                let what = format!(
                    "{segment} belongs to another data directory: directories were mixed up; put \
                     back the one that belongs here"
                );
                return Err(StoreError::Mixed { what });
            }
        }
        if known.is_some_and(|known| known != identity) {
            let what = format!(
                "{segment} belongs to another journal than the segments before it: files were \
                 mixed up; put back those that belong here"
            );
            return Err(StoreError::Mixed { what });
        }
        known = Some(identity);
    }
    Ok(known)
}

/// Refuses a journal that knows less than it must.
pub(crate) fn check_age(
    incarnation: u64,
    head: Option<Head>,
    expected: Option<&Expected>,
) -> Result<(), StoreError> {
    let begun = head.map_or(0, |head| head.incarnation);
    let served = expected.map_or(0, |expected| expected.served);
    if incarnation >= begun.max(served) {
        return Ok(());
    }
    let what = if incarnation == 0 {
        format!(
            "the directory holds no journal, and had one at start {}: bring its files back, or \
             save the other shards with `pinpriq salvage`",
            begun.max(served)
        )
    } else {
        format!(
            "the journal is an older copy: it knows of {incarnation} starts, and there were {}; \
             bring the newer files back, or save what is there with `pinpriq salvage`",
            begun.max(served)
        )
    };
    Err(StoreError::Mixed { what })
}
