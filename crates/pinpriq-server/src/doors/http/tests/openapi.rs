//! The `OpenAPI` document, made from the table of paths and the table of commands.
//! `UPDATE_EXPECT=1` prints `api/openapi.json` again, which the door answers with.

use expect_test::expect_file;
use pinpriq_proto::request::form::Form;
use pinpriq_proto::request::options::{
    AFTER_FORM, HEADERS_FORM, LIMIT_OR_NONE, OWN_LIMIT, OWN_RATE, Opt, RATE_OR_NO_RATE,
};
use pinpriq_proto::request::table::TABLE;
use serde_json::{Map, Value, json};

use super::super::api::given::{is_bytes, is_number};
use super::super::api::route::{Body, Does, Own, Route, Word, options_of};
use super::super::api::table::ROUTES;
use super::schemas::{self, limit_or_word, of_form};

/// Returns the document.
pub(super) fn openapi() -> Value {
    let mut paths = Map::new();
    for route in &*ROUTES {
        let path = paths.entry(route.written()).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    for (path, summary) in
        [("/healthz", "Whether the process serves"), ("/readyz", "Whether changes are accepted")]
    {
        paths.insert(path.to_owned(), health(path, summary));
    }
    paths.insert("/v1/session".to_owned(), session());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "pinpriq",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "The networked priority queue",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        // A server without users wants none of them.
        "security": [{}, {"basic": []}, {"bearer": []}, {"cookie": []}],
        "tags": chapters().into_iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "pinpriq_session"},
            },
        },
    })
}

/// Returns the chapters, each once.
pub(super) fn chapters() -> Vec<&'static str> {
    let mut chapters = Vec::new();
    for chapter in ROUTES.iter().map(group) {
        if !chapters.contains(&chapter) {
            chapters.push(chapter);
        }
    }
    chapters
}

/// Describes signing in by a browser.
fn session() -> Value {
    let signs_in = json!({
        "required": true,
        "content": {"application/json": {"schema": {
            "type": "object",
            "additionalProperties": false,
            "required": ["user", "password"],
            "properties": {"user": {"type": "string"}, "password": {"type": "string"}},
        }}},
    });
    let shown = json!({"200": {
        "description": "The user, or null on a server without users",
        "content": {"application/json": {"schema": {
            "type": "object",
            "required":
                ["user", "admin", "rights", "resp_port", "resp_tls", "pinpriq_version"],
            "properties": {
                "user": {"type": ["string", "null"]},
                "admin": {"type": "boolean"},
                "rights": {
                    "description": "On which names each right is given; null if on all",
                    "type": ["object", "null"],
                },
                "resp_port": {"type": ["integer", "null"]},
                "resp_tls": {"type": "boolean"},
                "pinpriq_version": {"type": "string"},
            },
        }}},
    }});
    let of = |id: &str, summary: &str, mut responses: Value, more: &[(&str, &str)]| {
        for (status, description) in more {
            responses[*status] = problem(description);
        }
        json!({"operationId": id, "tags": ["Server"], "summary": summary, "responses": responses})
    };
    let wrong = [
        ("400", "The request makes no sense"),
        ("401", "Nobody has signed in, or the password is wrong"),
        ("403", "A page of another origin asks"),
        ("404", "The server has no users"),
        ("408", "The body did not arrive in time"),
        ("415", "The body has the wrong type"),
        ("421", "The request is for another host"),
        ("429", "Too many others sign in"),
        ("431", "The head is too large"),
        ("503", "It cannot be answered at the moment"),
    ];
    let done = || json!({"204": {"description": "It is done, and a cookie says so"}});
    let mut begins = of("signIn", "Signs a browser in, by a cookie", done(), &wrong);
    begins["requestBody"] = signs_in;
    json!({
        "get": of("whoAmI", "Tells who has signed in", shown, &wrong),
        "post": begins,
        "delete": of("signOut", "Signs a browser out", done(), &wrong),
    })
}

fn health(path: &str, summary: &str) -> Value {
    let mut responses = json!({
        "200": {
            "description": "It does",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
    });
    if path == "/readyz" {
        responses["503"] = problem("It does not");
    }
    json!({"get": {"operationId": &path[1..], "summary": summary, "responses": responses}})
}

/// Returns the chapter that a route belongs to.
pub(super) fn group(route: &Route) -> &'static str {
    match route.does {
        Does::Own(Own::Multi) => "Transactions",
        Does::Own(
            Own::Server | Own::Connections | Own::EndConnection | Own::Events | Own::History,
        ) => "Server",
        Does::Own(Own::BeginBackup | Own::Segment | Own::EndBackup) => "Backups",
        _ => route.spec().group.name(),
    }
}

/// Returns what a route does, in a few words.
pub(super) fn summary(route: &Route) -> &'static str {
    match route.does {
        Does::Own(own) => match own {
            Own::Tasks => "Shows all tasks of a queue, page by page; with peek the next ones",
            Own::Lines => "Puts a task for each line, or with atomic all or none of them",
            Own::Queues => "Shows the queues with their figures, page by page",
            Own::DeadLetters => {
                "Shows the queues with dead letters or buried tasks, and counts the reasons"
            }
            Own::Queue => "Shows the settings and figures of a queue",
            Own::CreateQueue => "Makes a queue that exists even when it is empty, and shows it",
            Own::SetQueue => {
                "Changes settings of a queue, which is created if need be, and shows it"
            }
            Own::Topics => "Shows the topics with their members, page by page",
            Own::Schedules => "Shows the schedules, page by page",
            Own::Limits => "Shows the limits that several queues use together, page by page",
            Own::Batches => "Shows the batches, page by page",
            Own::OpenBatch => "Makes a batch that has no tasks yet, and shows it",
            Own::Multi => "Carries out several commands, all or none, at one moment",
            Own::Server => "Tells about the server, by section",
            Own::Connections => "Tells who is connected",
            Own::EndConnection => "Ends a connection",
            Own::Events => "Tells each second what happens, as server-sent events",
            Own::History => "Shows the figures of the last 15 minutes, one a second",
            Own::BeginBackup => {
                "Begins a backup: tells which segments of the journals belong to it"
            }
            Own::Segment => "Shows the bytes of a segment of a backup, or a range of them",
            Own::EndBackup => "Ends a backup, whose files are no longer kept",
        },
        Does::Command(..) => route.spec().summary,
    }
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "operationId": operation_id(route),
        "tags": [group(route)],
        "summary": summary(route),
        "parameters": parameters(route),
        "responses": responses(route),
    });
    if let Some(body) = request_body(route) {
        operation["requestBody"] = body;
    }
    operation
}

fn operation_id(route: &Route) -> String {
    let mut id = route.method.as_str().to_ascii_lowercase();
    for part in route.path.split('/').filter(|part| !part.is_empty()) {
        let by = if part.starts_with('{') { "_by_" } else { "_" };
        id.push_str(by);
        id.push_str(part.trim_matches(['{', '}']));
    }
    match route.verb {
        Some(verb) => format!("{id}_{verb}"),
        None => id,
    }
}

/// The words before the options that are given by name: each with whether it is an array.
pub(super) fn fields_of(route: &Route) -> Vec<(&'static str, bool)> {
    let field = |word: &Word| match word {
        Word::Field(name) => Some((*name, false)),
        Word::Fields(name) => Some((*name, true)),
        _ => None,
    };
    route.words.iter().filter_map(field).collect()
}

/// The words without a value that a route has besides its options.
pub(super) fn flags_of(route: &Route) -> &'static [&'static str] {
    match route.does {
        Does::Own(Own::Lines) => &["atomic"],
        Does::Own(Own::Tasks) => &["peek"],
        Does::Own(Own::Queues) => &["desc"],
        _ if route.words.contains(&Word::Side) => &["in", "out"],
        _ => &[],
    }
}

fn parameters(route: &Route) -> Value {
    let mut parameters = Vec::new();
    for segment in route.path.split('/') {
        let name = segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}'));
        let Some(name) = name else { continue };
        let mut schema = json!({"type": "string", "minLength": 1});
        if ["connection", "shard", "segment"].contains(&name) {
            schema = json!({"type": "integer", "minimum": 0});
        }
        parameters.push(json!({"name": name, "in": "path", "required": true, "schema": schema}));
    }
    for option in options_of(route) {
        let name = option.word.to_ascii_lowercase();
        parameters
            .push(json!({"name": name, "in": "query", "schema": option_schema(option, true)}));
    }
    for flag in flags_of(route) {
        parameters.push(json!({"name": flag, "in": "query", "schema": {"type": "boolean"}}));
    }
    if let Does::Own(Own::Events | Own::History) = route.does {
        let schema = json!({"type": "string"});
        parameters.push(json!({"name": "queue", "in": "query", "schema": schema}));
    }
    if route.does == Does::Own(Own::Segment) {
        let schema = json!({"type": "string"});
        parameters.push(json!({"name": "Range", "in": "header", "schema": schema}));
    }
    if route.body == Body::Payload && route.spec().name == "PUT" {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "schema": {"type": "string"},
        }));
    }
    if route.body == Body::Payload {
        let schema = json!({"type": "string", "enum": ["empty"]});
        parameters.push(json!({"name": "payload", "in": "query", "schema": schema}));
    }
    Value::Array(parameters)
}

/// Returns what an array of two such values is.
fn two(item: &Value) -> Value {
    json!({"type": "array", "items": item, "minItems": 2, "maxItems": 2})
}

/// Returns what the values of an option are.
pub(super) fn option_schema(option: Opt, in_query: bool) -> Value {
    let or_none = |schema: Value| {
        let none = if in_query {
            json!({"type": "string", "enum": ["NONE"]})
        } else {
            json!({"type": "null"})
        };
        json!({"anyOf": [schema, none]})
    };
    let Some(kind) = option.value else { return json!({"type": "boolean"}) };
    let ms = json!({"type": "integer", "minimum": 0});
    match kind {
        "ms" if option.word == "WAIT" => json!({"type": "integer", "minimum": -1}),
        "ms" => ms,
        "ms|NONE" => or_none(ms),
        "n" => json!({"type": "integer", "minimum": option.least()}),
        "low high" => two(&json!({"type": "integer", "format": "int64"})),
        "name pattern" => two(&json!({"type": "string"})),
        OWN_LIMIT => limit_or_word(&["none", "default"]),
        OWN_RATE => json!({"type": "string"}),
        LIMIT_OR_NONE => {
            let mut limit = limit_or_word(&["none"]);
            if let (Some(any), false) = (limit["anyOf"].as_array_mut(), in_query) {
                any.push(json!({"type": "null"}));
            }
            limit
        }
        RATE_OR_NO_RATE if in_query => json!({"type": "string"}),
        RATE_OR_NO_RATE => json!({"type": ["string", "null"]}),
        HEADERS_FORM => schemas::headers(),
        AFTER_FORM if in_query => json!({"type": "array", "items": {"type": "string"}}),
        AFTER_FORM => json!({"type": "array", "items": schemas::named("Bytes"), "minItems": 1}),
        "number" => json!({"type": "integer", "minimum": 0}),
        "n|NONE" => or_none(json!({"type": "integer", "format": "int64"})),
        "unix-ms" => json!({"anyOf": [ms, {"type": "string", "format": "date-time"}]}),
        kind if kind.contains('|') => {
            json!({"type": "string", "enum": kind.split('|').collect::<Vec<_>>()})
        }
        kind => {
            debug_assert!(is_bytes(kind) || !is_number(kind));
            json!({"type": "string"})
        }
    }
}

fn request_body(route: &Route) -> Option<Value> {
    let content = match route.body {
        Body::None => return None,
        Body::Payload => {
            let any = json!({"schema": {"type": "string"}});
            json!({"application/octet-stream": any, "text/plain": any})
        }
        Body::Json => json!({"application/json": {"schema": body_schema(route)}}),
        Body::Lines => json!({"application/x-ndjson": {"schema": {"type": "string"}}}),
    };
    let required = route.does == Does::Own(Own::Multi) || !fields_of(route).is_empty();
    Some(json!({"required": required && route.body == Body::Json, "content": content}))
}

/// Returns what an object in the body is.
fn body_schema(route: &Route) -> Value {
    match route.does {
        Does::Own(Own::Multi) => return schemas::named("Multi"),
        Does::Own(Own::CreateQueue | Own::SetQueue) => return schemas::named("Settings"),
        _ => {}
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, is_array) in fields_of(route) {
        let schema = match (name, is_array) {
            (name, true) => json!({"type": "array", "minItems": 1, "items": item_of(name)}),
            ("state", _) => json!({"type": "string", "enum": ["R", "W", "B", "Z", "D"]}),
            _ => json!({"type": "string"}),
        };
        properties.insert(name.to_owned(), schema);
        required.push(name);
    }
    for option in options_of(route) {
        properties.insert(option.word.to_ascii_lowercase(), option_schema(option, false));
    }
    for flag in flags_of(route) {
        properties.insert((*flag).to_owned(), json!({"type": "boolean"}));
    }
    if route.has_done() {
        properties.insert("done".to_owned(), schemas::done());
    }
    json!({"type": "object", "properties": properties, "required": required})
}

/// Returns what the items of an array are: receipts are text, names may be any bytes.
fn item_of(name: &str) -> Value {
    if name == "receipts" { json!({"type": "string"}) } else { schemas::named("Bytes") }
}

fn problem(description: &str) -> Value {
    let schema = schemas::named("Problem");
    json!({"description": description, "content": {"application/problem+json": {"schema": schema}}})
}

fn responses(route: &Route) -> Value {
    let mut responses = Map::new();
    for (status, description, schema) in of_form(route) {
        let mut response = json!({"description": description});
        if let Some((media_type, schema)) = schema {
            response["content"] = json!({media_type: {"schema": schema}});
        }
        if status == 200 && [Form::Task, Form::Tasks].contains(&route.form) {
            let one = route.form == Form::Task || !route.path.starts_with("/take");
            if one {
                response["content"]["application/octet-stream"] = json!({"schema": {}});
            }
        }
        responses.insert(status.to_string(), response);
    }
    let (has_body, is_segment) = (route.body != Body::None, route.does == Does::Own(Own::Segment));
    for (status, description, applies) in [
        (400, "The request makes no sense", true),
        (401, "Nobody has signed in, on a server with users", true),
        (403, "The user may not do this, or a page of another origin asks for a change", true),
        (404, "There is no such thing", true),
        (408, "The body did not arrive in time", has_body),
        (409, "The state does not allow it", true),
        (410, "The files of the backup were given up", is_segment),
        (413, "It is too large", has_body),
        (414, "The target is too long", true),
        (415, "The body has the wrong type", has_body),
        (416, "The segment has no such bytes", is_segment),
        (421, "The request is for another host", true),
        (429, "A bound is reached", true),
        (431, "The head is too large", true),
        (503, "It cannot be answered at the moment", true),
    ] {
        if applies {
            responses.insert(status.to_string(), problem(description));
        }
    }
    responses["503"]["headers"] = json!({
        "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds"},
    });
    Value::Object(responses)
}

#[test]
fn document_is_that_of_the_tables() {
    expect_file!["../api/openapi.json"].assert_eq(&printed(&openapi(), 2));
}

/// Returns an object as JSON, each member on its own line down to this depth.
fn printed(value: &Value, depth: usize) -> String {
    match value.as_object().filter(|_| depth > 0) {
        None => value.to_string(),
        Some(members) => {
            let member = |(name, value): (&String, &Value)| {
                // The schemas lie one deeper than the paths.
                let depth = if name == "components" { depth } else { depth - 1 };
                format!("{}:{}", json!(name), printed(value, depth))
            };
            format!("{{\n{}\n}}", members.iter().map(member).collect::<Vec<_>>().join(",\n"))
        }
    }
}

#[test]
fn every_command_has_a_path() {
    // What belongs to a connection, which means nothing over HTTP, or describes RESP itself.
    let without = [
        "SUBSCRIBE",
        "START",
        "UNSUBSCRIBE",
        "CREDIT",
        "READY",
        "DISCARD",
        "WATCH",
        "UNWATCH",
        "PING",
        "ECHO",
        "HELLO",
        "AUTH",
        "QUIT",
        "RESET",
        "CLIENT ID",
        "CLIENT SETNAME",
        "CLIENT GETNAME",
        "CLIENT SETINFO",
        "CLIENT CANCELS",
        "COMMAND",
        "COMMAND COUNT",
        "COMMAND DOCS",
        "COMMAND GETKEYS",
        "COMMAND INFO",
        "COMMAND LIST",
        "CLUSTER SLOTS",
        "CLUSTER SHARDS",
        "CLUSTER NODES",
        "CLUSTER INFO",
        "CLUSTER MYID",
        "CLUSTER KEYSLOT",
        "CLUSTER ADMIN",
        // Over HTTP each request says who asks.
        "ACL WHOAMI",
        "ACL USERS",
        "ACL LIST",
        "ACL DRYRUN",
        // The words of beanstalkd for DIG and PLOW.
        "KICK",
        // The transport of `pinpriq export` and `import`.
        "EXPORT",
        "IMPORT",
    ];
    for spec in TABLE {
        let name = spec.full_name();
        let has_path = ROUTES.iter().any(|route| route.commands().contains(&&*name));
        assert_ne!(has_path, without.contains(&&*name), "{name}");
    }
}

#[test]
fn every_route_names_what_there_is() {
    let mut ids = Vec::new();
    for route in &*ROUTES {
        if !route.commands().is_empty() {
            route.spec();
        }
        let id = operation_id(route);
        assert!(!ids.contains(&id), "{id} is there twice");
        ids.push(id);
    }
}

#[test]
fn references_lead_somewhere() {
    let document = openapi();
    let text = document.to_string();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("\"#/components/schemas/") {
        rest = &rest[at + "\"#/components/schemas/".len()..];
        let name = &rest[..rest.find('"').unwrap()];
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
}
