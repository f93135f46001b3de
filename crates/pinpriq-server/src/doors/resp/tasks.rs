//! The commands on tasks.

use pinpriq_proto::command::{
    Ack, Command, Delay, Put, Take, TakeMode, TimeToLive, Transfer, Wait,
};
use pinpriq_proto::task::{Receipt, StateKind, Terms};
use pinpriq_proto::time::Span;
use pinpriq_proto::unique::{OnDuplicate, Unique};

use super::call::{Call, Shape};
use pinpriq_proto::request::fault::{Fault, shown};
use pinpriq_proto::request::options::{
    self, AT, COUNT, DELAY, GROUP, MEMBER, ONDUP, PAYLOAD, REASON, ROOM, STATE_BURIED, TTL, TTR,
    UNIQUE, WINDOW, WITHMETA, ZOMBIE,
};
use pinpriq_proto::request::parts::{self, Parts, number};
use pinpriq_proto::request::reading::{held, selection};

type Done = Result<(), Fault>;

/// The options of `PUT` that few puts have.
const RARE: u64 =
    UNIQUE.bit | WINDOW.bit | ONDUP.bit | ROOM.bit | AT.bit | STATE_BURIED.bit | REASON.bit;

pub(crate) fn put(call: &mut Call<'_, '_>) -> Done {
    if !call.parts.has_none_of(RARE) {
        return put_with_rare_options(call);
    }
    let put = Command::Put(put_of(call.parts, delay_of(call.parts)?, None)?);
    call.ask(Shape::Plain, &put)
}

#[inline(never)]
fn put_with_rare_options(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    let put = put_of(parts, delay_or_moment(parts)?, unique_if_any(parts)?)?;
    if let Some(state) = parts.option(STATE_BURIED) {
        return put_buried(call, &put, state);
    }
    if parts.has(REASON) {
        return Err(Fault::bad("REASON says why a task is put with STATE B: give that too"));
    }
    match parts.span(ROOM)? {
        None => call.ask(Shape::Plain, &Command::Put(put)),
        Some(room) => call.ask(Shape::Plain, &Command::PutInLine { put, room }),
    }
}

fn put_buried(call: &mut Call<'_, '_>, put: &Put<'_>, state: &[u8]) -> Done {
    if parts::state(state)? != StateKind::Buried {
        return Err(parts::no_value("a task can be put with STATE B, and with no other", state));
    }
    if call.parts.has(ROOM) {
        return Err(Fault::bad("a put with STATE B does not wait for room"));
    }
    let reason = call.parts.option(REASON);
    call.ask(Shape::Plain, &Command::PutBuried { put, reason })
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it is part of every put")]
fn put_of<'p>(
    parts: &Parts<'p>,
    delay: Delay,
    unique: Option<Unique<'p>>,
) -> Result<Put<'p>, Fault> {
    Ok(Put {
        queue: parts.word(0),
        payload: parts.word(1),
        delay,
        ttl: parts.span(TTL)?.map_or(TimeToLive::Default, TimeToLive::For),
        id: parts.option(options::ID),
        wait: parts.wait()?,
        priority: parts.priority()?.or(Some(0)),
        terms: Terms::read(parts)?,
        unique,
    })
}

fn unique_if_any<'p>(parts: &Parts<'p>) -> Result<Option<Unique<'p>>, Fault> {
    let Some(key) = parts.option(UNIQUE) else {
        if parts.has(WINDOW) || parts.has(ONDUP) {
            return Err(Fault::bad("WINDOW and ONDUP say more about UNIQUE: give that too"));
        }
        return Ok(None);
    };
    let on_duplicate = parts.option(ONDUP).map(on_duplicate).transpose()?;
    let (window, on_duplicate) = (parts.span(WINDOW)?, on_duplicate.unwrap_or_default());
    Ok(Some(Unique { key, window, on_duplicate }))
}

fn on_duplicate(word: &[u8]) -> Result<OnDuplicate, Fault> {
    let is_meant = |(_, known): &&(OnDuplicate, &str)| word.eq_ignore_ascii_case(known.as_bytes());
    let known = OnDuplicate::ALL.iter().find(is_meant).map(|(known, _)| *known);
    known.ok_or_else(|| parts::no_value("ONDUP is keep, reject or replace", word))
}

/// Returns how long the task is held back. A moment stays one until the put is carried out, so that
/// tasks with the same moment are ready together.
fn delay_or_moment(parts: &Parts<'_>) -> Result<Delay, Fault> {
    let Some(at) = parts.moment(AT)? else { return delay_of(parts) };
    if parts.has(DELAY) {
        return Err(Fault::bad("AT and DELAY exclude each other: give one of them"));
    }
    Ok(Delay::Until(at))
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it is part of every put")]
fn delay_of(parts: &Parts<'_>) -> Result<Delay, Fault> {
    Ok(Delay::For(parts.span(DELAY)?.unwrap_or(Span::ZERO)))
}

pub(crate) fn take(call: &mut Call<'_, '_>) -> Done {
    let ttr = call.parts.span(TTR)?;
    let mode = match call.talk.ttr_otherwise {
        Some(otherwise) => TakeMode::Unheld { ttr, otherwise },
        _ => TakeMode::Lease { ttr },
    };
    select(call, mode)
}

pub(crate) fn pop(call: &mut Call<'_, '_>) -> Done {
    select(call, TakeMode::Pop)
}

fn select(call: &mut Call<'_, '_>, mode: TakeMode) -> Done {
    let parts = call.parts;
    let count = parts.count(COUNT)?.unwrap_or(1);
    let wait = parts.wait()?.unwrap_or(Wait::No);
    let selection = selection(parts, parts.has(GROUP))?;
    let shape = if parts.has(WITHMETA) { Shape::WithMeta } else { Shape::Plain };
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let member = parts.option(MEMBER);
    let take = Take { queues: parts.words, member, count, wait, selection, mode };
    if parts.done.is_empty() {
        return call.ask(shape, &Command::Take(take));
    }
    call.ask(shape, &Command::TakeDone { done: &parts.done, take })
}

pub(crate) fn ack(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    if parts.words.len() > 2 && !parts.by_id {
        let receipts = parts.words[1..].iter().map(|text| parts::receipt(text));
        let receipts: Vec<Receipt> = receipts.collect::<Result<_, _>>()?;
        let queue = parts.queue();
        return call.ask(Shape::Plain, &Command::AckAll { queue, receipts: &receipts });
    }
    let ack =
        Ack { held: held(parts)?, payload: parts.option(PAYLOAD), zombie: parts.span(ZOMBIE)? };
    call.ask(Shape::Plain, &Command::Ack(ack))
}

/// `KICK queue ID id` is DIG, and `KICK queue n` is PLOW with a count.
pub(crate) fn kick(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    let queue = parts.queue();
    if parts.by_id {
        let id = parts.named();
        return call.ask(Shape::Plain, &Command::Dig(Transfer::new(queue, id)));
    }
    let count = number(parts.word(1)).filter(|count| *count > 0);
    let Some(count) = count else {
        let given = shown(parts.word(1));
        return Err(Fault::bad(format!("KICK needs ID and an id, or a number, not {given}")));
    };
    let command = Command::Plow { queue, count: Some(count), delay: Span::ZERO, ttl: None };
    call.ask(Shape::Plain, &command)
}
