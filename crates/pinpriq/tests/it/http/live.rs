//! Events as they happen, the history of the last minutes, and pages of other origins.

use serde_json::Value;

use super::Site;
use super::browser::{Browser, Request};

/// A listener to events.
struct Listener {
    browser: Browser,
    /// What was heard of queues.
    news: Vec<Value>,
}

impl Listener {
    fn at(site: &Site, target: &str) -> Self {
        let mut browser = site.browser();
        browser.send(&Request::of(&format!("GET {target}"), b""));
        let (status, headers) = browser.head();
        assert_eq!(status, 200);
        let is_stream = |(name, value): &(String, String)| {
            name == "content-type" && value == "text/event-stream"
        };
        assert!(headers.iter().any(is_stream), "{headers:?}");
        Self { browser, news: Vec::new() }
    }

    /// Returns the next event with its kind.
    fn event(&mut self) -> (String, Value) {
        loop {
            let line = self.browser.line();
            let Some(kind) = line.strip_prefix("event: ") else { continue };
            let data = self.browser.line();
            let data = data.strip_prefix("data: ").expect("data follow the kind of an event");
            let data: Value = serde_json::from_str(data).unwrap();
            if kind == "queue" {
                self.news.push(data.clone());
            }
            return (kind.to_owned(), data);
        }
    }

    /// Returns the next event of this kind that suits.
    fn next(&mut self, kind: &str, suits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (known, data) = self.event();
            if known == kind && suits(&data) {
                return data;
            }
        }
    }

    /// Listens until this was heard of a queue.
    fn hear(&mut self, name: &str, what: &str) {
        let wanted = serde_json::json!({"name": name, "what": what});
        while !self.news.contains(&wanted) {
            self.event();
        }
    }
}

fn put(site: &Site, queue: &str) {
    let reply = site.ask(&format!("POST /v1/queues/{queue}/tasks text/plain"), b"x");
    assert_eq!(reply.status, 201);
}

fn json(site: &Site, target: &str) -> Value {
    let reply = site.ask(&format!("GET {target}"), b"");
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&reply.body).unwrap()
}

#[test]
fn events_tell_figures_and_what_becomes_of_queues() {
    let site = Site::open(&["--shards", "2"]);
    let mut all = Listener::at(&site, "/v1/events");
    let mut one = Listener::at(&site, "/v1/events?queue=a");
    all.next("figures", |_| true);
    one.next("figures", |it| it["queue"].is_null());
    for queue in ["a", "b", "a"] {
        put(&site, queue);
    }
    let figures = all.next("figures", |it| it["counts"]["R"] == 3);
    assert_eq!(figures["queues"], 2);
    assert!(figures["connections"].as_u64() >= Some(2), "{figures}");
    assert!(figures["oldest_ready_ms"].is_u64(), "{figures}");
    let figures = one.next("figures", |it| it["queue"]["counts"]["R"] == 2);
    assert_eq!((&figures["counts"]["R"], &figures["queue"]["paused"]), (&3.into(), &"none".into()));
    site.ask("POST /v1/queues/a:pause application/json", b"{}");
    site.ask("PATCH /v1/queues/a application/json", br#"{"capacity": 7}"#);
    site.ask("DELETE /v1/queues/a", b"");
    one.hear("a", "went");
    let heard: Vec<&Value> = one.news.iter().map(|it| &it["what"]).collect();
    assert_eq!(heard, ["came", "paused", "set", "went"]);
    assert!(one.news.iter().all(|it| it["name"] == "a"), "{:?}", one.news);
    all.hear("a", "went");
    all.hear("b", "came");
    let Site { mut server, _data } = site;
    server.send("-TERM");
    assert_eq!(one.next("notice", |_| true)["code"], "CLOSING");
    assert!(one.browser.rest().ends_with(b"0\r\n\r\n"), "the stream has no end");
    assert!(server.wait().success());
}

#[test]
fn a_history_stays_after_its_reader_has_gone() {
    let site = Site::open(&[]);
    let mut listener = Listener::at(&site, "/v1/events?queue=a");
    put(&site, "a");
    listener.next("figures", |it| it["queue"]["counts"]["R"] == 1);
    drop(listener);
    for target in ["/v1/history", "/v1/history?queue=a"] {
        let history = json(&site, target);
        let column = |name: &str| history[name].as_array().unwrap().clone();
        assert!(column("R").contains(&1.into()), "{target}: {history}");
        let length = column("R").len();
        for name in ["in", "out", "taken", "failed", "commit_ms", "waited_ms", "oldest_ready_ms"] {
            assert_eq!(column(name).len(), length, "{target}: {name}");
        }
    }
    let none = json(&site, "/v1/history?queue=never-seen");
    assert_eq!(none["R"], serde_json::json!([]));
    site.server.stop();
}

#[test]
fn a_slow_reader_loses_figures_and_not_memory() {
    let site = Site::open(&[]);
    let before = site.server.resident_bytes();
    let idle: Vec<Listener> = (0..300).map(|_| Listener::at(&site, "/v1/events?queue=a")).collect();
    let mut reads = Listener::at(&site, "/v1/events");
    for _ in 0..3 {
        reads.next("figures", |_| true);
    }
    let grown = site.server.resident_bytes().saturating_sub(before);
    assert!(grown < 60 << 20, "{grown} bytes for 300 streams");
    put(&site, "a");
    reads.next("figures", |it| it["counts"]["R"] == 1);
    drop(idle);
    site.server.stop();
}

#[test]
fn pages_of_one_other_origin_may_use_the_server() {
    let site = Site::open(&["--http-cors", "https://ops.example"]);
    let asked = "OPTIONS /v1/queues/q/tasks access-control-request-method:POST";
    for (origin, is_let_in) in [("https://ops.example", true), ("https://evil.example", false)] {
        let mut browser = site.browser();
        browser.send(&Request::of(&format!("{asked} origin:{origin}"), b""));
        let (_, headers) = browser.head();
        let allowed = headers.iter().find(|(name, _)| name == "access-control-allow-origin");
        assert_eq!(allowed.is_some_and(|(_, value)| value == origin), is_let_in, "{headers:?}");
        let line = format!("POST /v1/queues/q/tasks text/plain origin:{origin}");
        let status = site.ask(&line, b"x").status;
        assert_eq!(status, if is_let_in { 201 } else { 403 });
    }
    assert_eq!(site.figure("put"), 1);
    site.server.stop();
}
