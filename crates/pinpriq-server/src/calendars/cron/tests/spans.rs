//! Counting and listing over long times, and the ends of the range of moments.

use super::samples::{check_slots, moment};
use crate::calendars::{Cron, MOMENT_MAX};

fn cron(expression: &str, zone: &str) -> Cron {
    Cron::new(expression, Some(zone)).unwrap()
}

#[test]
fn ten_years_are_counted_and_their_last_slots_listed() {
    let (from, to) = (moment("2014-01-01T00:00Z"), moment("2024-01-01T00:00Z"));
    let minutes = (to - from) / 60_000;
    for zone in ["UTC", "Europe/Berlin", "Australia/Lord_Howe"] {
        assert_eq!(cron("* * * * *", zone).count_between(from, to), minutes, "{zone}");
        let latest = cron("* * * * *", zone).latest_between(from, to, 3);
        assert_eq!(latest, [to - 120_000, to - 60_000, to], "{zone}");
        assert_eq!(cron("0 0 * * *", zone).count_between(from, to), 3652, "{zone}");
    }
    // Ten hours are repeated, and what ten gaps skip is due at 3:00, which is a slot anyway.
    let calendar = cron("* 0-23 * * *", "Europe/Berlin");
    assert_eq!(calendar.count_between(from, to), minutes - 10 * 60);
    let calendar = cron("* 2 * * *", "Europe/Berlin");
    assert_eq!(calendar.count_between(from, to), (3652 - 10) * 60 + 10);
}

#[test]
fn one_day_in_many_years_is_found_from_both_sides() {
    let calendar = cron("0 * 29 2 */7", "Europe/Berlin");
    let (from, to) = (moment("2088-03-01T00:00+01"), moment("2168-01-01T00:00+01"));
    let hours = (0..24).map(|hour| moment(&format!("2156-02-29T{hour:02}:00+01")));
    assert_eq!(calendar.count_between(from, to), 48);
    assert_eq!(calendar.latest_between(from, to, 24), hours.collect::<Vec<_>>());
    assert_eq!(calendar.latest_between(from, to, 100).len(), 48);
}

#[test]
fn nothing_is_between_a_moment_and_an_earlier_or_the_same_one() {
    for expression in ["* * * * *", "* 5 * * *"] {
        let calendar = cron(expression, "Europe/Berlin");
        let noon = moment("2024-05-05T12:00Z");
        for (from, to) in [(noon, noon), (noon, 0), (u64::MAX, noon), (noon, noon + 59_999)] {
            assert_eq!(calendar.count_between(from, to), 0);
            assert!(calendar.latest_between(from, to, 10).is_empty());
        }
    }
}

#[test]
fn the_first_and_the_last_moments_have_slots() {
    // The year 9999 ends in UTC when these clocks show another time.
    for zone in ["UTC", "Pacific/Kiritimati", "Pacific/Niue", "Europe/Berlin", "America/New_York"] {
        for expression in ["0 * * * *", "0 0-23 * * *"] {
            let calendar = cron(expression, zone);
            let last = MOMENT_MAX + 1 - 3_600_000;
            assert_eq!(calendar.next_after(last - 1), Some(last), "{calendar:?}");
            assert_eq!(calendar.next_after(last), None, "{calendar:?}");
            assert_eq!(calendar.next_after(u64::MAX), None, "{calendar:?}");
            assert_eq!(calendar.count_between(last - 36_000_000, u64::MAX), 10, "{calendar:?}");
            assert_eq!(calendar.latest_between(last - 1, u64::MAX, 5), [last], "{calendar:?}");
        }
    }
    // It is 1969 in New York when the first moments come, and clocks in Kiritimati differ from
    // those in UTC by 20 minutes.
    let first = [("UTC", 60), ("America/New_York", 60), ("Pacific/Kiritimati", 40)];
    for (zone, minutes) in first {
        for expression in ["0 * * * *", "0 0-23 * * *"] {
            let slot = minutes * 60_000;
            check_slots(&cron(expression, zone), 0, &[slot, slot + 3_600_000]);
        }
    }
    assert_eq!(cron("0 0 1 1 *", "UTC").next_after(MOMENT_MAX - 1), None);
    assert_eq!(cron("0 0 29 2 *", "UTC").next_after(moment("9996-03-01T00:00Z")), None);
    assert_eq!(cron("0 * 29 2 *", "America/New_York").next_after(MOMENT_MAX - 1), None);
    assert!(cron("0 0 29 2 *", "UTC").latest_between(0, 1, 5).is_empty());
    assert!(cron("0 * 29 2 *", "Europe/Berlin").latest_between(0, 1, 5).is_empty());
}

#[test]
fn clocks_change_in_the_last_centuries_too() {
    // 31 March is the last Sunday of the month in 9591 and in 9991.
    for year in [9591, 9991] {
        let slots = ["03-28T02:30+01", "03-29T02:30+01", "03-30T02:30+01", "03-31T03:00+02"];
        let slots = slots.map(|slot| moment(&format!("{year}-{slot}")));
        let calendar = cron("30 2 * * *", "Europe/Berlin");
        check_slots(&calendar, moment(&format!("{year}-03-28T00:00+01")), &slots);
    }
}

#[test]
fn all_time_can_be_counted() {
    let days = (MOMENT_MAX + 1) / 86_400_000;
    assert_eq!(cron("0 0 * * *", "UTC").count_between(0, MOMENT_MAX), days - 1);
    let shifted = cron("0 0 * * *", "Europe/Berlin").count_between(0, MOMENT_MAX);
    assert_eq!(shifted, days);
}
