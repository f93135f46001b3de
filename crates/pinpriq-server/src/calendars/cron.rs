//! The slots of a cron expression in a time zone: what happens to local times when clocks change.
//!
//! Usually the slot of a local time is the first moment at which clocks show it or a later time.
//! This is the start of a repeated hour and the end of a gap, and slots are then in the order of
//! local times. If real hours count, the slots are all moments whose local time matches. Then each
//! stretch of time with one offset is searched apart.

use super::pattern::Pattern;
use super::zone::{OFFSETS_MAX, Zone};
use super::{MOMENT_MAX, Refusal};

const LAST: i64 = MOMENT_MAX.cast_signed();

/// The minutes that match a cron expression in a time zone.
///
/// An expression has five fields: minute, hour, day of month, month, day of week. A field is a list
/// of values (`5`), ranges (`1-5`) and `*`, the last two also with a step (`*/15`, `9-17/2`).
/// Months and weekdays also have names (`jan`, `mon`, in any case). 0 and 7 are Sunday. `@hourly`,
/// `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly` and `@annually` are short for the usual
/// expressions.
///
/// A day matches if both day of month and day of week match. If neither field begins with `*`, one
/// of them is enough.
///
/// Where clocks change, a local time that does not exist has its slot at the first moment after the
/// gap. Of a local time that occurs twice only the first counts. If the hour field is `*` or `*/n`,
/// neither rule applies, and every minute whose local time matches is a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cron {
    pattern: Pattern,
    zone: Zone,
}

impl Cron {
    /// `zone_name` is the IANA name of a time zone in any case, and `UTC` if there is none.
    ///
    /// Refuses an expression that is not of this form or that has more than
    /// [`EXPRESSION_BYTES_MAX`](super::EXPRESSION_BYTES_MAX) bytes, one that matches no date at all
    /// (`0 0 30 2 *`), and a name that is not that of a zone.
    ///
    /// The first expression in a zone costs the decoding of the zone's data. The data is then kept
    /// and shared, so there is a lock.
    pub(crate) fn new(expression: &str, zone_name: Option<&str>) -> Result<Self, Refusal> {
        Ok(Self {
            pattern: Pattern::new(expression)?,
            zone: Zone::new(zone_name.unwrap_or("UTC"))?,
        })
    }

    /// Returns the first slot after a moment, or `None` if there is none up to [`MOMENT_MAX`].
    ///
    /// Costs a step for each month until the slot, and a few lookups of the zone's offset. The
    /// longest way leads from one 29 February on a Sunday to the next one: 40 years, or 480 steps.
    pub(crate) fn next_after(&self, moment: u64) -> Option<u64> {
        let moment = bounded(moment);
        let slot = if self.pattern.real_hours {
            self.next_real(moment)?
        } else {
            self.zone.first_showing(self.pattern.after(self.zone.latest_local(moment)))
        };
        (slot <= LAST).then_some(slot.cast_unsigned())
    }

    /// Returns how many slots come after `from`, and not after `to`: exactly, at a step for each
    /// month in between, and a lookup for each change of the zone's offset.
    pub(crate) fn count_between(&self, from: u64, to: u64) -> u64 {
        let (from, to) = (bounded(from), bounded(to));
        let mut shown = self.zone.latest_local(from);
        let mut count = 0;
        let mut moment = from + 1;
        while moment <= to {
            let stretch = self.zone.stretch(moment);
            let (first, last) = (moment + stretch.offset, to.min(stretch.end - 1) + stretch.offset);
            if self.pattern.real_hours {
                count += self.pattern.count(first - 1, last);
            } else {
                // What was skipped up to the first local time is one slot.
                count += self.pattern.count(shown, first).min(1);
                count += self.pattern.count(first.max(shown), last);
                shown = shown.max(last);
            }
            moment = stretch.end;
        }
        count
    }

    /// Returns the latest slots after `from` and not after `to`, at most `most` of them, in rising
    /// order. Walks back from the end: each slot costs as much as with
    /// [`next_after`](Self::next_after).
    pub(crate) fn latest_between(&self, from: u64, to: u64, most: usize) -> Vec<u64> {
        let (from, mut to) = (bounded(from), bounded(to));
        let mut slots = Vec::new();
        while slots.len() < most
            && let Some(slot) = self.latest(from, to)
        {
            slots.push(slot.cast_unsigned());
            to = slot - 1;
        }
        slots.reverse();
        slots
    }

    /// Returns the last slot after `from`, and not after `to`.
    fn latest(&self, from: i64, to: i64) -> Option<i64> {
        if to <= from {
            return None;
        }
        let slot = if self.pattern.real_hours {
            self.latest_real(from, to)?
        } else {
            self.zone.first_showing(self.pattern.up_to(self.zone.latest_local(to)))
        };
        (slot > from).then_some(slot)
    }

    /// Returns the first moment after this one whose local time matches.
    fn next_real(&self, mut moment: i64) -> Option<i64> {
        while moment < LAST {
            let stretch = self.zone.stretch(moment + 1);
            let slot = self.pattern.after(moment + stretch.offset) - stretch.offset;
            if slot < stretch.end {
                return Some(slot);
            }
            // In later stretches only local times that clocks have shown before can match sooner
            // than around `slot`, and they come soon after this moment.
            let skip = if stretch.end - moment > OFFSETS_MAX { slot - OFFSETS_MAX } else { moment };
            moment = skip.max(stretch.end - 1);
        }
        None
    }

    /// Returns the last moment up to this one whose local time matches, if it is after `from`.
    fn latest_real(&self, from: i64, mut moment: i64) -> Option<i64> {
        while moment > from {
            let stretch = self.zone.stretch(moment);
            let slot = self.pattern.up_to(moment + stretch.offset) - stretch.offset;
            if slot >= stretch.start {
                return Some(slot);
            }
            let skip =
                if moment - stretch.start > OFFSETS_MAX { slot + OFFSETS_MAX } else { moment };
            moment = skip.min(stretch.start - 1);
        }
        None
    }
}

/// Returns a moment up to the last one.
fn bounded(moment: u64) -> i64 {
    moment.min(MOMENT_MAX).cast_signed()
}

#[cfg(test)]
mod tests;
