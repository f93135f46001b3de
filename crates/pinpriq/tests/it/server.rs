//! All commands together, against a real server with a real data directory.

use std::process::Output;

use crate::peer::{check, pinpriq};
use crate::serving::Serving;

/// Runs a client command against a server.
fn run(server: &Serving, arguments: &[&str]) -> Output {
    server.client(arguments).output().unwrap()
}

#[test]
fn an_address_in_use_may_be_free_later_and_a_locked_directory_is_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serving::start(dir.path(), &[]);
    let data = dir.path().to_str().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let output = pinpriq(&["serve", "--pinpriq", &server.address, "--log-level", "error"])
        .args(["--data", elsewhere.path().to_str().unwrap()])
        .output()
        .unwrap();
    let told = check(&output, 1, b"");
    assert!(told.contains("stop whatever uses it"), "{told}");
    // No machine has an address that is kept for documentation.
    let absent = ["serve", "--pinpriq", "192.0.2.1:7250", "--insecure-open", "on"];
    let output = pinpriq(&absent)
        .args(["--resp", "off", "--data", elsewhere.path().to_str().unwrap()])
        .output()
        .unwrap();
    let told = check(&output, 1, b"");
    assert!(told.contains("no network interface has this address"), "{told}");
    let output = pinpriq(&["serve", "--pinpriq", "127.0.0.1:0", "--log-level", "error"])
        .args(["--data", data])
        .output()
        .unwrap();
    check(&output, 3, b"");
    let salvaged = elsewhere.path().join("new");
    check(&pinpriq(&["salvage", data, salvaged.to_str().unwrap()]).output().unwrap(), 3, b"");
    assert!(!salvaged.exists(), "a salvage that was refused left a directory");
    let report = pinpriq(&["check", data]).output().unwrap();
    assert!(report.stdout.starts_with(b"in use by a server"));
    server.stop();
}

#[test]
fn a_data_directory_is_checked_and_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = Serving::start(&data, &[]);
    for queue in ["jobs", "jobs", "mails"] {
        check(&run(&server, &["wire", "push", queue, "p"]), 0, b"");
    }
    server.stop();
    let data_text = data.to_str().unwrap();

    let report = pinpriq(&["check", data_text]).output().unwrap();
    assert_eq!(report.status.code(), Some(0));
    let report = String::from_utf8(report.stdout).unwrap();
    for line in ["3 tasks, 3 ready\n", "queue \"jobs\": 2 tasks\n", "no damage\n"] {
        assert!(report.contains(line), "{report}");
    }
    let report = pinpriq(&["check", data_text, "--json"]).output().unwrap();
    assert_eq!(report.status.code(), Some(0));
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.starts_with("{\"damaged\":false,"), "{report}");
    assert!(report.contains("{\"queue\":\"jobs\",\"tasks\":2}"), "{report}");

    let salvaged = dir.path().join("salvaged");
    let salvage = ["salvage", data_text, salvaged.to_str().unwrap()];
    let output = pinpriq(&salvage).output().unwrap();
    assert!(output.stdout.starts_with(b"saved 3 tasks"), "{output:?}");
    assert_eq!(output.status.code(), Some(0));
    check(&pinpriq(&salvage).output().unwrap(), 2, b"");

    let server = Serving::start(&salvaged, &[]);
    check(&run(&server, &["wire", "pop", "jobs"]), 0, b"p\np\n");
    server.stop();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test damages a file on purpose")]
fn damage_is_reported_and_a_server_refuses_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serving::start(dir.path(), &[]);
    for payload in ["first", "second", "third"] {
        check(&run(&server, &["wire", "push", "jobs", payload]), 0, b"");
    }
    server.stop();
    let data = dir.path().to_str().unwrap();
    let segment = dir.path().join("segment-0000000001.log");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(5).position(|window| window == b"first").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).unwrap();

    let report = pinpriq(&["check", data]).output().unwrap();
    assert_eq!(report.status.code(), Some(3), "{report:?}");
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.contains("damage: segment-0000000001.log at offset"), "{text}");
    assert!(text.ends_with("DAMAGED\n"), "{text}");
    let serve = ["serve", "--pinpriq", "127.0.0.1:0", "--data", data, "--log-level", "error"];
    check(&pinpriq(&serve).output().unwrap(), 3, b"");

    let empty = tempfile::tempdir().unwrap();
    for missing in [empty.path(), &empty.path().join("nowhere")] {
        check(&pinpriq(&["check", missing.to_str().unwrap()]).output().unwrap(), 3, b"");
    }
}
