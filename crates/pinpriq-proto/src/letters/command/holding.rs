//! The commands of the holder of a lease: ack, release, bury, fail, touch.

use crate::command::{Ack, Command, Fail, Held, Release};
use crate::records::primitives::{put_bytes, put_if, put_span, take_bytes, take_if, take_span};
use crate::time::Span;

use super::kinds::{ACK, BURY, FAIL, RELEASE, TOUCH};
use super::parts::{
    AmendmentForm, pack_amendment, pack_delay, pack_held, put_amendment, put_delay, put_held,
    take_delay, take_held,
};
use crate::letters::Malformed;
use crate::letters::flags::{Packed, Packing};

#[inline]
pub(super) fn encode_ack(ack: &Ack<'_>, out: &mut Vec<u8>) {
    out.push(ACK);
    let mut flags = Packed::default();
    pack_held(&mut flags, &ack.held);
    flags.flag(ack.payload.is_some());
    flags.flag(ack.zombie.is_some());
    flags.put(out);
    put_held(out, &ack.held);
    put_if(out, ack.zombie, put_span);
    put_if(out, ack.payload, put_bytes);
}

#[inline]
pub(super) fn take_ack<'a>(input: &mut &'a [u8]) -> Result<Ack<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (is_lane, is_by_id) = (flags.flag(), flags.flag());
    let (payload, zombie) = (flags.flag(), flags.flag());
    flags.end()?;
    Ok(Ack {
        held: take_held(is_lane, is_by_id, input)?,
        zombie: take_if(zombie, input, take_span)?,
        payload: take_if(payload, input, take_bytes)?,
    })
}

#[inline]
pub(super) fn encode_release(release: &Release<'_>, out: &mut Vec<u8>) {
    out.push(RELEASE);
    let mut flags = Packed::default();
    pack_held(&mut flags, &release.held);
    flags.flag(release.tail);
    pack_delay(&mut flags, release.delay);
    pack_amendment(&mut flags, &release.amendment);
    flags.put(out);
    put_held(out, &release.held);
    put_delay(out, release.delay);
    put_amendment(out, &release.amendment);
}

#[inline]
pub(super) fn take_release<'a>(input: &mut &'a [u8]) -> Result<Release<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (is_lane, is_by_id) = (flags.flag(), flags.flag());
    let (tail, delay) = (flags.flag(), flags.flag());
    let amendment = AmendmentForm::of(&mut flags);
    flags.end()?;
    Ok(Release {
        held: take_held(is_lane, is_by_id, input)?,
        delay: take_delay(delay, input)?,
        amendment: amendment.take(input)?,
        tail,
    })
}

#[inline]
pub(super) fn encode_touch(held: &Held<'_>, by: Option<Span>, out: &mut Vec<u8>) {
    out.push(TOUCH);
    let mut flags = Packed::default();
    pack_held(&mut flags, held);
    flags.flag(by.is_some());
    flags.put(out);
    put_held(out, held);
    put_if(out, by, put_span);
}

#[inline]
pub(super) fn take_touch<'a>(input: &mut &'a [u8]) -> Result<Command<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (is_lane, is_by_id, by) = (flags.flag(), flags.flag(), flags.flag());
    flags.end()?;
    let held = take_held(is_lane, is_by_id, input)?;
    Ok(Command::Touch { held, by: take_if(by, input, take_span)? })
}

pub(super) fn encode_bury(
    held: &Held<'_>,
    payload: Option<&[u8]>,
    reason: Option<&[u8]>,
    out: &mut Vec<u8>,
) {
    out.push(BURY);
    let mut flags = Packed::default();
    pack_held(&mut flags, held);
    flags.flag(payload.is_some());
    flags.flag(reason.is_some());
    flags.put(out);
    put_held(out, held);
    put_if(out, reason, put_bytes);
    put_if(out, payload, put_bytes);
}

pub(super) fn take_bury<'a>(input: &mut &'a [u8]) -> Result<Command<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (is_lane, is_by_id) = (flags.flag(), flags.flag());
    let (payload, reason) = (flags.flag(), flags.flag());
    flags.end()?;
    Ok(Command::Bury {
        held: take_held(is_lane, is_by_id, input)?,
        reason: take_if(reason, input, take_bytes)?,
        payload: take_if(payload, input, take_bytes)?,
    })
}

pub(super) fn encode_fail(fail: &Fail<'_>, out: &mut Vec<u8>) {
    out.push(FAIL);
    let mut flags = Packed::default();
    pack_held(&mut flags, &fail.held);
    flags.flag(fail.payload.is_some());
    flags.flag(fail.reason.is_some());
    flags.flag(fail.delay.is_some());
    flags.put(out);
    put_held(out, &fail.held);
    put_if(out, fail.delay, put_span);
    put_if(out, fail.reason, put_bytes);
    put_if(out, fail.payload, put_bytes);
}

pub(super) fn take_fail<'a>(input: &mut &'a [u8]) -> Result<Fail<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (is_lane, is_by_id) = (flags.flag(), flags.flag());
    let (payload, reason, delay) = (flags.flag(), flags.flag(), flags.flag());
    flags.end()?;
    Ok(Fail {
        held: take_held(is_lane, is_by_id, input)?,
        delay: take_if(delay, input, take_span)?,
        reason: take_if(reason, input, take_bytes)?,
        payload: take_if(payload, input, take_bytes)?,
    })
}
