//! Months of the Gregorian calendar, and the days in them, before 1970 and after 9999 too.
//!
//! Months and days are counted from January 1970 and from its first day. Nothing here knows about
//! time zones, or which days are wanted.

/// How many days pass until all dates fall on the same weekdays again: 400 years.
pub(crate) const CYCLE_DAYS: i64 = 146_097;

/// How many months that is.
pub(crate) const CYCLE_MONTHS: i64 = 4800;

/// The days from 1 March of the year 0 to 1 January 1970.
const DAYS_BEFORE: i64 = 719_468;

/// 1 January 1970 was a Thursday, where Sunday is 0.
const FIRST_WEEKDAY: i64 = 4;

/// Returns the first day of a month.
pub(crate) const fn first_day(month: i64) -> i64 {
    // A year that begins in March has the leap day at its end.
    let march_based = month - 2 + 1970 * 12;
    let (year, month) = (march_based.div_euclid(12), march_based.rem_euclid(12));
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 - DAYS_BEFORE
}

/// Returns the month of a day.
pub(crate) const fn month_of(day: i64) -> i64 {
    // The months of a cycle differ little in length, so this is wrong by a month at most.
    let guess = (day * CYCLE_MONTHS).div_euclid(CYCLE_DAYS);
    if first_day(guess) > day {
        guess - 1
    } else if first_day(guess + 1) <= day {
        guess + 1
    } else {
        guess
    }
}

/// Returns the month of the year, 1 to 12.
pub(crate) const fn in_year(month: i64) -> i64 {
    month.rem_euclid(12) + 1
}

/// Returns the weekday of a day, where Sunday is 0.
pub(crate) const fn weekday(day: i64) -> i64 {
    (day + FIRST_WEEKDAY).rem_euclid(7)
}

#[cfg(test)]
mod tests {
    use super::{CYCLE_DAYS, CYCLE_MONTHS, first_day, in_year, month_of, weekday};

    #[test]
    fn known_dates_have_their_numbers() {
        assert_eq!((first_day(0), weekday(0), in_year(0)), (0, 4, 1));
        // 1 March 2000, a Wednesday.
        assert_eq!((first_day(362), weekday(11_017), in_year(362)), (11_017, 3, 3));
        // 1 December 1969, a Monday.
        assert_eq!((first_day(-1), weekday(-31), in_year(-1)), (-31, 1, 12));
    }

    #[test]
    fn every_day_of_a_cycle_is_in_its_month() {
        assert_eq!(first_day(CYCLE_MONTHS), CYCLE_DAYS);
        assert_eq!(CYCLE_DAYS % 7, 0);
        for month in -CYCLE_MONTHS..CYCLE_MONTHS {
            assert!((28..=31).contains(&(first_day(month + 1) - first_day(month))));
            for day in first_day(month)..first_day(month + 1) {
                assert_eq!(month_of(day), month, "of the day {day}");
            }
        }
    }
}
