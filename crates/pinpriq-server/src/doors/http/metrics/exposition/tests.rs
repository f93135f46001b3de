//! Tests of both formats, with a survey that has something of everything.

use std::sync::Arc;

use pinpriq_proto::stats::{Counters, Figures};
use pinpriq_proto::survey::Surveyed;
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::{Span, Timestamp};

use super::*;
use crate::facts::Facts;
use crate::monitor::survey::{Shown, Survey};

fn sight() -> Sight {
    let mut survey = Survey {
        facts: Facts {
            uptime: Span::from_ms(500),
            now: Timestamp::from_ms(10_500),
            failure: Some("the disk is gone".to_owned()),
            ..Facts::default()
        },
        ..Survey::default()
    };
    let figures = |dead: u64, oldest_ms: Option<u64>| {
        let mut counters = Counters { dead, counts: [4, 0, 0, 0, 0, 1], ..Counters::default() };
        counters.times().waited.note(Span::from_ms(7));
        Figures { counters, oldest_ready: oldest_ms.map(Span::from_ms), ..Figures::default() }
    };
    let mut show = |queue: &[u8], lane: Option<(u64, Bytes)>, figures: Figures| {
        let name = Surveyed { lane, queue: queue.into() };
        survey.shown.insert(name, Shown { figures, rates: None });
    };
    show(b"a\"b\\\n\xff", None, figures(3, Some(2_500)));
    show(b"news", Some((1, b"m".as_slice().into())), figures(0, None));
    show(b"_other", None, figures(1, None));
    let dead = Figures { holds_dead_letters: true, takers: 2, ..figures(0, Some(900_000)) };
    show(b"dead", None, dead);
    let others = Some(figures(9, Some(1)));
    let details = Arc::default();
    Sight { survey: Arc::new(survey), details, others, disk_free: Some(77), shows_server: true }
}

/// Returns all pieces together.
fn write(sight: &Sight, format: Format) -> String {
    let (mut text, mut start) = (String::new(), Some(PieceStart::default()));
    while let Some(from) = start {
        let (piece, next) = piece(sight, format, from);
        assert!(piece.len() < 1 << 20, "a piece has {} bytes", piece.len());
        text.push_str(&piece);
        start = next;
    }
    text
}

fn lines(text: &str, of: &str) -> Vec<String> {
    text.lines().filter(|line| line.contains(of)).map(str::to_owned).collect()
}

#[test]
fn open_metrics_has_units_and_an_end() {
    let text = write(&sight(), Format::OpenMetrics);
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    assert_eq!(
        lines(&text, "pinpriq_dead"),
        [
            "# HELP pinpriq_dead tasks that left because they became dead letters",
            "# TYPE pinpriq_dead counter",
            r#"pinpriq_dead_total{queue="\\x5fother"} 1"#,
            r#"pinpriq_dead_total{queue="a\"b\\\\\n\\xff"} 3"#,
            r#"pinpriq_dead_total{queue="dead"} 0"#,
            r#"pinpriq_dead_total{queue="news",member="m"} 0"#,
            r#"pinpriq_dead_total{queue="_other"} 9"#,
        ]
    );
    assert_eq!(
        lines(&text, "pinpriq_oldest_ready_seconds")[1..],
        [
            "# TYPE pinpriq_oldest_ready_seconds gauge",
            "# UNIT pinpriq_oldest_ready_seconds seconds",
            r#"pinpriq_oldest_ready_seconds{queue="a\"b\\\\\n\\xff"} 2.5"#,
            r#"pinpriq_oldest_ready_seconds{queue="dead",purpose="dead_letters"} 900.0"#,
            r#"pinpriq_oldest_ready_seconds{queue="_other"} 0.001"#,
        ]
    );
    assert_eq!(lines(&text, "TYPE pinpriq_build"), ["# TYPE pinpriq_build info"]);
}

#[test]
fn queues_for_dead_letters_are_told_apart() {
    let text = write(&sight(), Format::Prometheus);
    let of_dead: Vec<String> = lines(&text, r#"queue="dead",purpose="dead_letters""#);
    assert_eq!(
        of_dead,
        [
            r#"pinpriq_tasks{queue="dead",purpose="dead_letters",state="R"} 4"#,
            r#"pinpriq_tasks{queue="dead",purpose="dead_letters",state="T"} 0"#,
            r#"pinpriq_tasks{queue="dead",purpose="dead_letters",state="W"} 0"#,
            r#"pinpriq_tasks{queue="dead",purpose="dead_letters",state="B"} 0"#,
            r#"pinpriq_tasks{queue="dead",purpose="dead_letters",state="Z"} 0"#,
            r#"pinpriq_tasks{queue="dead",purpose="dead_letters",state="D"} 1"#,
            r#"pinpriq_oldest_ready_seconds{queue="dead",purpose="dead_letters"} 900.0"#,
            r#"pinpriq_consumers{queue="dead",purpose="dead_letters",kind="taker"} 2"#,
            r#"pinpriq_consumers{queue="dead",purpose="dead_letters",kind="subscriber"} 0"#,
        ]
    );
    assert_eq!(lines(&text, "dead_letters\"").len(), of_dead.len(), "others are not marked");
}

#[test]
fn the_older_format_names_counters_by_their_samples() {
    let text = write(&sight(), Format::Prometheus);
    assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
    assert_eq!(
        lines(&text, "pinpriq_dead")[..3],
        [
            "# HELP pinpriq_dead_total tasks that left because they became dead letters",
            "# TYPE pinpriq_dead_total counter",
            r#"pinpriq_dead_total{queue="\\x5fother"} 1"#,
        ]
    );
    assert_eq!(lines(&text, "TYPE pinpriq_build"), ["# TYPE pinpriq_build_info gauge"]);
    assert_eq!(
        lines(&text, "pinpriq_store_failed")[1..],
        ["# TYPE pinpriq_store_failed gauge", "pinpriq_store_failed 1"]
    );
    assert_eq!(lines(&text, "pinpriq_start_seconds").last().unwrap(), "pinpriq_start_seconds 10.0");
}

#[test]
fn histograms_are_in_seconds_and_of_single_queues() {
    let text = write(&sight(), Format::OpenMetrics);
    let waited = lines(&text, r#"pinpriq_waited_seconds_bucket{le="0.005",queue="news""#);
    let longer = lines(&text, r#"pinpriq_waited_seconds_bucket{le="0.01",queue="news""#);
    let none = lines(&text, r#"_seconds_bucket{le="0.01",queue="_other""#);
    assert_eq!(waited, [r#"pinpriq_waited_seconds_bucket{le="0.005",queue="news",member="m"} 0"#]);
    assert_eq!(longer, [r#"pinpriq_waited_seconds_bucket{le="0.01",queue="news",member="m"} 1"#]);
    assert!(none.is_empty(), "{none:?}");
    assert_eq!(
        lines(&text, r#"pinpriq_waited_seconds_sum{queue="news""#),
        [r#"pinpriq_waited_seconds_sum{queue="news",member="m"} 0.007"#]
    );
}

#[test]
fn metrics_of_many_queues_are_written_in_pieces() {
    const QUEUES: usize = 1_000;
    let mut counters = Counters { put: 7, ..Counters::default() };
    counters.times().waited.note(Span::from_ms(7));
    let figures = Figures { counters, ..Figures::default() };
    let mut survey = Survey::default();
    for number in 0..QUEUES {
        let name = format!("{number:0>250}");
        let name = Surveyed { lane: None, queue: name.as_bytes().into() };
        survey.shown.insert(name, Shown { figures: figures.clone(), rates: None });
    }
    let sight = Sight { survey: Arc::new(survey), ..Sight::default() };
    for format in [Format::OpenMetrics, Format::Prometheus] {
        let text = write(&sight, format);
        assert_eq!(lines(&text, "pinpriq_put_total{").len(), QUEUES);
        assert_eq!(lines(&text, "pinpriq_waited_seconds_count{").len(), QUEUES);
        assert_eq!(lines(&text, "# TYPE pinpriq_put").len(), 1);
    }
}

#[test]
fn meanings_have_no_addresses() {
    assert_eq!(plain("by [reason](#ends) and [code](a.md#b)."), "by reason and code.");
    let text = write(&sight(), Format::OpenMetrics);
    assert!(lines(&text, "# HELP").iter().all(|line| !line.contains("](")), "{text}");
}

#[test]
fn a_client_gets_the_format_that_it_prefers() {
    let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
                      version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    for (accept, format) in [
        (prometheus, Format::OpenMetrics),
        ("application/openmetrics-text", Format::OpenMetrics),
        (
            "Application/OpenMetrics-Text; Version=1.0.0; Q=0.5, text/plain;q=0.4",
            Format::OpenMetrics,
        ),
        ("application/openmetrics-text;q=0.4, text/plain;q=0.5", Format::Prometheus),
        ("application/openmetrics-text;q=0", Format::Prometheus),
        ("application/openmetrics-text; version=2.0.0", Format::Prometheus),
        ("text/plain", Format::Prometheus),
        ("text/html,*/*;q=0.8", Format::Prometheus),
        ("", Format::Prometheus),
    ] {
        assert_eq!(Format::preferred(accept), format, "{accept}");
    }
}
