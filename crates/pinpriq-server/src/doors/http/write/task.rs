//! A task as a JSON object, and as header fields beside its payload.

use std::borrow::Cow;
use std::fmt::Write as _;

use pinpriq_proto::fields::told::{ATTEMPT, Holder, Told};
use pinpriq_proto::fields::{Field, Seen, TASK, Value};
use pinpriq_proto::request::parts::receipt_numbers;
use pinpriq_proto::task::{TaskRecord, headers};

use super::super::exchange::{Content, FIELDS, HEADER_FIELD, Head};
use crate::clients::contacts::Contacts;
use crate::doors::json::{Object, item, moment_text, object};

/// Header fields whose value would be longer are left out.
const FIELD_BYTES_MAX: usize = 4 << 10;

/// Writes everything that is known about a task. The receipt is left out or shown, or hidden where
/// one task is asked for.
pub(super) fn write(
    it: &mut Object<'_>,
    record: &TaskRecord,
    hidden: Option<bool>,
    contacts: &Contacts,
) {
    let fields = TASK.iter().filter(|field| field.shown.is_in(hidden.is_none()));
    contacts.see(record, hidden.unwrap_or(true), |seen| {
        for Field { name, read, .. } in fields {
            value(it, name, read(seen));
        }
    });
}

/// Writes the fields of a lease, a schedule, a batch or the like.
pub(super) fn write_fields<S>(it: &mut Object<'_>, fields: &[Told<S>], (of, by): (&S, &Holder)) {
    for field in fields {
        value(it, field.name, (field.read)(of, by));
    }
}

/// Writes the value of a field, if it has one.
pub(super) fn value(it: &mut Object<'_>, name: &str, value: Value<'_>) {
    match value {
        Value::Missing => it,
        Value::Bytes(bytes) => it.bytes(name, bytes),
        Value::Id(id) => it.bytes(name, &id.text()),
        Value::Integer(number) => it.set(name, number),
        Value::Number(number) => it.set(name, number),
        Value::Span(span) => it.set(name, span.ms()),
        Value::Moment(at) => it.moment(name, at),
        Value::Truth(truth) => it.set(name, truth),
        Value::None => it.set(name, ()),
        Value::Headers(headers) => it.headers(name, headers),
        Value::Attempts(attempts) => it.array(name, attempts, |out, attempt| {
            object(out, |it| write_fields(it, &ATTEMPT, (attempt, &Holder::default())));
        }),
        Value::Names(names) => it.array(name, names, |out, one| item(out, one)),
        value => it.set(name, text(value)),
    };
}

/// Returns the head of an answer whose body is the payload of this task.
pub(super) fn head(record: &TaskRecord, hidden: bool) -> Head {
    let seen = Seen { hides_receipt: hidden, ..Seen::of(record) };
    let headers = headers::decode(record.terms.header_bytes());
    let mut head = Head::new(200, Content::Octets);
    head.fields = FIELDS
        .into_iter()
        .filter_map(|(header, field)| {
            let value = (Field::named(field)?.read)(&seen);
            (value != Value::Missing).then(|| (Cow::Borrowed(header), text(value)))
        })
        .chain(headers.map(|(name, value)| {
            let name = String::from_utf8_lossy(name);
            (Cow::Owned(format!("{HEADER_FIELD}{name}")), escaped(value))
        }))
        .filter(|(_, text)| text.len() <= FIELD_BYTES_MAX)
        .collect();
    head
}

/// Returns a value as a header field has it.
fn text(value: Value<'_>) -> String {
    match value {
        Value::Missing => String::new(),
        Value::Bytes(bytes) => escaped(bytes),
        Value::Id(id) => escaped(&id.text()),
        Value::Receipt(receipt) => {
            receipt_numbers(receipt).map(|number| number.to_string()).join("-")
        }
        Value::State(state) => state.letter().to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Moment(at) => moment_text(at),
        Value::Span(span) => span.ms().to_string(),
        Value::Address(address) => address.to_string(),
        Value::Truth(truth) => truth.to_string(),
        Value::None => "none".to_owned(),
        Value::Rate(rate) => rate.to_string(),
        Value::Headers(_) => unreachable!("each header has a field of its own"),
        Value::Attempts(_) | Value::Names(_) => unreachable!("lists are in no header field"),
    }
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
