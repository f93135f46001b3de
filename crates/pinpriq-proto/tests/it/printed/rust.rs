//! Prints the task of the client for Rust.

use std::fmt::Write as _;

use pinpriq_proto::fields::{Field, FieldKind};

use super::{sentence, task_fields, wrapped};

const BEGIN: &str = "\
//! What the server tells about a task. Printed from its table of fields by `cargo test -p
//! pinpriq-proto printed`.

use std::collections::BTreeMap;
use std::time::SystemTime;

use pinpriq_proto::wire::resp::Value;

use super::{Attempt, Map, Origin, Own, State};
use crate::name::Name;

/// A task, and all that the server tells about it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Task {
";

const READ: &str = "    /// Where a dead letter comes from.
    pub origin: Option<Origin>,
}

impl Task {
    /// Reads the map that `WITHMETA` gives. Returns none if it is something else.
    pub(crate) fn read(map: &Value) -> Option<Self> {
        let map = Map(map);
        Some(Self {
";

pub(super) fn task() -> String {
    let mut text = BEGIN.to_owned();
    for field in task_fields() {
        let (of, _) = reading(field);
        let of = if field.always { of.to_owned() } else { format!("Option<{of}>") };
        text += &wrapped(&sentence(field.help), "    /// ", 100);
        let _ = writeln!(text, "    pub {}: {of},", field.name);
    }
    text += READ;
    for field in task_fields() {
        let (_, read) = reading(field);
        let must = match field.kind {
            // A server that knows none tells none.
            FieldKind::Headers | FieldKind::Truth | FieldKind::Attempts | FieldKind::Names => {
                ".unwrap_or_default()"
            }
            _ if field.always => "?",
            _ => "",
        };
        let _ = writeln!(text, "            {0}: map.{read}(\"{0}\"){must},", field.name);
    }
    text + "            origin: map.origin(),\n        })\n    }\n}\n"
}

/// The type of a field, and what reads it.
fn reading(field: &Field) -> (&'static str, &'static str) {
    match (field.name, field.kind) {
        ("key" | "share", _) | (_, FieldKind::Payload) => ("Vec<u8>", "bytes"),
        ("reason" | "client_name", _) | (_, FieldKind::Address) => ("String", "text"),
        (_, FieldKind::Bytes | FieldKind::Id | FieldKind::Receipt) => ("Name", "name"),
        (_, FieldKind::State) => ("State", "state"),
        (_, FieldKind::Integer) => ("i64", "integer"),
        (_, FieldKind::Count | FieldKind::Number) => ("u64", "number"),
        (_, FieldKind::Moment) => ("SystemTime", "moment"),
        (_, FieldKind::Span) => ("std::time::Duration", "span"),
        (_, FieldKind::NumberOrNone) => ("Own<u64>", "own_number"),
        (_, FieldKind::SpanOrNone) => ("Own<std::time::Duration>", "own_span"),
        (_, FieldKind::Truth) => ("bool", "truth"),
        (_, FieldKind::Headers) => ("BTreeMap<String, Name>", "headers"),
        (_, FieldKind::Attempts) => ("Vec<Attempt>", "attempts"),
        (_, FieldKind::Names) => ("Vec<Name>", "names"),
    }
}
