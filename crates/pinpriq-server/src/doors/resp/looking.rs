//! The commands that look at a whole queue, and how their replies are written.

use std::fmt::Write as _;

use pinpriq_proto::command::Command;
use pinpriq_proto::looking::{Explanation, LeasePlace, LeaseShown, Leases, Reason, Scan};
use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Timestamp;
use pinpriq_proto::wire::resp::Writer;

use super::call::{Call, Shape};
use super::queues::bytes_of_digits;
use super::values::{bytes, moment, state_letter, task_id, whole};
use crate::clients::about::at_home;
use crate::clients::contacts::Contacts;
use pinpriq_proto::request::fault::{Fault, shown};
use pinpriq_proto::request::options::{COUNT, CURSOR, KEY, MEMBER, STATE, WITHMETA};
use pinpriq_proto::request::parts::{self, number};

type Done = Result<(), Fault>;

/// The number of tasks or leases on a page if the request names none.
const PAGE: u64 = 100;

pub(super) fn explain(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    let id = parts.words.get(1).copied();
    call.ask(Shape::Plain, &Command::Explain { queue: parts.queue(), id })
}

pub(super) fn scan(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    let after = match parts.option(CURSOR) {
        Some(cursor) => number(cursor).ok_or_else(|| no_cursor(cursor))?,
        None => 0,
    };
    let scan = Scan {
        queue: parts.queue(),
        after,
        count: page(call)?,
        state: parts.option(STATE).map(parts::state).transpose()?,
        key: parts.option(KEY),
    };
    let shape = if parts.has(WITHMETA) { Shape::WithMeta } else { Shape::Plain };
    call.ask(shape, &Command::Scan(scan))
}

pub(super) fn leases(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    if parts.words.is_empty() && parts.has(MEMBER) {
        return Err(Fault::bad("LEASES of a lane names the topic first"));
    }
    let queue = (!parts.words.is_empty()).then(|| parts.queue());
    let after = parts.option(CURSOR).map(place_at).transpose()?.flatten();
    let after = after.as_ref().map(|place| LeasePlace {
        lane: place.lane,
        queue: place.queue.as_slice(),
        seq: place.seq,
    });
    call.ask(Shape::Plain, &Command::Leases(Leases { queue, after, count: page(call)? }))
}

pub(super) fn page(call: &Call<'_, '_>) -> Result<u32, Fault> {
    let count = call.parts.count(COUNT)?.unwrap_or(PAGE);
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Returns the cursor of the page after this place: the name of the queue in hexadecimal digits,
/// the number of the lane if it is one, and the seq.
pub(crate) fn cursor_after(place: &LeasePlace) -> String {
    let mut cursor = String::from("q");
    for byte in &*place.queue {
        let _ = write!(cursor, "{byte:02x}");
    }
    if let Some(lane) = place.lane {
        let _ = write!(cursor, "-{lane}");
    }
    let _ = write!(cursor, "-{}", place.seq);
    cursor
}

/// Returns the place that a cursor stands for, or `None` for the start.
fn place_at(cursor: &[u8]) -> Result<Option<LeasePlace<Vec<u8>>>, Fault> {
    if cursor == b"0" {
        return Ok(None);
    }
    let parsed = || {
        let mut parts = cursor.strip_prefix(b"q")?.split(|byte| *byte == b'-');
        let queue = bytes_of_digits(parts.next()?)?;
        let numbers: Vec<u64> = parts.map(number).collect::<Option<_>>()?;
        match numbers[..] {
            [seq] => Some(LeasePlace { lane: None, queue, seq }),
            [lane, seq] => Some(LeasePlace { lane: Some(lane), queue, seq }),
            _ => None,
        }
    };
    parsed().map(Some).ok_or_else(|| no_cursor(cursor))
}

pub(super) fn no_cursor(cursor: &[u8]) -> Fault {
    Fault::bad(format!(
        "{} is not a cursor: begin with 0 and go on with the one that was answered",
        shown(cursor)
    ))
}

pub(super) fn explanation(writer: &mut Writer<'_>, explanation: &Explanation) {
    let Explanation { id, state, since, reasons } = explanation;
    writer.map(4);
    writer.bulk(b"id");
    match id {
        Some(id) => task_id(writer, id),
        None => writer.null(),
    }
    writer.bulk(b"state");
    match state {
        Some(state) => state_letter(writer, Some(*state)),
        None => writer.null(),
    }
    writer.bulk(b"since");
    moment(writer, *since);
    writer.bulk(b"reasons");
    writer.array(reasons.len());
    for reason in reasons {
        reason_map(writer, reason);
    }
}

fn reason_map(writer: &mut Writer<'_>, reason: &Reason) {
    writer.map(1 + fields_of(reason));
    writer.bulk(b"code");
    writer.bulk(reason.code().as_bytes());
    match reason {
        Reason::Delayed { until } => field(writer, "until", |it| moment(it, Some(*until))),
        Reason::Taken { client, since, until } => {
            field(writer, "client", |it| holder(it, *client));
            field(writer, "since", |it| moment(it, *since));
            field(writer, "until", |it| moment(it, *until));
        }
        Reason::Buried { reason } => field(writer, "reason", |it| bytes(it, reason.as_ref())),
        Reason::Limit { taken, most } => {
            field(writer, "taken", |it| whole(it, *taken));
            field(writer, "n", |it| whole(it, *most));
        }
        Reason::Rate { next_at } => field(writer, "next_at", |it| moment(it, Some(*next_at))),
        Reason::Behind { at_least } => field(writer, "at_least", |it| whole(it, *at_least)),
        Reason::Expired
        | Reason::Paused
        | Reason::NoPriority
        | Reason::NoConsumer
        | Reason::Next => {}
    }
}

/// The number of fields of a reason apart from its code.
const fn fields_of(reason: &Reason) -> usize {
    match reason {
        Reason::Taken { .. } => 3,
        Reason::Limit { .. } => 2,
        Reason::Delayed { .. }
        | Reason::Buried { .. }
        | Reason::Rate { .. }
        | Reason::Behind { .. } => 1,
        Reason::Expired
        | Reason::Paused
        | Reason::NoPriority
        | Reason::NoConsumer
        | Reason::Next => 0,
    }
}

fn field(writer: &mut Writer<'_>, name: &str, value: impl FnOnce(&mut Writer<'_>)) {
    writer.bulk(name.as_bytes());
    value(writer);
}

fn holder(writer: &mut Writer<'_>, client: Option<ClientId>) {
    match client {
        Some(client) => whole(writer, at_home(client).0),
        None => writer.null(),
    }
}

/// Writes the start of a page of a scan: all but the array of its tasks.
pub(super) fn scanned_head(writer: &mut Writer<'_>, next: u64) {
    writer.array(2);
    writer.bulk_number(next);
}

pub(super) fn leases_page(
    (writer, contacts): (&mut Writer<'_>, &Contacts),
    leases: &[LeaseShown],
    next: Option<&LeasePlace>,
) {
    writer.array(2);
    match next {
        Some(place) => writer.bulk(cursor_after(place).as_bytes()),
        None => writer.bulk(b"0"),
    }
    writer.array(leases.len());
    for lease in leases {
        lease_map((&mut *writer, contacts), lease);
    }
}

fn lease_map((writer, contacts): (&mut Writer<'_>, &Contacts), lease: &LeaseShown) {
    let LeaseShown { place, member, id, holder: client, since, until } = lease;
    let contact = client.and_then(|client| contacts.find(at_home(client)));
    let name = contact.as_ref().map(|contact| &contact.name).filter(|name| !name.is_empty());
    writer.map(9);
    field(writer, "queue", |it| it.bulk(&place.queue));
    field(writer, "member", |it| bytes(it, member.as_ref()));
    field(writer, "id", |it| task_id(it, id));
    field(writer, "client", |it| holder(it, *client));
    field(writer, "name", |it| match name {
        Some(name) => it.bulk(name),
        None => it.null(),
    });
    field(writer, "address", |it| match &contact {
        Some(contact) => it.bulk(contact.address.to_string().as_bytes()),
        None => it.null(),
    });
    field(writer, "door", |it| match &contact {
        Some(contact) => it.bulk(contact.door.word().as_bytes()),
        None => it.null(),
    });
    let moments: [(&str, Option<Timestamp>); 2] = [("since", *since), ("until", *until)];
    for (word, at) in moments {
        field(writer, word, |it| moment(it, at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back_from_their_text() {
        for (lane, queue, seq) in
            [(None, &b"jobs"[..], 7), (Some(5), b"", u64::MAX), (None, &[0, 255, b'-'], 1)]
        {
            let text = cursor_after(&LeasePlace { lane, queue: queue.into(), seq });
            let place = LeasePlace { lane, queue: queue.to_vec(), seq };
            assert_eq!(place_at(text.as_bytes()), Ok(Some(place)), "{text}");
        }
        assert_eq!(place_at(b"0"), Ok(None));
        for wrong in
            ["", "1", "q", "q-", "q6", "q6-1", "q6a", "q6a-", "q6a-1-2-3", "x6a-1", "q6a-01"]
        {
            assert!(place_at(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
