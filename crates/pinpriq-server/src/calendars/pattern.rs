//! The five fields of a cron expression together: which local times match.
//!
//! A local time is what clocks show, in milliseconds since they showed the start of 1970. Here
//! every day has 24 hours; what a zone makes of that is decided in `cron`. A search skips whole
//! months, days and hours. It never tries minute by minute.

use super::field::{DAY, HOUR, MINUTE, MONTH, WEEKDAY};
use super::months::{CYCLE_MONTHS, first_day, in_year, month_of, weekday};
use super::refusal::shown;
use super::{EXPRESSION_BYTES_MAX, Refusal};

const MINUTE_MS: i64 = 60_000;
const DAY_MINUTES: i64 = 1440;

/// Seven bits repeated five times, once they are multiplied by this.
const FIVE_WEEKS: u64 = 0x1020_4081;

/// The words and what they are short for.
const WORDS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// A set of local times, without end in both directions, and never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pattern {
    /// The sets of the fields, with the bit of each number.
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether it is enough that the day of month or the weekday matches.
    either: bool,
    /// Whether the hour field is `*` or `*/n`, so that real hours pass when clocks change.
    pub(crate) real_hours: bool,
}

impl Pattern {
    pub(crate) fn new(expression: &str) -> Result<Self, Refusal> {
        if expression.len() > EXPRESSION_BYTES_MAX {
            return Err(Refusal::TooLong(expression.len()));
        }
        let mut text = expression.trim_ascii();
        if text.starts_with('@') {
            let word = WORDS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
            text = word.ok_or_else(|| Refusal::Word(shown(text)))?.1;
        }
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(Refusal::FieldCount(fields.len()));
        };
        let pattern = Self {
            minutes: MINUTE.set(minute)?,
            hours: HOUR.set(hour)?,
            days: DAY.set(day)?,
            months: MONTH.set(month)?,
            weekdays: WEEKDAY.set(weekday)?,
            either: !day.starts_with('*') && !weekday.starts_with('*'),
            real_hours: hour.starts_with('*') && !hour.contains(','),
        };
        if (0..CYCLE_MONTHS).all(|month| pattern.days_in(month) == 0) {
            return Err(Refusal::Never(shown(expression)));
        }
        Ok(pattern)
    }

    /// Returns the first match after a local time.
    pub(crate) fn after(&self, local: i64) -> i64 {
        let from = local.div_euclid(MINUTE_MS) + 1;
        let (day, minute) = (from.div_euclid(DAY_MINUTES), from.rem_euclid(DAY_MINUTES));
        let found = self.day_from(day);
        let rest_of_day = if found == day { self.minute_from(minute) } else { None };
        let (found, minute) = match rest_of_day {
            Some(minute) => (found, minute),
            None if found == day => (self.day_from(day + 1), self.first_minute()),
            None => (found, self.first_minute()),
        };
        (found * DAY_MINUTES + minute) * MINUTE_MS
    }

    /// Returns the last match that is not after a local time.
    pub(crate) fn up_to(&self, local: i64) -> i64 {
        let to = local.div_euclid(MINUTE_MS);
        let (day, minute) = (to.div_euclid(DAY_MINUTES), to.rem_euclid(DAY_MINUTES));
        let found = self.day_to(day);
        let start_of_day = if found == day { self.minute_to(minute) } else { None };
        let (found, minute) = match start_of_day {
            Some(minute) => (found, minute),
            None if found == day => (self.day_to(day - 1), self.last_minute()),
            None => (found, self.last_minute()),
        };
        (found * DAY_MINUTES + minute) * MINUTE_MS
    }

    /// Returns how many matches come after a local time, and not after another one.
    pub(crate) fn count(&self, after: i64, to: i64) -> u64 {
        if after >= to {
            return 0;
        }
        let split = |local: i64| {
            let minute = local.div_euclid(MINUTE_MS);
            let day = minute.div_euclid(DAY_MINUTES);
            let matching = (self.days_in(month_of(day)) >> (day - first_day(month_of(day)))) & 1;
            (day, matching * self.count_minutes(minute.rem_euclid(DAY_MINUTES)))
        };
        let ((first, before), (last, within)) = (split(after), split(to));
        self.count_days(first, last) * self.count_minutes(DAY_MINUTES - 1) + within - before
    }

    /// Returns the days of a month that match. The lowest bit is the first day.
    fn days_in(&self, month: i64) -> u64 {
        if (self.months >> in_year(month)) & 1 == 0 {
            return 0;
        }
        let first = first_day(month);
        let shift = weekday(first);
        let week = ((self.weekdays >> shift) | (self.weekdays << (7 - shift))) & 0x7f;
        let (by_day, by_weekday) = (self.days >> 1, week * FIVE_WEEKS);
        let days = if self.either { by_day | by_weekday } else { by_day & by_weekday };
        days & below(first_day(month + 1) - first)
    }

    /// Returns the first matching day from this one on.
    fn day_from(&self, day: i64) -> i64 {
        let mut month = month_of(day);
        let mut days = self.days_in(month) & !below(day - first_day(month));
        while days == 0 {
            month += 1;
            days = self.days_in(month);
        }
        first_day(month) + lowest(days)
    }

    /// Returns the last matching day up to this one.
    fn day_to(&self, day: i64) -> i64 {
        let mut month = month_of(day);
        let mut days = self.days_in(month) & below(day - first_day(month) + 1);
        while days == 0 {
            month -= 1;
            days = self.days_in(month);
        }
        first_day(month) + highest(days)
    }

    /// Returns how many days match from one day on, before another one.
    fn count_days(&self, from: i64, to: i64) -> u64 {
        let (first, last) = (month_of(from), month_of(to));
        let part = |month: i64, day: i64| self.days_in(month) & below(day - first_day(month));
        let whole: u64 = (first..last).map(|month| size(self.days_in(month))).sum();
        whole + size(part(last, to)) - size(part(first, from))
    }

    /// Returns the first matching minute of a day from this one on.
    fn minute_from(&self, minute: i64) -> Option<i64> {
        let hour = minute / 60;
        let rest = self.minutes & !below(minute % 60);
        if (self.hours >> hour) & 1 == 1 && rest != 0 {
            return Some(hour * 60 + lowest(rest));
        }
        let hours = self.hours & !below(hour + 1);
        (hours != 0).then(|| lowest(hours) * 60 + lowest(self.minutes))
    }

    /// Returns the last matching minute of a day up to this one.
    fn minute_to(&self, minute: i64) -> Option<i64> {
        let hour = minute / 60;
        let rest = self.minutes & below(minute % 60 + 1);
        if (self.hours >> hour) & 1 == 1 && rest != 0 {
            return Some(hour * 60 + highest(rest));
        }
        let hours = self.hours & below(hour);
        (hours != 0).then(|| highest(hours) * 60 + highest(self.minutes))
    }

    const fn first_minute(&self) -> i64 {
        lowest(self.hours) * 60 + lowest(self.minutes)
    }

    const fn last_minute(&self) -> i64 {
        highest(self.hours) * 60 + highest(self.minutes)
    }

    /// Returns how many minutes of a day match up to this one.
    fn count_minutes(&self, minute: i64) -> u64 {
        let hour = minute / 60;
        let within = ((self.hours >> hour) & 1) * size(self.minutes & below(minute % 60 + 1));
        size(self.hours & below(hour)) * size(self.minutes) + within
    }
}

/// Returns the set of all numbers below one, which is less than 64.
const fn below(number: i64) -> u64 {
    (1 << number) - 1
}

/// Returns the lowest number of a set that is not empty.
const fn lowest(set: u64) -> i64 {
    set.trailing_zeros() as i64
}

/// Returns the highest number of a set that is not empty.
const fn highest(set: u64) -> i64 {
    set.ilog2() as i64
}

/// Returns how many numbers are in a set.
fn size(set: u64) -> u64 {
    u64::from(set.count_ones())
}
