//! Putting and taking, the two most frequent commands, and subscriptions.
//!
//! The caller has read the list of queues of a command already, and its buffer holds it.

use crate::command::{Command, Delay, Done, Put, Selection, Take, TakeMode, TimeToLive, Wait};
use crate::records::primitives::{
    put_bytes, put_if, put_moment, put_number, put_span, take_bytes, take_if, take_moment,
    take_small, take_span,
};
use crate::unique::{OnDuplicate, Unique};

use super::kinds::{PUT, SUBSCRIBE, TAKE, UNSUBSCRIBE};
use super::parts::{
    pack_mode, pack_selection, pack_wait, put_delay, put_mode, put_names, put_wait, selection_of,
    take_delay, take_mode, take_wait,
};
use crate::letters::Malformed;
use crate::letters::fields::{
    pack_priority, put_priority, put_receipt, put_terms_if_any, take_priority, take_receipt,
    take_terms_if,
};
use crate::letters::flags::{Packed, Packing};

#[inline]
pub(super) fn encode_put(put: &Put<'_>, out: &mut Vec<u8>) {
    out.push(PUT);
    let mut flags = Packed::default();
    flags.flag(!put.terms.are_none());
    pack_priority(&mut flags, put.priority);
    flags.flag(!put.delay.is_none());
    flags.code(
        2,
        match put.ttl {
            TimeToLive::Default => 0,
            TimeToLive::For(_) => 1,
            TimeToLive::Endless => 2,
            TimeToLive::Instant => 3,
        },
    );
    flags.flag(put.id.is_some());
    flags.flag(put.wait.is_some());
    pack_wait(&mut flags, put.wait.unwrap_or(Wait::No));
    flags.flag(put.unique.is_some());
    if let Some(unique) = &put.unique {
        flags.flag(unique.window.is_some());
        flags.code(2, unique.on_duplicate as u8);
    }
    flags.flag(matches!(put.delay, Delay::Until(_)));
    flags.put(out);
    put_bytes(out, put.queue);
    put_terms_if_any(out, put.terms);
    put_priority(out, put.priority);
    match put.delay {
        Delay::For(span) => put_delay(out, span),
        Delay::Until(at) => put_moment(out, at),
    }
    match put.ttl {
        TimeToLive::For(span) => put_span(out, span),
        TimeToLive::Default | TimeToLive::Endless | TimeToLive::Instant => {}
    }
    put_if(out, put.id, put_bytes);
    put_if(out, put.wait, put_wait);
    if let Some(unique) = &put.unique {
        put_bytes(out, unique.key);
        put_if(out, unique.window, put_span);
    }
    put_bytes(out, put.payload);
}

#[inline]
pub(super) fn take_put<'a>(input: &mut &'a [u8]) -> Result<Put<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (terms, priority, delay) = (flags.flag(), flags.code(2), flags.flag());
    let (ttl, id) = (flags.code(2), flags.flag());
    let (waits, wait) = (flags.flag(), flags.code(2));
    let is_unique = flags.flag();
    let unique = if is_unique { Some((flags.flag(), flags.code(2))) } else { None };
    let is_moment = flags.flag();
    flags.end()?;
    if !waits && wait != 0 {
        return Err(Malformed::OutOfRange("wait"));
    }
    Ok(Put {
        queue: take_bytes(input)?,
        terms: take_terms_if(terms, input)?,
        priority: take_priority(priority, input)?,
        delay: take_delay_of_put((delay, is_moment), input)?,
        ttl: match ttl {
            0 => TimeToLive::Default,
            1 => TimeToLive::For(take_span(input)?),
            2 => TimeToLive::Endless,
            _ => TimeToLive::Instant,
        },
        id: take_if(id, input, take_bytes)?,
        wait: take_if(waits, input, |input| take_wait(wait, input))?,
        unique: unique.map(|unique| take_unique(unique, input)).transpose()?,
        payload: take_bytes(input)?,
    })
}

fn take_delay_of_put(
    (is_there, is_moment): (bool, bool),
    input: &mut &[u8],
) -> Result<Delay, Malformed> {
    match (is_there, is_moment) {
        (_, false) => Ok(Delay::For(take_delay(is_there, input)?)),
        (true, true) => Ok(Delay::Until(take_moment(input)?)),
        (false, true) => Err(Malformed::OutOfRange("delay")),
    }
}

fn take_unique<'a>(
    (has_window, on_duplicate): (bool, u8),
    input: &mut &'a [u8],
) -> Result<Unique<'a>, Malformed> {
    let known = OnDuplicate::ALL.get(usize::from(on_duplicate));
    let (on_duplicate, _) = *known.ok_or(Malformed::OutOfRange("on duplicate"))?;
    let (key, window) = (take_bytes(input)?, take_if(has_window, input, take_span)?);
    Ok(Unique { key, window, on_duplicate })
}

#[inline]
pub(super) fn encode_take(take: &Take<'_>, out: &mut Vec<u8>) {
    out.push(TAKE);
    let mut flags = Packed::default();
    pack_wait(&mut flags, take.wait);
    flags.flag(take.count != 1);
    pack_mode(&mut flags, take.mode);
    pack_selection(&mut flags, take.selection);
    flags.flag(take.member.is_some());
    flags.put(out);
    put_names(out, take.queues);
    put_if(out, take.member, put_bytes);
    if take.count != 1 {
        put_number(out, u64::from(take.count));
    }
    put_wait(out, take.wait);
    put_mode(out, take.mode);
}

#[inline]
pub(super) fn take_take<'a>(
    mut flags: Packing,
    queues: &'a [&'a [u8]],
    input: &mut &'a [u8],
) -> Result<Take<'a>, Malformed> {
    let (wait, is_counted, mode) = (flags.code(2), flags.flag(), flags.code(2));
    let selection = selection_of(&mut flags);
    let has_member = flags.flag();
    flags.end()?;
    let member = take_if(has_member, input, take_bytes)?;
    let count = if is_counted { take_small(input, "count")? } else { 1 };
    if is_counted && count == 1 {
        return Err(Malformed::OutOfRange("count"));
    }
    let wait = take_wait(wait, input)?;
    Ok(Take { queues, member, count, wait, selection, mode: take_mode(mode, input)? })
}

pub(super) fn put_done(out: &mut Vec<u8>, done: &Done<'_>) {
    put_bytes(out, done.queue);
    put_receipt(out, &done.receipt);
}

pub(super) fn take_done<'a>(input: &mut &'a [u8]) -> Result<Done<'a>, Malformed> {
    Ok(Done { queue: take_bytes(input)?, receipt: take_receipt(input)? })
}

pub(super) fn encode_subscribe(
    queues: &[&[u8]],
    member: Option<&[u8]>,
    selection: Selection,
    mode: TakeMode,
    out: &mut Vec<u8>,
) {
    out.push(SUBSCRIBE);
    let mut flags = Packed::default();
    flags.flag(member.is_some());
    pack_mode(&mut flags, mode);
    pack_selection(&mut flags, selection);
    flags.put(out);
    put_names(out, queues);
    put_if(out, member, put_bytes);
    put_mode(out, mode);
}

pub(super) fn take_subscribe<'a>(
    mut flags: Packing,
    queues: &'a [&'a [u8]],
    input: &mut &'a [u8],
) -> Result<Command<'a>, Malformed> {
    let (has_member, mode) = (flags.flag(), flags.code(2));
    let selection = selection_of(&mut flags);
    flags.end()?;
    let member = take_if(has_member, input, take_bytes)?;
    Ok(Command::Subscribe { queues, member, selection, mode: take_mode(mode, input)? })
}

pub(super) fn encode_unsubscribe(queues: &[&[u8]], member: Option<&[u8]>, out: &mut Vec<u8>) {
    out.push(UNSUBSCRIBE);
    let mut flags = Packed::default();
    flags.flag(member.is_some());
    flags.put(out);
    put_names(out, queues);
    put_if(out, member, put_bytes);
}

pub(super) fn take_unsubscribe<'a>(
    mut flags: Packing,
    queues: &'a [&'a [u8]],
    input: &mut &'a [u8],
) -> Result<Command<'a>, Malformed> {
    let has_member = flags.flag();
    flags.end()?;
    Ok(Command::Unsubscribe { queues, member: take_if(has_member, input, take_bytes)? })
}
