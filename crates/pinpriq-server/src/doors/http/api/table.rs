//! Every path of the API, once. The router, the `OpenAPI` document and the page of the
//! documentation read this table.
//!
//! A command whose entry says how HTTP answers has the usual path: a verb, called as the command,
//! behind the name of what it acts on. The others stand here.

use std::sync::LazyLock;

use axum::http::Method;

use super::route::Word::{Field, Fields, Path, PathId, Payload, Side};
use super::route::{Body, Does, Own, Route, Word};
use pinpriq_proto::request::form::Form;
use pinpriq_proto::request::spec::{Spec, Word as Shape};
use pinpriq_proto::request::table::TABLE;

const QUEUE: Word = Path("queue");
const ID: Word = Path("id");
const RECEIPT: Word = Path("receipt");
const TOPIC: Word = Path("topic");
const MEMBER: Word = Path("member");
const SCHEDULE: Word = Path("schedule");

const TASKS: &str = "/queues/{queue}/tasks";
const TASK: &str = "/queues/{queue}/tasks/{id}";
const HELD: &str = "/queues/{queue}/receipts/{receipt}";
const ONE_QUEUE: &str = "/queues/{queue}";
const ONE_TOPIC: &str = "/topics/{topic}";
const LANE: &str = "/topics/{topic}/members/{member}";
const ONE_MEMBER: &str = "/members/{member}";
const ONE_SCHEDULE: &str = "/schedules/{schedule}";

/// A path that stands for one command.
const fn command(
    method: Method,
    (path, verb): (&'static str, Option<&'static str>),
    (name, words): (&'static str, &'static [Word]),
    body: Body,
    form: Form,
) -> Route {
    Route { method, path, verb, does: Does::Command(name, words), body, form }
}

/// A path of this door's own.
const fn own(
    method: Method,
    (path, verb): (&'static str, Option<&'static str>),
    own: Own,
    body: Body,
    form: Form,
) -> Route {
    Route { method, path, verb, does: Does::Own(own), body, form }
}

/// A verb with an object for a body.
const fn verb(
    path: &'static str,
    verb: &'static str,
    (name, words): (&'static str, &'static [Word]),
    form: Form,
) -> Route {
    command(Method::POST, (path, Some(verb)), (name, words), Body::Json, form)
}

/// A verb with a payload for a body.
const fn carrying(
    path: &'static str,
    verb: &'static str,
    (name, words): (&'static str, &'static [Word]),
    form: Form,
) -> Route {
    command(Method::POST, (path, Some(verb)), (name, words), Body::Payload, form)
}

/// A look at something.
const fn look(path: &'static str, named: (&'static str, &'static [Word]), form: Form) -> Route {
    command(Method::GET, (path, None), named, Body::None, form)
}

/// All paths, in the order of the documentation.
pub(crate) static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let usual = TABLE.iter().filter_map(|spec| Some(usual(spec, spec.http?)));
    OTHERS.into_iter().chain(usual).collect()
});

/// The usual path of a command. It lives as long as the process.
///
/// # Panics
/// If nothing with a path of its own has a name like its first words.
fn usual(spec: &Spec, form: Form) -> Route {
    let (path, words): (_, &[Word]) = match spec.words {
        [Shape::Key("queue"), Shape::One("id"), ..] => (TASK, &[QUEUE, ID]),
        [Shape::Key("queue"), ..] => (ONE_QUEUE, &[QUEUE]),
        [Shape::Key("topic"), ..] => (ONE_TOPIC, &[TOPIC]),
        [Shape::Key("schedule"), ..] => (ONE_SCHEDULE, &[SCHEDULE]),
        [Shape::One("member"), ..] => (ONE_MEMBER, &[MEMBER]),
        _ => unreachable!("{} has no usual path", spec.full_name()),
    };
    let others = spec.words[words.len()..].iter().map(|word| match word {
        Shape::One(name) => Field(name),
        Shape::Some(name) => Fields(name),
        _ => unreachable!("HTTP has no such word as {} has", spec.full_name()),
    });
    let words: Vec<Word> = words.iter().copied().chain(others).collect();
    let named = spec.sub.unwrap_or(spec.name).to_ascii_lowercase();
    verb(path, named.leak(), (spec.full_name().leak(), words.leak()), form)
}

/// The paths that are not the usual ones.
const OTHERS: [Route; 50] = [
    command(Method::POST, (TASKS, None), ("PUT", &[QUEUE, Payload]), Body::Payload, Form::Put),
    own(Method::POST, (TASKS, Some("batch")), Own::Batch, Body::Lines, Form::Line),
    own(Method::GET, (TASKS, None), Own::Tasks, Body::None, Form::Page),
    look(TASK, ("GET", &[QUEUE, ID]), Form::Task),
    command(Method::PATCH, (TASK, None), ("UPDATE", &[QUEUE, ID]), Body::Json, Form::Nothing),
    command(Method::DELETE, (TASK, None), ("KILL", &[QUEUE, ID]), Body::None, Form::Removed),
    verb(TASKS, "kill", ("KILL", &[QUEUE, Fields("ids")]), Form::Count),
    carrying(TASK, "dig", ("DIG", &[QUEUE, ID]), Form::State),
    verb(TASK, "switch", ("SWITCH", &[QUEUE, ID, Field("state")]), Form::State),
    verb(TASK, "touch", ("TOUCH", &[QUEUE, PathId("id")]), Form::Deadline),
    look("/queues/{queue}/tasks/{id}/explain", ("EXPLAIN", &[QUEUE, ID]), Form::Explained),
    command(Method::POST, ("/take", None), ("TAKE", &[Fields("queues")]), Body::Json, Form::Tasks),
    command(Method::POST, ("/pop", None), ("POP", &[Fields("queues")]), Body::Json, Form::Tasks),
    verb(ONE_QUEUE, "take", ("TAKE", &[QUEUE]), Form::Tasks),
    verb(ONE_QUEUE, "pop", ("POP", &[QUEUE]), Form::Tasks),
    carrying(HELD, "ack", ("ACK", &[QUEUE, RECEIPT]), Form::Nothing),
    carrying(HELD, "release", ("RELEASE", &[QUEUE, RECEIPT]), Form::State),
    carrying(HELD, "fail", ("FAIL", &[QUEUE, RECEIPT]), Form::State),
    carrying(HELD, "bury", ("BURY", &[QUEUE, RECEIPT]), Form::Nothing),
    verb(HELD, "touch", ("TOUCH", &[QUEUE, RECEIPT]), Form::Deadline),
    verb("/queues/{queue}/receipts", "ack", ("ACK", &[QUEUE, Fields("receipts")]), Form::Answers),
    own(Method::GET, ("/queues", None), Own::Queues, Body::None, Form::Value),
    own(Method::GET, ("/dead-letters", None), Own::DeadLetters, Body::None, Form::Nothing),
    own(Method::GET, (ONE_QUEUE, None), Own::Queue, Body::None, Form::Value),
    own(Method::PUT, (ONE_QUEUE, None), Own::CreateQueue, Body::Json, Form::Value),
    own(Method::PATCH, (ONE_QUEUE, None), Own::SetQueue, Body::Json, Form::Value),
    command(Method::DELETE, (ONE_QUEUE, None), ("QUEUE DROP", &[QUEUE]), Body::None, Form::Count),
    verb(ONE_QUEUE, "pause", ("QUEUE PAUSE", &[QUEUE, Side]), Form::Nothing),
    verb(ONE_QUEUE, "resume", ("QUEUE RESUME", &[QUEUE, Side]), Form::Nothing),
    verb(ONE_QUEUE, "move", ("MOVE", &[QUEUE, Field("to")]), Form::Count),
    look("/queues/{queue}/explain", ("EXPLAIN", &[QUEUE]), Form::Explained),
    look("/queues/{queue}/leases", ("LEASES", &[QUEUE]), Form::Leases),
    carrying(ONE_TOPIC, "publish", ("PUBLISH", &[TOPIC, Payload]), Form::Count),
    own(Method::GET, ("/topics", None), Own::Topics, Body::None, Form::Value),
    look("/topics/{topic}/members", ("MEMBERS", &[TOPIC]), Form::Members),
    command(Method::PUT, (LANE, None), ("JOIN", &[TOPIC, MEMBER]), Body::Json, Form::Joined),
    command(Method::DELETE, (LANE, None), ("LEAVE", &[TOPIC, MEMBER]), Body::None, Form::Count),
    command(Method::DELETE, (ONE_MEMBER, None), ("LEAVE", &[MEMBER]), Body::None, Form::Count),
    own(Method::POST, ("/multi", None), Own::Multi, Body::Json, Form::Multi),
    own(Method::GET, ("/schedules", None), Own::Schedules, Body::None, Form::Value),
    look(ONE_SCHEDULE, ("SCHEDULE SHOW", &[SCHEDULE]), Form::Schedule),
    command(
        Method::PUT,
        (ONE_SCHEDULE, None),
        ("SCHEDULE SET", &[SCHEDULE, Field("queue"), Field("payload")]),
        Body::Json,
        Form::Next,
    ),
    command(
        Method::DELETE,
        (ONE_SCHEDULE, None),
        ("SCHEDULE DROP", &[SCHEDULE]),
        Body::None,
        Form::Removed,
    ),
    own(Method::GET, ("/server", None), Own::Server, Body::None, Form::Nothing),
    look("/stats", ("STATS", &[]), Form::Figures),
    own(Method::GET, ("/events", None), Own::Events, Body::None, Form::Nothing),
    own(Method::GET, ("/history", None), Own::History, Body::None, Form::Nothing),
    look("/leases", ("LEASES", &[]), Form::Leases),
    own(Method::GET, ("/connections", None), Own::Connections, Body::None, Form::Nothing),
    own(
        Method::DELETE,
        ("/connections/{connection}", None),
        Own::EndConnection,
        Body::None,
        Form::Nothing,
    ),
];
