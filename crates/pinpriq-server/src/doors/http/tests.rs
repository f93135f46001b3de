//! The tables of paths in `docs/http.md` and of metrics in `docs/monitoring.md` are those of the
//! door. `UPDATE_EXPECT=1` prints them again.

mod openapi;
mod schemas;

use std::fmt::Write as _;
use std::path::Path;

use expect_test::expect_file;
use pinpriq_proto::request::form::Form;
use pinpriq_proto::request::options::BULK_CHANGES;

use self::openapi::{chapters, fields_of, flags_of, group, summary};
use super::api::route::{Body, DO, Does, Own, Route, Word, options_of};
use super::api::table::ROUTES;
use super::metrics::exposition::PREFIX;
use super::metrics::table::Chapter::{self, Cluster, Journal, Queues, Requests, Server};
use super::metrics::table::TABLE;

/// What a bulk change does is one of its options over RESP.
#[test]
fn every_bulk_change_can_be_asked_for() {
    let known = BULK_CHANGES.map(|change| change.word.to_ascii_lowercase()).join("|");
    assert_eq!(DO.value, Some(&*known));
}

#[test]
fn paths_on_the_page_are_those_of_the_door() {
    agree("http.md", "http", &http_table());
}

#[test]
fn metrics_on_the_page_are_those_of_the_door() {
    agree("monitoring.md", "metrics", &metrics_table());
}

fn agree(page: &str, word: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {word}:begin -->\n"), format!("<!-- {word}:end -->"));
    let (before, rest) = page.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    expect_file![path].assert_eq(&format!("{before}{begin}{table}{end}{after}"));
}

/// Returns the tables of all paths as Markdown, for `docs/http.md`.
fn http_table() -> String {
    let mut text = String::new();
    for chapter in chapters() {
        let _ = write!(
            text,
            "\n### {chapter}\n\n| request | what | body | options | answer |\n\
             |---|---|---|---|---|\n"
        );
        for route in ROUTES.iter().filter(|route| group(route) == chapter) {
            let (method, path) = (&route.method, route.written());
            let (what, body, answer) = (summary(route), body_of(route), answer_of(route));
            let options = options(route);
            let _ =
                writeln!(text, "| `{method} {path}` | {what} | {body} | {options} | {answer} |");
        }
    }
    text.push('\n');
    text
}

fn options(route: &Route) -> String {
    let mut names: Vec<String> =
        options_of(route).iter().map(|option| option.word.to_ascii_lowercase()).collect();
    names.extend(flags_of(route).iter().map(|flag| (*flag).to_owned()));
    if route.has_done() {
        names.push("done".to_owned());
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
}

fn body_of(route: &Route) -> String {
    let fields: Vec<String> =
        fields_of(route).iter().map(|(name, _)| format!("`{name}`")).collect();
    match (route.body, route.does) {
        (Body::None, _) => String::new(),
        (Body::Payload, _) if route.words.contains(&Word::Payload) => "the payload".to_owned(),
        (Body::Payload, _) => "a new payload".to_owned(),
        (Body::Lines, _) => "JSON lines".to_owned(),
        (Body::Json, Does::Own(Own::Multi)) => "`commands`".to_owned(),
        (Body::Json, Does::Own(own)) if !own.asks_as_a_command() => "settings".to_owned(),
        (Body::Json, _) if fields.is_empty() => "options".to_owned(),
        (Body::Json, _) => format!("{}, options", fields.join(", ")),
    }
}

const fn answer_of(route: &Route) -> &'static str {
    match (route.does, route.form) {
        (Does::Own(Own::Queues), _) => "`{cursor, queues}`, with an order also `total`",
        (Does::Own(Own::DeadLetters), _) => "`{complete, queues}`",
        (Does::Own(Own::Topics), _) => "`{cursor, topics}`",
        (Does::Own(Own::Schedules), _) => "`{cursor, schedules}`",
        (Does::Own(Own::Limits), _) => "`{cursor, limits}`",
        (Does::Own(Own::Batches), _) => "`{cursor, batches}`",
        (Does::Own(Own::OpenBatch), _) => "201 the batch",
        (Does::Own(Own::Queue | Own::SetQueue), _) => "`{name, settings, stats}`",
        (Does::Own(Own::CreateQueue), _) => "201 `{name, settings, stats}`",
        (Does::Own(Own::Server), _) => {
            "an object for each section, `disk_free_bytes`, and how it was set: `configuration`"
        }
        (Does::Own(Own::Events), _) => "server-sent events, until one side ends",
        (Does::Own(Own::History), _) => "a column for each figure",
        (Does::Own(Own::Connections), _) => "`{connections}`",
        (Does::Own(Own::BeginBackup), _) => "201 `{id, at, expires_at, shards}`",
        (Does::Own(Own::Segment), _) => "the bytes; 206 with `Range`",
        (_, Form::Put) => {
            "201 `{id, new}`, for a duplicate 200; with `wait` also `outcome`, and `result`"
        }
        (_, Form::Line | Form::Atomic) => "a line for each line: `{id, new}` or a problem",
        (_, Form::Tasks | Form::Octets) => "`{tasks}`",
        (_, Form::Page) => "`{cursor, tasks}`, with `peek` `{tasks}`",
        (_, Form::Task | Form::TaskOctets) => "the task; 404 with `ended` once it has left",
        (_, Form::Nothing | Form::Removed) | (Does::Own(Own::EndConnection), _) => "204",
        (_, Form::State) => "`{state}`",
        (_, Form::Deadline) => "`{deadline}`",
        (_, Form::Outcome) => "`{outcome, state}`, with `result` also that",
        (_, Form::Count) => "`{count}`",
        (_, Form::Explained) => "`{id, state, since, reasons}`",
        (_, Form::Bulk) => "`{cursor, looked, changed}`",
        (_, Form::Leases) => "`{cursor, leases}`",
        (_, Form::Shares) => "`{cursor, shares}`",
        (_, Form::Members) => "`{members}`",
        (_, Form::Schedule) => "the schedule",
        (_, Form::Limit) => "the limit",
        (_, Form::Batch) => "the batch",
        (_, Form::BatchOutcome) => "`{outcome, batch}`",
        (_, Form::Pending) => "`{pending}`",
        (_, Form::Next) => "`{next_at}`",
        (_, Form::Fired) => "`{id}`",
        (_, Form::Joined) => "`{incarnation}`",
        (_, Form::Answers | Form::Multi) => "`{answers}`",
        (_, Form::Value | Form::Figures) => "the figures of all queues together",
    }
}

/// Returns the tables of all metrics, a chapter each.
fn metrics_table() -> String {
    let mut text = String::new();
    for chapter in [Queues, Requests, Journal, Server, Cluster] {
        let _ = write!(
            text,
            "\n### {}\n\n| name | kind | labels | value |\n|---|---|---|---|\n",
            name_of(chapter)
        );
        for metric in TABLE.iter().filter(|metric| metric.chapter == chapter) {
            let labels = metric.labels().map(|label| format!("`{label}`"));
            let _ = writeln!(
                text,
                "| `{PREFIX}_{}` | {} | {} | {} |",
                metric.name,
                metric.kind().word(),
                labels.collect::<Vec<_>>().join(" "),
                in_docs(metric.help())
            );
        }
    }
    text.push('\n');
    text
}

/// Returns a sentence whose links start from the page. Those of figures start from that on RESP.
fn in_docs(sentence: &str) -> String {
    sentence.replace("](#", "](protocol/resp.md#").replace("](../", "](")
}

const fn name_of(chapter: Chapter) -> &'static str {
    match chapter {
        Queues => "Queues",
        Requests => "Requests",
        Journal => "Journal and disk",
        Server => "Server",
        Cluster => "Cluster",
    }
}
