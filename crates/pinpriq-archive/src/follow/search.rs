//! Finds what is new of a line: usually the mark with the next number, and otherwise by a listing.

use std::ops::ControlFlow;

use crate::catalogue::{Catalogue, Until};
use crate::error::ArchiveError;
use crate::line::comes_from;
use crate::mark::Mark;
use crate::names::{self, LineId};
use crate::place::Place;

/// How many marks are read one after the other before a listing finds the newest.
const STEPS_MAX: u64 = 8;

/// What is newer than a mark.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The newest mark of the line.
    pub(super) mark: Option<Mark>,
    /// A line that comes from this one, and has a mark that is newer still.
    pub(super) went_on: Option<LineId>,
}

/// Looks for marks with a higher number than `known`. Without a line, the newest mark of the place
/// says which it is. If the marks are not to be listed, only those with the next numbers are seen.
pub(super) fn newer(
    place: &dyn Place,
    (line, known): (Option<LineId>, u64),
    lists: bool,
) -> Result<Found, ArchiveError> {
    let Some(line) = line else {
        let choice = Catalogue::read(place)?.choose(None, Until::Latest)?;
        return Ok(Found { mark: Some(choice.mark), went_on: None });
    };
    if lists {
        let found = listed(place, (line, known))?;
        if known == 0 && found.mark.is_none() {
            // A place without any backup says so.
            Catalogue::read(place)?;
            return Err(ArchiveError::NoLine { place: place.name(), line });
        }
        return Ok(found);
    }
    let mut found = Found::default();
    for number in (known..).skip(1) {
        if number > known + STEPS_MAX {
            return listed(place, (line, known));
        }
        let name = names::mark(number);
        let Some(bytes) = place.get(&name)? else { break };
        let mark = Mark::decode(&name, &bytes)?;
        if mark.number != number {
            return Err(ArchiveError::damaged(&name, "it says that it is another mark"));
        }
        if mark.line == line {
            found = Found { mark: Some(mark), went_on: None };
        } else if comes_from(place, mark.line, line)? {
            found.went_on = Some(mark.line);
        }
    }
    Ok(found)
}

/// Reads marks, the newest first, until there is one of the line. Refuses a place that no longer
/// has what was followed.
fn listed(place: &dyn Place, (line, known): (LineId, u64)) -> Result<Found, ArchiveError> {
    let (mut found, mut others, mut trouble) = (Found::default(), Vec::new(), None);
    let mut catalogue = Catalogue::look(place)?;
    let newest = catalogue.newest_number()?;
    catalogue.each(&mut |number, mark| {
        if number <= known {
            return ControlFlow::Break(());
        }
        match mark {
            Ok(mark) if mark.line == line => found.mark = Some(mark),
            Ok(mark) => {
                if !others.contains(&mark.line) {
                    others.push(mark.line);
                }
                return ControlFlow::Continue(());
            }
            // It may be of this line.
            Err(error) => trouble = Some(error),
        }
        ControlFlow::Break(())
    })?;
    if let Some(error) = trouble {
        return Err(error);
    }
    let is_followed = known > 0 && found.mark.is_none();
    if is_followed {
        refuse_less(place, known, newest)?;
    }
    for other in others {
        if comes_from(place, other, line)? {
            found.went_on = Some(other);
            break;
        }
    }
    // A line that has a mark is there. Without it, this is another place.
    if is_followed && found.went_on.is_none() && place.get(&names::line(line))?.is_none() {
        return Err(ArchiveError::NoLine { place: place.name(), line });
    }
    Ok(found)
}

/// Refuses a place without the mark that was followed, or a later one: it was emptied, is an older
/// copy, is not mounted, or is another one. Nothing removes the newest mark of a place.
fn refuse_less(place: &dyn Place, known: u64, newest: Option<u64>) -> Result<(), ArchiveError> {
    let Some(newest) = newest else {
        return Err(ArchiveError::Empty { place: place.name() });
    };
    if newest >= known {
        return Ok(());
    }
    let what = format!(
        "mark {known} was followed, and the newest in {} is {newest}: this is another place, an \
         older copy, or it was emptied. If it is the right one, follow it into an empty directory",
        place.name()
    );
    Err(ArchiveError::LacksFollowed { what })
}
