//! All commands together, against a real server with a real data directory.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output};

use crate::peer::{check, pinpriq};
use crate::serving::address_in;

/// A server that listens on a port of its own.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(data: &Path, flags: &[&str]) -> Self {
        let mut child = pinpriq(&["serve", "--pinpriq", "127.0.0.1:0", "--log-format", "json"])
            .args(flags)
            .args(["--data", data.to_str().unwrap()])
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "the server ended");
            if line.contains("\"listening\"") {
                break address_in(&line);
            }
        };
        child.stderr = Some(log.into_inner());
        Self { child, address }
    }

    /// Runs a client command against this server.
    fn run(&self, arguments: &[&str]) -> Output {
        pinpriq(arguments).env("PINPRIQ_ADDRESS", &self.address).output().unwrap()
    }

    /// Asks the server to stop, and checks that it does so in order.
    fn stop(mut self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{log}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After a failed check; a server that was stopped is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_was_pushed_is_popped_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    check(&server.run(&["wire", "pop", "jobs"]), 4, b"");
    for (payload, key, priority) in [("low", "a", "9"), ("high", "b", "1"), ("side", "b", "0")] {
        let push = ["wire", "push", "jobs", payload, "--key", key, "--priority", priority];
        check(&server.run(&push), 0, b"");
    }
    server.stop("-TERM");

    let server = Server::start(dir.path(), &[]);
    check(&server.run(&["wire", "pop", "jobs", "--with-key"]), 0, b"b\thigh\nb\tside\n");
    check(&server.run(&["wire", "subscribe", "other", "jobs", "--count", "1"]), 0, b"low\n");
    check(&server.run(&["wire", "pop", "jobs"]), 4, b"");
    check(&server.run(&["wire", "push", "jobs", "many", "--count", "5000"]), 0, b"");
    let all = server.run(&["wire", "pop", "jobs", "--count", "2"]);
    check(&all, 0, "many\n".repeat(5_000).as_bytes());
    server.stop("-INT");
}

#[test]
fn a_refused_push_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--payload-bytes-max", "4", "--durability", "memory"];
    let server = Server::start(dir.path(), &flags);
    check(&server.run(&["wire", "push", "q", "1234"]), 0, b"");
    let refused = server.run(&["wire", "push", "q", "12345"]);
    check(&refused, 1, b"");
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert!(complaint.contains("the push was not confirmed"), "{complaint}");
    check(&server.run(&["wire", "pop", "q", "--count", "9"]), 0, b"1234\n");
    server.stop("-TERM");
}

#[test]
fn bare_deliveries_are_read_from_a_server_that_sends_them() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--pinpriq-framing", "bare", "--durability", "memory"];
    let server = Server::start(dir.path(), &flags);
    check(&server.run(&["wire", "push", "q", "p"]), 0, b"");
    let subscribe = ["wire", "subscribe", "q", "--framing", "bare", "--count", "1"];
    check(&server.run(&subscribe), 0, b"p\n");
    server.stop("-TERM");
}

#[test]
fn an_address_in_use_may_be_free_later_and_a_locked_directory_is_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let data = dir.path().to_str().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let output = pinpriq(&["serve", "--pinpriq", &server.address, "--log-level", "error"])
        .args(["--data", elsewhere.path().to_str().unwrap()])
        .output()
        .unwrap();
    check(&output, 1, b"");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("stop whatever uses it"), "{told}");
    // No machine has an address that is kept for documentation.
    let absent = ["serve", "--pinpriq", "192.0.2.1:7250", "--insecure-open", "on"];
    let output = pinpriq(&absent)
        .args(["--resp", "off", "--data", elsewhere.path().to_str().unwrap()])
        .output()
        .unwrap();
    check(&output, 1, b"");
    let told = String::from_utf8(output.stderr).unwrap();
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
    server.stop("-TERM");
}

#[test]
fn a_data_directory_is_checked_and_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    for queue in ["jobs", "jobs", "mails"] {
        check(&server.run(&["wire", "push", queue, "p"]), 0, b"");
    }
    server.stop("-TERM");
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

    let server = Server::start(&salvaged, &[]);
    check(&server.run(&["wire", "pop", "jobs"]), 0, b"p\np\n");
    server.stop("-TERM");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test damages a file on purpose")]
fn damage_is_reported_and_a_server_refuses_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    for payload in ["first", "second", "third"] {
        check(&server.run(&["wire", "push", "jobs", payload]), 0, b"");
    }
    server.stop("-TERM");
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
