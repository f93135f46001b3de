//! Random expressions, compared minute by minute around changes of clocks.
//!
//! The reference tries every minute of some weeks. It knows the fields as sets of numbers, never
//! reads an expression, and asks the zone only what clocks show at a moment.

use std::collections::{BTreeMap, BTreeSet};

use crate::calendars::Cron;
use jiff::civil::{DateTime, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::samples::{check_slots, moment};

/// Zones, and moments close to which their clocks change.
const CHANGES: [(&str, &str); 16] = [
    ("UTC", "2024-02-29T00:00Z"),
    ("Asia/Kolkata", "2023-12-31T00:00Z"),
    ("Europe/Berlin", "2024-03-31T01:00Z"),
    ("Europe/Berlin", "2024-10-27T01:00Z"),
    ("Europe/Dublin", "2030-10-27T01:00Z"),
    ("America/New_York", "2024-03-10T07:00Z"),
    ("America/New_York", "2044-11-06T06:00Z"),
    ("Australia/Lord_Howe", "2024-10-05T15:30Z"),
    ("Australia/Lord_Howe", "2024-04-06T15:00Z"),
    ("Pacific/Apia", "2011-12-30T10:00Z"),
    ("America/Sao_Paulo", "2018-11-04T03:00Z"),
    ("America/Sao_Paulo", "2019-02-17T02:00Z"),
    ("America/Metlakatla", "2019-01-20T10:00Z"),
    ("Atlantic/Azores", "2024-10-27T01:00Z"),
    ("Antarctica/Troll", "2025-10-26T01:00Z"),
    // Clocks change twice within these weeks.
    ("Africa/Casablanca", "2024-03-25T00:00Z"),
];

const MINUTE: u64 = 60_000;
const DAY: u64 = 1440 * MINUTE;

/// A field as it is written, and the values that it stands for.
#[derive(Clone, Debug)]
struct Field {
    text: String,
    values: BTreeSet<i8>,
}

impl Field {
    fn is_open(&self) -> bool {
        self.text.starts_with('*')
    }

    fn has(&self, value: i8) -> bool {
        self.values.contains(&value)
    }
}

/// A part of a list: a star, a range or a value.
fn part(lowest: i8, highest: i8) -> impl Strategy<Value = Field> {
    let steps = 1..=highest;
    let range = (lowest..=highest).prop_flat_map(move |from| (Just(from), from..=highest));
    let star = prop::option::of(steps.clone()).prop_map(move |step| {
        let text = step.map_or_else(|| "*".to_owned(), |step| format!("*/{step}"));
        let step = usize::try_from(step.unwrap_or(1)).unwrap();
        Field { text, values: (lowest..=highest).step_by(step).collect() }
    });
    let range = (range, prop::option::of(steps)).prop_map(|((from, to), step)| {
        let step_text = step.map_or_else(String::new, |step| format!("/{step}"));
        let step = usize::try_from(step.unwrap_or(1)).unwrap();
        let values = (from..=to).step_by(step).collect();
        Field { text: format!("{from}-{to}{step_text}"), values }
    });
    let value = (lowest..=highest)
        .prop_map(|value| Field { text: value.to_string(), values: BTreeSet::from([value]) });
    prop_oneof![3 => star, 2 => range, 3 => value]
}

fn field(lowest: i8, highest: i8) -> impl Strategy<Value = Field> {
    prop_oneof![2 => vec(part(lowest, highest), 1), 1 => vec(part(lowest, highest), 2..4)].prop_map(
        |parts| Field {
            text: parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(","),
            values: parts.into_iter().flat_map(|part| part.values).collect(),
        },
    )
}

/// The five fields.
fn fields() -> impl Strategy<Value = [Field; 5]> {
    let weekday = field(0, 7).prop_map(|mut field| {
        if field.values.remove(&7) {
            field.values.insert(0);
        }
        field
    });
    let any = || Just(Field { text: "*".to_owned(), values: (0..=31).collect() });
    let day = prop_oneof![any(), field(1, 31)];
    let month = prop_oneof![3 => any(), 1 => field(1, 12)];
    let weekday = prop_oneof![any(), weekday];
    (field(0, 59), field(0, 23), day, month, weekday)
        .prop_map(|(minute, hour, day, month, weekday)| [minute, hour, day, month, weekday])
}

/// Whether a date matches.
fn matches_date([_, _, day, month, weekday]: &[Field; 5], local: DateTime) -> bool {
    let by_day = day.has(local.day());
    let by_weekday = weekday.has(local.weekday().to_sunday_zero_offset());
    let either = if day.is_open() || weekday.is_open() {
        by_day && by_weekday
    } else {
        by_day || by_weekday
    };
    either && month.has(local.month())
}

/// Whether a local time matches.
fn matches(fields: &[Field; 5], local: DateTime) -> bool {
    let time = fields[1].has(local.hour()) && fields[0].has(local.minute());
    time && matches_date(fields, local)
}

/// What the clocks of a zone show at a moment.
fn shown_at(zone: &TimeZone, moment: u64) -> DateTime {
    zone.to_datetime(Timestamp::from_millisecond(moment.cast_signed()).unwrap())
}

/// The slots after a moment and not after another one, both on whole minutes.
fn reference(fields: &[Field; 5], zone: &TimeZone, from: u64, to: u64) -> Vec<u64> {
    // Clocks may show a time of the span some days before and after it.
    let around = (from - 3 * DAY..=to + 3 * DAY).step_by(usize::try_from(MINUTE).unwrap());
    let real_hours = fields[1].is_open() && !fields[1].text.contains(',');
    let slots: BTreeSet<u64> = if real_hours {
        around.filter(|moment| matches(fields, shown_at(zone, *moment))).collect()
    } else {
        let mut first_shown = BTreeMap::new();
        for moment in around {
            first_shown.entry(shown_at(zone, moment)).or_insert(moment);
        }
        let mut slots = BTreeSet::new();
        let (mut local, last) = (shown_at(zone, from - 2 * DAY), shown_at(zone, to + 2 * DAY));
        while local < last {
            if matches(fields, local) {
                // Times that clocks skip are missing here, so the next one is after the gap.
                slots.extend(first_shown.range(local..).next().map(|(_, moment)| *moment));
            }
            local = local.checked_add(1.minute()).unwrap();
        }
        slots
    };
    slots.into_iter().filter(|slot| (from + 1..=to).contains(slot)).collect()
}

#[test]
fn weekdays_are_numbered_from_sunday() {
    assert_eq!(Weekday::Sunday.to_sunday_zero_offset(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn slots_are_those_that_every_minute_was_asked_for(
        fields in fields(),
        (zone, change) in select(&CHANGES[..]),
        days_before in prop_oneof![Just(0), 0_u64..14],
        minutes in 0_u64..360,
        days in 1_u64..15,
        most in 0_usize..40,
    ) {
        let expression = fields.each_ref().map(|field| field.text.as_str()).join(" ");
        let Ok(calendar) = Cron::new(&expression, Some(zone)) else {
            // After 28 years all dates have fallen on all weekdays.
            let start = shown_at(&TimeZone::UTC, moment("2000-01-01T00:00Z"));
            let mut dates = (0..28 * 366).map(|day| start + day.days());
            prop_assert!(!dates.any(|date| matches_date(&fields, date)), "{}", expression);
            return Ok(());
        };
        let from = moment(change) + (minutes * MINUTE) - 180 * MINUTE - days_before * DAY;
        let to = from + days * DAY;
        let time_zone = TimeZoneDatabase::bundled().get(zone).unwrap();
        let slots = reference(&fields, &time_zone, from, to);
        let count = u64::try_from(slots.len()).unwrap();
        prop_assert_eq!(calendar.count_between(from, to), count, "{} {}", expression, zone);
        let latest = calendar.latest_between(from, to, most);
        prop_assert_eq!(&latest, &slots[slots.len().saturating_sub(most)..], "{}", expression);
        let nexts: Vec<u64> =
            std::iter::successors(calendar.next_after(from), |slot| calendar.next_after(*slot))
                .take_while(|slot| *slot <= to)
                .collect();
        prop_assert_eq!(&nexts, &slots, "{} {}", expression, zone);
        check_slots(&calendar, from, &slots[..slots.len().min(20)]);
    }
}
