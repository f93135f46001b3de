//! Commands about single tasks that need no holder: reading, moving, changing, awaiting.

use crate::command::{Command, Peek, QueueName, Transfer, Update, Wait};
use crate::records::primitives::{
    put_bytes, put_if, put_number, put_span, take_bytes, take_if, take_number, take_small,
    take_span,
};
use crate::time::Span;

use super::kinds::{AWAIT, PEEK, PLOW, UPDATE};
use super::parts::{
    AmendmentForm, pack_amendment, pack_delay, pack_queue, pack_selection, pack_wait,
    put_amendment, put_delay, put_queue, put_wait, selection_of, take_delay, take_queue, take_wait,
};
use crate::letters::Malformed;
use crate::letters::fields::{kind_code, kind_of, put_receipt, take_receipt};
use crate::letters::flags::{Packed, Packing};

pub(super) fn encode_peek(peek: &Peek<'_>, out: &mut Vec<u8>) {
    out.push(PEEK);
    let mut flags = Packed::default();
    pack_queue(&mut flags, &peek.queue);
    flags.code(3, kind_code(peek.state));
    pack_selection(&mut flags, peek.selection);
    flags.put(out);
    put_queue(out, &peek.queue);
    put_number(out, u64::from(peek.count));
}

pub(super) fn take_peek<'a>(input: &mut &'a [u8]) -> Result<Peek<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (is_lane, state) = (flags.flag(), kind_of(flags.code(3))?);
    let selection = selection_of(&mut flags);
    flags.end()?;
    let queue = take_queue(is_lane, input)?;
    Ok(Peek { queue, selection, state, count: take_small(input, "count")? })
}

pub(super) fn encode_transfer(kind: u8, transfer: &Transfer<'_>, out: &mut Vec<u8>) {
    out.push(kind);
    let mut flags = Packed::default();
    pack_queue(&mut flags, &transfer.queue);
    pack_delay(&mut flags, transfer.delay);
    pack_amendment(&mut flags, &transfer.amendment);
    flags.put(out);
    put_queue(out, &transfer.queue);
    put_bytes(out, transfer.id);
    put_delay(out, transfer.delay);
    put_amendment(out, &transfer.amendment);
}

pub(super) fn take_transfer<'a>(input: &mut &'a [u8]) -> Result<Transfer<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (is_lane, delay) = (flags.flag(), flags.flag());
    let amendment = AmendmentForm::of(&mut flags);
    flags.end()?;
    Ok(Transfer {
        queue: take_queue(is_lane, input)?,
        id: take_bytes(input)?,
        delay: take_delay(delay, input)?,
        amendment: amendment.take(input)?,
    })
}

pub(super) fn encode_plow(
    queue: &QueueName<'_>,
    count: Option<u64>,
    delay: Span,
    ttl: Option<Span>,
    out: &mut Vec<u8>,
) {
    out.push(PLOW);
    let mut flags = Packed::default();
    pack_queue(&mut flags, queue);
    flags.flag(count.is_some());
    pack_delay(&mut flags, delay);
    flags.flag(ttl.is_some());
    flags.put(out);
    put_queue(out, queue);
    put_if(out, count, put_number);
    put_delay(out, delay);
    put_if(out, ttl, put_span);
}

pub(super) fn take_plow<'a>(input: &mut &'a [u8]) -> Result<Command<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (is_lane, count) = (flags.flag(), flags.flag());
    let (delay, ttl) = (flags.flag(), flags.flag());
    flags.end()?;
    Ok(Command::Plow {
        queue: take_queue(is_lane, input)?,
        count: take_if(count, input, take_number)?,
        delay: take_delay(delay, input)?,
        ttl: take_if(ttl, input, take_span)?,
    })
}

pub(super) fn encode_update(update: &Update<'_>, out: &mut Vec<u8>) {
    out.push(UPDATE);
    let mut flags = Packed::default();
    pack_queue(&mut flags, &update.queue);
    flags.flag(update.receipt.is_some());
    pack_amendment(&mut flags, &update.amendment);
    flags.put(out);
    put_queue(out, &update.queue);
    put_bytes(out, update.id);
    put_if(out, update.receipt.as_ref(), put_receipt);
    put_amendment(out, &update.amendment);
}

pub(super) fn take_update<'a>(input: &mut &'a [u8]) -> Result<Update<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (is_lane, receipt) = (flags.flag(), flags.flag());
    let amendment = AmendmentForm::of(&mut flags);
    flags.end()?;
    Ok(Update {
        queue: take_queue(is_lane, input)?,
        id: take_bytes(input)?,
        receipt: take_if(receipt, input, take_receipt)?,
        amendment: amendment.take(input)?,
    })
}

pub(super) fn encode_await(queue: &QueueName<'_>, id: &[u8], wait: Wait, out: &mut Vec<u8>) {
    out.push(AWAIT);
    let mut flags = Packed::default();
    pack_queue(&mut flags, queue);
    pack_wait(&mut flags, wait);
    flags.put(out);
    put_queue(out, queue);
    put_bytes(out, id);
    put_wait(out, wait);
}

pub(super) fn take_await<'a>(input: &mut &'a [u8]) -> Result<Command<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (is_lane, wait) = (flags.flag(), flags.code(2));
    flags.end()?;
    let queue = take_queue(is_lane, input)?;
    Ok(Command::Await { queue, id: take_bytes(input)?, wait: take_wait(wait, input)? })
}
