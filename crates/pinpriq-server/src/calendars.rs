//! The slots of schedules, for the engine: every form that the calendars know.
//!
//! Calendars have no clock and no file, so the engine stays deterministic. A form is parsed anew
//! for each question: a schedule with a cron expression has a slot each minute at most.

use pinpriq_proto::schedule::{Calendars as Trait, Form};
use pinpriq_proto::time::{Span, Timestamp};

use self::calendar::{Calendar, Refusal};
use crate::clock::DRAWN_ONE_IN;

pub(crate) mod calendar;

/// All calendars, for an engine whose time may have begun ahead of the wall clock.
///
/// Such time comes nearer to the wall clock at a fixed rate. So from where it began follows how far
/// it is ahead at each moment, and cron expressions keep to the wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calendars {
    began: Timestamp,
    ahead: Span,
}

impl Calendars {
    /// Returns the calendars for a time line that begins at `began` when the wall clock shows
    /// `wall`.
    pub(crate) const fn ahead_of(wall: Timestamp, began: Timestamp) -> Self {
        Self { began, ahead: began.since(wall) }
    }

    /// How far time is ahead of the wall clock at this moment of the engine.
    fn ahead_at(&self, moment: Timestamp) -> Span {
        let drawn_ms = moment.since(self.began).ms() / DRAWN_ONE_IN;
        Span::from_ms(self.ahead.ms().saturating_sub(drawn_ms))
    }
}

/// Returns the calendar of a cron expression in a zone, or why there is none.
pub(crate) fn cron(expression: &[u8], zone: Option<&[u8]>) -> Result<Calendar, Refusal> {
    // What is no text is not part of any expression, nor of the name of any zone.
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Calendar::cron(&text(expression), zone.map(text).as_deref())
}

/// Returns the calendar of a form. There is none if a newer version has written the form, or if its
/// zone is no longer known.
fn calendar(form: &Form) -> Option<Calendar> {
    match form {
        Form::Every { every, anchor } => Calendar::every(every.ms(), anchor.ms()).ok(),
        Form::Cron { expression, zone } => cron(expression, zone.as_deref()).ok(),
    }
}

impl Trait for Calendars {
    fn next_after(&self, form: &Form, moment: Timestamp) -> Option<Timestamp> {
        calendar(form)?.next_after(moment.ms()).map(Timestamp::from_ms)
    }

    fn count_between(&self, form: &Form, from: Timestamp, to: Timestamp) -> u64 {
        calendar(form).map_or(0, |calendar| calendar.count_between(from.ms(), to.ms()))
    }

    fn latest_between(
        &self,
        form: &Form,
        from: Timestamp,
        to: Timestamp,
        most: usize,
    ) -> Vec<Timestamp> {
        let slots = calendar(form).map(|it| it.latest_between(from.ms(), to.ms(), most));
        slots.into_iter().flatten().map(Timestamp::from_ms).collect()
    }

    fn slot_time(&self, form: &Form, moment: Timestamp) -> Timestamp {
        match form {
            Form::Every { .. } => moment,
            Form::Cron { .. } => {
                Timestamp::from_ms(moment.ms().saturating_sub(self.ahead_at(moment).ms()))
            }
        }
    }

    fn moment_of(&self, form: &Form, slot: Timestamp) -> Timestamp {
        if matches!(form, Form::Every { .. }) {
            return slot;
        }
        // Slots and moments rise together, and a slot is at most this far behind its moment.
        let (mut earliest, mut latest) = (slot.ms(), slot.after(self.ahead_at(slot)).ms());
        while earliest < latest {
            let middle = earliest + (latest - earliest) / 2;
            if self.slot_time(form, Timestamp::from_ms(middle)) >= slot {
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
    use pinpriq_proto::schedule::EveryOnly;

    use super::*;

    /// The engine's own tests use the distances that the engine knows itself.
    #[test]
    fn fixed_distances_have_the_slots_that_the_engine_knows() {
        let at = Timestamp::from_ms;
        for (every, anchor) in [(100, 0), (100, 1_050), (60_000, 999), (1_000_000, 5_000)] {
            let form = Form::Every { every: Span::from_ms(every), anchor: at(anchor) };
            for from in [0, 1_049, 1_050, 1_051, 65_000] {
                let next = Calendars::default().next_after(&form, at(from));
                assert_eq!(next, EveryOnly.next_after(&form, at(from)), "{every} {anchor} {from}");
                for to in [from, from + 99, from + 100, from + 250_000] {
                    let (from, to) = (at(from), at(to));
                    let count = Calendars::default().count_between(&form, from, to);
                    assert_eq!(count, EveryOnly.count_between(&form, from, to));
                    let latest = Calendars::default().latest_between(&form, from, to, 3);
                    assert_eq!(latest, EveryOnly.latest_between(&form, from, to, 3));
                }
            }
        }
    }

    #[test]
    fn what_is_no_calendar_has_no_slots() {
        let form = |text: &[u8]| Form::Cron { expression: text.into(), zone: None };
        assert_eq!(Calendars::default().next_after(&form(b"@daily"), Timestamp::ZERO), {
            Some(Timestamp::from_ms(86_400_000))
        });
        for text in [&b"@never"[..], b"\xff"] {
            let (from, to) = (Timestamp::ZERO, Timestamp::MAX);
            assert_eq!(Calendars::default().next_after(&form(text), from), None);
            assert_eq!(Calendars::default().count_between(&form(text), from, to), 0);
            assert_eq!(Calendars::default().latest_between(&form(text), from, to, 9), []);
        }
    }

    #[test]
    fn cron_keeps_to_the_wall_clock_when_time_is_ahead_of_it() {
        const HOUR_MS: u64 = 3_600_000;
        let (wall, ahead) = (1_700_000_000_000, 19 * HOUR_MS);
        let at = Timestamp::from_ms;
        let calendars = Calendars::ahead_of(at(wall), at(wall + ahead));
        let cron = Form::Cron { expression: b"0 9 * * *"[..].into(), zone: None };
        let every = Form::Every { every: Span::from_ms(1_000), anchor: at(7) };
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
}
