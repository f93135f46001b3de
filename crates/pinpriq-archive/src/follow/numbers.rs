//! The numbers with which a directory goes on that follows: beyond all that the archive knows, and
//! far enough that the server which is followed never reaches them.
//!
//! The place is told of them as of those of a restore. They are chosen once for a long time, since
//! each choice uses up numbers of the shards.

use pinpriq_store::layout::{Following, FollowingStart};

use super::Turn;
use crate::catalogue::{Choice, Highest, Why, highest};
use crate::error::ArchiveError;
use crate::mark::{Knows, Mark};
use crate::names::LineId;
use crate::place::{Place, PlaceError};
use crate::restore::{INCARNATIONS_BEYOND, NUMBERS_BEYOND, announce, refuse_others, starts};

/// What a place was told of.
pub(super) struct Announced {
    /// The number of the directory.
    pub(super) number: u64,
    /// Where each shard goes on.
    pub(super) starts: Vec<FollowingStart>,
    /// Why the place was not told, if it does not allow that.
    pub(super) denied: Option<PlaceError>,
}

/// Chooses other numbers if those of the directory would no longer be far enough ahead of what is
/// known with this mark.
pub(super) fn kept_ahead(
    place: &dyn Place,
    mark: &Mark,
    known: &Following,
    turn: &Turn<'_>,
) -> Result<Option<Announced>, ArchiveError> {
    let mut shards = known.shards.iter().zip(&mark.highest);
    if shards.any(|(shard, highest)| is_near(shard.start, *highest)) {
        return announced(place, mark, turn).map(Some);
    }
    Ok(None)
}

/// Chooses numbers that are twice as far beyond what the place knows as those of a restore, and
/// tells the place.
pub(super) fn announced(
    place: &dyn Place,
    mark: &Mark,
    turn: &Turn<'_>,
) -> Result<Announced, ArchiveError> {
    let known = highest(place)?;
    // Each mark that is lost counts for the whole distance once more, so one of them doubles it.
    let twice = Highest { lost: known.lost.saturating_mul(2).saturating_add(1), ..known.clone() };
    let starts = starts(&twice, mark)?;
    let choice = Choice { mark: mark.clone(), until: mark.at(), why: Why::Latest };
    let line = LineId(turn.drawn);
    let denied = announce(place, line, &choice, &starts, turn.now)?;
    refuse_others(place, line, &known)?;
    let starts = starts.into_iter().map(FollowingStart::from).collect();
    Ok(Announced { number: turn.drawn, starts, denied })
}

/// Whether the numbers of a shard could be reached before the next mark is seen.
const fn is_near(start: FollowingStart, highest: Knows) -> bool {
    start.last_number.saturating_sub(highest.last_number) < NUMBERS_BEYOND
        || start.incarnation.saturating_sub(highest.incarnation) < INCARNATIONS_BEYOND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_near_at_half_the_distance() {
        let start = FollowingStart { incarnation: 2 << 16, now_ms: 0, last_number: 2 << 36 };
        let knows = |incarnation, last_number| Knows { incarnation, last_number };
        for (known, expected) in [
            (knows(0, 0), false),
            (knows(1 << 16, 1 << 36), false),
            (knows((1 << 16) + 1, 0), true),
            (knows(0, (1 << 36) + 1), true),
            (knows(u64::MAX, 0), true),
        ] {
            assert_eq!(is_near(start, known), expected, "{known:?}");
        }
    }
}
