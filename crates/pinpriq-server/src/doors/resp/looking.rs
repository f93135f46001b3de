//! The commands that look at a whole queue, and how their replies are written.

use pinpriq_proto::fields::told::{Holder, LEASE, SHARE};
use pinpriq_proto::looking::{Explanation, LeasePlace, LeaseShown, Reason};
use pinpriq_proto::request::cursors::name::cursor_after as name_cursor;
use pinpriq_proto::shares::ShareShown;
use pinpriq_proto::wire::resp::Writer;

use super::values::{moment, state_letter, task_id, value, write_fields};
use crate::clients::contacts::Contacts;
use pinpriq_proto::request::cursors::lease::cursor_after;

pub(super) fn explanation(writer: &mut Writer<'_>, explanation: &Explanation) {
    let Explanation { id, state, since, reasons, .. } = explanation;
    let etas = explanation.etas();
    writer.map(4 + etas.len());
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
    for (name, eta) in etas {
        writer.bulk(name.as_bytes());
        value(writer, eta);
    }
}

fn reason_map(writer: &mut Writer<'_>, reason: &Reason) {
    let details = reason.details();
    writer.map(1 + details.len());
    writer.bulk(b"code");
    writer.bulk(reason.code().as_bytes());
    for (name, detail) in details {
        writer.bulk(name.as_bytes());
        value(writer, detail);
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
        write_fields(writer, &LEASE, (lease, &contacts.holder(lease.holder)));
    }
}

pub(super) fn shares_page(writer: &mut Writer<'_>, shares: &[ShareShown], next: Option<&[u8]>) {
    writer.array(2);
    match next {
        Some(last) => writer.bulk(name_cursor(last).as_bytes()),
        None => writer.bulk(b"0"),
    }
    writer.array(shares.len());
    for share in shares {
        write_fields(writer, &SHARE, (share, &Holder::default()));
    }
}
