//! Metrics of shares and of named limits, as the HTTP door tells them. What the others say is
//! tested beside their list.

use super::{Address, LOOKS_MAX, Visitor, with_site_of};
use crate::world::in_memory;
use pinpriq_server::config::Config;

/// Puts tasks for this share.
async fn put(visitor: &mut Visitor, queue: &str, share: &str, count: usize) {
    for _ in 0..count {
        let line = format!("POST /v1/queues/{queue}/tasks{share}");
        assert_eq!(visitor.ask(&line, "", b"x").await.0, 201);
    }
}

async fn set(visitor: &mut Visitor, line: &str, values: &str) {
    let kind = "Content-Type: application/json\r\n";
    let (status, body) = visitor.ask(line, kind, values.as_bytes()).await;
    assert!([200, 201, 204].contains(&status), "{line}: {status} {body}");
}

/// Asks for metrics until the lines that contain this are as wanted.
async fn lines_of(address: Address, of: &str, are_wanted: impl Fn(&[String]) -> bool) {
    let mut visitor = Visitor::at(address).await;
    let mut lines = Vec::new();
    for _ in 0..LOOKS_MAX {
        let (_, text) = visitor.ask("GET /metrics", "", b"").await;
        let found = text.lines().filter(|line| !line.starts_with('#') && line.contains(of));
        lines = found.map(str::to_owned).collect();
        if are_wanted(&lines) {
            return;
        }
    }
    panic!("the lines with {of} are never as wanted: {lines:#?}");
}

#[test]
fn shares_with_most_tasks_have_metrics_where_a_queue_asks_for_it() {
    for shards in [1, 2] {
        with_site_of(Config { shards, ..in_memory() }, async |address| {
            let mut visitor = Visitor::at(address).await;
            let quote = "?share=a%22b%0A";
            for queue in ["mails", "calls"] {
                put(&mut visitor, queue, quote, 3).await;
                put(&mut visitor, queue, "?share=few", 1).await;
                put(&mut visitor, queue, "", 2).await;
            }
            // Nobody has asked for them.
            lines_of(address, "pinpriq_", |lines| {
                !lines.iter().any(|line| line.starts_with("pinpriq_share"))
            })
            .await;
            set(&mut visitor, "PUT /v1/queues/mails", r#"{"sharemetrics": 2}"#).await;
            let wanted = [
                r#"pinpriq_share_tasks{queue="mails",share="a\"b\n",state="R"} 3"#,
                r#"pinpriq_share_tasks{queue="mails",share="a\"b\n",state="T"} 0"#,
                r#"pinpriq_share_tasks{queue="mails",share="",state="R"} 2"#,
                r#"pinpriq_share_tasks{queue="mails",share="",state="T"} 0"#,
            ];
            lines_of(address, "pinpriq_share_tasks", |lines| lines == wanted).await;
            lines_of(address, "pinpriq_share_oldest_ready_seconds", |lines| {
                lines.len() == 2 && lines.iter().all(|line| line.contains("mails"))
            })
            .await;
            visitor.ask("POST /v1/queues/mails:pop", "", b"").await;
            visitor.ask("POST /v1/queues/mails:take", "", b"").await;
            lines_of(address, "pinpriq_share_acked_total", |lines| {
                lines.iter().any(|line| line.ends_with("share=\"a\\\"b\\n\"} 1"))
            })
            .await;
            lines_of(address, "pinpriq_share_failures_total", |lines| lines.len() == 2).await;
            lines_of(address, "state=\"T\"} 1", |lines| lines.len() == 2).await;
            set(&mut visitor, "PATCH /v1/queues/mails", r#"{"sharemetrics": null}"#).await;
            lines_of(address, "pinpriq_share", <[String]>::is_empty).await;
        });
    }
}

#[test]
fn limits_that_queues_use_together_have_metrics() {
    with_site_of(Config { shards: 2, ..in_memory() }, async |address| {
        let mut visitor = Visitor::at(address).await;
        set(&mut visitor, "PUT /v1/limits/%7Bgpu%7Dmax", r#"{"max": 1}"#).await;
        set(&mut visitor, "PUT /v1/limits/%7Bgpu%7Drate", r#"{"rate": "2/600000"}"#).await;
        set(&mut visitor, "PUT /v1/limits/other", r#"{"max": 9}"#).await;
        set(&mut visitor, "PUT /v1/queues/%7Bgpu%7D", r#"{"uses": "{gpu}max,{gpu}rate"}"#).await;
        put(&mut visitor, "%7Bgpu%7D", "?cost=5", 1).await;
        visitor.ask("POST /v1/queues/%7Bgpu%7D:take", "", b"").await;
        let has = |lines: &[String], wanted: &str| lines.iter().any(|line| line == wanted);
        lines_of(address, "pinpriq_limit_taken", |lines| {
            lines.len() == 3
                && has(lines, r#"pinpriq_limit_taken{limit="other"} 0"#)
                && has(lines, r#"pinpriq_limit_taken{limit="{gpu}max"} 1"#)
        })
        .await;
        let debt = [r#"pinpriq_limit_tokens{limit="{gpu}rate"} -3"#];
        lines_of(address, "pinpriq_limit_tokens", |lines| lines == debt).await;
        lines_of(address, "pinpriq_limit_closed_seconds_total", |lines| {
            let is_closed = |line: &&String| !line.ends_with(" 0.0");
            lines.len() == 3
                && lines.iter().filter(is_closed).count() == 2
                && has(lines, r#"pinpriq_limit_closed_seconds_total{limit="other"} 0.0"#)
        })
        .await;
    });
}
