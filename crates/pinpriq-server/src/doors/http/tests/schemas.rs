//! The schemas of the `OpenAPI` document: what answers look like.

use serde_json::{Map, Value, json};

use pinpriq_proto::fields::told::{
    ATTEMPT, BATCH, LEASE, LIMIT, MEMBER, SCHEDULE, SHARE, Sort, Told,
};
use pinpriq_proto::fields::{FieldKind, Shown, TASK};
use pinpriq_proto::settings::{SETTINGS, SettingKind};

use super::super::api::asking::{WAITING, step_name, steps};
use super::super::api::route::{Does, Own, Route, Word, words_of};
use super::super::problem::CODES;
use super::openapi::option_schema;
use pinpriq_proto::request::form::Form;
use pinpriq_proto::request::options::{DEADLINE, DONE, WITHMETA};

/// A status with what it means, and the media type and schema of its body if there is one.
type Status = (u16, &'static str, Option<(&'static str, Value)>);

const JSON: &str = "application/json";

/// Returns a reference to a schema.
pub(super) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Returns the statuses of a route apart from refusals.
pub(super) fn of_form(route: &Route) -> Vec<Status> {
    if let Does::Own(own) = route.does
        && let Some(told) = of_own(own)
    {
        return told;
    }
    let nothing = || vec![(204, "It was done", None)];
    match route.form {
        Form::Put => vec![
            (201, "The task was put", Some((JSON, named("Put")))),
            (200, "There is a task like it", Some((JSON, named("Put")))),
        ],
        Form::Line => {
            let lines = ("application/x-ndjson", json!({}));
            vec![(200, "An answer for each line", Some(lines))]
        }
        Form::Tasks | Form::Octets => vec![
            (200, "The tasks", Some((JSON, tasks()))),
            (204, "There is none, and application/octet-stream was asked for", None),
        ],
        Form::Task | Form::TaskOctets => ok(named("Task")),
        Form::State => ok(object(&[("state", state())], &["state"])),
        Form::Deadline => ok(object(&[("deadline", or_null(moment()))], &["deadline"])),
        Form::Next => ok(object(&[("next_at", or_null(moment()))], &["next_at"])),
        Form::Outcome => {
            let told = [("outcome", text()), ("state", state())];
            ok(object(&[&told[..], &result()].concat(), &["outcome", "state"]))
        }
        Form::Count => ok(object(&[("count", whole())], &["count"])),
        Form::Explained => ok(named("Explanation")),
        Form::Bulk => {
            let told = [("cursor", text()), ("looked", whole()), ("changed", whole())];
            ok(object(&told, &["cursor", "looked", "changed"]))
        }
        Form::Leases => ok(page("leases", named("Lease"))),
        Form::Shares => ok(page("shares", named("Share"))),
        Form::Figures => ok(json!({"type": "object", "required": ["counts", "put"]})),
        Form::Members => ok(object(&[("members", array(named("Member")))], &["members"])),
        Form::Schedule => ok(named("Schedule")),
        Form::Limit => ok(named("Limit")),
        Form::Batch => ok(named("Batch")),
        Form::BatchOutcome => ok(named("BatchOutcome")),
        Form::Pending => ok(object(&[("pending", whole())], &["pending"])),
        Form::Fired => ok(object(&[("id", text()), ("id_base64", text())], &[])),
        Form::Joined => ok(object(&[("incarnation", whole())], &["incarnation"])),
        Form::Answers => {
            let answers = array(or_null(named("Problem")));
            ok(object(&[("answers", answers)], &["answers"]))
        }
        Form::Multi => ok(object(&[("answers", array(json!({})))], &["answers"])),
        Form::Nothing | Form::Removed | Form::Page | Form::Value | Form::Atomic => nothing(),
    }
}

fn ok(schema: Value) -> Vec<Status> {
    vec![(200, "It was done", Some((JSON, schema)))]
}

/// The same for what is no single command, unless its form says it.
fn of_own(own: Own) -> Option<Vec<Status>> {
    let told = match own {
        Own::Queues => {
            let mut queues = page("queues", named("QueueSummary"));
            queues["properties"]["total"] = whole();
            ok(queues)
        }
        Own::DeadLetters => ok(dead_letters()),
        Own::Topics => {
            let figures = ["members", "ready", "taken"].map(|name| (name, whole()));
            let topic = with_bytes(&["topic"], &figures, &["members", "ready", "taken"]);
            ok(page("topics", topic))
        }
        Own::Schedules => ok(page("schedules", named("Schedule"))),
        Own::Limits => ok(page("limits", named("Limit"))),
        Own::Batches => ok(page("batches", named("Batch"))),
        Own::OpenBatch => vec![
            (201, "It was made", Some((JSON, named("Batch")))),
            (204, "It was made, and the user may not look at it", None),
        ],
        Own::Queue | Own::SetQueue => ok(named("Queue")),
        Own::CreateQueue => vec![(201, "It was made", Some((JSON, named("Queue"))))],
        Own::Server => ok(json!({"type": "object"})),
        Own::Events => {
            vec![(200, "Events, until one side ends", Some(("text/event-stream", text())))]
        }
        Own::History => ok(history()),
        Own::Connections => {
            let connection = json!({"type": "object", "required": ["id", "addr", "door"]});
            ok(object(&[("connections", array(connection))], &["connections"]))
        }
        Own::Tasks => {
            let tasks = array(named("Task"));
            ok(object(&[("cursor", text()), ("tasks", tasks)], &["tasks"]))
        }
        Own::BeginBackup => vec![(201, "It has begun", Some((JSON, named("Backup"))))],
        Own::Segment => {
            let bytes = || Some(("application/octet-stream", json!({})));
            vec![(200, "All bytes", bytes()), (206, "A range of them", bytes())]
        }
        Own::Lines | Own::Multi | Own::EndConnection | Own::EndBackup => return None,
    };
    Some(told)
}

/// Returns all schemas that have names.
pub(super) fn all() -> Value {
    json!({
        "Problem": problem(),
        "Bytes": bytes(),
        "Task": task(),
        "Put": put(),
        "Queue": queue(),
        "QueueSummary": summary(),
        "Settings": settings(),
        "Explanation": explanation(),
        "Lease": of_table(&LEASE),
        "Share": of_table(&SHARE),
        "Member": of_table(&MEMBER),
        "Schedule": of_table(&SCHEDULE),
        "Limit": of_table(&LIMIT),
        "Batch": of_table(&BATCH),
        "BatchOutcome": batch_outcome(),
        "Multi": multi(),
        "Backup": backup(),
    })
}

/// What belongs to a backup.
fn backup() -> Value {
    let segment = ["number", "incarnation", "bytes"];
    let segment = object(&segment.map(|name| (name, whole())), &segment);
    let shard = [("shard", whole()), ("segments", array(segment))];
    let shards = array(object(&shard, &["shard", "segments"]));
    let told = [("id", text()), ("at", moment()), ("expires_at", moment()), ("shards", shards)];
    object(&told, &["id", "at", "expires_at", "shards"])
}

/// What a client hears that has waited for a batch.
fn batch_outcome() -> Value {
    let outcome = json!({"type": "string", "enum": ["done", "timeout"]});
    object(&[("outcome", outcome), ("batch", named("Batch"))], &["outcome", "batch"])
}

fn history() -> Value {
    let column = || array(or_null(json!({"type": "number", "minimum": 0})));
    let names = [
        "in",
        "out",
        "taken",
        "failed",
        "commit_ms",
        "waited_ms",
        "dead_letters",
        "oldest_ready_ms",
    ];
    let mut members = vec![("step_ms", whole()), ("at", or_null(moment()))];
    members.extend(names.map(|name| (name, column())));
    members.extend(["R", "T", "W", "B", "Z", "D"].map(|state| (state, column())));
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    object(&members, &required)
}

fn text() -> Value {
    json!({"type": "string"})
}

fn truth() -> Value {
    json!({"type": "boolean"})
}

/// Values by name.
pub(super) fn headers() -> Value {
    json!({"type": "object", "additionalProperties": named("Bytes")})
}

fn whole() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn moment() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn state() -> Value {
    json!({"type": "string", "enum": ["R", "T", "W", "B", "Z", "D", "X"]})
}

/// A number from 1 on, or one of these words.
pub(super) fn limit_or_word(words: &[&str]) -> Value {
    json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "enum": words}]})
}

fn array(items: Value) -> Value {
    let mut schema = json!({"type": "array"});
    schema["items"] = items;
    schema
}

fn or_null(schema: Value) -> Value {
    json!({"anyOf": Value::Array(vec![schema, json!({"type": "null"})])})
}

fn object(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Returns an object some of whose members are bytes, each as text or in base64.
fn with_bytes(names: &[&str], others: &[(&str, Value)], required: &[&str]) -> Value {
    let coded: Vec<String> = names.iter().map(|name| format!("{name}_base64")).collect();
    let mut properties: Vec<(&str, Value)> = names.iter().map(|name| (*name, text())).collect();
    properties.extend(coded.iter().map(|name| (name.as_str(), text())));
    properties.extend(others.iter().cloned());
    object(&properties, required)
}

fn page(name: &str, item: Value) -> Value {
    object(&[("cursor", text()), (name, array(item))], &["cursor", name])
}

fn tasks() -> Value {
    object(&[("tasks", array(named("Task")))], &["tasks"])
}

fn bytes() -> Value {
    json!({"anyOf": [text(), object(&[("base64", text())], &["base64"])]})
}

/// Returns the tasks that are done before a take.
pub(super) fn done() -> Value {
    let told = [("queue", text()), ("receipt", text())];
    array(with_bytes(&["result"], &told, &["queue", "receipt"]))
}

/// What has come of the work, where that is asked for.
fn result() -> [(&'static str, Value); 2] {
    [("result", or_null(text())), ("result_base64", text())]
}

fn put() -> Value {
    let told = [("new", truth()), ("outcome", or_null(text()))];
    with_bytes(&["id"], &[&told[..], &result()].concat(), &["new"])
}

fn problem() -> Value {
    let codes = CODES.map(|(code, ..)| code).to_vec();
    let mut statuses = CODES.map(|(_, status, _)| status).to_vec();
    statuses.sort_unstable();
    statuses.dedup();
    object(
        &[
            ("type", text()),
            ("title", text()),
            ("status", json!({"type": "integer", "enum": statuses})),
            ("detail", text()),
            ("code", json!({"type": "string", "enum": codes})),
            ("position", json!({"type": "integer", "minimum": 1})),
            ("problem", named("Problem")),
            ("ended", ended()),
        ],
        &["type", "title", "status", "detail", "code"],
    )
}

/// What became of a task that has left.
fn ended() -> Value {
    let told = [("outcome", text()), ("at", moment())];
    with_bytes(&["reason", "queue", "id"], &told, &["outcome", "at"])
}

fn task() -> Value {
    let shown = TASK.iter().filter(|field| field.shown != Shown::Never);
    of_fields(shown.map(|field| (field.name, Sort::Like(field.kind), field.always)))
}

fn of_table<S>(fields: &[Told<S>]) -> Value {
    of_fields(fields.iter().map(|field| (field.name, field.sort, field.always)))
}

/// Returns an object with these fields, some of which are always there.
fn of_fields(fields: impl Iterator<Item = (&'static str, Sort, bool)>) -> Value {
    let (mut coded, mut others, mut required) = (Vec::new(), Vec::new(), Vec::new());
    for (name, sort, always) in fields {
        let schema = match sort {
            // They may be in base64 under another name, so none of them is required.
            Sort::Like(FieldKind::Bytes | FieldKind::Payload | FieldKind::Id) => {
                coded.push(name);
                continue;
            }
            Sort::Like(FieldKind::Receipt | FieldKind::Address) | Sort::Word => text(),
            Sort::Like(FieldKind::State) => state(),
            Sort::Like(FieldKind::Integer) => json!({"type": "integer", "format": "int64"}),
            Sort::Like(FieldKind::Count | FieldKind::Number | FieldKind::Span) => whole(),
            Sort::Like(FieldKind::NumberOrNone | FieldKind::SpanOrNone) => {
                json!({"type": ["integer", "null"], "minimum": 0})
            }
            Sort::Like(FieldKind::Moment) => moment(),
            Sort::Like(FieldKind::Headers) => headers(),
            Sort::Like(FieldKind::Attempts) => array(of_table(&ATTEMPT)),
            Sort::Like(FieldKind::Names) => array(named("Bytes")),
            Sort::Truth | Sort::Like(FieldKind::Truth) => truth(),
            Sort::Limit => limit_or_word(&["none"]),
        };
        others.push((name, schema));
        required.extend(always.then_some(name));
    }
    with_bytes(&coded, &others, &required)
}

fn counts() -> Value {
    let states = ["R", "T", "W", "B", "Z", "D"];
    object(&states.map(|state| (state, whole())), &states)
}

fn summary() -> Value {
    let rate = || json!({"type": "number", "minimum": 0});
    with_bytes(
        &["name"],
        &[
            ("counts", counts()),
            ("rates", or_null(object(&[("in", rate()), ("out", rate())], &["in", "out"]))),
            ("oldest_ready_ms", or_null(whole())),
            ("paused", paused()),
            ("holds_dead_letters", whole()),
        ],
        &["counts", "rates", "oldest_ready_ms", "paused", "holds_dead_letters"],
    )
}

fn dead_letters() -> Value {
    let reason = with_bytes(&["reason"], &[("count", whole())], &["count"]);
    let queue = with_bytes(
        &["name"],
        &[
            ("letters", whole()),
            ("buried", whole()),
            ("sources", array(named("Bytes"))),
            ("reasons", array(reason)),
        ],
        &["letters", "buried", "sources", "reasons"],
    );
    object(&[("complete", truth()), ("queues", array(queue))], &["complete", "queues"])
}

fn paused() -> Value {
    json!({"type": "string", "enum": ["none", "in", "out", "both"]})
}

fn queue() -> Value {
    let stats = json!({
        "type": "object",
        "properties": {"counts": counts(), "paused": paused()},
        "required": ["counts", "put", "acked", "present"],
    });
    let mut settings = settings();
    settings["properties"]["paused"] = paused();
    for side in ["paused_in_until", "paused_out_until"] {
        settings["properties"][side] = or_null(whole());
    }
    with_bytes(
        &["name", "member"],
        &[("settings", settings), ("stats", stats)],
        &["settings", "stats"],
    )
}

/// Returns what settings can be set to, and what they are shown as.
fn settings() -> Value {
    let mut properties = Map::new();
    for setting in SETTINGS {
        for name in setting.names() {
            let mut schema = match &setting.kind {
                SettingKind::Number | SettingKind::Span => whole(),
                SettingKind::Words(_) | SettingKind::WordsOrSpan(..) if name != setting.name => {
                    whole()
                }
                SettingKind::Words(words) | SettingKind::WordsOrSpan(words, _) => {
                    let words: Vec<&str> = words.iter().map(|word| word.word).collect();
                    json!({"type": "string", "enum": words})
                }
                SettingKind::Name | SettingKind::Limits | SettingKind::Rate => text(),
            };
            if setting.optional || name != setting.name {
                schema = or_null(schema);
            }
            properties.insert(name.to_ascii_lowercase(), schema);
            if matches!(setting.kind, SettingKind::Name | SettingKind::Limits) {
                properties.insert(format!("{}_base64", name.to_ascii_lowercase()), text());
            }
        }
    }
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn explanation() -> Value {
    let reason = with_bytes(
        &["reason", "key", "share", "by", "name", "queue", "id", "batch"],
        &[
            ("code", text()),
            ("outcome", text()),
            ("at", moment()),
            ("until", moment()),
            ("since", moment()),
            ("client", whole()),
            ("taken", whole()),
            ("n", whole()),
            ("next_at", moment()),
            ("open_at", moment()),
            ("at_least", whole()),
            ("ahead", whole()),
            ("pending", whole()),
        ],
        &["code"],
    );
    with_bytes(
        &[],
        &[
            ("id", or_null(text())),
            ("id_base64", text()),
            ("state", or_null(state())),
            ("since", or_null(moment())),
            ("reasons", array(reason)),
            ("eta_ms", or_null(whole())),
            ("eta_low", or_null(whole())),
            ("eta_high", or_null(whole())),
        ],
        &["state", "since", "reasons", "eta_ms", "eta_low", "eta_high"],
    )
}

/// Returns the commands of a transaction.
fn multi() -> Value {
    let mut commands = Vec::new();
    for spec in steps() {
        let command = spec.name;
        let mut properties = Map::new();
        for word in words_of(spec, None) {
            let (one, many) = match word {
                Word::Field(name) => (name, None),
                Word::Either(name, many) => (name, Some(many)),
                _ => continue,
            };
            properties.insert(one.to_owned(), text());
            properties.insert(format!("{one}_base64"), text());
            properties.extend(many.map(|many| (many.to_owned(), array(named("Bytes")))));
        }
        for option in spec.options {
            let name = option.word.to_ascii_lowercase();
            let is_waiting = WAITING.contains(&&*name) && command == "PUT";
            if ![WITHMETA, DONE].contains(option) && !is_waiting {
                properties.insert(name, option_schema(*option, false));
            }
        }
        debug_assert!(command != "PUBLISH" || spec.options.contains(&DEADLINE));
        let name = step_name(spec);
        let given = json!({"type": "object", "properties": properties});
        commands.push(object(&[(&name, given)], &[&name]));
    }
    let commands = json!({"type": "array", "items": {"anyOf": commands}});
    object(&[("commands", commands)], &["commands"])
}
