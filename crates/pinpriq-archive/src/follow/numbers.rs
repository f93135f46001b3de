//! The numbers with which a directory goes on that follows: beyond all that the archive knows, and
//! far enough that the server which is followed never reaches them.
//!
//! The place is told of them as of those of a restore, and the directory notes them before anything
//! else can fail: each choice uses up numbers of the shards, so they are chosen once for a long
//! time. Then they are compared with those of all others, since somebody may have chosen at the
//! same moment.

use pinpriq_store::layout::{Following, FollowingStart};
use pinpriq_store::restore::Standby;

use super::Turn;
use crate::catalogue::{Choice, Highest, Why, highest};
use crate::error::ArchiveError;
use crate::line::Line;
use crate::mark::{Knows, Mark};
use crate::names::LineId;
use crate::place::{Place, PlaceError};
use crate::restore::{
    INCARNATIONS_BEYOND, NUMBERS_BEYOND, announce, another_begins, starts, taken,
};

/// What a process knows of the numbers of its directory.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The place may have been told of these, but did not answer.
    unsure: Option<Chosen>,
    /// The number of the directory when it was compared with all others, and nobody was near.
    compared: Option<u64>,
    /// Why the place was not told, if it does not allow that.
    pub(super) denied: Option<PlaceError>,
}

/// Numbers that the directory has to note at once.
#[derive(Debug)]
pub(super) struct Chosen {
    /// The number of the directory.
    pub(super) number: u64,
    /// Where each shard goes on.
    pub(super) starts: Vec<FollowingStart>,
}

impl Numbers {
    /// Chooses the first numbers of a directory, and tells the place.
    pub(super) fn begin(
        &mut self,
        place: &dyn Place,
        mark: &Mark,
        turn: &Turn<'_>,
    ) -> Result<Chosen, ArchiveError> {
        self.announced(place, mark, (turn, 1))
    }

    /// Chooses other numbers if those of the directory would no longer be far enough ahead of what
    /// is known with this mark, or if somebody else has chosen the same. The directory notes them.
    pub(super) fn keep_ahead(
        &mut self,
        place: &dyn Place,
        standby: &mut Standby,
        mark: &Mark,
        turn: &Turn<'_>,
    ) -> Result<(), ArchiveError> {
        let mut shards = standby.known().shards.iter().zip(&mark.highest);
        if shards.any(|(shard, highest)| is_near(shard.start, *highest)) {
            self.renew(place, standby, mark, (turn, 1))?;
        }
        if self.compared == Some(standby.known().number) {
            return Ok(());
        }
        if is_shared(place, standby.known())? {
            // A round has one number, and the directory may have got it just now.
            if standby.known().number == turn.drawn {
                return Err(taken(place));
            }
            // Two that do this at the same moment get apart when only one goes twice as far.
            self.renew(place, standby, mark, (turn, 1 + turn.drawn % 2))?;
            if is_shared(place, standby.known())? {
                return Err(taken(place));
            }
        }
        self.compared = Some(standby.known().number);
        Ok(())
    }

    /// Gives a directory other numbers.
    fn renew(
        &mut self,
        place: &dyn Place,
        standby: &mut Standby,
        mark: &Mark,
        with: (&Turn<'_>, u64),
    ) -> Result<(), ArchiveError> {
        let Chosen { number, starts } = self.announced(place, mark, with)?;
        let mut known = standby.known().clone();
        known.number = number;
        for (shard, start) in known.shards.iter_mut().zip(starts) {
            let now_ms = start.now_ms.max(shard.start.now_ms);
            shard.start = FollowingStart { now_ms, ..start };
        }
        // They are good for the state that is here too, which is older.
        standby.note(known)?;
        Ok(())
    }

    /// Chooses numbers that are twice as far beyond what the place knows as those of a restore, or
    /// that `times` as far, and tells the place.
    fn announced(
        &mut self,
        place: &dyn Place,
        mark: &Mark,
        (turn, times): (&Turn<'_>, u64),
    ) -> Result<Chosen, ArchiveError> {
        if let Some(told) = self.told(place, mark)? {
            return Ok(told);
        }
        let known = highest(place)?;
        // Each mark that is lost counts for the whole distance once more.
        let times = known.lost.saturating_add(1).saturating_mul(2).saturating_mul(times);
        let headers = starts(&Highest { lost: times - 1, ..known }, mark)?;
        let choice = Choice { mark: mark.clone(), until: mark.at(), why: Why::Latest };
        let announced = announce(place, LineId(turn.drawn), &choice, &headers, turn.now);
        let starts = headers.into_iter().map(FollowingStart::from).collect();
        let chosen = Chosen { number: turn.drawn, starts };
        match announced {
            Ok(denied) => {
                self.denied = denied;
                Ok(chosen)
            }
            Err(error) => {
                self.unsure = matches!(error, PlaceError::Away { .. }).then_some(chosen);
                Err(error.into())
            }
        }
    }

    /// Returns the numbers of which the place was told although it did not answer, if they are good
    /// enough for this mark.
    fn told(&mut self, place: &dyn Place, mark: &Mark) -> Result<Option<Chosen>, ArchiveError> {
        let Some(unsure) = &self.unsure else { return Ok(None) };
        let is_told = match Line::read(place, LineId(unsure.number)) {
            Ok(found) => found.is_some(),
            // It is counted, and left room for.
            Err(ArchiveError::Damaged { .. }) => false,
            Err(error) => return Err(error),
        };
        let mut ahead = unsure.starts.iter().zip(&mark.highest);
        let is_good = is_told && !ahead.any(|(start, highest)| is_near(*start, *highest));
        Ok(self.unsure.take().filter(|_| is_good))
    }
}

/// Whether another line may give the numbers of this directory: it begins nearer than any line that
/// was chosen before or after.
fn is_shared(place: &dyn Place, known: &Following) -> Result<bool, ArchiveError> {
    another_begins(place, LineId(known.number), &|others: &[Knows]| {
        known.shards.iter().zip(others).any(|(shard, other)| is_close(shard.start, *other))
    })
}

/// Whether the numbers of a shard could be reached before the next mark is seen.
const fn is_near(start: FollowingStart, highest: Knows) -> bool {
    start.last_number.saturating_sub(highest.last_number) < NUMBERS_BEYOND
        || start.incarnation.saturating_sub(highest.incarnation) < INCARNATIONS_BEYOND
}

/// Whether two shards begin so close to each other that neither can have known of the other.
const fn is_close(start: FollowingStart, other: Knows) -> bool {
    start.last_number.abs_diff(other.last_number) < NUMBERS_BEYOND
        || start.incarnation.abs_diff(other.incarnation) < INCARNATIONS_BEYOND
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

    #[test]
    fn starts_are_close_within_the_distance_of_a_restore() {
        let start = FollowingStart { incarnation: 4 << 16, now_ms: 0, last_number: 4 << 36 };
        for (incarnation, last_number, expected) in [
            (4 << 16, 4 << 36, true),
            (3 << 16, 3 << 36, false),
            (5 << 16, 5 << 36, false),
            ((5 << 16) - 1, 9 << 36, true),
            ((3 << 16) + 1, 9 << 36, true),
            (9 << 16, (5 << 36) - 1, true),
            (9 << 16, (3 << 36) + 1, true),
            (0, 0, false),
        ] {
            let other = Knows { incarnation, last_number };
            assert_eq!(is_close(start, other), expected, "{other:?}");
        }
    }
}
