//! What of a line is in a place, by its listings. Nothing is read: an object that is listed may
//! still be damaged.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::ArchiveError;
use crate::mark::{Part, ShardMark};
use crate::names::{self, LineId, SegmentId, block, parts_in, segment_of};
use crate::place::Place;

/// The segments of a shard below whose names there is an object.
pub(crate) fn segments(
    place: &dyn Place,
    line: LineId,
    shard: usize,
) -> Result<BTreeSet<SegmentId>, ArchiveError> {
    let listing = place.list(&names::shard(line, shard))?;
    Ok(listing.prefixes.iter().filter_map(|name| segment_of(name)).collect())
}

/// The objects of parts of a line, which are listed block by block as they are asked for.
pub(crate) struct PartsListed<'a> {
    place: &'a dyn Place,
    line: LineId,
    blocks: BTreeMap<u64, BTreeSet<(u64, u32)>>,
}

impl<'a> PartsListed<'a> {
    pub(crate) const fn new(place: &'a dyn Place, line: LineId) -> Self {
        Self { place, line, blocks: BTreeMap::new() }
    }

    /// Whether an object of a mark is there.
    pub(crate) fn has(&mut self, mark: u64, object: u32) -> Result<bool, ArchiveError> {
        Ok(self.block_of(mark)?.contains(&(mark, object)))
    }

    /// The number of the first object of a mark that is not taken, nor any after it.
    pub(crate) fn next_object(&mut self, mark: u64) -> Result<u32, ArchiveError> {
        let of_mark = self.block_of(mark)?.range((mark, 0)..=(mark, u32::MAX));
        Ok(of_mark.last().map_or(0, |(_, object)| object.saturating_add(1)))
    }

    fn block_of(&mut self, mark: u64) -> Result<&BTreeSet<(u64, u32)>, ArchiveError> {
        let block = block(mark);
        let known = if let Some(known) = self.blocks.remove(&block) {
            known
        } else {
            let listing = self.place.list(&names::parts_block(self.line, block))?;
            listing.objects.iter().filter_map(|(name, _)| parts_in(block, name)).collect()
        };
        Ok(self.blocks.entry(block).or_insert(known))
    }
}

/// Returns the name of an object that shards need and that is not there, if there is one.
pub(crate) fn missing(
    place: &dyn Place,
    line: LineId,
    shards: &[ShardMark],
) -> Result<Option<String>, ArchiveError> {
    let mut parts = PartsListed::new(place, line);
    for (shard, needs) in shards.iter().enumerate() {
        let there = segments(place, line, shard)?;
        if let Some(segment) = needs.whole_segments().find(|segment| !there.contains(segment)) {
            return Ok(Some(names::whole(line, shard, segment)));
        }
        for (mark, object) in needs.parts.iter().flat_map(Part::each_object) {
            if !parts.has(mark, object)? {
                return Ok(Some(names::parts(line, mark, object)));
            }
        }
    }
    Ok(None)
}
