//! The HTTP door of a real server: conversations written down in `testdata/http`, and what only
//! connections can show.

pub(crate) mod browser;
mod live;
mod metrics;

use std::path::Path;

use expect_test::expect_file;
use tempfile::TempDir;

use self::browser::{Browser, Reply, Request};
use crate::serving::Serving;

/// A server with this door.
struct Site {
    server: Serving,
    _data: TempDir,
}

impl Site {
    fn open(flags: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let flags = [&["--http", "127.0.0.1:0"], flags].concat();
        let server = Serving::start(data.path(), &flags);
        Self { server, _data: data }
    }

    fn browser(&self) -> Browser {
        Browser::connect(&self.server.door("http"))
    }

    /// Asks once, over a connection of its own.
    fn ask(&self, line: &str, body: &[u8]) -> Reply {
        self.browser().ask(&Request::of(line, body))
    }

    /// Returns a figure of all queues together.
    fn figure(&self, name: &str) -> u64 {
        let reply = self.ask("GET /v1/stats", b"");
        let shown: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        shown[name].as_u64().unwrap()
    }
}

/// Carries out the requests of a file, and compares what was answered with what it says.
fn converse(name: &str, flags: &[&str]) {
    let site = Site::open(flags);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/http").join(name);
    let text = String::from_utf8(crate::files::read(&path)).unwrap();
    let mut browser = site.browser();
    let mut seen = String::new();
    for part in browser::parts(&text) {
        let reply = browser.ask(&part.request);
        seen.push_str(&part.with(&reply));
        if reply.ends {
            browser = site.browser();
        }
    }
    expect_file![path].assert_eq(&seen);
    site.server.stop();
}

#[test]
fn tasks_come_and_go() {
    converse("tasks.txt", &[]);
}

#[test]
fn queues_are_made_and_looked_at() {
    converse("queues.txt", &[]);
}

#[test]
fn several_shards_answer_as_one() {
    converse("shards.txt", &["--shards", "2"]);
}

#[test]
fn members_and_schedules() {
    converse("topics.txt", &[]);
}

#[test]
fn limits_of_several_queues() {
    converse("limits.txt", &[]);
}

#[test]
fn a_filter_chooses_what_changes() {
    converse("bulk.txt", &[]);
}

#[test]
fn many_at_once() {
    converse("many.txt", &[]);
}

#[test]
fn tasks_are_followed_together() {
    converse("batches.txt", &[]);
}

#[test]
fn what_is_wrong_is_said() {
    converse("wrong.txt", &["--payload-bytes-max", "1KiB"]);
}

#[test]
fn a_server_tells_its_sections_its_disk_and_its_configuration() {
    let site = Site::open(&["--durability", "sync", "--payload-bytes-max", "1KiB"]);
    let told = site.ask("GET /v1/server", b"");
    let told: serde_json::Value = serde_json::from_slice(&told.body).unwrap();
    assert_eq!(told["persistence"]["durability"], "sync");
    assert!(told["disk_free_bytes"].as_u64().unwrap() > 0, "{told}");
    assert_eq!(told["configuration"]["payload_bytes_max"], 1024, "{told}");
    site.server.stop();
}

#[test]
fn a_long_poll_gets_what_comes() {
    let site = Site::open(&["--shards", "2"]);
    let mut waiting = site.browser();
    waiting.send(&Request::of("POST /v1/queues/jobs:take?wait=-1", b""));
    while site.figure("takers") == 0 {}
    assert_eq!(site.ask("POST /v1/queues/jobs/tasks text/plain", b"x").status, 201);
    let reply = waiting.reply();
    assert_eq!(reply.status, 200);
    assert!(reply.text().contains(r#""payload":"x""#), "{}", reply.text());
    site.server.stop();
}

#[test]
fn a_stop_answers_who_waits() {
    let site = Site::open(&[]);
    let mut waiting = site.browser();
    waiting.send(&Request::of("POST /v1/queues/jobs:take?wait=-1", b""));
    while site.figure("takers") == 0 {}
    site.server.send("-TERM");
    let reply = waiting.reply();
    assert_eq!((reply.status, reply.text().contains("CLOSING")), (503, true), "{}", reply.text());
    assert_eq!(site.server.signal("-TERM"), Some(0));
}

#[test]
fn a_task_that_was_answered_survives_a_crash() {
    let data = tempfile::tempdir().unwrap();
    let flags = ["--http", "127.0.0.1:0"];
    let server = Serving::start(data.path(), &flags);
    let mut browser = Browser::connect(&server.door("http"));
    let put = Request::of("POST /v1/queues/jobs/tasks?priority=-1 text/plain", b"x");
    assert_eq!(browser.ask(&put).text(), r#"{"id":"1","new":true}"#);
    server.kill();
    let server = Serving::start(data.path(), &flags);
    let mut browser = Browser::connect(&server.door("http"));
    let task = browser.ask(&Request::of("GET /v1/queues/jobs/tasks/1", b""));
    assert!(task.text().contains(r#""priority":-1"#), "{}", task.text());
    server.stop();
}

#[test]
fn slow_and_endless_requests_are_ended() {
    let site = Site::open(&["--frame-timeout-ms", "200", "--payload-bytes-max", "1KiB"]);
    let begun = [
        &b""[..],
        b"GET /v1/st",
        b"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /v1/queues/q/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nxy",
    ];
    for bytes in begun {
        let mut browser = site.browser();
        browser.send_bytes(bytes);
        let rest = browser.rest();
        let text = String::from_utf8_lossy(&rest);
        assert!(rest.is_empty() || text.starts_with("HTTP/1.1 408 "), "{text}");
    }
    let long = vec![b'a'; 200_000];
    for (start, end, statuses) in [
        (&b"GET /v1/"[..], &b" HTTP/1.1\r\nHost: localhost\r\n\r\n"[..], ["414", "431"]),
        (b"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nx: ", b"\r\n\r\n", ["431", "431"]),
    ] {
        let mut browser = site.browser();
        browser.send_bytes(&[start, &long, end].concat());
        let reply = String::from_utf8_lossy(&browser.rest()).into_owned();
        let status = reply.split(' ').nth(1).unwrap_or("none");
        // The connection may end before the answer is read.
        assert!(statuses.contains(&status) || status == "none", "{reply}");
    }
    let big = vec![b'x'; 1 << 20];
    let reply = site.ask("POST /v1/queues/q/tasks text/plain", &big);
    assert_eq!(reply.status, 413);
    assert_eq!(site.figure("put"), 0);
    site.server.stop();
}

#[test]
fn large_requests_that_never_end_have_a_bound() {
    let site = Site::open(&[]);
    let before = site.server.resident_bytes();
    let part = vec![b' '; 30 << 20];
    let begun: Vec<_> = (0..12)
        .map(|_| {
            let mut browser = site.browser();
            let head = "POST /v1/multi HTTP/1.1\r\nHost: localhost\r\n\
                        Content-Type: application/json\r\n\
                        Content-Length: 33000000\r\n\r\n";
            browser.send_bytes(head.as_bytes());
            browser.send_bytes(&part);
            browser
        })
        .collect();
    let grown = site.server.resident_bytes().saturating_sub(before);
    assert!(grown < 700 << 20, "{grown} bytes more");
    let busy = site.ask("POST /v1/multi application/json", &part);
    assert_eq!(busy.status, 429, "{}", busy.text());
    assert_eq!(site.ask("POST /v1/queues/q/tasks text/plain", b"x").status, 201);
    drop(begun);
    let nested = vec![b'['; 20 << 20];
    assert_eq!(site.ask("POST /v1/multi application/json", &nested).status, 400);
    site.server.stop();
}

#[test]
fn requests_of_two_lengths_are_refused() {
    let site = Site::open(&[]);
    for head in [
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Content-Length: +3",
        "Transfer-Encoding: chunked, identity",
        "Content-Length : 3",
    ] {
        let mut browser = site.browser();
        let request =
            format!("POST /v1/queues/q/tasks HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n");
        let smuggled = "0\r\n\r\nPOST /v1/queues/smuggled/tasks HTTP/1.1\r\nHost: localhost\r\n\
                        Content-Type: text/plain\r\nContent-Length: 1\r\n\r\nx";
        browser.send_bytes(format!("{request}{smuggled}").as_bytes());
        browser.end_input();
        let rest = browser.rest();
        let text = String::from_utf8_lossy(&rest);
        assert!(!text.contains("HTTP/1.1 201"), "{head}: {text}");
    }
    assert_eq!(site.ask("GET /v1/queues/smuggled", b"").status, 404);
    site.server.stop();
}
