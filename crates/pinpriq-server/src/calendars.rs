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
