//! Objects of parts as they are read for several shards: each has a piece of many.
//!
//! What was read last is kept, within a bound, so that the shards do not ask for the same again.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::error::ArchiveError;
use crate::fetch::Wanted;
use crate::mark::Part;
use crate::names;
use crate::object::Object;
use crate::place::Place;
use pinpriq_store::disk;

/// The most bytes of objects that are kept, unless a single one has more.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// The objects of a round.
pub(super) struct Objects<'a> {
    place: &'a dyn Place,
    /// The newest last, with their bytes.
    kept: VecDeque<(String, Rc<Object>, usize)>,
    bytes: usize,
}

impl<'a> Objects<'a> {
    pub(super) const fn new(place: &'a dyn Place) -> Self {
        Self { place, kept: VecDeque::new(), bytes: 0 }
    }

    /// Returns what a part has behind its first `here` bytes. `after` is a mark with which these
    /// were there: what is behind them is in objects of later marks, unless all of it was sent anew
    /// or the directory has less than the mark had.
    pub(super) fn behind(
        &mut self,
        wanted: &Wanted,
        part: &Part,
        (here, after): (u64, u64),
    ) -> Result<Vec<u8>, ArchiveError> {
        let after = if here == 0 { 0 } else { after };
        if let Some(bytes) = self.gathered(wanted, part, (here, after))? {
            return Ok(bytes);
        }
        let found = if after == 0 { None } else { self.gathered(wanted, part, (here, 0))? };
        found.ok_or_else(|| {
            let what = format!(
                "the pieces of segment {} of shard {} are not its bytes up to {}",
                wanted.segment.number, wanted.shard, part.bytes
            );
            ArchiveError::damaged(&part.last_name(wanted.line), what)
        })
    }

    /// Puts the pieces together that are in objects of later marks. None if they are not all that
    /// is missing.
    fn gathered(
        &mut self,
        wanted: &Wanted,
        part: &Part,
        (here, after): (u64, u64),
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        let mut bytes = Vec::new();
        for (mark, object) in part.each_object().filter(|(mark, _)| *mark > after) {
            let object = self.read(names::parts(wanted.line, mark, object))?;
            for (index, piece) in object.pieces().enumerate() {
                let is_other = usize::try_from(piece.shard) != Ok(wanted.shard);
                let end = piece.from + u64::from(piece.raw_bytes);
                let due = here + bytes.len() as u64;
                if is_other || piece.segment != wanted.segment || end <= due {
                    continue;
                }
                if piece.from > due || end > part.bytes {
                    return Ok(None);
                }
                let raw = object.raw(index)?;
                let from = disk::index(due - piece.from);
                bytes.extend_from_slice(raw.get(from..).unwrap_or_default());
            }
        }
        Ok((here + bytes.len() as u64 == part.bytes).then_some(bytes))
    }

    fn read(&mut self, name: String) -> Result<Rc<Object>, ArchiveError> {
        if let Some((_, object, _)) = self.kept.iter().find(|(known, ..)| *known == name) {
            return Ok(Rc::clone(object));
        }
        let found = self.place.get(&name)?.ok_or_else(|| ArchiveError::missing(&name))?;
        let length = found.len();
        let object = Rc::new(Object::parse(&name, found)?);
        self.kept.push_back((name, Rc::clone(&object), length));
        self.bytes += length;
        while self.bytes > KEPT_BYTES_MAX && self.kept.len() > 1 {
            self.bytes -= self.kept.pop_front().map_or(0, |(_, _, bytes)| bytes);
        }
        Ok(object)
    }
}
