//! Whole tasks.
//!
//! The place of a payload in a store has no meaning for another shard and is not encoded.

use std::sync::Arc;

use crate::records::primitives::{
    put_bytes, put_number, put_option, take_array, take_bytes, take_number, take_option,
};
use crate::records::task::{put_task, take_task};
use crate::task::{Bytes, LaneName, TaskId, TaskRecord};

use crate::letters::Malformed;
use crate::letters::list::take_vec;

pub(crate) fn put_record(out: &mut Vec<u8>, task: &TaskRecord) {
    let is_whole = task.away.is_none_or(|away| away.bytes == 0) || !task.payload.is_empty();
    assert!(is_whole, "a payload was left in the store and not read back");
    put_bytes(out, &task.queue);
    put_option(out, task.lane.as_ref(), |out, lane| {
        put_number(out, lane.number);
        put_bytes(out, &lane.member);
    });
    put_task(out, task);
}

/// The form of an id, for the flags: 0 takes no bytes.
#[inline]
pub(crate) fn id_code(id: &TaskId) -> u8 {
    match id {
        TaskId::Number(0) => 0,
        TaskId::Number(_) => 1,
        TaskId::Uuid(_) => 2,
        TaskId::Given(_) => 3,
    }
}

#[inline]
pub(crate) fn put_id(out: &mut Vec<u8>, id: &TaskId) {
    match id {
        TaskId::Number(0) => {}
        TaskId::Number(number) => put_number(out, *number),
        TaskId::Uuid(bytes) => out.extend_from_slice(bytes),
        TaskId::Given(bytes) => put_bytes(out, bytes),
    }
}

pub(crate) fn take_id(code: u8, input: &mut &[u8]) -> Result<TaskId, Malformed> {
    Ok(match code {
        0 => TaskId::Number(0),
        1 => match take_number(input)? {
            0 => return Err(Malformed::OutOfRange("id")),
            number => TaskId::Number(number),
        },
        2 => TaskId::Uuid(take_array(input)?),
        3 => TaskId::Given(Arc::from(take_bytes(input)?)),
        _ => return Err(Malformed::OutOfRange("id")),
    })
}

/// Takes a list of tasks. Consecutive tasks of one queue share its name.
pub(crate) fn take_records(input: &mut &[u8]) -> Result<Vec<TaskRecord>, Malformed> {
    let mut last: Option<Bytes> = None;
    take_vec(input, |input| {
        let task = take_record(input, last.as_ref())?;
        last = Some(Arc::clone(&task.queue));
        Ok(task)
    })
}

/// Takes one task, whose queue is often `known`.
pub(crate) fn take_record(
    input: &mut &[u8],
    known: Option<&Bytes>,
) -> Result<TaskRecord, Malformed> {
    let queue = match (take_bytes(input)?, known) {
        (queue, Some(known)) if **known == *queue => Arc::clone(known),
        (queue, _) => Arc::from(queue),
    };
    let lane = take_option(input, |input| {
        let number = take_number(input)?;
        Ok(LaneName { number, member: Arc::from(take_bytes(input)?) })
    })?;
    Ok(take_task(input)?.kept(queue, lane))
}
