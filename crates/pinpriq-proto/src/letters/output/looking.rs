//! Explanations, and leases as they are shown.

use std::sync::Arc;

use crate::looking::{Explanation, LeasePlace, LeaseShown, Reason};
use crate::records::primitives::{
    put_bytes, put_if, put_moment, put_number, take_byte, take_bytes, take_if, take_moment,
    take_number,
};
use crate::task::{Bytes, ClientId};

use crate::letters::Malformed;
use crate::letters::fields::{kind_code, kind_of};
use crate::letters::flags::{Packed, Packing};
use crate::letters::list::{put_list, take_vec};
use crate::letters::records::{id_code, put_id, take_id};

/// The bytes of reasons.
const DELAYED: u8 = 1;
const TAKEN: u8 = 2;
const BURIED: u8 = 3;
const EXPIRED: u8 = 4;
const PAUSED: u8 = 5;
const LIMIT: u8 = 6;
const RATE: u8 = 7;
const NO_PRIORITY: u8 = 8;
const BEHIND: u8 = 9;
const NO_CONSUMER: u8 = 10;
const NEXT: u8 = 11;

pub(super) fn put_explanation(out: &mut Vec<u8>, explanation: &Explanation) {
    let Explanation { id, state, since, reasons } = explanation;
    let mut flags = Packed::default();
    flags.code(3, kind_code(*state));
    flags.flag(since.is_some());
    flags.flag(id.is_some());
    flags.code(2, id.as_ref().map_or(0, id_code));
    flags.put(out);
    put_if(out, id.as_ref(), put_id);
    put_if(out, *since, put_moment);
    put_list(out, reasons, put_reason);
}

pub(super) fn take_explanation(input: &mut &[u8]) -> Result<Explanation, Malformed> {
    let mut flags = Packing::take(input)?;
    let (state, since) = (kind_of(flags.code(3))?, flags.flag());
    let (id, code) = (flags.flag(), flags.code(2));
    flags.end()?;
    if !id && code != 0 {
        return Err(Malformed::OutOfRange("flags"));
    }
    Ok(Explanation {
        id: take_if(id, input, |input| take_id(code, input))?,
        state,
        since: take_if(since, input, take_moment)?,
        reasons: take_vec(input, take_reason)?,
    })
}

fn put_reason(out: &mut Vec<u8>, reason: &Reason) {
    let mut flags = Packed::default();
    match reason {
        Reason::Delayed { until } => {
            out.push(DELAYED);
            put_moment(out, *until);
        }
        Reason::Taken { client, since, until } => {
            out.push(TAKEN);
            flags.flag(client.is_some());
            flags.flag(since.is_some());
            flags.flag(until.is_some());
            flags.put(out);
            put_if(out, client.map(|client| client.0), put_number);
            put_if(out, *since, put_moment);
            put_if(out, *until, put_moment);
        }
        Reason::Buried { reason } => {
            out.push(BURIED);
            flags.flag(reason.is_some());
            flags.put(out);
            put_if(out, reason.as_deref(), put_bytes);
        }
        Reason::Expired => out.push(EXPIRED),
        Reason::Paused => out.push(PAUSED),
        Reason::Limit { taken, most } => {
            out.push(LIMIT);
            put_number(out, *taken);
            put_number(out, *most);
        }
        Reason::Rate { next_at } => {
            out.push(RATE);
            put_moment(out, *next_at);
        }
        Reason::NoPriority => out.push(NO_PRIORITY),
        Reason::Behind { at_least } => {
            out.push(BEHIND);
            put_number(out, *at_least);
        }
        Reason::NoConsumer => out.push(NO_CONSUMER),
        Reason::Next => out.push(NEXT),
    }
}

fn take_reason(input: &mut &[u8]) -> Result<Reason, Malformed> {
    Ok(match take_byte(input)? {
        DELAYED => Reason::Delayed { until: take_moment(input)? },
        TAKEN => {
            let mut flags = Packing::take(input)?;
            let (client, since, until) = (flags.flag(), flags.flag(), flags.flag());
            flags.end()?;
            Reason::Taken {
                client: take_if(client, input, take_number)?.map(ClientId),
                since: take_if(since, input, take_moment)?,
                until: take_if(until, input, take_moment)?,
            }
        }
        BURIED => {
            let mut flags = Packing::take(input)?;
            let reason = flags.flag();
            flags.end()?;
            Reason::Buried { reason: take_if(reason, input, take_shared)? }
        }
        EXPIRED => Reason::Expired,
        PAUSED => Reason::Paused,
        LIMIT => Reason::Limit { taken: take_number(input)?, most: take_number(input)? },
        RATE => Reason::Rate { next_at: take_moment(input)? },
        NO_PRIORITY => Reason::NoPriority,
        BEHIND => Reason::Behind { at_least: take_number(input)? },
        NO_CONSUMER => Reason::NoConsumer,
        NEXT => Reason::Next,
        _ => return Err(Malformed::OutOfRange("reason")),
    })
}

pub(super) fn put_leases(out: &mut Vec<u8>, leases: &[LeaseShown], next: Option<&LeasePlace>) {
    let mut flags = Packed::default();
    flags.flag(next.is_some());
    flags.put(out);
    put_list(out, leases, put_lease);
    put_if(out, next, put_place);
}

pub(super) fn take_leases(
    input: &mut &[u8],
) -> Result<(Vec<LeaseShown>, Option<LeasePlace>), Malformed> {
    let mut flags = Packing::take(input)?;
    let next = flags.flag();
    flags.end()?;
    let leases = take_vec(input, take_lease)?;
    Ok((leases, take_if(next, input, take_place)?))
}

fn put_lease(out: &mut Vec<u8>, lease: &LeaseShown) {
    let LeaseShown { place, member, id, holder, since, until } = lease;
    let mut flags = Packed::default();
    flags.code(2, id_code(id));
    flags.flag(holder.is_some());
    flags.flag(since.is_some());
    flags.flag(until.is_some());
    flags.flag(member.is_some());
    flags.put(out);
    put_place(out, place);
    put_id(out, id);
    put_if(out, holder.map(|holder| holder.0), put_number);
    put_if(out, *since, put_moment);
    put_if(out, *until, put_moment);
    put_if(out, member.as_deref(), put_bytes);
}

fn take_lease(input: &mut &[u8]) -> Result<LeaseShown, Malformed> {
    let mut flags = Packing::take(input)?;
    let id = flags.code(2);
    let (holder, since) = (flags.flag(), flags.flag());
    let (until, member) = (flags.flag(), flags.flag());
    flags.end()?;
    Ok(LeaseShown {
        place: take_place(input)?,
        id: take_id(id, input)?,
        holder: take_if(holder, input, take_number)?.map(ClientId),
        since: take_if(since, input, take_moment)?,
        until: take_if(until, input, take_moment)?,
        member: take_if(member, input, take_shared)?,
    })
}

fn put_place(out: &mut Vec<u8>, place: &LeasePlace) {
    let mut flags = Packed::default();
    flags.flag(place.lane.is_some());
    flags.put(out);
    put_if(out, place.lane, put_number);
    put_bytes(out, &place.queue);
    put_number(out, place.seq);
}

fn take_place(input: &mut &[u8]) -> Result<LeasePlace, Malformed> {
    let mut flags = Packing::take(input)?;
    let lane = flags.flag();
    flags.end()?;
    Ok(LeasePlace {
        lane: take_if(lane, input, take_number)?,
        queue: take_shared(input)?,
        seq: take_number(input)?,
    })
}

fn take_shared(input: &mut &[u8]) -> Result<Bytes, Malformed> {
    take_bytes(input).map(Arc::from)
}
