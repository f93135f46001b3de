//! The slots of schedules, for the engine: fixed distances and cron expressions.
//!
//! Calendars have no clock and no file, and the data of time zones is compiled in, so the engine
//! stays deterministic. An expression is parsed anew for each question: it has a slot each minute
//! at most. Within this module a moment is a number of milliseconds since 1970 in UTC, at most
//! [`MOMENT_MAX`]. A slot is a moment too, so two local times that fall on the same moment are one
//! slot.

use pinpriq_proto::schedule::{Calendars as Trait, EveryOnly, Recurrence};
use pinpriq_proto::time::{Span, Timestamp};

use self::cron::Cron;
use self::refusal::Refusal;
use crate::clock::DRAWN_ONE_IN;

mod cron;
mod field;
mod months;
mod pattern;
mod refusal;
mod zone;

/// The last moment that has a slot: the end of the year 9999, in UTC.
const MOMENT_MAX: u64 = Timestamp::MAX.ms();

/// The longest cron expression, in bytes. One that lists every value of every field has 356.
const EXPRESSION_BYTES_MAX: usize = 512;

/// All calendars, for an engine whose time may have begun ahead of the wall clock.
///
/// Such time comes nearer to the wall clock at a fixed rate. So from where it began follows how far
/// it is ahead at each moment, and cron expressions keep to the wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calendars {
    began: Timestamp,
    ahead: Span,
    /// Whether no slot up to where time begins is made up.
    skips: bool,
}

impl Calendars {
    /// Returns the calendars for a time line that begins at `began` when the wall clock shows
    /// `wall`.
    pub(crate) const fn ahead_of(wall: Timestamp, began: Timestamp) -> Self {
        Self { began, ahead: began.since(wall), skips: false }
    }

    /// Returns the same, by which no slot up to where time begins is made up if `skips`: they all
    /// count as missed, whatever their schedules say.
    pub(crate) const fn skipping(self, skips: bool) -> Self {
        Self { skips, ..self }
    }

    /// How far time is ahead of the wall clock at this moment of the engine.
    fn ahead_at(&self, moment: Timestamp) -> Span {
        let drawn_ms = moment.since(self.began).ms() / DRAWN_ONE_IN;
        Span::from_ms(self.ahead.ms().saturating_sub(drawn_ms))
    }
}

/// Returns the slots of a cron expression in a zone, or why there are none.
pub(crate) fn cron(expression: &[u8], zone: Option<&[u8]>) -> Result<Cron, Refusal> {
    // What is no text is not part of any expression, nor of the name of any zone.
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Cron::new(&text(expression), zone.map(text).as_deref())
}

/// Returns the slots of a recurrence with a cron expression. There are none if a newer version has
/// written it, or if its zone is no longer known.
fn cron_of(recurrence: &Recurrence) -> Option<Cron> {
    let Recurrence::Cron { expression, zone } = recurrence else { return None };
    cron(expression, zone.as_deref()).ok()
}

impl Trait for Calendars {
    fn next_after(&self, recurrence: &Recurrence, moment: Timestamp) -> Option<Timestamp> {
        match cron_of(recurrence) {
            None => EveryOnly.next_after(recurrence, moment),
            Some(cron) => cron.next_after(moment.ms()).map(Timestamp::from_ms),
        }
    }

    fn count_between(&self, recurrence: &Recurrence, from: Timestamp, to: Timestamp) -> u64 {
        match cron_of(recurrence) {
            None => EveryOnly.count_between(recurrence, from, to),
            Some(cron) => cron.count_between(from.ms(), to.ms()),
        }
    }

    fn latest_between(
        &self,
        recurrence: &Recurrence,
        from: Timestamp,
        to: Timestamp,
        most: usize,
    ) -> Vec<Timestamp> {
        if self.skips && to <= self.slot_time(recurrence, self.began) {
            return Vec::new();
        }
        let Some(cron) = cron_of(recurrence) else {
            return EveryOnly.latest_between(recurrence, from, to, most);
        };
        let slots = cron.latest_between(from.ms(), to.ms(), most);
        slots.into_iter().map(Timestamp::from_ms).collect()
    }

    fn slot_time(&self, recurrence: &Recurrence, moment: Timestamp) -> Timestamp {
        match recurrence {
            Recurrence::Every { .. } => moment,
            Recurrence::Cron { .. } => {
                Timestamp::from_ms(moment.ms().saturating_sub(self.ahead_at(moment).ms()))
            }
        }
    }

    fn moment_of(&self, recurrence: &Recurrence, slot: Timestamp) -> Timestamp {
        if matches!(recurrence, Recurrence::Every { .. }) {
            return slot;
        }
        // Slots and moments rise together, and a slot is at most this far behind its moment.
        let (mut earliest, mut latest) = (slot.ms(), slot.after(self.ahead_at(slot)).ms());
        while earliest < latest {
            let middle = earliest + (latest - earliest) / 2;
            if self.slot_time(recurrence, Timestamp::from_ms(middle)) >= slot {
                latest = middle;
            } else {
                earliest = middle + 1;
            }
        }
        Timestamp::from_ms(latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_calendar_has_no_slots() {
        let recurrence = |text: &[u8]| Recurrence::Cron { expression: text.into(), zone: None };
        assert_eq!(Calendars::default().next_after(&recurrence(b"@daily"), Timestamp::ZERO), {
            Some(Timestamp::from_ms(86_400_000))
        });
        for text in [&b"@never"[..], b"\xff"] {
            let (from, to) = (Timestamp::ZERO, Timestamp::MAX);
            assert_eq!(Calendars::default().next_after(&recurrence(text), from), None);
            assert_eq!(Calendars::default().count_between(&recurrence(text), from, to), 0);
            assert_eq!(Calendars::default().latest_between(&recurrence(text), from, to, 9), []);
        }
    }

    #[test]
    fn cron_keeps_to_the_wall_clock_when_time_is_ahead_of_it() {
        const HOUR_MS: u64 = 3_600_000;
        let (wall, ahead) = (1_700_000_000_000, 19 * HOUR_MS);
        let at = Timestamp::from_ms;
        let calendars = Calendars::ahead_of(at(wall), at(wall + ahead));
        let cron = Recurrence::Cron { expression: b"0 9 * * *"[..].into(), zone: None };
        let every = Recurrence::Every { every: Span::from_ms(1_000), anchor: at(7) };
        let mut before = at(0);
        for hours in [0, 1, 24, 24 * 365, 24 * 365 * 10] {
            let moment = at(wall + ahead + hours * HOUR_MS);
            assert_eq!(calendars.slot_time(&every, moment), moment);
            assert_eq!(calendars.moment_of(&every, moment), moment);
            let now = calendars.slot_time(&cron, moment);
            let drawn_ms = (hours * HOUR_MS / 2_000).min(ahead);
            assert_eq!(now, at(moment.ms() - ahead + drawn_ms), "after {hours} hours");
            assert!(now > before);
            before = now;
            let slot = calendars.next_after(&cron, now).unwrap();
            assert_eq!(slot.ms() % (24 * HOUR_MS), 9 * HOUR_MS);
            let due = calendars.moment_of(&cron, slot);
            assert!(due > moment && calendars.slot_time(&cron, due) >= slot);
            let earlier = calendars.slot_time(&cron, at(due.ms() - 1));
            assert!(earlier < slot, "{due:?} is the first moment");
        }
    }

    #[test]
    fn slots_before_the_beginning_can_be_skipped() {
        const MINUTE_MS: u64 = 60_000;
        let at = Timestamp::from_ms;
        let (wall, ahead) = (28_000_000 * MINUTE_MS, 100 * MINUTE_MS);
        let calendars = Calendars::ahead_of(at(wall), at(wall + ahead));
        let every = Recurrence::Every { every: Span::from_ms(MINUTE_MS), anchor: at(0) };
        let cron = Recurrence::Cron { expression: b"* * * * *"[..].into(), zone: None };
        for (form, now) in [(every, wall + ahead), (cron, wall)] {
            assert_eq!(calendars.slot_time(&form, at(wall + ahead)), at(now));
            let latest = |skips: bool, to| {
                let calendars = calendars.skipping(skips);
                let from = at(now - 9 * MINUTE_MS);
                assert_eq!(calendars.count_between(&form, from, at(now)), 9);
                calendars.latest_between(&form, from, at(to), 3).len()
            };
            assert_eq!((latest(false, now), latest(true, now)), (3, 0));
            // What comes later, such as a schedule that is imported, is as always.
            assert_eq!(latest(true, now + 1), 3);
        }
    }
}
