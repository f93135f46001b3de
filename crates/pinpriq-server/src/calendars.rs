//! The slots of schedules, for the engine: every form that the calendars know.
//!
//! Calendars have no clock and no file, so the engine stays deterministic. A form is parsed anew
//! for each question: a schedule with a cron expression has a slot each minute at most.

use pinpriq_calendar::{Calendar, Refusal};
use pinpriq_engine::schedule::{Calendars as Trait, Form};
use pinpriq_engine::time::Timestamp;

/// All calendars.
#[derive(Clone, Copy, Debug)]
pub struct Calendars;

/// Returns the calendar of a cron expression in a zone, or why there is none.
pub(crate) fn cron(expression: &[u8], zone: Option<&[u8]>) -> Result<Calendar, Refusal> {
    // What is no text is not part of any expression, nor of the name of any zone.
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Calendar::cron(&text(expression), zone.map(text).as_deref())
}

/// Returns the calendar of a form. There is none if a newer version has written the form, or if its
/// zone is not known any more.
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
}

#[cfg(test)]
mod tests {
    use pinpriq_engine::schedule::EveryOnly;
    use pinpriq_engine::time::Span;

    use super::*;

    /// The engine's own tests use the distances that the engine knows itself.
    #[test]
    fn fixed_distances_have_the_slots_that_the_engine_knows() {
        let at = Timestamp::from_ms;
        for (every, anchor) in [(100, 0), (100, 1_050), (60_000, 999), (1_000_000, 5_000)] {
            let form = Form::Every { every: Span::from_ms(every), anchor: at(anchor) };
            for from in [0, 1_049, 1_050, 1_051, 65_000] {
                let next = Calendars.next_after(&form, at(from));
                assert_eq!(next, EveryOnly.next_after(&form, at(from)), "{every} {anchor} {from}");
                for to in [from, from + 99, from + 100, from + 250_000] {
                    let (from, to) = (at(from), at(to));
                    let count = Calendars.count_between(&form, from, to);
                    assert_eq!(count, EveryOnly.count_between(&form, from, to));
                    let latest = Calendars.latest_between(&form, from, to, 3);
                    assert_eq!(latest, EveryOnly.latest_between(&form, from, to, 3));
                }
            }
        }
    }

    #[test]
    fn what_is_no_calendar_has_no_slots() {
        let form = |text: &[u8]| Form::Cron { expression: text.into(), zone: None };
        assert_eq!(Calendars.next_after(&form(b"@daily"), Timestamp::ZERO), {
            Some(Timestamp::from_ms(86_400_000))
        });
        for text in [&b"@never"[..], b"\xff"] {
            let (from, to) = (Timestamp::ZERO, Timestamp::MAX);
            assert_eq!(Calendars.next_after(&form(text), from), None);
            assert_eq!(Calendars.count_between(&form(text), from, to), 0);
            assert_eq!(Calendars.latest_between(&form(text), from, to, 9), []);
        }
    }
}
