//! Compares the segments of a server with what a mark says is in the place: what has rotted on
//! either side is found.
//!
//! Everything is read and nothing is changed. How fast is up to the caller, who is asked after each
//! piece.

use std::collections::BTreeMap;

use pinpriq_store::journal::raw;

use crate::backup::ground::{id, read};
use crate::catalogue::Catalogue;
use crate::error::ArchiveError;
use crate::fetch::Wanted;
use crate::mark::{Mark, Part};
use crate::names::{self, LineId, SegmentId};
use crate::object::Object;
use crate::place::Place;
use crate::source::{SegmentEnd, Source};
use crate::verify::Fault;

/// What is compared.
struct Scrubbing<'a> {
    source: &'a mut dyn Source,
    place: &'a dyn Place,
    mark: &'a Mark,
    pace: &'a mut dyn FnMut(),
    faults: BTreeMap<String, Fault>,
    /// The objects that are not there, and what they hold.
    missing: Vec<(String, Held)>,
}

/// What an object holds that a mark names.
#[derive(Clone, Copy)]
enum Held {
    Whole(usize, SegmentId),
    Parts(u64, u32),
}

/// Reads the segments of a cut, and what a mark of the same server says is in the place of them.
/// Returns what is damaged or missing on either side, by names. A segment of the server has the
/// name of its shard and its number, and no mark. `pace` is called after each piece of at most
/// 8 MiB. Holds one segment in memory, and one object.
///
/// A segment that only one side has by now is checked for itself. A place or a server that does not
/// answer is an error.
pub fn scrub(
    source: &mut dyn Source,
    place: &dyn Place,
    mark: &Mark,
    pace: &mut dyn FnMut(),
) -> Result<Vec<Fault>, ArchiveError> {
    let cut = source.cut().clone();
    let (faults, missing) = (BTreeMap::new(), Vec::new());
    let mut scrubbing = Scrubbing { source, place, mark, pace, faults, missing };
    for (shard, known) in mark.shards.iter().enumerate() {
        let here = cut.shards.get(shard).map(Vec::as_slice).unwrap_or_default();
        let find = |wanted: SegmentId| here.iter().find(|segment| id(segment) == wanted);
        for segment in known.whole_segments() {
            scrubbing.compare(shard, segment, None, find(segment))?;
        }
        for part in &known.parts {
            scrubbing.compare(shard, part.segment(), Some(part), find(part.segment()))?;
        }
        let has = |segment: &SegmentEnd| {
            known.has_whole(id(segment))
                || known.parts.iter().any(|part| part.segment() == id(segment))
        };
        for segment in here.iter().filter(|segment| !has(segment)) {
            scrubbing.read_here(shard, segment)?;
        }
    }
    scrubbing.conclude()
}

impl Scrubbing<'_> {
    /// Compares a segment with its pieces in the place.
    fn compare(
        &mut self,
        shard: usize,
        segment: SegmentId,
        part: Option<&Part>,
        here: Option<&SegmentEnd>,
    ) -> Result<(), ArchiveError> {
        let here = match here {
            Some(here) => self.read_here(shard, here)?,
            None => None,
        };
        let (line, shards) = (self.mark.line, self.mark.shards.len());
        let wanted = Wanted { line, shard, shards, segment };
        let objects: Vec<(String, Held)> = match part {
            None => vec![(wanted.name(), Held::Whole(shard, segment))],
            Some(part) => part
                .each_object()
                .map(|(mark, object)| (names::parts(line, mark, object), Held::Parts(mark, object)))
                .collect(),
        };
        let mut there = Vec::new();
        let mut name = String::new();
        for (object, held) in objects {
            let Some(bytes) = self.place.get(&object)? else {
                self.missing.push((object, held));
                return Ok(());
            };
            if let Err(error) = self.append(&mut there, &object, bytes, &wanted) {
                return self.note(&object, error);
            }
            name = object;
        }
        let is_whole = part.is_none_or(|part| part.bytes == there.len() as u64);
        let is_same = here.as_ref().is_none_or(|here| match part {
            None => *here == there,
            Some(_) => here.starts_with(&there),
        });
        if !is_whole {
            return self.note(&name, ArchiveError::damaged(&name, "it has too few pieces"));
        }
        if !is_same {
            let what = "it is not the same as the segment of the server";
            return self.note(&name, ArchiveError::damaged(&name, what));
        }
        // What is the same as a segment that was checked is good.
        if here.is_none()
            && let Err(error) = wanted.check(&name, &there)
        {
            return self.note(&name, error);
        }
        Ok(())
    }

    /// Adds the pieces of the segment that are in an object.
    fn append(
        &mut self,
        there: &mut Vec<u8>,
        name: &str,
        bytes: Vec<u8>,
        wanted: &Wanted,
    ) -> Result<(), ArchiveError> {
        let object = Object::parse(name, bytes)?;
        for (index, piece) in object.pieces().enumerate() {
            if usize::try_from(piece.shard) != Ok(wanted.shard) || piece.segment != wanted.segment {
                continue;
            }
            if piece.from != there.len() as u64 {
                let what = format!("piece {} is not the next one of its segment", index + 1);
                return Err(ArchiveError::damaged(name, what));
            }
            there.extend_from_slice(&object.raw(index)?);
            (self.pace)();
        }
        Ok(())
    }

    /// Reads a segment of the server, and checks every commit. Returns none if it is damaged.
    fn read_here(
        &mut self,
        shard: usize,
        segment: &SegmentEnd,
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        let pace = &mut self.pace;
        let name = format!("segment {} of shard {shard} of this server", segment.number);
        let bounds = (0, segment.bytes);
        let bytes = read(self.source, shard, segment.number, bounds, &mut |_| pace())?;
        let Err(error) = raw::walk(&name, &bytes, None) else { return Ok(Some(bytes)) };
        let what = error.to_string();
        let fault = Fault { name: name.clone(), what, is_newer: false, marks: Vec::new() };
        self.faults.entry(name).or_insert(fault);
        Ok(None)
    }

    /// Notes what is wrong with an object. A place that does not answer is no fault.
    fn note(&mut self, name: &str, error: ArchiveError) -> Result<(), ArchiveError> {
        let (what, is_newer) = match error {
            ArchiveError::Damaged { what, .. } => (what, false),
            ArchiveError::Newer { what, .. } => (what, true),
            other => return Err(other),
        };
        let marks = vec![self.mark.number];
        let fault = Fault { name: name.to_owned(), what, is_newer, marks };
        self.faults.entry(name.to_owned()).or_insert(fault);
        Ok(())
    }

    /// Returns all faults. What the mark needed may have been removed meanwhile, with the mark or
    /// after it: that is a fault only if the newest mark of the line still needs it.
    fn conclude(mut self) -> Result<Vec<Fault>, ArchiveError> {
        if !self.missing.is_empty() {
            let is_there = self.place.get(&names::mark(self.mark.number))?.is_some();
            let newest = newest_of(self.place, self.mark.line)?;
            for (name, held) in std::mem::take(&mut self.missing) {
                let is_needed = |mark: &Mark| held.is_named_by(mark);
                if is_there || newest.as_ref().is_some_and(is_needed) {
                    self.note(&name, ArchiveError::missing(&name))?;
                }
            }
        }
        Ok(self.faults.into_values().collect())
    }
}

impl Held {
    fn is_named_by(self, mark: &Mark) -> bool {
        match self {
            Self::Whole(shard, segment) => {
                mark.shards.get(shard).is_some_and(|known| known.has_whole(segment))
            }
            Self::Parts(number, object) => {
                let parts = mark.shards.iter().flat_map(|known| &known.parts);
                parts.flat_map(Part::each_object).any(|it| it == (number, object))
            }
        }
    }
}

fn newest_of(place: &dyn Place, line: LineId) -> Result<Option<Mark>, ArchiveError> {
    Catalogue::look(place)?.newest_of(line)
}
