//! Tests of the list itself.

use super::*;

/// Reading panics if a figure does not exist.
#[test]
fn every_metric_has_a_meaning_and_can_be_read() {
    for metric in TABLE {
        assert!(!metric.help().is_empty(), "{}", metric.name);
        metric.read(&Sight::default(), &mut |_, _| {});
    }
}

#[test]
fn names_tell_kind_and_unit() {
    for metric in TABLE {
        let (name, kind) = (metric.name, metric.kind());
        assert_eq!(name.ends_with("_total"), kind == Counter, "{name}");
        assert_eq!(name.ends_with("_info"), kind == Kind::Info, "{name}");
        let same = TABLE.iter().filter(|other| other.family() == metric.family());
        assert_eq!(same.count(), 1, "{name}");
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        assert!(name.chars().all(is_plain), "{name}");
    }
}

/// Times of a metric must be seconds, and bytes be called bytes.
#[test]
fn units_are_those_of_the_figures() {
    for metric in TABLE {
        let unit = match metric.source {
            Source::Info(figure) => info_of(figure).unit,
            Source::Stats(figure) => stats_of(figure).unit,
            Source::Own(..) | Source::Each(..) => continue,
        };
        let wanted = match unit {
            Unit::Plain => None,
            Unit::Bytes => Some("bytes"),
            Unit::Seconds | Unit::Milliseconds | Unit::Microseconds => Some("seconds"),
        };
        assert_eq!(metric.unit(), wanted, "{}", metric.name);
    }
}
