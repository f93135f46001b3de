//! Writes single values of replies: numbers, moments, identities of tasks.

use pinpriq_proto::task::{Bytes, StateKind, TaskId};
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

pub(super) fn bytes(writer: &mut Writer<'_>, bytes: Option<&Bytes>) {
    match bytes {
        Some(bytes) => writer.bulk(bytes),
        None => writer.null(),
    }
}

/// Writes a number. RESP's integers are signed, but no count comes near their limit.
pub(super) fn whole(writer: &mut Writer<'_>, number: u64) {
    writer.integer(i64::try_from(number).unwrap_or(i64::MAX));
}
