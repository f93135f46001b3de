//! A task as bytes, without its queue or lane, which are written elsewhere.
//!
//! This is the one list of a task's attributes, on disk and in letters. To add one, give it the
//! next tag, its place in `ATTRIBUTES`, a line in [`put_task`] or [`put_terms`], and a line where
//! they are taken.

use std::sync::Arc;

use pinpriq_engine::task::{
    Bytes, ClientId, Grant, LaneName, Lease, Progress, State, TaskId, TaskRecord, Terms,
};
use pinpriq_engine::time::Timestamp;

use crate::Malformed;
use crate::primitives::{
    put_bytes, put_moment, put_number, put_option, put_signed, put_span, take_array, take_byte,
    take_bytes, take_moment, take_number, take_option, take_signed, take_small, take_span,
};

/// Follows the last attribute.
const END: u8 = 0;
const ID: u8 = 1;
const KEY: u8 = 2;
const TTR: u8 = 3;
const PRIORITY: u8 = 4;
const SEQ: u8 = 5;
const EXPIRES_AT: u8 = 6;
const ATTEMPTS: u8 = 7;
const STATE: u8 = 8;
const SHARED: u8 = 9;
/// The connection that holds the lease. It is never written to a store.
const HOLDER: u8 = 10;

/// What an attribute belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Task,
    Terms,
    Progress,
}

/// All attributes, in the order in which they are written.
const ATTRIBUTES: [(u8, Part); 10] = [
    (ID, Part::Task),
    (KEY, Part::Terms),
    (TTR, Part::Terms),
    (PRIORITY, Part::Progress),
    (SEQ, Part::Progress),
    (EXPIRES_AT, Part::Progress),
    (ATTEMPTS, Part::Progress),
    (STATE, Part::Progress),
    (SHARED, Part::Task),
    (HOLDER, Part::Task),
];

/// A task that borrows its bytes from where they were read, except for the reason of a buried task.
#[derive(Debug)]
pub struct TaskView<'a> {
    /// See [`TaskRecord::number`].
    pub number: u64,
    put_at: Timestamp,
    attributes: Attributes<'a>,
    payload: &'a [u8],
}

/// The fields that only some tasks have.
#[derive(Debug)]
struct Attributes<'a> {
    /// An id that is not the number.
    own_id: Option<TaskId>,
    terms: Terms<&'a [u8]>,
    progress: Progress,
    shared: bool,
}

/// Appends a task without its queue and lane. The place of a payload that was left in the store is
/// not encoded.
pub fn put_task(out: &mut Vec<u8>, task: &TaskRecord) {
    put_number(out, task.number);
    put_moment(out, task.put_at);
    if task.id != TaskId::Number(task.number) {
        out.push(ID);
        put_id(out, &task.id);
    }
    put_terms_open(out, task.terms.borrowed());
    put_progress_open(out, task.number, &task.progress);
    if task.shared {
        out.push(SHARED);
    }
    if let State::Taken(Lease { holder: Some(ClientId(holder)), .. }) = task.progress.state {
        out.push(HOLDER);
        put_number(out, holder);
    }
    out.push(END);
    put_bytes(out, &task.payload);
}

/// Takes what [`put_task`] appends.
pub fn take_task<'a>(input: &mut &'a [u8]) -> Result<TaskView<'a>, Malformed> {
    let number = take_number(input)?;
    let put_at = take_moment(input)?;
    let attributes = Attributes::take(input, number, None)?;
    Ok(TaskView { number, put_at, attributes, payload: take_bytes(input)? })
}

/// Appends the terms that a producer set for good.
pub fn put_terms(out: &mut Vec<u8>, terms: Terms<&[u8]>) {
    put_terms_open(out, terms);
    out.push(END);
}

/// Takes what [`put_terms`] appends.
pub fn take_terms<'a>(input: &mut &'a [u8]) -> Result<Terms<&'a [u8]>, Malformed> {
    Ok(Attributes::take(input, 0, Some(Part::Terms))?.terms)
}

/// Appends the progress of the task of this number.
pub fn put_progress(out: &mut Vec<u8>, number: u64, progress: &Progress) {
    put_progress_open(out, number, progress);
    out.push(END);
}

/// Takes what [`put_progress`] appends, for the task of this number.
pub fn take_progress(input: &mut &[u8], number: u64) -> Result<Progress, Malformed> {
    Ok(Attributes::take(input, number, Some(Part::Progress))?.progress)
}

impl TaskView<'_> {
    /// Returns the task with owned bytes, in this queue or lane.
    #[must_use]
    pub fn kept(self, queue: Bytes, lane: Option<LaneName>) -> TaskRecord {
        let Attributes { own_id, terms, progress, shared } = self.attributes;
        TaskRecord {
            number: self.number,
            queue,
            lane,
            id: own_id.unwrap_or(TaskId::Number(self.number)),
            put_at: self.put_at,
            terms: terms.kept(),
            progress,
            payload: Arc::from(self.payload),
            away: None,
            shared,
        }
    }
}

impl<'a> Attributes<'a> {
    /// Takes attributes up to their end: those of this part alone, or all.
    fn take(input: &mut &'a [u8], number: u64, part: Option<Part>) -> Result<Self, Malformed> {
        let progress = Progress::fresh(number, None);
        let mut found = Self { own_id: None, terms: Terms::NONE, progress, shared: false };
        let mut rest = &ATTRIBUTES[..];
        loop {
            let tag = take_byte(input)?;
            if tag == END {
                return Ok(found);
            }
            let Some(place) = rest.iter().position(|(known, _)| *known == tag) else {
                let is_known = ATTRIBUTES.iter().any(|(known, _)| *known == tag);
                let out_of_order = Malformed::OutOfRange("attribute");
                return Err(if is_known { out_of_order } else { Malformed::UnknownAttribute(tag) });
            };
            if part.is_some_and(|part| part != rest[place].1) {
                return Err(Malformed::OutOfRange("attribute"));
            }
            rest = &rest[place + 1..];
            let Self { terms, progress, .. } = &mut found;
            match tag {
                ID => {
                    let id = unusual(take_id(input)?, &TaskId::Number(number), "id")?;
                    found.own_id = Some(id);
                }
                KEY => terms.key = Some(take_bytes(input)?),
                TTR => terms.ttr = Some(take_span(input)?),
                PRIORITY => progress.priority = Some(take_signed(input)?),
                SEQ => progress.seq = unusual(take_number(input)?, &number, "seq")?,
                EXPIRES_AT => progress.expires_at = Some(take_moment(input)?),
                ATTEMPTS => {
                    progress.attempts = unusual(take_small(input, "attempts")?, &0, "attempts")?;
                }
                STATE => progress.state = unusual(take_state(input)?, &State::Ready, "state")?,
                SHARED => found.shared = true,
                _ => match &mut progress.state {
                    State::Taken(lease) => lease.holder = Some(ClientId(take_number(input)?)),
                    _ => return Err(Malformed::OutOfRange("holder")),
                },
            }
        }
    }
}

/// Refuses an attribute with the value that is the default when it is left out.
fn unusual<T: PartialEq>(value: T, usual: &T, field: &'static str) -> Result<T, Malformed> {
    if value == *usual { Err(Malformed::OutOfRange(field)) } else { Ok(value) }
}

fn put_terms_open(out: &mut Vec<u8>, terms: Terms<&[u8]>) {
    let Terms { key, ttr } = terms;
    put_attribute(out, KEY, key, put_bytes);
    put_attribute(out, TTR, ttr, put_span);
}

fn put_progress_open(out: &mut Vec<u8>, number: u64, progress: &Progress) {
    let Progress { priority, seq, expires_at, attempts, state } = progress;
    let attempts = u64::from(*attempts);
    put_attribute(out, PRIORITY, *priority, put_signed);
    put_attribute(out, SEQ, Some(*seq).filter(|seq| *seq != number), put_number);
    put_attribute(out, EXPIRES_AT, *expires_at, put_moment);
    put_attribute(out, ATTEMPTS, Some(attempts).filter(|count| *count > 0), put_number);
    put_attribute(out, STATE, Some(state).filter(|state| **state != State::Ready), put_state);
}

#[inline]
fn put_attribute<T>(out: &mut Vec<u8>, tag: u8, value: Option<T>, put: fn(&mut Vec<u8>, T)) {
    if let Some(value) = value {
        out.push(tag);
        put(out, value);
    }
}

/// Appends the id of a task.
pub fn put_id(out: &mut Vec<u8>, id: &TaskId) {
    match id {
        TaskId::Number(number) => {
            out.push(0);
            put_number(out, *number);
        }
        TaskId::Uuid(bytes) => {
            out.push(1);
            out.extend_from_slice(bytes);
        }
        TaskId::Given(bytes) => {
            out.push(2);
            put_bytes(out, bytes);
        }
    }
}

/// Takes what [`put_id`] appends.
pub fn take_id(input: &mut &[u8]) -> Result<TaskId, Malformed> {
    Ok(match take_byte(input)? {
        0 => TaskId::Number(take_number(input)?),
        1 => TaskId::Uuid(take_array(input)?),
        2 => TaskId::Given(Arc::from(take_bytes(input)?)),
        _ => return Err(Malformed::OutOfRange("id")),
    })
}

fn put_state(out: &mut Vec<u8>, state: &State) {
    match state {
        State::Ready => out.push(0),
        State::Taken(lease) => {
            out.push(1);
            put_number(out, lease.grant.incarnation);
            put_number(out, lease.grant.serial);
            put_option(out, lease.deadline, put_moment);
            put_option(out, lease.ttr, put_span);
        }
        State::Waiting { ready_at } => {
            out.push(2);
            put_moment(out, *ready_at);
        }
        State::Buried { reason } => {
            out.push(3);
            put_bytes(out, reason);
        }
        State::Zombie { purge_at } => {
            out.push(4);
            put_moment(out, *purge_at);
        }
        State::Done => out.push(5),
    }
}

/// Takes a state. Records of older versions contain states in this form too.
pub fn take_state(input: &mut &[u8]) -> Result<State, Malformed> {
    Ok(match take_byte(input)? {
        0 => State::Ready,
        1 => State::Taken(Lease {
            grant: Grant { incarnation: take_number(input)?, serial: take_number(input)? },
            holder: None,
            deadline: take_option(input, take_moment)?,
            ttr: take_option(input, take_span)?,
        }),
        2 => State::Waiting { ready_at: take_moment(input)? },
        3 => State::Buried { reason: Arc::from(take_bytes(input)?) },
        4 => State::Zombie { purge_at: take_moment(input)? },
        5 => State::Done,
        _ => return Err(Malformed::OutOfRange("state")),
    })
}
