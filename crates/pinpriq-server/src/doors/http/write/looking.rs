//! Why a task waits, who holds what, and which names there are, as JSON.

use pinpriq_proto::fields::Value;
use pinpriq_proto::fields::told::{Holder, LEASE, SHARE};
use pinpriq_proto::looking::{Explanation, LeasePlace, LeaseShown};

use super::task::{value, write_fields};
use crate::clients::contacts::Contacts;
use crate::doors::json::object;
use pinpriq_proto::request::cursors::lease::cursor_after as leases_cursor;
use pinpriq_proto::request::cursors::name::cursor_after as shares_cursor;
use pinpriq_proto::shares::ShareShown;
use pinpriq_proto::task::StateKind;

/// Appends why a task is not handed out.
pub(super) fn explanation(out: &mut Vec<u8>, explanation: &Explanation) {
    let Explanation { id, state, since, reasons, .. } = explanation;
    object(out, |it| {
        match id {
            Some(id) => it.id("id", id),
            None => it.set("id", ()),
        };
        it.set("state", state.map(StateKind::letter)).moment("since", *since);
        it.array("reasons", reasons, |out, reason| {
            object(out, |it| {
                it.set("code", reason.code());
                for (name, detail) in reason.details() {
                    value(it, name, detail);
                }
            });
        });
        for (name, eta) in explanation.etas() {
            match eta {
                Value::Missing => {
                    it.set(name, ());
                }
                eta => value(it, name, eta),
            }
        }
    });
}

/// Appends a page of leases.
pub(super) fn leases(
    out: &mut Vec<u8>,
    leases: &[LeaseShown],
    next: Option<&LeasePlace>,
    contacts: &Contacts,
) {
    let cursor = next.map_or_else(|| "0".to_owned(), leases_cursor);
    object(out, |it| {
        it.set("cursor", cursor);
        it.array("leases", leases, |out, lease| {
            object(out, |it| write_fields(it, &LEASE, (lease, &contacts.holder(lease.holder))));
        });
    });
}

/// Appends a page of shares.
pub(super) fn shares(out: &mut Vec<u8>, shares: &[ShareShown], next: Option<&[u8]>) {
    let cursor = next.map_or_else(|| "0".to_owned(), shares_cursor);
    object(out, |it| {
        it.set("cursor", cursor);
        it.array("shares", shares, |out, share| {
            object(out, |it| write_fields(it, &SHARE, (share, &Holder::default())));
        });
    });
}
