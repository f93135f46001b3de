//! What the tables of these tests are made of, and how a row is checked.
//!
//! A row lists the slots that come first after a moment. Moments are written with their offset, so
//! that an expected slot does not depend on the zones of the crate under test.

use crate::calendars::Cron;
use jiff::Timestamp;

/// Zone, expression, the moment to begin after, and the slots that follow.
pub(crate) type Row = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// Returns the milliseconds of a moment such as `2024-03-31T03:00+02`.
pub(crate) fn moment(text: &str) -> u64 {
    let stamp: Timestamp = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    u64::try_from(stamp.as_millisecond()).unwrap()
}

/// Every question about the slots of a row has the answer that follows from them.
#[track_caller]
pub(crate) fn check(rows: &[Row]) {
    for (zone, expression, after, slots) in rows {
        let calendar = Cron::new(expression, Some(zone)).unwrap();
        let slots: Vec<u64> = slots.iter().map(|slot| moment(slot)).collect();
        check_slots(&calendar, moment(after), &slots);
    }
}

/// Every question about the slots that follow a moment has the answer that follows from them.
#[track_caller]
pub(crate) fn check_slots(calendar: &Cron, after: u64, slots: &[u64]) {
    let mut from = after;
    for (index, slot) in slots.iter().enumerate() {
        let next = calendar.next_after(from);
        assert_eq!(next, Some(*slot), "{calendar:?} after {}", shown(from));
        let before = u64::try_from(index).unwrap();
        let count = calendar.count_between(after, *slot);
        assert_eq!(count, before + 1, "{calendar:?} {} to {}", shown(after), shown(*slot));
        assert_eq!(calendar.count_between(after, slot - 1), before, "{calendar:?}");
        assert_eq!(calendar.next_after(slot - 1), Some(*slot));
        let previous = calendar.latest_between(after, slot - 1, 1);
        assert_eq!(previous, slots[index.saturating_sub(1)..index], "{calendar:?}");
        from = *slot;
    }
    for most in 0..=slots.len() + 1 {
        let latest = calendar.latest_between(after, from, most);
        assert_eq!(latest, slots[slots.len().saturating_sub(most)..], "{calendar:?}");
    }
}

fn shown(moment: u64) -> String {
    Timestamp::from_millisecond(moment.cast_signed())
        .map_or_else(|e| e.to_string(), |t| t.to_string())
}
