//! Tasks, whole.
//!
//! What most tasks have in common takes no room: an id that is the task's number, its place in the
//! order of insertion, priority 0. The place of a payload in a store means nothing elsewhere and is
//! not carried.

use std::sync::Arc;

use pinpriq_engine::task::{
    Bytes, ClientId, LaneName, Lease, State, StateKind, TaskId, TaskRecord,
};

use crate::Malformed;
use crate::fields::{
    kind_code, kind_of, pack_priority, put_grant, put_priority, take_grant, take_priority,
};
use crate::flags::{Packed, Packing};
use crate::list::take_vec;
use crate::primitives::{
    put_bytes, put_if, put_moment, put_number, put_span, take_array, take_bytes, take_if,
    take_moment, take_number, take_small, take_span,
};

pub(crate) fn put_record(out: &mut Vec<u8>, task: &TaskRecord) {
    let is_whole = task.away.is_none_or(|away| away.bytes == 0) || !task.payload.is_empty();
    assert!(is_whole, "a payload was left in the store and not read back");
    let lease = match &task.state {
        State::Taken(lease) => Some(lease),
        _ => None,
    };
    let mut flags = Packed::default();
    flags.code(3, kind_code(Some(task.state.kind())));
    flags.code(2, id_code(&task.id, task.number));
    pack_priority(&mut flags, task.priority);
    flags.flag(task.seq != task.number);
    flags.flag(task.key.is_some());
    flags.flag(task.expires_at.is_some());
    flags.flag(lease.is_some_and(|lease| lease.holder.is_some()));
    flags.flag(lease.is_some_and(|lease| lease.deadline.is_some()));
    flags.flag(lease.is_some_and(|lease| lease.ttr.is_some()));
    flags.flag(task.ttr.is_some());
    flags.flag(task.lane.is_some());
    flags.put(out);
    put_number(out, task.number);
    put_bytes(out, &task.queue);
    put_if(out, task.lane.as_ref(), |out, lane| {
        put_number(out, lane.number);
        put_bytes(out, &lane.member);
    });
    put_id(out, &task.id, task.number);
    if task.seq != task.number {
        put_number(out, task.seq);
    }
    put_priority(out, task.priority);
    put_if(out, task.key.as_deref(), put_bytes);
    put_moment(out, task.put_at);
    put_if(out, task.expires_at, put_moment);
    put_if(out, task.ttr, put_span);
    put_number(out, u64::from(task.attempts));
    match &task.state {
        State::Ready | State::Done => {}
        State::Taken(lease) => put_lease(out, lease),
        State::Waiting { ready_at } => put_moment(out, *ready_at),
        State::Buried { reason } => put_bytes(out, reason),
        State::Zombie { purge_at } => put_moment(out, *purge_at),
    }
    put_bytes(out, &task.payload);
}

fn put_lease(out: &mut Vec<u8>, lease: &Lease) {
    put_grant(out, lease.grant);
    put_if(out, lease.holder, |out, ClientId(holder)| put_number(out, holder));
    put_if(out, lease.deadline, put_moment);
    put_if(out, lease.ttr, put_span);
}

/// `usual` is the number that an id has when it takes no room.
#[inline]
pub(crate) fn id_code(id: &TaskId, usual: u64) -> u8 {
    match id {
        TaskId::Number(number) if *number == usual => 0,
        TaskId::Number(_) => 1,
        TaskId::Uuid(_) => 2,
        TaskId::Given(_) => 3,
    }
}

#[inline]
pub(crate) fn put_id(out: &mut Vec<u8>, id: &TaskId, usual: u64) {
    match id {
        TaskId::Number(number) if *number == usual => {}
        TaskId::Number(number) => put_number(out, *number),
        TaskId::Uuid(bytes) => out.extend_from_slice(bytes),
        TaskId::Given(bytes) => put_bytes(out, bytes),
    }
}

pub(crate) fn take_id(code: u8, usual: u64, input: &mut &[u8]) -> Result<TaskId, Malformed> {
    Ok(match code {
        0 => TaskId::Number(usual),
        1 => match take_number(input)? {
            number if number == usual => return Err(Malformed::OutOfRange("id")),
            number => TaskId::Number(number),
        },
        2 => TaskId::Uuid(take_array(input)?),
        3 => TaskId::Given(Arc::from(take_bytes(input)?)),
        _ => return Err(Malformed::OutOfRange("id")),
    })
}

/// Takes a list of tasks. Neighbours in one queue share its name.
pub(crate) fn take_records(input: &mut &[u8]) -> Result<Vec<TaskRecord>, Malformed> {
    let mut last: Option<Bytes> = None;
    take_vec(input, |input| {
        let task = take_record(input, last.as_ref())?;
        last = Some(Arc::clone(&task.queue));
        Ok(task)
    })
}

/// Takes one task, whose queue may well be `known`.
pub(crate) fn take_record(
    input: &mut &[u8],
    known: Option<&Bytes>,
) -> Result<TaskRecord, Malformed> {
    let mut flags = Packing::take(input)?;
    let (kind, id, priority) = (flags.code(3), flags.code(2), flags.code(2));
    let (seq, key, expires_at) = (flags.flag(), flags.flag(), flags.flag());
    let lease = LeaseForm { holder: flags.flag(), deadline: flags.flag(), ttr: flags.flag() };
    let (ttr, lane) = (flags.flag(), flags.flag());
    flags.end()?;
    let number = take_number(input)?;
    let queue = match (take_bytes(input)?, known) {
        (queue, Some(known)) if **known == *queue => Arc::clone(known),
        (queue, _) => Arc::from(queue),
    };
    Ok(TaskRecord {
        number,
        queue,
        lane: take_if(lane, input, |input| {
            let number = take_number(input)?;
            Ok(LaneName { number, member: Arc::from(take_bytes(input)?) })
        })?,
        id: take_id(id, number, input)?,
        seq: match take_if(seq, input, take_number)? {
            None => number,
            Some(seq) if seq == number => return Err(Malformed::OutOfRange("seq")),
            Some(seq) => seq,
        },
        priority: take_priority(priority, input)?,
        key: take_if(key, input, take_bytes)?.map(Arc::from),
        put_at: take_moment(input)?,
        expires_at: take_if(expires_at, input, take_moment)?,
        ttr: take_if(ttr, input, take_span)?,
        attempts: take_small(input, "attempts")?,
        state: take_state(kind, lease, input)?,
        payload: Arc::from(take_bytes(input)?),
        away: None,
    })
}

/// What a lease has, as the flags tell it.
#[derive(Clone, Copy)]
struct LeaseForm {
    holder: bool,
    deadline: bool,
    ttr: bool,
}

fn take_state(kind: u8, lease: LeaseForm, input: &mut &[u8]) -> Result<State, Malformed> {
    let kind = kind_of(kind)?.ok_or(Malformed::OutOfRange("state"))?;
    if kind != StateKind::Taken && (lease.holder || lease.deadline || lease.ttr) {
        return Err(Malformed::OutOfRange("lease"));
    }
    Ok(match kind {
        StateKind::Ready => State::Ready,
        StateKind::Taken => State::Taken(Lease {
            grant: take_grant(input)?,
            holder: take_if(lease.holder, input, take_number)?.map(ClientId),
            deadline: take_if(lease.deadline, input, take_moment)?,
            ttr: take_if(lease.ttr, input, take_span)?,
        }),
        StateKind::Waiting => State::Waiting { ready_at: take_moment(input)? },
        StateKind::Buried => State::Buried { reason: Arc::from(take_bytes(input)?) },
        StateKind::Zombie => State::Zombie { purge_at: take_moment(input)? },
        StateKind::Done => State::Done,
    })
}
