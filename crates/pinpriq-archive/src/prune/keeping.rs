//! Decides which marks stay. Reads what the lines are, and removes nothing.

use std::collections::{BTreeMap, BTreeSet};

use pinpriq_proto::time::Timestamp;

use crate::error::ArchiveError;
use crate::line::{Line, lines};
use crate::names::LineId;
use crate::place::Place;

/// What is known of every mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Known {
    pub(super) number: u64,
    pub(super) line: LineId,
    pub(super) at: Timestamp,
    pub(super) since: Timestamp,
}

/// Returns the numbers of the marks that stay so that every moment from `bound` on can be restored
/// as before. `marks` are newest first.
pub(super) fn kept(
    place: &dyn Place,
    marks: &[Known],
    bound: Timestamp,
) -> Result<BTreeSet<u64>, ArchiveError> {
    let mut parents = BTreeMap::new();
    for line in lines(place)? {
        let parent = Line::read(place, line)?.and_then(|known| known.parent);
        parents.extend(parent.map(|parent| (line, parent.line)));
    }
    Ok(chosen(marks, &parents, bound))
}

fn chosen(marks: &[Known], parents: &BTreeMap<LineId, LineId>, bound: Timestamp) -> BTreeSet<u64> {
    let is_late = |mark: &&Known| mark.at >= bound;
    let (late, early): (Vec<&Known>, Vec<&Known>) = marks.iter().partition(is_late);
    let lines_of =
        |marks: &[&Known]| -> BTreeSet<LineId> { marks.iter().map(|mark| mark.line).collect() };
    let (late_lines, early_lines) = (lines_of(&late), lines_of(&early));
    // Of these another line took the place before the time that is kept, and all through it.
    let mut superseded = BTreeSet::new();
    for line in late_lines.intersection(&early_lines) {
        let mut at = *line;
        while let Some(parent) = parents.get(&at).filter(|parent| superseded.insert(**parent)) {
            at = *parent;
        }
    }
    let mut kept: BTreeSet<u64> = late.iter().map(|mark| mark.number).collect();
    let mut seen = BTreeSet::new();
    for mark in early {
        let stays = late_lines.contains(&mark.line) || !superseded.contains(&mark.line);
        if seen.insert(mark.line) && stays {
            kept.insert(mark.number);
        }
    }
    kept.extend(marks.first().map(|mark| mark.number));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks of lines at moments, numbered from 1, newest first.
    fn marks(of: &[(u64, u64)]) -> Vec<Known> {
        let mark = |(number, (line, at_ms)): (u64, &(u64, u64))| {
            let at = Timestamp::from_ms(*at_ms);
            Known { number, line: LineId(*line), at, since: at }
        };
        let mut marks: Vec<Known> = (1..).zip(of).map(mark).collect();
        marks.reverse();
        marks
    }

    #[track_caller]
    fn check(of: &[(u64, u64)], parents: &[(u64, u64)], bound: u64, expected: &[u64]) {
        let parents = parents.iter().map(|(line, parent)| (LineId(*line), LineId(*parent)));
        let kept = chosen(&marks(of), &parents.collect(), Timestamp::from_ms(bound));
        assert_eq!(kept.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_newest_mark_before_the_time_stays() {
        let line = [(1, 10), (1, 20), (1, 30), (1, 40)];
        check(&line, &[], 0, &[1, 2, 3, 4]);
        check(&line, &[], 20, &[1, 2, 3, 4]);
        check(&line, &[], 25, &[2, 3, 4]);
        check(&line, &[], 41, &[4]);
    }

    #[test]
    fn the_newest_mark_of_each_line_stays() {
        let two = [(1, 10), (1, 20), (2, 30), (2, 40), (2, 50)];
        check(&two, &[], 45, &[2, 4, 5]);
        check(&two, &[], 60, &[2, 5]);
    }

    #[test]
    fn a_line_that_another_went_on_from_long_ago_goes() {
        let two = [(1, 10), (1, 20), (2, 30), (2, 40), (2, 50)];
        // The second line has no mark yet before the time that is kept.
        check(&two, &[(2, 1)], 25, &[2, 3, 4, 5]);
        check(&two, &[(2, 1)], 45, &[4, 5]);
        // It has none since, so that it is not known which of both goes on.
        check(&two, &[(2, 1)], 60, &[2, 5]);
        // The first line went on too.
        check(&[(1, 10), (2, 30), (1, 35), (2, 40), (1, 50)], &[(2, 1)], 38, &[2, 3, 4, 5]);
        // A grandparent, and lines that claim to come from each other.
        let three = [(1, 10), (2, 20), (3, 30), (3, 40)];
        check(&three, &[(3, 2), (2, 1)], 35, &[3, 4]);
        check(&three, &[(3, 2), (2, 1), (1, 3)], 35, &[3, 4]);
    }
}
