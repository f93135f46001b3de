//! Slots at a fixed distance.

use super::samples::check_slots;
use crate::calendars::calendar::{Calendar, EVERY_MIN, MOMENT_MAX, Refusal};

#[test]
fn slots_are_the_anchor_and_what_follows() {
    let calendar = Calendar::every(1000, 500).unwrap();
    check_slots(&calendar, 0, &[500, 1500, 2500]);
    check_slots(&calendar, 499, &[500, 1500]);
    check_slots(&calendar, 500, &[1500, 2500]);
    check_slots(&calendar, 2499, &[2500]);
}

#[test]
fn there_are_no_slots_after_the_last_moment() {
    let calendar = Calendar::every(MOMENT_MAX, 0).unwrap();
    check_slots(&calendar, 0, &[MOMENT_MAX]);
    assert_eq!(calendar.next_after(MOMENT_MAX), None);
    assert_eq!(calendar.next_after(u64::MAX), None);
    assert_eq!(calendar.count_between(0, u64::MAX), 1);
    assert_eq!(calendar.latest_between(0, u64::MAX, 5), [MOMENT_MAX]);
    let calendar = Calendar::every(100, 0).unwrap();
    assert_eq!(calendar.count_between(0, u64::MAX), MOMENT_MAX / 100);
    assert_eq!(calendar.count_between(MOMENT_MAX, 0), 0);
    assert!(calendar.latest_between(MOMENT_MAX, 0, 5).is_empty());
}

#[test]
fn distance_and_anchor_have_bounds() {
    assert!(Calendar::every(EVERY_MIN, MOMENT_MAX).is_ok());
    assert_eq!(Calendar::every(99, 0), Err(Refusal::Every(99)));
    assert_eq!(Calendar::every(MOMENT_MAX + 1, 0), Err(Refusal::Every(MOMENT_MAX + 1)));
    assert_eq!(Calendar::every(100, MOMENT_MAX + 1), Err(Refusal::Anchor(MOMENT_MAX + 1)));
    assert_eq!(
        Refusal::Every(99).to_string(),
        "the time between slots is 100 to 253402300799999 ms, not 99 ms"
    );
}
