//! Finds the objects that could be removed: those that no later mark can name any more.
//!
//! A backup that is under way has written objects that no mark names yet. They are of segments that
//! the newest mark of their line has not seen whole, or parts of a mark with a higher number.
//! These are left alone, whatever their age, and so is everything with a name that is not known.

use std::collections::BTreeMap;

use crate::error::ArchiveError;
use crate::line::lines;
use crate::mark::Mark;
use crate::names::{
    self, LineId, MARKS, SegmentId, UNFINISHED, WHOLE, number_of, parts_in, segment_of, shard_of,
};
use crate::place::Place;
use crate::spans::Spans;

/// An object that no later mark can name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Loose {
    pub(super) name: String,
    pub(super) bytes: u64,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Whole(LineId, usize, SegmentId),
    Parts(LineId, u64, u32),
    /// A file that was never completed.
    Unfinished,
}

/// What marks name.
#[derive(Default)]
pub(super) struct Needed {
    /// By line, shard and incarnation: the numbers of whole segments.
    whole: BTreeMap<(LineId, usize, u64), Spans>,
    /// By line, and the number of the object: the marks.
    parts: BTreeMap<(LineId, u32), Spans>,
}

impl Needed {
    /// Adds what a mark names.
    pub(super) fn add(&mut self, mark: &Mark) {
        for (shard, needs) in mark.shards.iter().enumerate() {
            for run in &needs.whole {
                let known = self.whole.entry((mark.line, shard, run.incarnation)).or_default();
                known.insert(run.first.into(), run.last.into());
            }
            for run in needs.parts.iter().flat_map(|part| &part.objects) {
                let known = self.parts.entry((mark.line, run.object)).or_default();
                known.insert(run.first, run.last);
            }
        }
    }

    /// Whether a mark names this object.
    pub(super) fn has(&self, loose: &Loose) -> bool {
        match loose.what {
            What::Whole(line, shard, SegmentId { number, incarnation }) => {
                let known = self.whole.get(&(line, shard, incarnation));
                known.is_some_and(|known| known.contains(number.into()))
            }
            What::Parts(line, mark, object) => {
                self.parts.get(&(line, object)).is_some_and(|known| known.contains(mark))
            }
            What::Unfinished => false,
        }
    }
}

/// Returns the objects that no later mark can name. `marks` are newest first, and have the newest
/// of each line.
///
/// Of a line without marks, only those count that an earlier prune has noted when there were marks:
/// the others are those of its first backup, which is under way.
pub(super) fn find_loose(
    place: &dyn Place,
    marks: &[Mark],
    is_noted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Loose>, ArchiveError> {
    let mut found = Vec::new();
    for line in lines(place)? {
        let newest = marks.iter().find(|mark| mark.line == line);
        let before = found.len();
        for name in place.list(&line.to_string())?.prefixes {
            let Some(shard) = shard_of(&name) else { continue };
            find_segments(place, (line, shard), newest, &mut found)?;
        }
        find_parts(place, line, newest.map_or(u64::MAX, |mark| mark.number), &mut found)?;
        if newest.is_none() {
            let of_line = found.split_off(before);
            found.extend(of_line.into_iter().filter(|loose| is_noted(&loose.name)));
        }
    }
    for name in place.list(MARKS)?.each_prefix() {
        let Some(block) = number_of(&name) else { continue };
        find_unfinished(place, &names::mark_block(block), &mut found)?;
    }
    Ok(found)
}

/// Finds the segments of a shard that are older than what the newest mark of the line, if it has
/// any, has in parts.
fn find_segments(
    place: &dyn Place,
    (line, shard): (LineId, usize),
    newest: Option<&Mark>,
    found: &mut Vec<Loose>,
) -> Result<(), ArchiveError> {
    for name in place.list(&names::shard(line, shard))?.each_prefix() {
        let Some(segment) = segment_of(&name) else { continue };
        // What the newest mark has only in parts may be sent whole at this moment.
        let is_over = newest.is_none_or(|mark| {
            let known = mark.shards.get(shard);
            let part = known.and_then(|known| known.parts.first());
            part.is_some_and(|part| {
                (segment.number, segment.incarnation) < (part.number, part.incarnation)
            })
        });
        if !is_over {
            continue;
        }
        let prefix = names::segment(line, shard, segment);
        for (name, bytes) in place.list(&prefix)?.objects {
            let what = match name.as_str() {
                WHOLE => What::Whole(line, shard, segment),
                name if name.starts_with(UNFINISHED) => What::Unfinished,
                _ => continue,
            };
            found.push(Loose { name: format!("{prefix}/{name}"), bytes, what });
        }
    }
    Ok(())
}

fn find_parts(
    place: &dyn Place,
    line: LineId,
    last_mark: u64,
    found: &mut Vec<Loose>,
) -> Result<(), ArchiveError> {
    for name in place.list(&names::all_parts(line))?.each_prefix() {
        let Some(block) = number_of(&name) else { continue };
        let prefix = names::parts_block(line, block);
        for (name, bytes) in place.list(&prefix)?.objects {
            let what = match parts_in(block, &name) {
                Some((mark, object)) if mark <= last_mark => What::Parts(line, mark, object),
                None if name.starts_with(UNFINISHED) => What::Unfinished,
                _ => continue,
            };
            found.push(Loose { name: format!("{prefix}/{name}"), bytes, what });
        }
    }
    Ok(())
}

fn find_unfinished(
    place: &dyn Place,
    prefix: &str,
    found: &mut Vec<Loose>,
) -> Result<(), ArchiveError> {
    for (name, bytes) in place.list(prefix)?.objects {
        if name.starts_with(UNFINISHED) {
            let name = format!("{prefix}/{name}");
            found.push(Loose { name, bytes, what: What::Unfinished });
        }
    }
    Ok(())
}
