//! Every path of the API, once. The router, the `OpenAPI` document and the page of the
//! documentation read this table.
//!
//! A command whose entry says how HTTP answers has the usual path: a verb, called as the command,
//! behind the name of what it acts on. The others stand here.

use std::sync::LazyLock;

use super::names::split_verb;
use super::route::Body::{self, Json, Lines, Payload};
use super::route::{Does, Own, Route, words_of};
use pinpriq_proto::request::form::Form;
use pinpriq_proto::request::spec::{Spec, Word};
use pinpriq_proto::request::table::TABLE;

/// A path that stands for one command.
fn one(line: &'static str, command: &'static str, body: Body, form: Form) -> Route {
    route(line, Does::Command(command), body, form)
}

/// A path of this door's own.
fn own(line: &'static str, own: Own, body: Body, form: Form) -> Route {
    route(line, Does::Own(own), body, form)
}

/// Returns what a line such as `POST /queues/{queue}:take` stands for.
fn route(line: &'static str, does: Does, body: Body, form: Form) -> Route {
    let parsed = line.split_once(' ').and_then(|(method, path)| Some((method.parse().ok()?, path)));
    let Some((method, path)) = parsed else { unreachable!("{line} has no method") };
    let (path, verb) = split_verb(path);
    let mut route = Route { method, path, verb, does, words: Vec::new(), body, form };
    if !matches!(does, Does::Own(own) if !own.asks_as_a_command()) {
        route.words = words_of(route.spec(), Some((path, body)));
    }
    route
}

/// All paths, in the order of the documentation.
pub(crate) static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let usual = TABLE.iter().filter_map(|spec| Some(usual(spec, spec.http?)));
    others().into_iter().chain(usual).collect()
});

/// The usual path of a command. It lives as long as the process.
///
/// # Panics
/// If nothing with a path of its own has a name like its first words.
fn usual(spec: &Spec, form: Form) -> Route {
    let path = match spec.words {
        [Word::Key("queue"), Word::One("id"), ..] => "/queues/{queue}/tasks/{id}",
        [Word::Key("queue"), ..] => "/queues/{queue}",
        [Word::Key("topic"), ..] => "/topics/{topic}",
        [Word::Key("schedule"), ..] => "/schedules/{schedule}",
        [Word::One("member"), ..] => "/members/{member}",
        _ => unreachable!("{} has no usual path", spec.full_name()),
    };
    let verb = spec.sub.unwrap_or(spec.name).to_ascii_lowercase();
    one(format!("POST {path}:{verb}").leak(), spec.full_name().leak(), Json, form)
}

/// The paths that are not the usual ones.
fn others() -> [Route; 67] {
    [
        one("POST /queues/{queue}/tasks", "PUT", Payload, Form::Put),
        own("POST /queues/{queue}/tasks:batch", Own::Lines, Lines, Form::Line),
        own("GET /queues/{queue}/tasks", Own::Tasks, Body::None, Form::Page),
        one("GET /queues/{queue}/tasks/{id}", "GET", Body::None, Form::Task),
        one("PATCH /queues/{queue}/tasks/{id}", "UPDATE", Json, Form::Nothing),
        one("DELETE /queues/{queue}/tasks/{id}", "KILL", Body::None, Form::Removed),
        one("POST /queues/{queue}/tasks:kill", "KILL", Json, Form::Count),
        one("POST /queues/{queue}/tasks/{id}:dig", "DIG", Payload, Form::State),
        one("POST /queues/{queue}/tasks/{id}:switch", "SWITCH", Json, Form::State),
        one("POST /queues/{queue}/tasks/{id}:touch", "TOUCH", Json, Form::Deadline),
        one("POST /queues/{queue}/tasks/{id}:take", "TAKE", Json, Form::Tasks),
        one("GET /queues/{queue}/tasks/{id}/explain", "EXPLAIN", Body::None, Form::Explained),
        one("POST /take", "TAKE", Json, Form::Tasks),
        one("POST /pop", "POP", Json, Form::Tasks),
        one("POST /queues/{queue}:take", "TAKE", Json, Form::Tasks),
        one("POST /queues/{queue}:pop", "POP", Json, Form::Tasks),
        one("POST /queues/{queue}/receipts/{receipt}:ack", "ACK", Payload, Form::Nothing),
        one("POST /queues/{queue}/receipts/{receipt}:release", "RELEASE", Payload, Form::State),
        one("POST /queues/{queue}/receipts/{receipt}:fail", "FAIL", Payload, Form::State),
        one("POST /queues/{queue}/receipts/{receipt}:bury", "BURY", Payload, Form::Nothing),
        one("POST /queues/{queue}/receipts/{receipt}:touch", "TOUCH", Json, Form::Deadline),
        one("POST /queues/{queue}/receipts:ack", "ACK", Json, Form::Answers),
        own("GET /queues", Own::Queues, Body::None, Form::Value),
        own("GET /dead-letters", Own::DeadLetters, Body::None, Form::Nothing),
        own("GET /queues/{queue}", Own::Queue, Body::None, Form::Value),
        own("PUT /queues/{queue}", Own::CreateQueue, Json, Form::Value),
        own("PATCH /queues/{queue}", Own::SetQueue, Json, Form::Value),
        one("DELETE /queues/{queue}", "QUEUE DROP", Body::None, Form::Count),
        one("POST /queues/{queue}:pause", "QUEUE PAUSE", Json, Form::Nothing),
        one("POST /queues/{queue}:resume", "QUEUE RESUME", Json, Form::Nothing),
        one("POST /queues/{queue}:move", "MOVE", Json, Form::Count),
        one("GET /queues/{queue}/explain", "EXPLAIN", Body::None, Form::Explained),
        one("GET /queues/{queue}/leases", "LEASES", Body::None, Form::Leases),
        one("GET /queues/{queue}/shares", "QUEUE SHARES", Body::None, Form::Shares),
        one("PUT /queues/{queue}/shares/{share}", "QUEUE SHARE", Json, Form::Nothing),
        one("POST /topics/{topic}:publish", "PUBLISH", Payload, Form::Count),
        own("GET /topics", Own::Topics, Body::None, Form::Value),
        one("GET /topics/{topic}/members", "MEMBERS", Body::None, Form::Members),
        one("PUT /topics/{topic}/members/{member}", "JOIN", Json, Form::Joined),
        one("DELETE /topics/{topic}/members/{member}", "LEAVE", Body::None, Form::Count),
        one("DELETE /members/{member}", "LEAVE", Body::None, Form::Count),
        own("POST /multi", Own::Multi, Json, Form::Multi),
        own("GET /schedules", Own::Schedules, Body::None, Form::Value),
        one("GET /schedules/{schedule}", "SCHEDULE SHOW", Body::None, Form::Schedule),
        one("PUT /schedules/{schedule}", "SCHEDULE SET", Json, Form::Next),
        one("DELETE /schedules/{schedule}", "SCHEDULE DROP", Body::None, Form::Removed),
        own("GET /batches", Own::Batches, Body::None, Form::Value),
        one("GET /batches/{batch}", "BATCH SHOW", Body::None, Form::Batch),
        own("PUT /batches/{batch}", Own::OpenBatch, Json, Form::Batch),
        one("DELETE /batches/{batch}", "BATCH DROP", Body::None, Form::Removed),
        one("POST /batches/{batch}:close", "BATCH CLOSE", Json, Form::Pending),
        one("POST /batches/{batch}:cancel", "BATCH CANCEL", Json, Form::Count),
        one("POST /batches/{batch}:await", "BATCH AWAIT", Json, Form::BatchOutcome),
        own("GET /limits", Own::Limits, Body::None, Form::Value),
        one("GET /limits/{limit}", "LIMIT SHOW", Body::None, Form::Limit),
        one("PUT /limits/{limit}", "LIMIT SET", Json, Form::Nothing),
        one("DELETE /limits/{limit}", "LIMIT DROP", Body::None, Form::Removed),
        own("GET /server", Own::Server, Body::None, Form::Nothing),
        one("GET /stats", "STATS", Body::None, Form::Figures),
        own("GET /events", Own::Events, Body::None, Form::Nothing),
        own("GET /history", Own::History, Body::None, Form::Nothing),
        one("GET /leases", "LEASES", Body::None, Form::Leases),
        own("GET /connections", Own::Connections, Body::None, Form::Nothing),
        own("DELETE /connections/{connection}", Own::EndConnection, Body::None, Form::Nothing),
        own("POST /backups", Own::BeginBackup, Body::None, Form::Nothing),
        own("GET /backups/{backup}/{shard}/{segment}", Own::Segment, Body::None, Form::Octets),
        own("DELETE /backups/{backup}", Own::EndBackup, Body::None, Form::Nothing),
    ]
}
