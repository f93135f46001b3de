//! Records of exports as JSON: what each field is called, and how it is written. Reading is in the
//! folder.
//!
//! Bytes are a string if they are valid UTF-8 and short as such. Others are in Base64, and the name
//! of the field then ends with `_base64`. Fields that say the usual are left out. Moments and
//! durations are in milliseconds. What a record does to a server is decided by the engine.

mod reading;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_proto::change::ScheduleRecord;
use pinpriq_proto::command::Assign;
use pinpriq_proto::export::QueueExported;
use pinpriq_proto::fields::told::{ATTEMPT, Holder, Told};
use pinpriq_proto::fields::{Carried, Seen, Value, carried};
use pinpriq_proto::schedule::Recurrence;
use pinpriq_proto::settings::{Settings, Shown};
use pinpriq_proto::shares::{Own, ShareRecord};
use pinpriq_proto::task::history::Attempt;
use pinpriq_proto::task::{COST_USUAL, Retries, TaskId, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::WindowRecord;
use serde::Serialize;

pub(super) use self::reading::{Record, record};
use crate::doors::json::{Object, item, object};
use crate::figures::stats::{paused_until, paused_word};
use crate::plain::plain;

/// Returns a record of this kind.
fn record_of(kind: &str, write: impl FnOnce(&mut Object<'_>)) -> String {
    let mut out = Vec::new();
    object(&mut out, |it| write(it.set("type", kind)));
    String::from_utf8(out).unwrap_or_default()
}

/// Writes bytes as text, or as Base64 if they are no text or would take more than twice the room as
/// such, which control characters do.
fn put_bytes(it: &mut Object<'_>, name: &str, bytes: &[u8]) {
    let text = str::from_utf8(bytes).ok().map(|text| {
        // An export may be looked at on a terminal.
        plain(&serde_json::Value::from(text).to_string()).into_owned()
    });
    match text.filter(|text| text.len() <= 2 * bytes.len() + 2) {
        Some(text) => it.member(name, |out| out.extend_from_slice(text.as_bytes())),
        None => it.set(&format!("{name}_base64"), STANDARD.encode(bytes)),
    };
}

fn put_given_bytes(it: &mut Object<'_>, name: &str, bytes: Option<&[u8]>) {
    if let Some(bytes) = bytes {
        put_bytes(it, name, bytes);
    }
}

/// Writes a value if there is one.
fn put_given(it: &mut Object<'_>, name: &str, value: Option<impl Serialize>) {
    if value.is_some() {
        it.set(name, value);
    }
}

/// Settings and pause of a queue.
pub(super) fn queue(queue: &QueueExported) -> String {
    let QueueExported { name, settings, paused } = queue;
    record_of("queue", |it| {
        put_bytes(it, "queue", name);
        if let Some(settings) = settings {
            it.object("settings", |it| put_settings(it, settings));
        }
        it.set("paused", paused_word(*paused));
        for (name, until) in paused_until(*paused) {
            put_given(it, name, until.map(Timestamp::ms));
        }
    })
}

fn put_settings(it: &mut Object<'_>, settings: &Settings) {
    for (setting, value) in settings.changed() {
        for (name, shown) in setting.shown(value) {
            let name = name.to_ascii_lowercase();
            match shown {
                // It is a length that does not go with the word.
                Shown::None if name != setting.name.to_ascii_lowercase() => {}
                Shown::None => _ = it.set(&name, ()),
                Shown::Number(number) => _ = it.set(&name, number),
                Shown::Text(text) => put_bytes(it, &name, text),
                Shown::Rate(rate) => _ = it.set(&name, rate.to_string()),
            }
        }
    }
}

/// A task, and the end of the window of its unique key.
pub(super) fn task(task: &TaskRecord, unique_until: Option<Timestamp>) -> String {
    let seen = Seen { unique_until, ..Seen::of(task) };
    record_of("task", |it| {
        for (field, Carried { name, usual, .. }) in carried() {
            let value = (field.read)(&seen);
            if value != *usual {
                put_value(it, name, value);
            }
        }
    })
}

fn put_value(it: &mut Object<'_>, name: &str, value: Value<'_>) {
    match value {
        Value::Bytes(bytes) => put_bytes(it, name, bytes),
        Value::Id(id) => put_bytes(it, name, &id.text()),
        Value::State(state) => _ = it.set(name, state.word()),
        Value::Integer(number) => _ = it.set(name, number),
        Value::Number(number) => _ = it.set(name, number),
        Value::Moment(at) => _ = it.set(name, at.ms()),
        Value::Truth(truth) => _ = it.set(name, truth),
        Value::Span(span) => _ = it.set(name, span.ms()),
        Value::Headers(headers) => _ = it.headers(name, headers),
        Value::Names(names) => {
            it.array(name, names, |out, name| item(out, name));
        }
        Value::Attempts(attempts) => {
            it.array(name, attempts, |out, attempt| object(out, |it| put_attempt(it, attempt)));
        }
        // Neither leases nor clients leave the server.
        Value::Missing | Value::None | Value::Receipt(_) | Value::Address(_) | Value::Rate(_) => {
            it.set(name, ());
        }
    }
}

fn put_attempt(it: &mut Object<'_>, attempt: &Attempt) {
    let nobody = Holder::default();
    for Told { name, read, .. } in &ATTEMPT {
        let value = read(attempt, &nobody);
        if value != Value::Missing {
            put_value(it, name, value);
        }
    }
}

/// A window that has outlived its task.
pub(super) fn window(window: &WindowRecord) -> String {
    let WindowRecord { number: _, queue, key, id, until } = window;
    record_of("window", |it| {
        put_bytes(it, "queue", queue);
        put_bytes(it, "unique", key);
        put_bytes(it, "id", &id.text());
        it.set("unique_until", until.ms());
    })
}

/// The rules of a share.
pub(super) fn share(record: &ShareRecord) -> String {
    let ShareRecord { number: _, queue, share, rules } = record;
    record_of("share", |it| {
        put_bytes(it, "queue", queue);
        put_bytes(it, "share", share);
        if rules.weight != 1 {
            it.set("weight", rules.weight);
        }
        match rules.limit {
            Own::Default => {}
            Own::Is(limit) => _ = it.set("limit", limit),
        }
        match rules.rate {
            Own::Default => {}
            Own::Is(rate) => _ = it.set("rate", rate.map(|rate| rate.to_string())),
        }
    })
}

fn put_retries(it: &mut Object<'_>, retries: Retries) {
    let Retries { attempts, backoff, backoff_max } = retries;
    if let Assign::To(attempts) = attempts {
        it.set("attempts_max", attempts);
    }
    if let Assign::To(backoff) = backoff {
        it.set("backoff_ms", backoff.map(Span::ms));
    }
    put_given(it, "backoff_max_ms", backoff_max.map(Span::ms));
}

/// A schedule, and how far it has come.
pub(super) fn schedule(schedule: &ScheduleRecord) -> String {
    let ScheduleRecord { number: _, name, plan, course } = schedule;
    record_of("schedule", |it| {
        put_bytes(it, "queue", &plan.queue);
        put_bytes(it, "schedule", name);
        match &plan.form {
            Recurrence::Every { every, anchor } => {
                it.set("every_ms", every.ms()).set("at", anchor.ms());
            }
            Recurrence::Cron { expression, zone } => {
                put_bytes(it, "cron", expression);
                put_given_bytes(it, "zone", zone.as_deref());
            }
        }
        if plan.priority != Some(0) {
            it.set("priority", plan.priority);
        }
        put_given_bytes(it, "key", plan.terms.key.as_deref());
        put_given(it, "ttl_ms", plan.ttl.map(Span::ms));
        put_given(it, "ttr_ms", plan.terms.ttr.map(Span::ms));
        put_given_bytes(it, "share", plan.terms.share().map(|share| &**share));
        if plan.terms.cost() != COST_USUAL {
            it.set("cost", plan.terms.cost());
        }
        put_retries(it, plan.terms.retries());
        if let Some(headers) = plan.terms.headers() {
            it.headers("headers", headers);
        }
        it.set("on_missed", plan.on_missed.word()).set("overlap", plan.overlap.word());
        it.set("paused", course.paused).set("fired", course.fired).set("missed", course.missed);
        put_given_bytes(it, "last_id", course.last_id.as_ref().map(TaskId::text).as_deref());
        put_given(it, "last_slot", course.last_slot.map(Timestamp::ms));
        it.set("done_until", course.done_until.ms());
        put_bytes(it, "payload", &plan.payload);
    })
}

#[cfg(test)]
mod tests;
