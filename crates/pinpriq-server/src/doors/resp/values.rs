//! Writes single values of replies: numbers, moments, identities of tasks.

use pinpriq_proto::fields::Value;
use pinpriq_proto::fields::told::{ATTEMPT, Holder, Told};
use pinpriq_proto::request::parts::receipt_numbers;
use pinpriq_proto::task::{StateKind, TaskId, headers};
use pinpriq_proto::time::Timestamp;
use pinpriq_proto::wire::resp::Writer;

pub(super) fn task_id(writer: &mut Writer<'_>, id: &TaskId) {
    match id {
        TaskId::Number(number) => writer.bulk_number(*number),
        TaskId::Uuid(_) => writer.bulk(id.to_string().as_bytes()),
        TaskId::Given(bytes) => writer.bulk(bytes),
    }
}

pub(super) fn state_letter(writer: &mut Writer<'_>, state: Option<StateKind>) {
    let letter = state.map_or('X', StateKind::letter);
    writer.bulk(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

pub(super) fn moment(writer: &mut Writer<'_>, at: Option<Timestamp>) {
    match at {
        Some(at) => whole(writer, at.ms()),
        None => writer.null(),
    }
}

/// Writes the fields of a lease, a member or a schedule.
pub(super) fn write_fields<S>(
    writer: &mut Writer<'_>,
    fields: &[Told<S>],
    (of, by): (&S, &Holder),
) {
    writer.map(fields.len());
    for field in fields {
        writer.bulk(field.name.as_bytes());
        value(writer, (field.read)(of, by));
    }
}

/// Writes the value of a field.
pub(super) fn value(writer: &mut Writer<'_>, value: Value<'_>) {
    match value {
        Value::Missing => writer.null(),
        Value::Bytes(bytes) => writer.bulk(bytes),
        Value::Id(id) => task_id(writer, id),
        Value::Receipt(it) => writer.bulk_numbers(&receipt_numbers(it), b'-'),
        Value::State(state) => state_letter(writer, Some(state)),
        Value::Integer(number) => writer.integer(number),
        Value::Number(number) => whole(writer, number),
        Value::Moment(at) => whole(writer, at.ms()),
        Value::Span(span) => whole(writer, span.ms()),
        Value::Address(address) => writer.bulk(address.to_string().as_bytes()),
        Value::None => writer.bulk(b"none"),
        Value::Truth(truth) => writer.bulk(if truth { b"yes" } else { b"no" }),
        Value::Rate(rate) => writer.bulk(rate.to_string().as_bytes()),
        Value::Names(names) => {
            writer.array(names.len());
            for name in names {
                writer.bulk(name);
            }
        }
        Value::Attempts(attempts) => {
            writer.array(attempts.len());
            for attempt in attempts {
                write_fields(writer, &ATTEMPT, (attempt, &Holder::default()));
            }
        }
        Value::Headers(bytes) => {
            writer.map(headers::decode(bytes).count());
            for (name, value) in headers::decode(bytes) {
                writer.bulk(name);
                writer.bulk(value);
            }
        }
    }
}

/// Writes a number. RESP's integers are signed, but no count comes near their limit.
pub(super) fn whole(writer: &mut Writer<'_>, number: u64) {
    writer.integer(i64::try_from(number).unwrap_or(i64::MAX));
}
