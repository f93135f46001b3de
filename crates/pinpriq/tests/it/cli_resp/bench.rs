//! `pinpriq bench`: every workload, with the figures of the server beside those of the report.

use super::Server;
use crate::peer::{check, pinpriq};
use crate::serving::Serving;

/// A number of the report, or of the figures of a server.
#[track_caller]
fn number(json: &str, name: &str) -> u64 {
    let (_, rest) = json.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{json}"));
    let end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_else(|_| panic!("{name} in {json}"))
}

#[track_caller]
fn check_numbers(json: &str, expected: &[(&str, u64)]) {
    for (name, value) in expected {
        assert_eq!(number(json, name), *value, "{name} in {json}");
    }
}

impl Server {
    /// Runs `bench`, and returns its report and the figures of the server afterwards.
    #[track_caller]
    fn bench(&self, arguments: &[&str]) -> (String, String) {
        let common = ["--connections", "3", "--depth", "5", "--json"];
        let report = self.run(&[&["bench"], arguments, &common].concat());
        assert_eq!(report.status.code(), Some(0), "{report:?}");
        let stats = self.run(&["stats", "--json"]);
        assert_eq!(stats.status.code(), Some(0), "{stats:?}");
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(report.stdout), text(stats.stdout))
    }
}

#[test]
fn mixed_puts_takes_and_acknowledges() {
    let server = Server::start();
    let pid = server.serving.as_ref().unwrap().id().to_string();
    let (report, stats) = server.bench(&["mixed", "--count", "500", "--pid", &pid]);
    check_numbers(&report, &[("jobs", 500), ("requests", 1_500), ("empty", 0), ("refused", 0)]);
    check_numbers(&stats, &[("put", 500), ("acked", 500), ("present", 0)]);
    let (report, stats) = server.bench(&["--count", "100", "--rate", "2000", "--queues", "7"]);
    check_numbers(&report, &[("jobs", 100), ("rate_per_second", 2_000)]);
    check_numbers(&stats, &[("put", 600), ("acked", 600), ("present", 0)]);
}

#[test]
fn a_slot_acknowledges_with_its_next_take_and_leaves_nothing() {
    let server = Server::start();
    let (report, stats) = server.bench(&["mixed", "--done", "--count", "500", "--queues", "7"]);
    check_numbers(&report, &[("jobs", 500), ("requests", 1_000), ("empty", 0), ("refused", 0)]);
    assert!(report.contains("\"done\":true") && report.contains("\"done-take\":"), "{report}");
    check_numbers(&stats, &[("put", 500), ("acked", 500), ("present", 0)]);
    let (report, stats) = server.bench(&["--done", "--count", "100", "--rate", "2000"]);
    check_numbers(&report, &[("jobs", 100), ("refused", 0)]);
    check_numbers(&stats, &[("put", 600), ("acked", 600), ("present", 0)]);
}

#[test]
fn what_put_leaves_is_drained() {
    let server = Server::start();
    let (report, stats) = server.bench(&["put", "--count", "300", "--queues", "2"]);
    check_numbers(&report, &[("jobs", 300), ("requests", 300)]);
    check_numbers(&stats, &[("put", 300), ("present", 300)]);
    let drain = ["drain", "--backlog", "201", "--queues", "2", "--priorities", "1000"];
    let (report, stats) = server.bench(&drain);
    check_numbers(&report, &[("jobs", 501), ("requests", 1_002)]);
    check_numbers(&stats, &[("put", 501), ("acked", 501), ("present", 0)]);
}

#[test]
fn pop_works_over_both_protocols() {
    let server = Server::start();
    let (report, stats) = server.bench(&["pop", "--count", "200", "--size", "0"]);
    check_numbers(&report, &[("jobs", 200), ("requests", 400), ("empty", 0)]);
    check_numbers(&stats, &[("put", 200), ("acked", 200), ("present", 0)]);

    let data = tempfile::tempdir().unwrap();
    let serving = Serving::start(data.path(), &[]);
    let bench = |arguments: &[&str]| {
        let common = ["bench", "--door", "pinpriq", "--json", "--address", &serving.address];
        let output = pinpriq(&[&common, arguments].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let report = bench(&["put", "--count", "200", "--depth", "8"]);
    check_numbers(&report, &[("jobs", 200), ("requests", 200)]);
    let report = bench(&["pop", "--count", "300", "--backlog", "10"]);
    check_numbers(&report, &[("jobs", 300), ("requests", 600), ("empty", 0)]);
}

#[test]
fn fan_out_delivers_every_copy() {
    let server = Server::start();
    let (report, stats) = server.bench(&["fan-out", "--count", "40", "--members", "7"]);
    check_numbers(&report, &[("jobs", 40), ("requests", 600), ("empty", 0), ("refused", 0)]);
    check_numbers(&report, &[("members", 7), ("published", 40), ("delivered", 280)]);
    check_numbers(&stats, &[("put", 280), ("acked", 280), ("present", 0)]);
    // Members that have left are no lanes of the next run.
    let report = server.run(&["bench", "fan-out", "--count", "20", "--queues", "3"]);
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.contains("topics 3, members 10"), "{text}");
    let row = |name| text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    assert!(row("published").contains(" 20 ") && row("delivered").contains(" 200 "), "{text}");
    // What a backlog leaves goes with the members.
    let (report, stats) = server.bench(&["fan-out", "--count", "5", "--backlog", "4"]);
    check_numbers(&report, &[("published", 5), ("delivered", 50)]);
    check_numbers(&stats, &[("put", 570), ("acked", 530)]);
}

#[test]
fn a_lane_of_somebody_else_ends_a_fan_out() {
    let server = Server::start();
    server.printed(&["join", "bench", "somebody"]);
    let report = server.run(&["bench", "fan-out", "--count", "1", "--members", "2"]);
    let complaint = check(&report, 1, b"");
    assert!(complaint.contains("3 lanes instead of 2"), "{complaint}");
}

#[test]
fn refusals_are_counted_and_shown() {
    let server = Server::start();
    server.done(&["queue", "create", "bench", "--capacity", "100"]);
    let report = server.run(&["bench", "put", "--count", "150"]);
    assert_eq!(report.status.code(), Some(5), "{report:?}");
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.contains("FULL") && text.lines().any(|line| line.ends_with(" 50")), "{text}");
    let report = server.run(&["bench", "drain", "--backlog", "1"]);
    check(&report, 5, b"");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let server = Server::start();
    server.printed(&["put", "bench", "another payload"]);
    let report = server.run(&["bench", "mixed", "--priorities", "1", "--count", "10"]);
    let complaint = check(&report, 1, b"");
    assert!(complaint.contains("another payload"), "{complaint}");
    for arguments in [
        &["mixed", "--door", "pinpriq"][..],
        &["fan-out", "--door", "pinpriq"],
        &["mixed", "--members", "3"],
        &["drain", "--done"],
        &["mixed", "--done", "--door", "pinpriq"],
        &["fan-out", "--members", "0"],
        &["pop", "--door", "pinpriq", "--size", "65536"],
        &["pop", "--door", "pinpriq", "--priorities", "256"],
        &["--count", "1", "--seconds", "1"],
        &["--connections", "0"],
    ] {
        check(&server.run(&[&["bench"], arguments].concat()), 2, b"");
    }
    check(&server.run(&["bench", "--pid", "4294967295", "--count", "1"]), 1, b"");
}
