//! The slots of schedules: the moments at which a schedule is due.
//!
//! A [`Calendar`] repeats after a fixed time, or follows a cron expression in a time zone. A moment
//! is a number of milliseconds since 1970 in UTC, at most [`MOMENT_MAX`]. A slot is a moment too,
//! so two local times that fall on the same moment are one slot.
//!
//! The data of time zones is compiled in. Nothing here reads a clock, a file or the environment, or
//! knows what happens at a slot, or which slots were missed.

use cron::Cron;
use every::Every;

mod cron;
mod every;
mod field;
mod months;
mod pattern;
mod refusal;
#[cfg(test)]
mod tests;
mod zone;

pub(crate) use refusal::Refusal;

/// The last moment that has a slot: the end of the year 9999, in UTC.
pub(crate) const MOMENT_MAX: u64 = 253_402_300_799_999;

/// The shortest time between the slots of [`Calendar::every`], in milliseconds.
pub(crate) const EVERY_MIN: u64 = 100;

/// The longest cron expression, in bytes. One that lists every value of every field has 356.
pub(crate) const EXPRESSION_BYTES_MAX: usize = 512;

/// When a schedule is due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Calendar(Kind);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    Every(Every),
    Cron(Box<Cron>),
}

impl Calendar {
    /// A calendar whose first slot is at `anchor_ms`, with another one `every_ms` after each.
    ///
    /// Refuses less than [`EVERY_MIN`] between slots, and anything above [`MOMENT_MAX`].
    pub(crate) fn every(every_ms: u64, anchor_ms: u64) -> Result<Self, Refusal> {
        Ok(Self(Kind::Every(Every::new(every_ms, anchor_ms)?)))
    }

    /// A calendar whose slots are the minutes that match a cron expression in a time zone.
    ///
    /// An expression has five fields: minute, hour, day of month, month, day of week. A field is a
    /// list of values (`5`), ranges (`1-5`) and `*`, the last two also with a step (`*/15`,
    /// `9-17/2`). Months and weekdays also have names (`jan`, `mon`, in any case). 0 and 7 are
    /// Sunday. `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly` and `@annually`
    /// are short for the usual expressions.
    ///
    /// A day matches if both day of month and day of week match. If neither field begins with `*`,
    /// one of them is enough.
    ///
    /// Where clocks change, a local time that does not exist has its slot at the first moment after
    /// the gap. Of a local time that occurs twice only the first counts. If the hour field is `*`
    /// or `*/n`, neither rule applies, and every minute whose local time matches is a slot.
    ///
    /// `zone` is the IANA name of a time zone in any case, and `UTC` if there is none.
    ///
    /// Refuses an expression that is not of this form or that has more than
    /// [`EXPRESSION_BYTES_MAX`] bytes, one that matches no date at all (`0 0 30 2 *`), and a name
    /// that is not that of a zone.
    ///
    /// The first calendar in a zone costs the decoding of the zone's data. The data is then kept
    /// and shared, so there is a lock.
    pub(crate) fn cron(expression: &str, zone: Option<&str>) -> Result<Self, Refusal> {
        Ok(Self(Kind::Cron(Box::new(Cron::new(expression, zone)?))))
    }

    /// Returns the first slot after a moment, or `None` if there is none up to [`MOMENT_MAX`].
    ///
    /// For cron this costs a step for each month until the slot, and a few lookups of the zone's
    /// offset. The longest way leads from one 29 February on a Sunday to the next one: 40 years, or
    /// 480 steps.
    pub(crate) fn next_after(&self, moment_ms: u64) -> Option<u64> {
        match &self.0 {
            Kind::Every(every) => every.next_after(moment_ms),
            Kind::Cron(cron) => cron.next_after(moment_ms),
        }
    }

    /// Returns how many slots come after `from_ms`, and not after `to_ms`. The number is exact.
    ///
    /// The cost does not depend on the number of slots. For cron it is a step for each month in
    /// between, and a lookup for each change of the zone's offset.
    pub(crate) fn count_between(&self, from_ms: u64, to_ms: u64) -> u64 {
        match &self.0 {
            Kind::Every(every) => every.count_between(from_ms, to_ms),
            Kind::Cron(cron) => cron.count_between(from_ms, to_ms),
        }
    }

    /// Returns the latest slots after `from_ms` and not after `to_ms`, at most `most` of them, in
    /// rising order.
    ///
    /// It walks back from the end: for cron each slot costs as much as with
    /// [`next_after`](Self::next_after).
    pub(crate) fn latest_between(&self, from_ms: u64, to_ms: u64, most: usize) -> Vec<u64> {
        match &self.0 {
            Kind::Every(every) => every.latest_between(from_ms, to_ms, most),
            Kind::Cron(cron) => cron.latest_between(from_ms, to_ms, most),
        }
    }
}
