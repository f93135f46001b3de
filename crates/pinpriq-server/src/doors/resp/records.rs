//! Records of exports as JSON: what each field is called, and how it is written. Reading is in the
//! folder.
//!
//! Bytes are a string if they are valid UTF-8 and short as such. Others are in Base64, and the name
//! of the field then ends with `_base64`. Fields that say the usual are left out. Moments and
//! durations are in milliseconds. What a record does to a server is decided by the engine.

mod reading;

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_proto::change::ScheduleRecord;
use pinpriq_proto::export::QueueExported;
use pinpriq_proto::fields::{Carried, Seen, Value, carried};
use pinpriq_proto::schedule::Form;
use pinpriq_proto::settings::{Settings, Shown};
use pinpriq_proto::task::{TaskId, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::WindowRecord;

pub(super) use self::reading::{Record, record};
use crate::figures::stats::{paused_until, paused_word};
use crate::plain::plain;

/// An object that is being written, field by field.
struct Object {
    text: String,
}

impl Object {
    fn of(kind: &str) -> Self {
        Self { text: format!("{{\"type\":\"{kind}\"") }
    }

    fn name(&mut self, name: &str) {
        let comma = if self.text.ends_with('{') { "" } else { "," };
        let _ = write!(self.text, "{comma}\"{name}\":");
    }

    /// Writes bytes as text, or as Base64 if they are no text or would take more than twice the
    /// room as such, which control characters do.
    fn bytes(&mut self, name: &str, bytes: &[u8]) {
        let text = str::from_utf8(bytes).ok().map(|text| {
            // An export may be looked at on a terminal.
            plain(&serde_json::Value::from(text).to_string()).into_owned()
        });
        match text.filter(|text| text.len() <= 2 * bytes.len() + 2) {
            Some(text) => {
                self.name(name);
                self.text.push_str(&text);
            }
            None => {
                let _ = write!(self.text, ",\"{name}_base64\":\"{}\"", STANDARD.encode(bytes));
            }
        }
    }

    fn maybe_bytes(&mut self, name: &str, bytes: Option<&[u8]>) {
        if let Some(bytes) = bytes {
            self.bytes(name, bytes);
        }
    }

    fn id(&mut self, name: &str, id: &TaskId) {
        self.bytes(name, &id.text());
    }

    fn number(&mut self, name: &str, number: impl std::fmt::Display) {
        self.name(name);
        let _ = write!(self.text, "{number}");
    }

    fn moment(&mut self, name: &str, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.number(name, at.ms());
        }
    }

    fn span(&mut self, name: &str, span: Option<Span>) {
        if let Some(span) = span {
            self.number(name, span.ms());
        }
    }

    /// Writes the priority, unless it is 0. None is `null`.
    fn priority(&mut self, priority: Option<i64>) {
        match priority {
            Some(0) => {}
            Some(priority) => self.number("priority", priority),
            None => self.number("priority", "null"),
        }
    }

    fn word(&mut self, name: &str, word: &str) {
        self.number(name, format_args!("\"{word}\""));
    }

    fn end(mut self) -> String {
        self.text.push('}');
        self.text
    }
}

/// Settings and pause of a queue.
pub(super) fn queue(queue: &QueueExported) -> String {
    let QueueExported { name, settings, paused } = queue;
    let mut object = Object::of("queue");
    object.bytes("queue", name);
    if let Some(settings) = settings {
        object.name("settings");
        object.text.push('{');
        put_settings(&mut object, settings);
        object.text.push('}');
    }
    object.word("paused", paused_word(*paused));
    for (name, until) in paused_until(*paused) {
        if let Some(at) = until {
            object.number(name, at.ms());
        }
    }
    object.end()
}

fn put_settings(object: &mut Object, settings: &Settings) {
    for (setting, value) in settings.changed() {
        for (name, shown) in setting.shown(value) {
            let name = name.to_ascii_lowercase();
            match shown {
                // It is a length that does not go with the word.
                Shown::None if name != setting.name.to_ascii_lowercase() => {}
                Shown::None => object.number(&name, "null"),
                Shown::Number(number) => object.number(&name, number),
                Shown::Text(text) => object.bytes(&name, text),
                Shown::Rate(rate) => object.word(&name, &rate.to_string()),
            }
        }
    }
}

/// A task, and the end of the window of its unique key.
pub(super) fn task(task: &TaskRecord, unique_until: Option<Timestamp>) -> String {
    let seen = Seen { unique_until, ..Seen::of(task) };
    let mut object = Object::of("task");
    for (field, Carried { name, usual, .. }) in carried() {
        match (field.read)(&seen) {
            value if value == *usual => {}
            Value::Bytes(bytes) => object.bytes(name, bytes),
            Value::Id(id) => object.id(name, id),
            Value::State(state) => object.word(name, state.word()),
            Value::Integer(number) => object.number(name, number),
            Value::Number(number) => object.number(name, number),
            Value::Moment(at) => object.number(name, at.ms()),
            Value::Span(span) => object.number(name, span.ms()),
            // Neither leases nor clients leave the server.
            Value::Missing | Value::Receipt(_) | Value::Address(_) | Value::Truth(_) => {
                object.number(name, "null");
            }
        }
    }
    object.end()
}

/// A window that has outlived its task.
pub(super) fn window(window: &WindowRecord) -> String {
    let WindowRecord { number: _, queue, key, id, until } = window;
    let mut object = Object::of("window");
    object.bytes("queue", queue);
    object.bytes("unique", key);
    object.id("id", id);
    object.moment("unique_until", Some(*until));
    object.end()
}

/// A schedule, and how far it has come.
pub(super) fn schedule(schedule: &ScheduleRecord) -> String {
    let ScheduleRecord { number: _, name, plan, course } = schedule;
    let mut object = Object::of("schedule");
    object.bytes("queue", &plan.queue);
    object.bytes("schedule", name);
    match &plan.form {
        Form::Every { every, anchor } => {
            object.span("every_ms", Some(*every));
            object.moment("at", Some(*anchor));
        }
        Form::Cron { expression, zone } => {
            object.bytes("cron", expression);
            object.maybe_bytes("zone", zone.as_deref());
        }
    }
    object.priority(plan.priority);
    object.maybe_bytes("key", plan.terms.key.as_deref());
    object.span("ttl_ms", plan.ttl);
    object.span("ttr_ms", plan.terms.ttr);
    object.word("on_missed", plan.on_missed.word());
    object.word("overlap", plan.overlap.word());
    object.number("paused", course.paused);
    object.number("fired", course.fired);
    object.number("missed", course.missed);
    if let Some(id) = &course.last_id {
        object.id("last_id", id);
    }
    object.moment("last_slot", course.last_slot);
    object.moment("done_until", Some(course.done_until));
    object.bytes("payload", &plan.payload);
    object.end()
}

#[cfg(test)]
mod tests;
