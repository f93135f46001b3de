//! Time zones as stretches of time, each with one offset of local time from UTC.
//!
//! Moments are milliseconds since 1970 in UTC, and may be some days before that or after the year
//! 9999. Nothing here knows what a calendar does when clocks change.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase, TimeZoneTransition};

use super::months::CYCLE_DAYS;
use super::refusal::shown;
use super::{MOMENT_MAX, Refusal};

pub(crate) const DAY_MS: i64 = 86_400_000;

/// How far apart the local times of one moment may be. Offsets are less than 26 hours.
pub(crate) const OFFSETS_MAX: i64 = 3 * DAY_MS;

/// The end of a stretch that does not end, and with a minus the start of one that never started.
const FOREVER: i64 = 1 << 60;

const CYCLE_MS: i64 = CYCLE_DAYS * DAY_MS;

/// The last moment for which the zone itself is asked. The library knows none in the last days of
/// the year 9999. The rules of a zone repeat with the dates and weekdays, so an answer for what is
/// later is the one for 400 years before.
const ASKED_MAX: i64 = MOMENT_MAX.cast_signed() - CYCLE_MS;

/// A time zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Zone(TimeZone);

/// A stretch of time in which the offset does not change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// The first moment.
    pub(crate) start: i64,
    /// The first moment after it.
    pub(crate) end: i64,
    /// What is added to a moment to have its local time.
    pub(crate) offset: i64,
}

impl Zone {
    pub(crate) fn new(name: &str) -> Result<Self, Refusal> {
        let zone = TimeZoneDatabase::bundled().get(name).ok();
        zone.filter(|zone| !zone.is_unknown()).map(Self).ok_or_else(|| Refusal::Zone(shown(name)))
    }

    /// Returns the stretch that a moment is in.
    pub(crate) fn stretch(&self, moment: i64) -> Stretch {
        let back = if moment > ASKED_MAX { CYCLE_MS } else { 0 };
        let stamp = |moment: i64| Timestamp::from_millisecond(moment - back);
        let (Ok(stamp), Ok(next)) = (stamp(moment), stamp(moment + 1)) else {
            // No caller goes that far from the years 1970 to 9999.
            return Stretch { start: -FOREVER, end: FOREVER, offset: 0 };
        };
        let moment_of = |change: TimeZoneTransition<'_>| change.timestamp().as_millisecond() + back;
        // Backwards the library leaves out the last change in its data, if that is not one by the
        // rules that apply from then on. Forwards it does not.
        let start = self.0.preceding(next).next().map(|change| {
            let later = self.0.following(change.timestamp());
            later.take_while(|later| later.timestamp() <= stamp).last().unwrap_or(change)
        });
        Stretch {
            start: start.map_or(-FOREVER, moment_of),
            end: self.0.following(stamp).next().map_or(FOREVER, moment_of),
            offset: i64::from(self.0.to_offset(stamp).seconds()) * 1000,
        }
    }

    /// Returns the latest local time that clocks have shown up to a moment.
    pub(crate) fn latest_local(&self, moment: i64) -> i64 {
        let mut stretch = self.stretch(moment);
        let mut latest = moment + stretch.offset;
        while stretch.start > moment - OFFSETS_MAX {
            let before = stretch.start - 1;
            stretch = self.stretch(before);
            latest = latest.max(before + stretch.offset);
        }
        latest
    }

    /// Returns the first moment at which clocks show this local time or a later one.
    pub(crate) fn first_showing(&self, local: i64) -> i64 {
        let mut from = local - OFFSETS_MAX;
        loop {
            let stretch = self.stretch(from);
            let moment = from.max(local - stretch.offset);
            if moment < stretch.end {
                return moment;
            }
            from = stretch.end;
        }
    }
}
