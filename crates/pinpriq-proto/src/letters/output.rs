//! Outputs: the byte of each kind, and replies about tasks.
//!
//! Figures and settings are in the folder. The receiver of an output follows the first byte.

mod exported;
mod figures;
mod kinds;
mod looking;
mod refusals;

use std::sync::Arc;

use std::num::NonZeroU64;

use crate::records::primitives::{
    end, put_bytes, put_if, put_moment, put_number, take_byte, take_bytes, take_if, take_moment,
    take_number,
};
use crate::records::schedule::{put_course, put_plan, take_course, take_plan};
use crate::reply::{Outcome, Output, Reply};
use crate::schedule::ShownSchedule;
use crate::task::{ClientId, RequestId, TaskId, TaskRecord};
use crate::unique::{Awaited, PutUnique};

use self::exported::{put_exported, take_exported};
use self::figures::{
    put_figures, put_member, put_shown_settings, put_tubes, take_figures, take_member,
    take_shown_settings, take_tubes,
};
use self::kinds::{
    ACKS, COUNT, DEADLINE, DEADLINE_SOON, DELIVERY, DONE, EXPLAINED, EXPORTED, FIGURES, JOINED,
    LEASES, MEMBERS, NAMES, OUTCOME, PUT, PUT_OUTCOME, PUT_UNIQUE, REFUSED, SCANNED, SCHEDULE,
    SETTINGS, SHOWN, STATE, TASK, TASKS, TRANSACTION, TUBES,
};
use self::looking::{put_explanation, put_leases, take_explanation, take_leases};
use self::refusals::{put_ack, put_refusal, take_ack, take_refusal};
use crate::letters::Malformed;
use crate::letters::fields::{kind_code, kind_of};
use crate::letters::flags::{Packed, Packing};
use crate::letters::list::{put_list, take_vec};
use crate::letters::records::{id_code, put_id, put_record, take_id, take_record, take_records};

pub(crate) fn encode(output: &Output, out: &mut Vec<u8>) {
    match output {
        Output::Reply { client, request, reply } => {
            out.push(kind(reply));
            put_number(out, client.0);
            put_number(out, request.0);
            put_reply(out, reply);
        }
        Output::Delivery { client, tasks, popped } => {
            out.push(DELIVERY);
            put_number(out, client.0);
            put_tasks(out, tasks, *popped);
        }
    }
}

const fn kind(reply: &Reply) -> u8 {
    match reply {
        Reply::Done => DONE,
        Reply::Put(_) => PUT,
        Reply::PutOutcome(..) => PUT_OUTCOME,
        Reply::PutUnique(_) => PUT_UNIQUE,
        Reply::Shown(_) => SHOWN,
        Reply::Tasks { .. } => TASKS,
        Reply::DeadlineSoon => DEADLINE_SOON,
        Reply::Tubes(_) => TUBES,
        Reply::Task(_) => TASK,
        Reply::Explained(_) => EXPLAINED,
        Reply::Scanned { .. } => SCANNED,
        Reply::Leases { .. } => LEASES,
        Reply::Exported(_) => EXPORTED,
        Reply::State(_) => STATE,
        Reply::Deadline(_) => DEADLINE,
        Reply::Count(_) => COUNT,
        Reply::Outcome(..) => OUTCOME,
        Reply::Acks(_) => ACKS,
        Reply::Settings { .. } => SETTINGS,
        Reply::Names { .. } => NAMES,
        Reply::Figures(_) => FIGURES,
        Reply::Joined(_) => JOINED,
        Reply::Members(_) => MEMBERS,
        Reply::Schedule(_) => SCHEDULE,
        Reply::Transaction(_) => TRANSACTION,
        Reply::Refused(_) => REFUSED,
    }
}

fn put_reply(out: &mut Vec<u8>, reply: &Reply) {
    let mut flags = Packed::default();
    match reply {
        Reply::Done | Reply::DeadlineSoon => {}
        Reply::Tubes(shown) => put_tubes(out, shown),
        Reply::Put(id) => put_named(out, flags, id),
        Reply::PutOutcome(id, outcome) => {
            flags.code(3, outcome_code(*outcome));
            put_named(out, flags, id);
        }
        Reply::PutUnique(PutUnique { id, new, awaited }) => {
            let (code, outcome) = match awaited {
                Awaited::No => (0, 0),
                Awaited::Unknown => (1, 0),
                Awaited::Known(outcome) => (2, outcome_code(*outcome)),
            };
            flags.flag(*new);
            flags.code(2, code);
            flags.code(3, outcome);
            put_named(out, flags, id);
        }
        Reply::Shown(tasks) => put_list(out, tasks, put_record),
        Reply::Tasks { tasks, popped } => put_tasks(out, tasks, *popped),
        Reply::Task(task) => {
            flags.flag(task.is_some());
            flags.put(out);
            put_if(out, task.as_deref(), put_record);
        }
        Reply::Explained(explanation) => put_explanation(out, explanation),
        Reply::Scanned { tasks, next } => {
            flags.flag(next.is_some());
            flags.put(out);
            put_if(out, next.map(NonZeroU64::get), put_number);
            put_list(out, tasks, put_record);
        }
        Reply::Leases { leases, next } => put_leases(out, leases, next.as_deref()),
        Reply::Exported(page) => put_exported(out, page),
        Reply::State(state) => out.push(kind_code(*state)),
        Reply::Deadline(deadline) => {
            flags.flag(deadline.is_some());
            flags.put(out);
            put_if(out, *deadline, put_moment);
        }
        Reply::Count(number) | Reply::Joined(number) => put_number(out, *number),
        Reply::Outcome(outcome, state) => {
            flags.code(3, outcome_code(*outcome));
            flags.code(3, kind_code(*state));
            flags.put(out);
        }
        Reply::Acks(acks) => put_list(out, acks, put_ack),
        Reply::Settings { settings, paused, created } => {
            put_shown_settings(out, settings, *paused, *created);
        }
        Reply::Names { names, more } => {
            flags.flag(*more);
            flags.put(out);
            put_list(out, names, |out, name| put_bytes(out, name));
        }
        Reply::Figures(figures) => put_figures(out, figures),
        Reply::Members(members) => put_list(out, members, put_member),
        Reply::Schedule(shown) => put_schedule(out, shown),
        Reply::Transaction(replies) => put_list(out, replies, |out, reply| {
            out.push(kind(reply));
            put_reply(out, reply);
        }),
        Reply::Refused(refusal) => put_refusal(out, refusal),
    }
}

/// Tasks that were handed out, in a reply or in a delivery.
fn put_tasks(out: &mut Vec<u8>, tasks: &[TaskRecord], popped: bool) {
    let mut flags = Packed::default();
    flags.flag(popped);
    flags.put(out);
    put_list(out, tasks, put_record);
}

/// Appends the flags, completed with the form of the id, and then the id.
fn put_named(out: &mut Vec<u8>, mut flags: Packed, id: &TaskId) {
    flags.code(2, id_code(id));
    flags.put(out);
    put_id(out, id);
}

fn take_named(mut flags: Packing, input: &mut &[u8]) -> Result<TaskId, Malformed> {
    let id = flags.code(2);
    flags.end()?;
    take_id(id, input)
}

const fn outcome_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Acked => 0,
        Outcome::Buried => 1,
        Outcome::Expired => 2,
        Outcome::Killed => 3,
        Outcome::Timeout => 4,
        Outcome::Dead => 5,
        Outcome::Evicted => 6,
        Outcome::Moved => 7,
    }
}

const fn outcome_of(code: u8) -> Result<Outcome, Malformed> {
    Ok(match code {
        0 => Outcome::Acked,
        1 => Outcome::Buried,
        2 => Outcome::Expired,
        3 => Outcome::Killed,
        4 => Outcome::Timeout,
        5 => Outcome::Dead,
        6 => Outcome::Evicted,
        7 => Outcome::Moved,
        _ => return Err(Malformed::OutOfRange("outcome")),
    })
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Output, Malformed> {
    let mut rest = bytes;
    let input = &mut rest;
    let kind = take_byte(input)?;
    let is_known = (DELIVERY..=REFUSED).contains(&kind)
        || matches!(kind, SCHEDULE | PUT_UNIQUE | EXPORTED | DEADLINE_SOON | TUBES)
        || (TRANSACTION..=LEASES).contains(&kind);
    if !is_known {
        return Err(Malformed::UnknownKind { what: "output", kind });
    }
    let client = ClientId(take_number(input)?);
    let output = if kind == DELIVERY {
        let (tasks, popped) = take_tasks(input)?;
        Output::Delivery { client, tasks, popped }
    } else {
        let request = RequestId(take_number(input)?);
        Output::Reply { client, request, reply: take_reply(kind, input)? }
    };
    end(input)?;
    Ok(output)
}

fn take_reply(kind: u8, input: &mut &[u8]) -> Result<Reply, Malformed> {
    Ok(match kind {
        DONE => Reply::Done,
        PUT => Reply::Put(take_named(Packing::take(input)?, input)?),
        PUT_OUTCOME => {
            let mut flags = Packing::take(input)?;
            let outcome = outcome_of(flags.code(3))?;
            Reply::PutOutcome(take_named(flags, input)?, outcome)
        }
        PUT_UNIQUE => Reply::PutUnique(take_put_unique(input)?),
        SHOWN => Reply::Shown(take_records(input)?),
        TASKS => {
            let (tasks, popped) = take_tasks(input)?;
            Reply::Tasks { tasks, popped }
        }
        TASK => {
            let is_there = take_flag_alone(input)?;
            Reply::Task(take_if(is_there, input, |input| take_record(input, None))?.map(Box::new))
        }
        DEADLINE_SOON => Reply::DeadlineSoon,
        TUBES => Reply::Tubes(Box::new(take_tubes(input)?)),
        EXPLAINED => Reply::Explained(Box::new(take_explanation(input)?)),
        SCANNED => {
            let is_there = take_flag_alone(input)?;
            let next = take_if(is_there, input, take_number)?;
            let next = next.map(|next| NonZeroU64::new(next).ok_or(Malformed::OutOfRange("next")));
            Reply::Scanned { next: next.transpose()?, tasks: take_records(input)? }
        }
        LEASES => {
            let (leases, next) = take_leases(input)?;
            Reply::Leases { leases, next: next.map(Box::new) }
        }
        EXPORTED => Reply::Exported(Box::new(take_exported(input)?)),
        STATE => Reply::State(kind_of(take_byte(input)?)?),
        DEADLINE => {
            let is_there = take_flag_alone(input)?;
            Reply::Deadline(take_if(is_there, input, take_moment)?)
        }
        COUNT => Reply::Count(take_number(input)?),
        OUTCOME => {
            let mut flags = Packing::take(input)?;
            let (outcome, state) = (outcome_of(flags.code(3))?, kind_of(flags.code(3))?);
            flags.end()?;
            Reply::Outcome(outcome, state)
        }
        ACKS => Reply::Acks(take_vec(input, take_ack)?),
        SETTINGS => {
            let (settings, paused, created) = take_shown_settings(input)?;
            Reply::Settings { settings: Box::new(settings), paused, created }
        }
        NAMES => {
            let more = take_flag_alone(input)?;
            Reply::Names { names: take_vec(input, |input| take_bytes(input).map(Arc::from))?, more }
        }
        FIGURES => Reply::Figures(Box::new(take_figures(input)?)),
        JOINED => Reply::Joined(take_number(input)?),
        MEMBERS => Reply::Members(take_vec(input, take_member)?),
        SCHEDULE => Reply::Schedule(Box::new(take_schedule(input)?)),
        REFUSED => Reply::Refused(take_refusal(input)?),
        TRANSACTION => Reply::Transaction(take_vec(input, take_reply_of_step)?),
        _ => return Err(Malformed::UnknownKind { what: "output", kind }),
    })
}

fn take_put_unique(input: &mut &[u8]) -> Result<PutUnique, Malformed> {
    let mut flags = Packing::take(input)?;
    let (new, code) = (flags.flag(), flags.code(2));
    let outcome = outcome_of(flags.code(3))?;
    let awaited = match (code, outcome) {
        (0, Outcome::Acked) => Awaited::No,
        (1, Outcome::Acked) => Awaited::Unknown,
        (2, outcome) => Awaited::Known(outcome),
        _ => return Err(Malformed::OutOfRange("outcome")),
    };
    Ok(PutUnique { id: take_named(flags, input)?, new, awaited })
}

/// The reply to a step is neither a refusal nor that of another transaction.
fn take_reply_of_step(input: &mut &[u8]) -> Result<Reply, Malformed> {
    match take_byte(input)? {
        REFUSED | TRANSACTION => Err(Malformed::OutOfRange("reply of a step")),
        kind => take_reply(kind, input),
    }
}

fn take_tasks(input: &mut &[u8]) -> Result<(Vec<TaskRecord>, bool), Malformed> {
    let popped = take_flag_alone(input)?;
    Ok((take_records(input)?, popped))
}

fn put_schedule(out: &mut Vec<u8>, shown: &ShownSchedule) {
    let mut flags = Packed::default();
    flags.flag(shown.next_at.is_some());
    flags.put(out);
    put_bytes(out, &shown.name);
    put_plan(out, &shown.plan);
    put_course(out, &shown.course);
    put_if(out, shown.next_at, put_moment);
}

fn take_schedule(input: &mut &[u8]) -> Result<ShownSchedule, Malformed> {
    let has_next = take_flag_alone(input)?;
    Ok(ShownSchedule {
        name: Arc::from(take_bytes(input)?),
        plan: take_plan(input)?,
        course: take_course(input)?,
        next_at: take_if(has_next, input, take_moment)?,
    })
}

/// Takes flags that consist of a single one.
fn take_flag_alone(input: &mut &[u8]) -> Result<bool, Malformed> {
    let mut flags = Packing::take(input)?;
    let flag = flags.flag();
    flags.end()?;
    Ok(flag)
}
