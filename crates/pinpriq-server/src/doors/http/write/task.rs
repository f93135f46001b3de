//! A task as a JSON object, and as header fields beside its payload.

use std::fmt::Write as _;

use pinpriq_proto::task::{State, TaskId, TaskRecord};

use super::super::head::{Content, Head};
use super::super::json::{Object, moment_text};
use crate::clients::about::at_home;
use crate::clients::contacts::Contacts;
use crate::doors::resp::task_moments;
use pinpriq_proto::request::parts::receipt_numbers;

/// Header fields whose value would be longer are left out.
const FIELD_BYTES_MAX: usize = 4 << 10;

/// Writes everything that is known about a task. The receipt is left out if it is hidden.
pub(super) fn write(it: &mut Object<'_>, record: &TaskRecord, hidden: bool, contacts: &Contacts) {
    let (terms, progress) = (&record.terms, &record.progress);
    it.bytes("queue", &record.queue);
    if let Some(lane) = &record.lane {
        it.bytes("member", &lane.member);
    }
    it.id("id", &record.id);
    if let Some(receipt) = receipt(record, hidden) {
        it.text("receipt", &receipt);
    }
    it.bytes("payload", &record.payload);
    if let Some(key) = &terms.key {
        it.bytes("key", key);
    }
    if let Some(priority) = progress.priority {
        it.number("priority", priority);
    }
    it.text("state", progress.state.kind().letter().encode_utf8(&mut [0; 4]));
    it.number("attempts", progress.attempts).number("failures", progress.failures);
    if let Some(reason) = &progress.reason {
        it.bytes("reason", reason);
    }
    for (name, at) in task_moments(record) {
        if let Some(at) = at {
            it.moment(name, at);
        }
    }
    holder(it, record, contacts);
    if let Some(origin) = record.origin() {
        it.bytes("origin_queue", &origin.queue).id("origin_id", &origin.id);
        it.moment("origin_put_at", origin.put_at);
        it.number("origin_attempts", origin.attempts).number("origin_failures", origin.failures);
        it.moment("origin_at", origin.at);
    }
    if let Some(scheduled) = record.scheduled() {
        it.bytes("schedule", &scheduled.schedule);
        if let Some(slot) = scheduled.slot {
            it.moment("slot", slot);
        }
    }
}

/// Writes which client holds the task, with its name and address while it is connected.
fn holder(it: &mut Object<'_>, record: &TaskRecord, contacts: &Contacts) {
    let State::Taken(lease) = &record.progress.state else { return };
    let Some(holder) = lease.client().map(at_home) else { return };
    it.number("client", holder.0);
    let Some(contact) = contacts.find(holder) else { return };
    if !contact.name.is_empty() {
        it.bytes("client_name", &contact.name);
    }
    it.text("client_address", &contact.address.to_string());
}

fn receipt(record: &TaskRecord, hidden: bool) -> Option<String> {
    let receipt = record.receipt().filter(|_| !hidden)?;
    Some(receipt_numbers(receipt).map(|number| number.to_string()).join("-"))
}

/// Returns the head of an answer whose body is the payload of this task.
pub(super) fn head(record: &TaskRecord, hidden: bool) -> Head {
    let (terms, progress) = (&record.terms, &record.progress);
    let id = match &record.id {
        TaskId::Given(bytes) => escaped(bytes),
        id => id.to_string(),
    };
    let lease_until = match &progress.state {
        State::Taken(lease) => lease.deadline.map(moment_text),
        _ => None,
    };
    let fields = [
        ("pinpriq-id", Some(id)),
        ("pinpriq-receipt", receipt(record, hidden)),
        ("pinpriq-queue", Some(escaped(&record.queue))),
        ("pinpriq-key", terms.key.as_ref().map(|key| escaped(key))),
        ("pinpriq-priority", progress.priority.map(|priority| priority.to_string())),
        ("pinpriq-attempts", Some(progress.attempts.to_string())),
        ("pinpriq-failures", Some(progress.failures.to_string())),
        ("pinpriq-state", Some(progress.state.kind().letter().to_string())),
        ("pinpriq-lease-until", lease_until),
    ];
    let mut head = Head::new(200, Content::Octets);
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
    head.fields = fields.filter(|(_, value)| value.len() <= FIELD_BYTES_MAX).collect();
    head
}

/// Returns bytes as a path has them: all but unreserved characters are percent-encoded.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}
