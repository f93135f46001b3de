//! Commands about several tubes, and about tasks that only their number names.
//!
//! The caller has read the list of queues of a reserve already, and its buffer holds it.

use crate::command::{Command, Deed, Reserve};
use crate::records::primitives::{
    put_bytes, put_if, put_number, put_signed, put_span, take_byte, take_bytes, take_if,
    take_number, take_signed, take_small, take_span,
};
use crate::task::StateKind;

use super::kinds::{FOREMOST, HEAD, KICK, LET_GO, NUMBERED, RESERVE, TUBES};
use super::parts::{pack_wait, put_names, put_wait, take_wait};
use crate::letters::Malformed;
use crate::letters::fields::{kind_code, kind_of};
use crate::letters::flags::{Packed, Packing};

const READ: u8 = 0;
const TAKE: u8 = 1;
const DELETE: u8 = 2;
const RELEASE: u8 = 3;
const BURY: u8 = 4;
const TOUCH: u8 = 5;
const KICK_ONE: u8 = 6;

pub(super) fn encode_reserve(reserve: &Reserve<'_>, out: &mut Vec<u8>) {
    out.push(RESERVE);
    let mut flags = Packed::default();
    pack_wait(&mut flags, reserve.wait);
    flags.flag(reserve.is_echo);
    flags.put(out);
    put_names(out, reserve.queues);
    put_wait(out, reserve.wait);
}

pub(super) fn encode_head(queues: &[&[u8]], out: &mut Vec<u8>) {
    out.push(HEAD);
    Packed::default().put(out);
    put_names(out, queues);
}

/// Reads a reserve, or what only asks for its head.
pub(super) fn take_reserve<'a>(
    is_head: bool,
    mut flags: Packing,
    (queues, input): (&'a [&'a [u8]], &mut &'a [u8]),
) -> Result<Command<'a>, Malformed> {
    if is_head {
        flags.end()?;
        return Ok(Command::Head(queues));
    }
    let (wait, is_echo) = (flags.code(2), flags.flag());
    flags.end()?;
    Ok(Command::Reserve(Reserve { queues, wait: take_wait(wait, input)?, is_echo }))
}

pub(super) fn encode_numbered(number: u64, deed: Deed, out: &mut Vec<u8>) {
    out.push(NUMBERED);
    put_number(out, number);
    match deed {
        Deed::Read => out.push(READ),
        Deed::Take => out.push(TAKE),
        Deed::Delete => out.push(DELETE),
        Deed::Release { priority, delay } => {
            out.push(RELEASE);
            put_signed(out, priority);
            put_span(out, delay);
        }
        Deed::Bury { priority } => {
            out.push(BURY);
            put_signed(out, priority);
        }
        Deed::Touch => out.push(TOUCH),
        Deed::Kick => out.push(KICK_ONE),
    }
}

pub(super) fn encode_kick(queue: &[u8], count: u32, out: &mut Vec<u8>) {
    out.push(KICK);
    put_bytes(out, queue);
    put_number(out, u64::from(count));
}

pub(super) fn encode_foremost(queue: &[u8], state: StateKind, out: &mut Vec<u8>) {
    out.push(FOREMOST);
    put_bytes(out, queue);
    out.push(kind_code(Some(state)));
}

pub(super) fn encode_tubes(queue: Option<&[u8]>, out: &mut Vec<u8>) {
    out.push(TUBES);
    let mut flags = Packed::default();
    flags.flag(queue.is_some());
    flags.put(out);
    put_if(out, queue, put_bytes);
}

/// Reads why a put task is buried, if that is said.
pub(super) fn take_reason<'a>(input: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
    let mut flags = Packing::take(input)?;
    let has_reason = flags.flag();
    flags.end()?;
    take_if(has_reason, input, take_bytes)
}

pub(super) fn take<'a>(kind: u8, input: &mut &'a [u8]) -> Result<Command<'a>, Malformed> {
    Ok(match kind {
        NUMBERED => Command::Numbered { number: take_number(input)?, deed: take_deed(input)? },
        KICK => Command::Kick { queue: take_bytes(input)?, count: take_small(input, "count")? },
        FOREMOST => Command::Foremost {
            queue: take_bytes(input)?,
            state: kind_of(take_byte(input)?)?.ok_or(Malformed::OutOfRange("state"))?,
        },
        TUBES => {
            let mut flags = Packing::take(input)?;
            let is_there = flags.flag();
            flags.end()?;
            Command::Tubes(take_if(is_there, input, take_bytes)?)
        }
        LET_GO => Command::LetGo,
        _ => return Err(Malformed::UnknownKind { what: "command", kind }),
    })
}

fn take_deed(input: &mut &[u8]) -> Result<Deed, Malformed> {
    Ok(match take_byte(input)? {
        READ => Deed::Read,
        TAKE => Deed::Take,
        DELETE => Deed::Delete,
        RELEASE => Deed::Release { priority: take_signed(input)?, delay: take_span(input)? },
        BURY => Deed::Bury { priority: take_signed(input)? },
        TOUCH => Deed::Touch,
        KICK_ONE => Deed::Kick,
        _ => return Err(Malformed::OutOfRange("deed")),
    })
}
