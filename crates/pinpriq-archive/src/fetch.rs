//! Segments as they are in a place, put together from their pieces and checked.
//!
//! No more than one segment is in memory at a time, and one object that it comes from.

use pinpriq_store::journal::Identity;
use pinpriq_store::journal::raw::{self, RawHeader, RawWalk};

use crate::error::ArchiveError;
use crate::mark::{Part, SEGMENT_BYTES_MAX};
use crate::names::{self, LineId, SegmentId};
use crate::object::Object;
use crate::place::Place;

/// Which segment it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    pub(crate) line: LineId,
    pub(crate) shard: usize,
    /// How many shards the line has.
    pub(crate) shards: usize,
    pub(crate) segment: SegmentId,
}

/// The bytes of a segment, from its header on.
pub(crate) struct Fetched {
    pub(crate) bytes: Vec<u8>,
    /// The objects that were read for it, and how many bytes each has.
    pub(crate) objects: Vec<(String, u64)>,
}

impl Wanted {
    /// The object with all of it.
    pub(crate) fn name(&self) -> String {
        names::whole(self.line, self.shard, self.segment)
    }

    /// Refuses a header that is not that of this segment. `name` is for the message.
    pub(crate) fn check_header(&self, name: &str, header: &RawHeader) -> Result<(), ArchiveError> {
        let SegmentId { number, incarnation } = self.segment;
        // Older versions wrote no identity.
        let is_foreign = |it: Identity| {
            it.directory != self.line.0
                || usize::try_from(it.shard) != Ok(self.shard)
                || usize::try_from(it.shards) != Ok(self.shards)
        };
        if (header.number, header.incarnation) != (number, incarnation) {
            Err(ArchiveError::damaged(name, "it holds another segment than its name says"))
        } else if header.identity.is_some_and(is_foreign) {
            Err(ArchiveError::damaged(name, "it holds a segment of another data directory"))
        } else {
            Ok(())
        }
    }

    /// Checks every commit of the segment, whose bytes these are.
    pub(crate) fn check(&self, name: &str, bytes: &[u8]) -> Result<RawWalk, ArchiveError> {
        let walk = raw::walk(name, bytes, None);
        let walk = walk.map_err(|error| ArchiveError::of_segment(name, error))?;
        self.check_header(name, &walk.header)?;
        Ok(walk)
    }
}

/// Reads a whole segment, if it is there. Checks what the place may have damaged, but not the
/// commits.
pub(crate) fn whole(place: &dyn Place, wanted: &Wanted) -> Result<Option<Fetched>, ArchiveError> {
    let name = wanted.name();
    let Some(bytes) = place.get(&name)? else { return Ok(None) };
    let stored_bytes = bytes.len() as u64;
    let bytes = unpack(wanted, &name, bytes)?;
    Ok(Some(Fetched { bytes, objects: vec![(name, stored_bytes)] }))
}

/// Returns the bytes of a whole segment, given its object.
pub(crate) fn unpack(
    wanted: &Wanted,
    name: &str,
    object: Vec<u8>,
) -> Result<Vec<u8>, ArchiveError> {
    let object = Object::parse(name, object)?;
    let mut bytes = Vec::new();
    let taken = append(&mut bytes, name, &object, wanted)?;
    if taken != object.pieces().count() {
        return Err(ArchiveError::damaged(name, "it holds pieces of something else"));
    }
    Ok(bytes)
}

/// Reads a segment that is there in parts, up to where a mark says. Checks what the place may have
/// damaged, but not the commits.
pub(crate) fn part(
    place: &dyn Place,
    wanted: &Wanted,
    part: &Part,
) -> Result<Fetched, ArchiveError> {
    let (mut bytes, mut objects, mut name) = (Vec::new(), Vec::new(), String::new());
    for (mark, object) in part.each_object() {
        name = names::parts(wanted.line, mark, object);
        let found = place.get(&name)?.ok_or_else(|| ArchiveError::missing(&name))?;
        objects.push((name.clone(), found.len() as u64));
        append(&mut bytes, &name, &Object::parse(&name, found)?, wanted)?;
    }
    if bytes.len() as u64 != part.bytes {
        let what = format!(
            "segment {} of shard {} ends at {} instead of {}",
            wanted.segment.number,
            wanted.shard,
            bytes.len(),
            part.bytes
        );
        return Err(ArchiveError::damaged(&name, what));
    }
    Ok(Fetched { bytes, objects })
}

/// Adds the pieces of the segment that are in an object. Returns how many there were.
fn append(
    bytes: &mut Vec<u8>,
    name: &str,
    object: &Object,
    wanted: &Wanted,
) -> Result<usize, ArchiveError> {
    let mut taken = 0;
    for (index, piece) in object.pieces().enumerate() {
        if usize::try_from(piece.shard) != Ok(wanted.shard) || piece.segment != wanted.segment {
            continue;
        }
        if piece.from != bytes.len() as u64 {
            let what = format!(
                "piece {} begins at {} of its segment instead of {}",
                index + 1,
                piece.from,
                bytes.len()
            );
            return Err(ArchiveError::damaged(name, what));
        }
        if piece.from + u64::from(piece.raw_bytes) > SEGMENT_BYTES_MAX {
            return Err(ArchiveError::damaged(name, "its segment is larger than any can be"));
        }
        bytes.extend_from_slice(&object.raw(index)?);
        taken += 1;
    }
    Ok(taken)
}
