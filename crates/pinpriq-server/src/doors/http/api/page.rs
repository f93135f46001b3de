//! The table of all paths for the documentation.

use std::fmt::Write as _;

use super::openapi::{chapters, fields_of, flags_of, group, summary};
use super::route::options_of;
use super::route::{Body, Does, Own, Route};
use super::table::ROUTES;
use pinpriq_proto::request::form::Form;
use pinpriq_proto::request::options::DONE;

/// Returns the tables of all paths as Markdown, for `docs/http.md`.
#[must_use]
pub fn http_table() -> String {
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
    if super::openapi::spec_of(route).options.contains(&DONE) && route.body == Body::Json {
        names.push("done".to_owned());
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
}

fn body_of(route: &Route) -> String {
    let fields: Vec<String> =
        fields_of(route).iter().map(|(name, _)| format!("`{name}`")).collect();
    match (route.body, route.does) {
        (Body::None, _) => String::new(),
        (Body::Payload, Does::Command("PUT" | "PUBLISH", _)) => "the payload".to_owned(),
        (Body::Payload, _) => "a new payload".to_owned(),
        (Body::Lines, _) => "JSON lines".to_owned(),
        (Body::Json, Does::Own(Own::Multi)) => "`commands`".to_owned(),
        (Body::Json, Does::Own(_)) => "settings".to_owned(),
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
        (Does::Own(Own::Queue | Own::SetQueue), _) => "`{name, settings, stats}`",
        (Does::Own(Own::CreateQueue), _) => "201 `{name, settings, stats}`",
        (Does::Own(Own::Server), _) => {
            "an object for each section, `disk_free_bytes`, and how it was set: `configuration`"
        }
        (Does::Own(Own::Events), _) => "server-sent events, until one side ends",
        (Does::Own(Own::History), _) => "a column for each figure",
        (Does::Own(Own::Connections), _) => "`{connections}`",
        (_, Form::Put) => "201 `{id, new}`, for a duplicate 200; with `wait` also `outcome`",
        (_, Form::Line | Form::Atomic) => "a line for each line: `{id, new}` or a problem",
        (_, Form::Tasks | Form::Octets) => "`{tasks}`",
        (_, Form::Page) => "`{cursor, tasks}`, with `peek` `{tasks}`",
        (_, Form::Task | Form::TaskOctets) => "the task",
        (_, Form::Nothing | Form::Removed) | (Does::Own(Own::EndConnection), _) => "204",
        (_, Form::State) => "`{state}`",
        (_, Form::Deadline) => "`{deadline}`",
        (_, Form::Outcome) => "`{outcome, state}`",
        (_, Form::Count) => "`{count}`",
        (_, Form::Explained) => "`{id, state, since, reasons}`",
        (_, Form::Leases) => "`{cursor, leases}`",
        (_, Form::Members) => "`{members}`",
        (_, Form::Schedule) => "the schedule",
        (_, Form::Next) => "`{next_at}`",
        (_, Form::Fired) => "`{id}`",
        (_, Form::Joined) => "`{incarnation}`",
        (_, Form::Answers | Form::Multi) => "`{answers}`",
        (_, Form::Value | Form::Figures) => "the figures of all queues together",
    }
}
