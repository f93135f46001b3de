//! Commands: the byte of each kind, and storage for the lists that a decoded command borrows.
//!
//! The bytes after it are in the files of the folder.

pub(crate) mod carrying;
mod fanout;
mod holding;
mod kinds;
mod looking;
mod parts;
mod putting;
mod queues;
mod schedules;
mod sharing;
pub(crate) mod stepping;
mod tending;
mod tubes;
mod within;

use crate::command::{Command, Done, Put};
use crate::records::primitives::{
    end, put_bytes, put_if, put_number, put_span, take_byte, take_bytes, take_small, take_span,
};
use crate::task::{Grant, Receipt, TaskRecord};

use self::kinds::{
    ACK, ACK_ALL, AWAIT, BURY, CREDIT, DIG, EXPLAIN, EXPORT, FAIL, GET, GIVE_BACK, HEAD,
    IMPORT_QUEUE, IMPORT_SCHEDULE, KILL, LEASES, LET_GO, MOVE, NUMBERED, PEEK, PLOW, PUBLISH, PUT,
    PUT_BACK, PUT_BURIED, PUT_IN_LINE, PUT_NUMBERED, QUEUE_CREATE, QUEUE_SET, REDRIVE, RELEASE,
    RESERVE, RESTART, SCAN, SCHEDULE_FIRE, SCHEDULE_SET, SHARE_LOOK, SHARE_NEXT, SNATCH, SUBSCRIBE,
    SWITCH, TAKE, TAKE_DONE, TOUCH, TRANSACTION, UNSUBSCRIBE, UPDATE, WITHIN,
};
use self::parts::{begin_in, put_names, take_queue_first};
use crate::letters::Malformed;
use crate::letters::fields::{kind_code, kind_of, put_receipt, take_receipt};
use crate::letters::flags::{Packed, Packing};
use crate::letters::list::{List, put_list, take_list};
use crate::letters::records::{put_record, take_records};

/// What a list of receipts is filled with before they are read.
const NO_RECEIPT: Receipt = Receipt { number: 0, grant: Grant { incarnation: 0, serial: 0 } };

#[expect(clippy::too_many_lines, reason = "one arm for each command")]
pub(crate) fn encode(command: &Command<'_>, out: &mut Vec<u8>) {
    match command {
        Command::Put(put) => putting::encode_put(put, out),
        Command::PutInLine { put, room } => {
            out.push(PUT_IN_LINE);
            put_span(out, *room);
            putting::encode_put(put, out);
        }
        Command::PutBuried { put, reason } => {
            out.push(PUT_BURIED);
            let mut flags = Packed::default();
            flags.flag(reason.is_some());
            flags.put(out);
            put_if(out, *reason, put_bytes);
            putting::encode_put(put, out);
        }
        Command::PutNumbered(put) => {
            out.push(PUT_NUMBERED);
            putting::encode_put(put, out);
        }
        Command::Take(take) => putting::encode_take(take, out),
        Command::Share(share) => sharing::encode(share, out),
        Command::Reserve(reserve) => tubes::encode_reserve(reserve, out),
        Command::Numbered { number, deed } => tubes::encode_numbered(*number, *deed, out),
        Command::Kick { queue, count } => tubes::encode_kick(queue, *count, out),
        Command::Head(queues) => tubes::encode_head(queues, out),
        Command::Foremost { queue, state } => tubes::encode_foremost(queue, *state, out),
        Command::Tubes(queue) => tubes::encode_tubes(*queue, out),
        Command::LetGo => out.push(LET_GO),
        Command::TakeDone { done, take } => {
            out.push(TAKE_DONE);
            put_list(out, done, putting::put_done);
            putting::encode_take(take, out);
        }
        Command::Ack(ack) => holding::encode_ack(ack, out),
        Command::Release(release) => holding::encode_release(release, out),
        Command::Touch { held, by } => holding::encode_touch(held, *by, out),
        Command::Credit(credit) => {
            out.push(CREDIT);
            put_number(out, u64::from(*credit));
        }
        Command::Peek(peek) => tending::encode_peek(peek, out),
        Command::Get { queue, id } => {
            begin_in(out, GET, queue);
            put_bytes(out, id);
        }
        Command::Explain { queue, id } => looking::encode_explain(queue, *id, out),
        Command::Scan(scan) => looking::encode_scan(scan, out),
        Command::Leases(leases) => looking::encode_leases(leases, out),
        Command::Export(export) => carrying::encode_export(export, out),
        Command::Import(import) => carrying::encode_import(import, out),
        Command::AckAll { queue, receipts } => {
            begin_in(out, ACK_ALL, queue);
            put_list(out, receipts, put_receipt);
        }
        Command::Bury { held, payload, reason } => {
            holding::encode_bury(held, *payload, *reason, out);
        }
        Command::Fail(fail) => holding::encode_fail(fail, out),
        Command::Move { from, to, count, state } => {
            begin_in(out, MOVE, from);
            put_bytes(out, to);
            put_number(out, u64::from(*count));
            out.push(kind_code(Some(*state)));
        }
        Command::Redrive { queue, count } => {
            begin_in(out, REDRIVE, queue);
            put_number(out, u64::from(*count));
        }
        Command::Dig(transfer) => tending::encode_transfer(DIG, transfer, out),
        Command::Plow { queue, count, delay, ttl } => {
            tending::encode_plow(queue, *count, *delay, *ttl, out);
        }
        Command::Kill { queue, ids } => {
            begin_in(out, KILL, queue);
            put_names(out, ids);
        }
        Command::Switch { transfer, to } => {
            tending::encode_transfer(SWITCH, transfer, out);
            out.push(kind_code(Some(*to)));
        }
        Command::Snatch(transfer) => tending::encode_transfer(SNATCH, transfer, out),
        Command::Restart(transfer) => tending::encode_transfer(RESTART, transfer, out),
        Command::Update(update) => tending::encode_update(update, out),
        Command::Await { queue, id, wait } => tending::encode_await(queue, id, *wait, out),
        Command::Subscribe { queues, member, selection, mode } => {
            putting::encode_subscribe(queues, *member, *selection, *mode, out);
        }
        Command::Unsubscribe { queues, member } => {
            putting::encode_unsubscribe(queues, *member, out);
        }
        Command::PutBack(tasks) => {
            out.push(PUT_BACK);
            put_list(out, tasks, put_record);
        }
        Command::GiveBack(receipts) => {
            out.push(GIVE_BACK);
            put_list(out, receipts, put_receipt);
        }
        Command::Queue(command) => queues::encode(command, out),
        Command::Publish(publish) => fanout::encode_publish(publish, out),
        Command::Member(command) => fanout::encode_member(command, out),
        Command::Schedule(command) => schedules::encode(command, out),
        Command::Transaction(steps) => stepping::encode(steps, out),
        Command::Within { names, command } => within::encode(names, command, out),
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each command")]
pub(crate) fn decode<R>(
    bytes: &[u8],
    then: impl FnOnce(&Command<'_>) -> R,
) -> Result<R, Malformed> {
    let mut rest = bytes;
    let input = &mut rest;
    // What lists borrow from while `then` is called.
    let names: List<&[u8]>;
    let receipts: List<Receipt>;
    let done: List<Done<'_>>;
    let records: Vec<TaskRecord>;
    let put: Put<'_>;
    let command = match take_byte(input)? {
        PUT => Command::Put(putting::take_put(input)?),
        PUT_BURIED => {
            let reason = tubes::take_reason(input)?;
            put = take_inner_put(input)?;
            Command::PutBuried { put: &put, reason }
        }
        PUT_NUMBERED => {
            put = take_inner_put(input)?;
            Command::PutNumbered(&put)
        }
        kind @ (RESERVE | HEAD) => {
            let flags = Packing::take(input)?;
            names = take_names(input)?;
            tubes::take_reserve(kind == HEAD, flags, (&names, input))?
        }
        TAKE => {
            let flags = Packing::take(input)?;
            names = take_names(input)?;
            Command::Take(putting::take_take(flags, &names, input)?)
        }
        TAKE_DONE => {
            done = take_list(input, Done { queue: &[], receipt: NO_RECEIPT }, putting::take_done)?;
            let flags = take_inner_take(input)?;
            names = take_names(input)?;
            Command::TakeDone { done: &done, take: putting::take_take(flags, &names, input)? }
        }
        ACK_ALL => {
            let queue = take_queue_first(input)?;
            receipts = take_receipts(input)?;
            Command::AckAll { queue, receipts: &receipts }
        }
        KILL => {
            let queue = take_queue_first(input)?;
            names = take_names(input)?;
            Command::Kill { queue, ids: &names }
        }
        SUBSCRIBE => {
            let flags = Packing::take(input)?;
            names = take_names(input)?;
            putting::take_subscribe(flags, &names, input)?
        }
        UNSUBSCRIBE => {
            let flags = Packing::take(input)?;
            names = take_names(input)?;
            putting::take_unsubscribe(flags, &names, input)?
        }
        PUT_BACK => {
            records = take_records(input)?;
            Command::PutBack(&records)
        }
        GIVE_BACK => {
            receipts = take_receipts(input)?;
            Command::GiveBack(&receipts)
        }
        TRANSACTION => return stepping::take(input, then),
        WITHIN => return within::take(input, then),
        kind @ SHARE_LOOK..=SHARE_NEXT => return sharing::take(kind, rest, then),
        kind @ IMPORT_QUEUE..=IMPORT_SCHEDULE => return carrying::take_import(kind, input, then),
        kind @ (QUEUE_CREATE | QUEUE_SET) => return queues::take_changing(kind, input, then),
        kind => take_without_list(kind, input)?,
    };
    end(input)?;
    Ok(then(&command))
}

/// Reads the beginning of the take within another command.
fn take_inner_take(input: &mut &[u8]) -> Result<Packing, Malformed> {
    if take_byte(input)? != TAKE {
        return Err(Malformed::OutOfRange("take"));
    }
    Packing::take(input)
}

/// Reads the put within another command.
fn take_inner_put<'a>(input: &mut &'a [u8]) -> Result<Put<'a>, Malformed> {
    if take_byte(input)? != PUT {
        return Err(Malformed::OutOfRange("put"));
    }
    putting::take_put(input)
}

fn take_without_list<'a>(kind: u8, input: &mut &'a [u8]) -> Result<Command<'a>, Malformed> {
    Ok(match kind {
        ACK => Command::Ack(holding::take_ack(input)?),
        PUT_IN_LINE => {
            let room = take_span(input)?;
            Command::PutInLine { put: take_inner_put(input)?, room }
        }
        RELEASE => Command::Release(holding::take_release(input)?),
        TOUCH => holding::take_touch(input)?,
        CREDIT => Command::Credit(take_small(input, "credit")?),
        PEEK => Command::Peek(tending::take_peek(input)?),
        GET => Command::Get { queue: take_queue_first(input)?, id: take_bytes(input)? },
        EXPLAIN => {
            let (queue, id) = looking::take_explain(input)?;
            Command::Explain { queue, id }
        }
        SCAN => Command::Scan(looking::take_scan(input)?),
        LEASES => Command::Leases(looking::take_leases(input)?),
        EXPORT => Command::Export(carrying::take_export(input)?),
        BURY => holding::take_bury(input)?,
        FAIL => Command::Fail(holding::take_fail(input)?),
        MOVE => Command::Move {
            from: take_queue_first(input)?,
            to: take_bytes(input)?,
            count: take_small(input, "count")?,
            state: kind_of(take_byte(input)?)?.ok_or(Malformed::OutOfRange("state"))?,
        },
        REDRIVE => {
            Command::Redrive { queue: take_queue_first(input)?, count: take_small(input, "count")? }
        }
        DIG => Command::Dig(tending::take_transfer(input)?),
        PLOW => tending::take_plow(input)?,
        SWITCH => Command::Switch {
            transfer: tending::take_transfer(input)?,
            to: kind_of(take_byte(input)?)?.ok_or(Malformed::OutOfRange("state"))?,
        },
        SNATCH => Command::Snatch(tending::take_transfer(input)?),
        RESTART => Command::Restart(tending::take_transfer(input)?),
        UPDATE => Command::Update(tending::take_update(input)?),
        AWAIT => tending::take_await(input)?,
        PUBLISH => Command::Publish(fanout::take_publish(input)?),
        NUMBERED..=LET_GO => tubes::take(kind, input)?,
        SCHEDULE_SET..=SCHEDULE_FIRE => Command::Schedule(schedules::take(kind, input)?),
        _ => match fanout::take_member(kind, input)? {
            Some(command) => Command::Member(command),
            None => Command::Queue(queues::take(kind, input)?),
        },
    })
}

#[inline]
fn take_names<'a>(input: &mut &'a [u8]) -> Result<List<&'a [u8]>, Malformed> {
    take_list(input, &[][..], take_bytes)
}

fn take_receipts(input: &mut &[u8]) -> Result<List<Receipt>, Malformed> {
    take_list(input, NO_RECEIPT, take_receipt)
}
