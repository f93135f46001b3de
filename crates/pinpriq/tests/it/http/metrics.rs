//! Metrics of a real server, as a scrape finds them. `scripts/metrics-check` holds them against the
//! parsers of others.

use super::Site;
use super::browser::Request;
use crate::resp::redis::Redis;

/// Returns the value of a metric, by its name with labels.
fn value(text: &str, name: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map(str::to_owned)
}

fn scrape(site: &Site) -> String {
    let reply = site.ask("GET /metrics", b"");
    assert_eq!(reply.status, 200);
    reply.text()
}

#[test]
fn requests_and_refusals_count_by_door() {
    let site = Site::open(&["--resp", "127.0.0.1:0"]);
    let mut resp = Redis::connect(&site.server.door("resp"));
    for _ in 0..3 {
        resp.ask("PUT jobs x");
    }
    resp.ask("TAKE jobs TTR soon");
    resp.ask("NONSENSE");
    site.ask("POST /v1/queues/jobs/tasks text/plain", b"x");
    // These are refused before they are commands.
    site.ask("POST /v1/queues/jobs/tasks application/x-www-form-urlencoded", b"x");
    site.ask("PUT /v1/stats", b"");
    site.ask("POST /v1/queues/jobs:take?nonsense=1", b"");
    let text = scrape(&site);
    for (name, wanted) in [
        (r#"pinpriq_requests_total{door="resp",command="PUT"}"#, "3"),
        (r#"pinpriq_requests_total{door="http",command="PUT"}"#, "1"),
        (r#"pinpriq_requests_total{door="resp",command="TAKE"}"#, "1"),
        (r#"pinpriq_request_seconds_count{command="PUT"}"#, "4"),
        (r#"pinpriq_refusals_total{door="resp",code="ERR"}"#, "1"),
        (r#"pinpriq_refusals_total{door="resp",code="BADARG"}"#, "1"),
        (r#"pinpriq_refusals_total{door="http",code="BADARG"}"#, "1"),
        (r#"pinpriq_refusals_total{door="http",code="MEDIATYPE"}"#, "1"),
        (r#"pinpriq_refusals_total{door="http",code="METHOD"}"#, "1"),
        (r#"pinpriq_connections{door="resp"}"#, "1"),
        (r#"pinpriq_tasks{queue="jobs",state="R"}"#, "4"),
        ("pinpriq_store_failed", "0"),
    ] {
        assert_eq!(value(&text, name).as_deref(), Some(wanted), "{name} in\n{text}");
    }
    site.server.stop();
}

#[test]
fn a_take_that_waits_is_counted_and_has_no_time() {
    let site = Site::open(&["--resp", "127.0.0.1:0"]);
    let mut resp = Redis::connect(&site.server.door("resp"));
    resp.ask("TAKE jobs WAIT 20");
    let text = scrape(&site);
    let name = r#"pinpriq_requests_total{door="resp",command="TAKE"}"#;
    assert_eq!(value(&text, name).as_deref(), Some("1"), "{text}");
    assert!(!text.contains(r#"pinpriq_request_seconds_count{command="TAKE"}"#), "{text}");
    site.server.stop();
}

#[test]
fn the_page_has_two_formats_and_is_only_read() {
    let site = Site::open(&[]);
    let open = Request::of("GET /metrics accept:application/openmetrics-text", b"");
    let reply = site.browser().ask(&open).written();
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(reply.lines().next(), Some(&*format!("< 200 {media_type}")));
    assert!(reply.ends_with("# EOF\n"), "{reply}");
    let reply = site.ask("GET /metrics", b"").written();
    assert_eq!(reply.lines().next(), Some("< 200 text/plain; version=0.0.4; charset=utf-8"));
    let reply = site.ask("POST /metrics", b"").written();
    let first = "< 405 application/problem+json allow:GET, HEAD, OPTIONS";
    assert_eq!(reply.lines().next(), Some(first));
    site.server.stop();
}
