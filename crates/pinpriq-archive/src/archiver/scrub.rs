//! Compares the segments of a server with what a mark says is in the place: what has rotted on
//! either side is found.
//!
//! Everything is read and nothing is changed. How fast is up to the caller, who is asked after each
//! piece.

use std::collections::BTreeMap;

use pinpriq_store::StoreError;
use pinpriq_store::journal::raw::{self, HEADER_BYTES, RawHeader, Walker};

use crate::backup::ground::{id, read};
use crate::catalogue::Catalogue;
use crate::error::ArchiveError;
use crate::fetch::Wanted;
use crate::mark::{Mark, Part};
use crate::names::{self, LineId, SegmentId};
use crate::object::{Object, PIECE_BYTES};
use crate::place::Place;
use crate::source::{SegmentEnd, Source};
use crate::verify::Fault;

/// What is compared.
struct Scrubbing<'a> {
    source: &'a mut dyn Source,
    place: &'a dyn Place,
    mark: &'a Mark,
    pause: &'a mut dyn FnMut(),
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

/// A segment, and who has it.
#[derive(Clone, Copy, Default)]
struct Sides<'a> {
    here: Option<&'a SegmentEnd>,
    /// Whether the mark names it.
    is_there: bool,
    /// What the mark says, if it is there in parts.
    part: Option<&'a Part>,
}

/// A segment of the server that is read piece by piece.
struct Local {
    shard: usize,
    number: u32,
    bytes: u64,
    /// How far it was read.
    at: u64,
    check: Check,
}

/// What the place has of a segment.
struct There {
    /// The last object that was read.
    name: String,
    bytes: u64,
    /// Whether every piece is what the server has.
    is_same: bool,
    check: Check,
}

/// Checks the commits of a segment that comes in pieces, which end anywhere.
#[derive(Default)]
struct Check {
    walker: Option<Walker>,
    /// What came after the last whole commit.
    rest: Vec<u8>,
}

/// Reads the segments of a cut, and what a mark of the same server says is in the place of them.
/// Returns what is damaged or missing on either side, by names. A segment of the server has the
/// name of its shard and its number, and no mark. `pause` is called after each piece of at most
/// 8 MiB. Holds one piece of either side in memory, and one object.
///
/// The segments of each shard are read in the order of their numbers. One that only one side has by
/// now is checked for itself. A place or a server that does not answer is an error.
pub fn scrub(
    source: &mut dyn Source,
    place: &dyn Place,
    mark: &Mark,
    pause: &mut dyn FnMut(),
) -> Result<Vec<Fault>, ArchiveError> {
    let cut = source.cut().clone();
    let (faults, missing) = (BTreeMap::new(), Vec::new());
    let mut scrubbing = Scrubbing { source, place, mark, pause, faults, missing };
    for (shard, known) in mark.shards.iter().enumerate() {
        let mut all: BTreeMap<SegmentId, Sides<'_>> = BTreeMap::new();
        for segment in known.whole_segments() {
            all.entry(segment).or_default().is_there = true;
        }
        for part in &known.parts {
            let sides = all.entry(part.segment()).or_default();
            (sides.is_there, sides.part) = (true, Some(part));
        }
        for segment in cut.shards.get(shard).into_iter().flatten() {
            all.entry(id(segment)).or_default().here = Some(segment);
        }
        for (segment, sides) in all {
            scrubbing.compare(shard, segment, sides)?;
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
        sides: Sides<'_>,
    ) -> Result<(), ArchiveError> {
        let (line, shards) = (self.mark.line, self.mark.shards.len());
        let wanted = Wanted { line, shard, shards, segment };
        let mut here = sides.here.map(|segment| Local::new(shard, segment));
        let there = if sides.is_there {
            self.read_there(&wanted, sides.part, here.as_mut())?
        } else {
            None
        };
        let is_sound = match here {
            Some(here) => self.read_rest(here)?,
            None => false,
        };
        let Some(There { name, bytes, is_same, check }) = there else { return Ok(()) };
        if sides.part.is_some_and(|part| part.bytes != bytes) {
            return self.note(&name, ArchiveError::damaged(&name, "it has too few pieces"));
        }
        // What is the same as a segment that was checked is good.
        let has_end = sides.part.is_some() || sides.here.is_some_and(|here| here.bytes == bytes);
        if is_sound && is_same && has_end {
            return Ok(());
        }
        if is_sound {
            let what = "it is not the same as the segment of the server";
            return self.note(&name, ArchiveError::damaged(&name, what));
        }
        let checked = check.conclude(&name).map_err(|it| ArchiveError::of_segment(&name, it));
        match checked.and_then(|header| wanted.check_header(&name, &header)) {
            Ok(()) => Ok(()),
            Err(error) => self.note(&name, error),
        }
    }

    /// Reads what the place has of a segment, and as much of that of the server. Returns none if
    /// something is missing or damaged, which is noted.
    fn read_there(
        &mut self,
        wanted: &Wanted,
        part: Option<&Part>,
        mut here: Option<&mut Local>,
    ) -> Result<Option<There>, ArchiveError> {
        let line = self.mark.line;
        let objects: Vec<(String, Held)> = match part {
            None => vec![(wanted.name(), Held::Whole(wanted.shard, wanted.segment))],
            Some(part) => part
                .each_object()
                .map(|(mark, object)| (names::parts(line, mark, object), Held::Parts(mark, object)))
                .collect(),
        };
        let (name, check) = (String::new(), Check::default());
        let mut there = There { name, bytes: 0, is_same: true, check };
        for (object, held) in objects {
            let Some(bytes) = self.place.get(&object)? else {
                self.missing.push((object, held));
                return Ok(None);
            };
            there.name = object;
            let read = self.read_object(&mut there, bytes, wanted, here.as_deref_mut());
            if let Err(error) = read {
                // If the server is at fault, that ends all.
                self.note(&there.name, error)?;
                return Ok(None);
            }
        }
        Ok(Some(there))
    }

    /// Reads the pieces of the segment that are in an object.
    fn read_object(
        &mut self,
        there: &mut There,
        bytes: Vec<u8>,
        wanted: &Wanted,
        mut here: Option<&mut Local>,
    ) -> Result<(), ArchiveError> {
        let object = Object::parse(&there.name, bytes)?;
        for (index, piece) in object.pieces().enumerate() {
            if usize::try_from(piece.shard) != Ok(wanted.shard) || piece.segment != wanted.segment {
                continue;
            }
            if piece.from != there.bytes {
                let what = format!("piece {} is not the next one of its segment", index + 1);
                return Err(ArchiveError::damaged(&there.name, what));
            }
            let raw = object.raw(index)?;
            there.bytes += raw.len() as u64;
            if let Some(here) = here.as_deref_mut() {
                there.is_same &= self.read_here(here, raw.len() as u64)? == raw;
            }
            there.check.push(&there.name, &raw);
            (self.pause)();
        }
        Ok(())
    }

    /// Reads the next bytes of a segment of the server, as many as there are up to `most`.
    fn read_here(&mut self, here: &mut Local, most: u64) -> Result<Vec<u8>, ArchiveError> {
        let bounds = (here.at, here.bytes.min(here.at + most));
        let bytes = read(self.source, here.shard, here.number, bounds, &mut |_| {})?;
        here.at = bounds.1;
        here.check.push(&here.name(), &bytes);
        Ok(bytes)
    }

    /// Reads the rest of a segment of the server. Returns whether every commit is sound.
    fn read_rest(&mut self, mut here: Local) -> Result<bool, ArchiveError> {
        while here.at < here.bytes {
            self.read_here(&mut here, PIECE_BYTES as u64)?;
            (self.pause)();
        }
        let name = here.name();
        let Err(error) = here.check.conclude(&name) else { return Ok(true) };
        let what = error.to_string();
        let fault = Fault { name: name.clone(), what, is_newer: false, marks: Vec::new() };
        self.faults.entry(name).or_insert(fault);
        Ok(false)
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

impl Local {
    fn new(shard: usize, segment: &SegmentEnd) -> Self {
        let SegmentEnd { number, bytes, .. } = *segment;
        Self { shard, number, bytes, at: 0, check: Check::default() }
    }

    fn name(&self) -> String {
        format!("segment {} of shard {} of this server", self.number, self.shard)
    }
}

impl Check {
    /// Checks as many commits as are whole by now. `name` is for the message.
    fn push(&mut self, name: &str, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        if self.walker.is_none()
            && let Some(header) = self.rest.get(..HEADER_BYTES)
            && let Ok(walker) = Walker::begin(name, header)
        {
            self.walker = Some(walker);
            self.rest.drain(..HEADER_BYTES);
        }
        if let Some(walker) = &mut self.walker {
            let before = walker.walk().end;
            // The last commit may only have begun. What is wrong is told at the end.
            drop(walker.push(name, &self.rest, &mut |_| {}));
            self.rest.drain(..walker.walk().end - before);
        }
    }

    /// Returns the header, or what is wrong if the segment ends here.
    fn conclude(self, name: &str) -> Result<RawHeader, StoreError> {
        let Some(mut walker) = self.walker else {
            return raw::walk(name, &self.rest, None).map(|walk| walk.header);
        };
        walker.push(name, &self.rest, &mut |_| {})?;
        Ok(walker.walk().header)
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
