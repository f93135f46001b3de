//! Why a task waits, who holds what, and which names there are, as JSON.

use pinpriq_proto::looking::{Explanation, LeasePlace, LeaseShown, Reason};

use super::super::json::{Object, object};
use crate::clients::about::at_home;
use crate::clients::contacts::Contacts;
use pinpriq_proto::request::cursors::lease::cursor_after as leases_cursor;

/// Appends why a task is not handed out.
pub(super) fn explanation(out: &mut Vec<u8>, explanation: &Explanation) {
    let Explanation { id, state, since, reasons } = explanation;
    object(out, |it| {
        match id {
            Some(id) => it.id("id", id),
            None => it.null("id"),
        };
        match state {
            Some(state) => it.text("state", state.letter().encode_utf8(&mut [0; 4])),
            None => it.null("state"),
        };
        match since {
            Some(since) => it.moment("since", *since),
            None => it.null("since"),
        };
        it.array("reasons", reasons, |out, reason| {
            object(out, |it| {
                it.text("code", reason.code());
                details(it, reason);
            });
        });
    });
}

fn details(it: &mut Object<'_>, reason: &Reason) {
    match reason {
        Reason::Delayed { until } => {
            it.moment("until", *until);
        }
        Reason::Taken { client, since, until } => {
            if let Some(client) = client {
                it.number("client", at_home(*client).0);
            }
            for (name, at) in [("since", since), ("until", until)] {
                if let Some(at) = at {
                    it.moment(name, *at);
                }
            }
        }
        Reason::Buried { reason } => {
            if let Some(reason) = reason {
                it.bytes("reason", reason);
            }
        }
        Reason::Limit { taken, most } => {
            it.number("taken", *taken).number("n", *most);
        }
        Reason::Rate { next_at } => {
            it.moment("next_at", *next_at);
        }
        Reason::Behind { at_least } => {
            it.number("at_least", *at_least);
        }
        Reason::Expired
        | Reason::Paused
        | Reason::NoPriority
        | Reason::NoConsumer
        | Reason::Next => {}
    }
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
        it.text("cursor", &cursor);
        it.array("leases", leases, |out, lease| object(out, |it| write(it, lease, contacts)));
    });
}

fn write(it: &mut Object<'_>, lease: &LeaseShown, contacts: &Contacts) {
    let LeaseShown { place, member, id, holder, since, until } = lease;
    it.bytes("queue", &place.queue);
    if let Some(member) = member {
        it.bytes("member", member);
    }
    it.id("id", id);
    if let Some(holder) = holder {
        let holder = at_home(*holder);
        it.number("client", holder.0);
        if let Some(contact) = contacts.find(holder) {
            if !contact.name.is_empty() {
                it.bytes("name", &contact.name);
            }
            it.text("address", &contact.address.to_string());
            it.text("door", contact.door.word());
        }
    }
    for (name, at) in [("since", since), ("until", until)] {
        if let Some(at) = at {
            it.moment(name, *at);
        }
    }
}
