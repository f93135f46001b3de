//! Removes what is old from a place, in two steps: marks at once, and what no mark needs any more
//! an hour later, since somebody may be reading it.
//!
//! What stays: every mark of the time that is kept, the newest mark of the place, and of each line
//! the newest mark before that time. Only a line that others went on from long ago goes altogether
//! (`keeping`). What could still be on its way into the next mark is left alone (`loose`). Nothing
//! else removes anything from a place.

mod keeping;
mod loose;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use pinpriq_proto::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::catalogue::Catalogue;
use crate::error::ArchiveError;
use crate::mark::Mark;
use crate::names::{self, PRUNED, number_of};
use crate::place::Place;
use crate::sealed::{FORMAT, seal, unseal};

use self::keeping::{Known, kept};
use self::loose::{Loose, Needed, find_loose};

/// How long what is not needed stays for those who are reading it.
const STAYS: Span = Span::from_ms(3_600_000);

/// What was removed, or would be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    /// The numbers of marks that were removed, oldest first.
    pub marks: Vec<u64>,
    /// The names of objects that were removed: those of marks are not among them.
    pub objects: Vec<String>,
    /// The bytes of these objects.
    pub bytes: u64,
    /// The names of objects that a later prune removes, an hour from now.
    pub waiting: Vec<String>,
    /// How many marks are left.
    pub kept_marks: u64,
    /// The earliest moment that can still be restored.
    pub from: Timestamp,
}

/// What a prune left for a later one to remove.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Left {
    format: u32,
    /// When.
    at_ms: u64,
    /// The names of objects.
    objects: Vec<String>,
}

/// The marks of a place, newest first.
#[derive(Default)]
struct Marks {
    all: Vec<Known>,
    /// The newest mark of each line, and its newest before the time that is kept. Before that time,
    /// no other mark is kept.
    newest: Vec<Mark>,
    /// What marks name.
    needed: Needed,
    /// What those name that are of the time that is kept.
    needed_later: Needed,
}

/// Removes what is older than `keep` before `now`, which is what the clock says. With `dry_run` it
/// only says what it would do.
///
/// Refuses a place with a damaged mark, since what that one needs is not known: then nothing is
/// removed. A crash at any point leaves a place that the next call goes on with.
pub fn prune(
    place: &dyn Place,
    keep: Span,
    now: Timestamp,
    dry_run: bool,
) -> Result<Pruned, ArchiveError> {
    let bound = Timestamp::from_ms(now.ms().saturating_sub(keep.ms()));
    let Marks { all: marks, newest, needed, mut needed_later } = read_marks(place, bound)?;
    let kept = kept(place, &marks, bound)?;
    for mark in newest.iter().filter(|mark| kept.contains(&mark.number)) {
        needed_later.add(mark);
    }
    let left = read_left(place)?;
    let is_due = |left: &Left| Timestamp::from_ms(left.at_ms).after(STAYS) <= now;
    let (due, undue): (Vec<_>, Vec<_>) = left.into_iter().partition(|(_, left)| is_due(left));
    let named_in = |left: &[(u64, Left)]| -> BTreeSet<String> {
        left.iter().flat_map(|(_, left)| left.objects.iter().cloned()).collect()
    };
    let (due_names, undue_names) = (named_in(&due), named_in(&undue));
    let is_noted = |name: &str| due_names.contains(name) || undue_names.contains(name);
    let mut loose = find_loose(place, &newest, &is_noted)?;
    loose.retain(|loose| !needed_later.has(loose));
    let (removable, waiting): (Vec<Loose>, Vec<Loose>) =
        loose.into_iter().partition(|loose| due_names.contains(&loose.name) && !needed.has(loose));
    let pruned = Pruned {
        marks: marks.iter().rev().map(|mark| mark.number).filter(|it| !kept.contains(it)).collect(),
        objects: removable.iter().map(|loose| loose.name.clone()).collect(),
        bytes: removable.iter().map(|loose| loose.bytes).sum(),
        waiting: waiting.into_iter().map(|loose| loose.name).collect(),
        kept_marks: kept.len() as u64,
        from: earliest(&marks, &kept),
    };
    if dry_run {
        return Ok(pruned);
    }
    let of_before = due.iter().chain(&undue).map(|(number, _)| *number).max();
    let next = of_before.map_or(1, |number| number + 1);
    // What is to be removed now is noted too: this may end before it is.
    let noted = pruned.waiting.iter().filter(|it| !undue_names.contains(*it));
    leave(place, next, now, noted.chain(&pruned.objects))?;
    for (number, _) in &due {
        place.remove(&names::pruned(*number))?;
    }
    for number in &pruned.marks {
        place.remove(&names::mark(*number))?;
    }
    let newest = marks.first().map_or(0, |mark| mark.number);
    remove(place, newest, pruned, &removable, needed)
}

/// Removes objects, unless a mark that came meanwhile needs them: one above the number `newest`.
fn remove(
    place: &dyn Place,
    newest: u64,
    mut pruned: Pruned,
    removable: &[Loose],
    mut needed: Needed,
) -> Result<Pruned, ArchiveError> {
    Catalogue::look(place)?.each_sound(&mut |mark| {
        if mark.number <= newest {
            return ControlFlow::Break(());
        }
        needed.add(&mark);
        ControlFlow::Continue(())
    })?;
    (pruned.objects, pruned.bytes) = (Vec::new(), 0);
    for loose in removable.iter().filter(|loose| !needed.has(loose)) {
        place.remove(&loose.name)?;
        pruned.objects.push(loose.name.clone());
        pruned.bytes += loose.bytes;
    }
    Ok(pruned)
}

/// Reads every mark, newest first. There may be millions, so most are not held in memory.
fn read_marks(place: &dyn Place, bound: Timestamp) -> Result<Marks, ArchiveError> {
    let (mut marks, mut seen) = (Marks::default(), BTreeSet::new());
    Catalogue::read(place)?.each_sound(&mut |mark| {
        let is_late = mark.at() >= bound;
        marks.needed.add(&mark);
        if is_late {
            marks.needed_later.add(&mark);
        }
        let (number, line, at, since) = (mark.number, mark.line, mark.at(), mark.since());
        marks.all.push(Known { number, line, at, since });
        if seen.insert((line, is_late)) {
            marks.newest.push(mark);
        }
        ControlFlow::Continue(())
    })?;
    Ok(marks)
}

/// The earliest moment of the marks that are kept.
fn earliest(marks: &[Known], kept: &BTreeSet<u64>) -> Timestamp {
    let kept = marks.iter().filter(|mark| kept.contains(&mark.number));
    kept.map(|mark| mark.since).min().unwrap_or_default()
}

/// Reads what earlier prunes have left, with their numbers.
fn read_left(place: &dyn Place) -> Result<Vec<(u64, Left)>, ArchiveError> {
    let mut all = Vec::new();
    for (name, _) in place.list(PRUNED)?.objects {
        let Some(number) = number_of(&name) else { continue };
        let name = names::pruned(number);
        let Some(bytes) = place.get(&name)? else { continue };
        all.push((number, unseal(&name, &bytes)?));
    }
    Ok(all)
}

/// Notes for a later prune what it may remove.
fn leave<'a>(
    place: &dyn Place,
    number: u64,
    now: Timestamp,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), ArchiveError> {
    let objects: Vec<String> = names.cloned().collect();
    if objects.is_empty() {
        return Ok(());
    }
    let left = Left { format: FORMAT, at_ms: now.ms(), objects };
    if place.create(&names::pruned(number), &seal(&left))? {
        return Ok(());
    }
    let what = "another prune of this place is under way".to_owned();
    Err(ArchiveError::Taken { what })
}
