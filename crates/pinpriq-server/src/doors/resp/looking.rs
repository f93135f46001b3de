//! The commands that look at a whole queue, and how their replies are written.

use pinpriq_proto::looking::{Explanation, LeasePlace, LeaseShown, Reason};
use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Timestamp;
use pinpriq_proto::wire::resp::Writer;

use super::values::{bytes, moment, state_letter, task_id, whole};
use crate::clients::about::at_home;
use crate::clients::contacts::Contacts;
use pinpriq_proto::request::cursors::lease::cursor_after;

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
