//! Makes a data directory from an archive, with the state at a moment.
//!
//! It gets a number of its own and with that a line of its own, which names the line that it comes
//! from. No number and no incarnation that the archive knows of any line is given again, unless the
//! directory is only to be looked at. How a directory is written is the business of
//! `pinpriq_store::restore`.

use std::path::Path;

use pinpriq_proto::change::Header;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::journal::{JournalOptions, raw};
use pinpriq_store::reshard::{DirectoryError, ReshardReport};
use pinpriq_store::restore::{Restoring, Wishes};
use pinpriq_store::shards::first_number;
use pinpriq_store::{StoreError, reshard};

use crate::catalogue::{Choice, Highest, highest};
use crate::error::ArchiveError;
use crate::fetch::{self, Fetched, Wanted};
use crate::line::{Line, Parent, lines};
use crate::listed;
use crate::mark::{Knows, Mark, ShardMark};
use crate::names::{self, LineId};
use crate::place::{Place, PlaceError};
use crate::progress::{Meter, Progress};
use crate::sealed::FORMAT;

/// How far beyond the highest number a restored shard begins: a week at 100,000 tasks a second,
/// for what was given after the last backup.
pub(crate) const NUMBERS_BEYOND: u64 = 1 << 36;

/// How far beyond the highest incarnation it begins: for starts after the last backup.
pub(crate) const INCARNATIONS_BEYOND: u64 = 1 << 16;

/// No journal has an incarnation from here on.
const INCARNATION_END: u64 = 1 << 62;

/// How a data directory is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Where. It must be empty, or not there.
    pub data: &'a Path,
    /// The options of its journals. The seed of salts must be random: the number of the directory
    /// comes from it.
    pub journal: JournalOptions,
    /// What it differs in from what was backed up.
    pub wishes: Wishes,
    /// What the clock says. It is only noted.
    pub now: Timestamp,
    /// Whether the place is told of the new directory, which goes on beyond every number that the
    /// place knows. Without this nothing is written into the place, and the directory goes on where
    /// its shards were: whatever it gives may be given by another one too, so it is only good for
    /// looking at.
    pub announces: bool,
}

/// What a restore would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The moment whose state it would be.
    pub at: Timestamp,
    /// The line that it would come from.
    pub line: LineId,
    /// The mark that has the state.
    pub mark: u64,
    /// How many shards there are.
    pub shards: usize,
    /// The most segments that would be read.
    pub segments: u64,
    /// How each shard would go on.
    pub starts: Vec<Header>,
}

/// A data directory that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restored {
    /// The moment whose state it is.
    pub at: Timestamp,
    /// The line that it comes from.
    pub from: LineId,
    /// The mark that had the state.
    pub mark: u64,
    /// Its own line.
    pub line: LineId,
    /// What each shard holds.
    pub reports: Vec<ReshardReport>,
    /// Why the place was not told of the new line, if it does not allow that. Then backups of it
    /// there are refused, and a later restore may give the same numbers again.
    pub unannounced: Option<PlaceError>,
}

/// Says what a restore would do. Refuses what it would refuse before it writes anything, and a mark
/// whose objects are not all there. Reads no segment, and writes nothing.
pub fn plan(place: &dyn Place, choice: &Choice) -> Result<Plan, ArchiveError> {
    let mark = &choice.mark;
    let starts = starts(&highest(place)?, mark)?;
    if let Some(name) = listed::missing(place, mark.line, &mark.shards)? {
        return Err(ArchiveError::missing(&name));
    }
    Ok(Plan {
        at: choice.until,
        line: mark.line,
        mark: mark.number,
        shards: mark.shards.len(),
        segments: mark.segments(),
        starts,
    })
}

/// Makes a data directory with the state that was chosen. Nothing accepts it before it is complete
/// and durable. Holds one segment in memory, and some hundred bytes for each task.
///
/// Refuses a directory that is not empty, damage, a shard whose numbers would end, and another
/// restore at the same moment.
pub fn restore(
    place: &dyn Place,
    choice: &Choice,
    order: &Order<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Restored, ArchiveError> {
    let mark = &choice.mark;
    reshard::refuse_used(order.data)?;
    let known = if order.announces { Some(highest(place)?) } else { None };
    let starts = match &known {
        Some(known) => starts(known, mark)?,
        None => starts_to_look_at(choice),
    };
    let mut meter = Meter::new(mark.segments(), progress);
    let mut restoring = Restoring::begin(order.data, mark.shards.len(), order.journal)?;
    let line = LineId(restoring.number());
    // Before anything can be given, so that nothing is given twice. It is at once, so that others
    // which begin meanwhile know of it.
    let mut unannounced = None;
    if let Some(known) = known {
        unannounced = announce(place, line, choice, &starts, order.now)?;
        refuse_others(place, line, &known)?;
    }
    for shard in 0..mark.shards.len() {
        fill(&mut restoring, place, choice, shard, &mut meter)?;
    }
    let reports = restoring.finish(&starts, order.wishes)?;
    let (at, from, mark) = (choice.until, mark.line, mark.number);
    Ok(Restored { at, from, mark, line, reports, unannounced })
}

/// Adds the segments of a shard, as far as they count.
fn fill(
    restoring: &mut Restoring,
    place: &dyn Place,
    choice: &Choice,
    shard: usize,
    meter: &mut Meter<'_>,
) -> Result<(), ArchiveError> {
    let Mark { line, shards, .. } = &choice.mark;
    let known = &shards[shard];
    let wanted = |segment| Wanted { line: *line, shard, shards: shards.len(), segment };
    for segment in known.whole_segments() {
        let wanted = wanted(segment);
        let name = wanted.name();
        let fetched = fetch::whole(place, &wanted)?.ok_or_else(|| ArchiveError::missing(&name))?;
        if add(restoring, choice, (&wanted, &name), fetched, meter)? {
            return Ok(());
        }
    }
    for part in &known.parts {
        let wanted = wanted(part.segment());
        let name = part.last_name(*line);
        let fetched = fetch::part(place, &wanted, part)?;
        if add(restoring, choice, (&wanted, &name), fetched, meter)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Adds a segment. Returns whether none after it counts.
fn add(
    restoring: &mut Restoring,
    choice: &Choice,
    (wanted, name): (&Wanted, &str),
    Fetched { bytes, .. }: Fetched,
    meter: &mut Meter<'_>,
) -> Result<bool, ArchiveError> {
    let header = raw::header(&bytes).map_err(|error| ArchiveError::of_segment(name, error))?;
    wanted.check_header(name, &header)?;
    let added = restoring.add(wanted.shard, bytes, Some(choice.until));
    let walk = added.map_err(|error| unfit(name, error))?;
    meter.pass(1);
    Ok(walk.is_cut)
}

/// Tells damage in an archive from trouble with the new directory.
fn unfit(name: &str, error: DirectoryError) -> ArchiveError {
    match error.source {
        source @ (StoreError::Corrupt { .. }
        | StoreError::NewerFormat { .. }
        | StoreError::NewerRecord { .. }
        | StoreError::Mixed { .. }) => ArchiveError::of_segment(name, source),
        _ => ArchiveError::Directory(error),
    }
}

/// Tells the place of the new line. Returns why not, if the place does not allow that.
pub(crate) fn announce(
    place: &dyn Place,
    line: LineId,
    choice: &Choice,
    starts: &[Header],
    now: Timestamp,
) -> Result<Option<PlaceError>, PlaceError> {
    let Choice { mark, until, .. } = choice;
    let knows = |start: &Header| {
        let Header { incarnation, last_number, .. } = *start;
        Knows { incarnation, last_number }
    };
    let announced = Line {
        format: FORMAT,
        line,
        shards: u32::try_from(mark.shards.len()).unwrap_or(u32::MAX),
        made_at_ms: now.ms(),
        parent: Some(Parent { line: mark.line, mark: mark.number, at_ms: until.ms() }),
        starts: starts.iter().map(knows).collect(),
    };
    match place.create(&names::line(line), &announced.encode()) {
        Ok(true) => Ok(None),
        Ok(false) => {
            let what = format!("{} knows a line {line} already: try again", place.name());
            Err(PlaceError::Bad { what })
        }
        Err(error @ PlaceError::Denied { .. }) => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

/// Refuses to go on if there is a line by now that was not known when the starts were chosen: then
/// both would give the same numbers. Of two restores each tells of its line before it looks.
pub(crate) fn refuse_others(
    place: &dyn Place,
    line: LineId,
    known: &Highest,
) -> Result<(), ArchiveError> {
    let is_unknown = |starts: &[Knows]| {
        starts.iter().zip(&known.shards).any(|(start, known)| known.and(*start) != *known)
    };
    if another_begins(place, line, &is_unknown)? { Err(taken(place)) } else { Ok(()) }
}

/// Whether another line that the place knows has such starts.
pub(crate) fn another_begins(
    place: &dyn Place,
    line: LineId,
    is_such: &dyn Fn(&[Knows]) -> bool,
) -> Result<bool, ArchiveError> {
    for other in lines(place)?.into_iter().filter(|other| *other != line) {
        let starts = match Line::read(place, other) {
            Ok(found) => found.map(|found| found.starts).unwrap_or_default(),
            // It was counted, and left room for.
            Err(ArchiveError::Damaged { .. }) => continue,
            Err(error) => return Err(error),
        };
        if is_such(&starts) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What is wrong if another one has the same numbers.
pub(crate) fn taken(place: &dyn Place) -> ArchiveError {
    let what = format!("another restore from {} has begun at the same moment", place.name());
    ArchiveError::Taken { what }
}

/// Returns how each shard goes on: beyond everything that the place knows of any line. Refuses to
/// leave the numbers that a shard has to itself.
pub(crate) fn starts(highest: &Highest, mark: &Mark) -> Result<Vec<Header>, ArchiveError> {
    let Highest { shards, latest, lost } = highest;
    if shards.len() != mark.shards.len() {
        let name = names::mark(mark.number);
        return Err(ArchiveError::damaged(&name, "newer ones are of another number of shards"));
    }
    let incarnation = shards.iter().map(|known| known.incarnation).max().unwrap_or_default();
    // What is damaged may have been of a restore, which was as far beyond.
    let times = lost.saturating_add(1);
    let incarnation = incarnation.saturating_add(INCARNATIONS_BEYOND.saturating_mul(times));
    if incarnation >= INCARNATION_END {
        let what = "there have been as many starts as can be".to_owned();
        return Err(ArchiveError::CannotGoOn { what });
    }
    let range = first_number(1);
    let beyond = NUMBERS_BEYOND.saturating_mul(times);
    let mut starts = Vec::new();
    for (shard, known) in shards.iter().enumerate() {
        let known = known.last_number.max(first_number(shard));
        let last_number = known.checked_add(beyond);
        let Some(last_number) = last_number.filter(|it| it / range == known / range) else {
            let what = format!(
                "shard {shard} has given number {known} and cannot go on {beyond} further: \
                 another shard's numbers begin before. Move to another number of shards with \
                 `pinpriq reshard` in good time, which begins new ranges"
            );
            return Err(ArchiveError::CannotGoOn { what });
        };
        starts.push(Header { incarnation, now: *latest, last_number });
    }
    Ok(starts)
}

/// Returns how each shard of a directory goes on that is only looked at: where it was.
fn starts_to_look_at(choice: &Choice) -> Vec<Header> {
    let start = |(shard, known): (usize, &ShardMark)| Header {
        incarnation: known.incarnation.saturating_add(1),
        now: choice.until,
        last_number: known.last_number.max(first_number(shard)),
    };
    choice.mark.shards.iter().enumerate().map(start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::{By, Part};

    fn mark(shards: usize) -> Mark {
        let part = Part { number: 1, incarnation: 1, bytes: 8_192, head: 0, objects: Vec::new() };
        let shard = ShardMark {
            whole: Vec::new(),
            parts: vec![part],
            incarnation: 1,
            last_number: 0,
            since_ms: 0,
        };
        Mark {
            format: FORMAT,
            number: 1,
            line: LineId(1),
            by: By::Backup,
            at_ms: 5,
            since_ms: 0,
            shards: vec![shard; shards],
            highest: Vec::new(),
            latest_ms: 5,
        }
    }

    fn highest(known: &[(u64, u64)]) -> Highest {
        let each = |(incarnation, last_number): &(u64, u64)| Knows {
            incarnation: *incarnation,
            last_number: *last_number,
        };
        let shards = known.iter().map(each).collect();
        Highest { shards, latest: Timestamp::from_ms(9), lost: 0 }
    }

    #[test]
    fn a_start_is_beyond_everything_known() {
        let block = 1_u64 << 46;
        let found = starts(&highest(&[(3, 7), (5, 0), (4, 2 * block + 9)]), &mark(3)).unwrap();
        let numbers: Vec<u64> = found.iter().map(|start| start.last_number).collect();
        let beyond = 1_u64 << 36;
        // The second shard has given none, and its numbers begin at the second range.
        assert_eq!(numbers, [7 + beyond, block + beyond, 2 * block + 9 + beyond]);
        assert!(found.iter().all(|start| start.incarnation == 5 + (1 << 16)));
        assert!(found.iter().all(|start| start.now.ms() == 9));
    }

    #[test]
    fn a_start_never_leaves_the_range_of_its_shard() {
        let (block, beyond) = (1_u64 << 46, 1_u64 << 36);
        assert!(starts(&highest(&[(1, block - beyond - 1)]), &mark(1)).is_ok());
        for known in [block - beyond, block - 1, u64::MAX] {
            let refused = starts(&highest(&[(1, known)]), &mark(1));
            assert!(matches!(refused, Err(ArchiveError::CannotGoOn { .. })), "{known}");
        }
        let refused = starts(&highest(&[(u64::MAX, 0)]), &mark(1));
        assert!(matches!(refused, Err(ArchiveError::CannotGoOn { .. })));
    }
}
