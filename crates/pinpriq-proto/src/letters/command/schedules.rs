//! Commands on schedules. What is common to them and to the journal is in `pinpriq-proto`.

use crate::records::primitives::{
    put_bytes, put_if, put_moment, put_number, put_span, take_bytes, take_if, take_moment,
    take_number, take_span,
};
use crate::records::schedule::{on_missed_code, on_missed_of, overlap_code, overlap_of};
use crate::schedule::{NewSchedule, ScheduleCommand, When};

use super::kinds::{
    SCHEDULE_DROP, SCHEDULE_FIRE, SCHEDULE_LIST, SCHEDULE_PAUSE, SCHEDULE_RESUME, SCHEDULE_SET,
    SCHEDULE_SHOW,
};
use crate::letters::Malformed;
use crate::letters::fields::{
    pack_priority, put_priority, put_terms_if_any, take_priority, take_terms_if,
};
use crate::letters::flags::{Packed, Packing};

pub(super) fn encode(command: &ScheduleCommand<'_>, out: &mut Vec<u8>) {
    let (kind, name) = match command {
        ScheduleCommand::Set(new) => return encode_set(new, out),
        ScheduleCommand::List { prefix, after, count } => {
            out.push(SCHEDULE_LIST);
            let mut flags = Packed::default();
            flags.flag(after.is_some());
            flags.put(out);
            put_bytes(out, prefix);
            put_if(out, *after, put_bytes);
            return put_number(out, *count as u64);
        }
        ScheduleCommand::Show(name) => (SCHEDULE_SHOW, name),
        ScheduleCommand::Pause(name) => (SCHEDULE_PAUSE, name),
        ScheduleCommand::Resume(name) => (SCHEDULE_RESUME, name),
        ScheduleCommand::Drop(name) => (SCHEDULE_DROP, name),
        ScheduleCommand::Fire(name) => (SCHEDULE_FIRE, name),
    };
    out.push(kind);
    put_bytes(out, name);
}

fn encode_set(new: &NewSchedule<'_>, out: &mut Vec<u8>) {
    let NewSchedule { name, queue, payload, terms, priority, ttl, when, on_missed, overlap } = *new;
    out.push(SCHEDULE_SET);
    let mut flags = Packed::default();
    flags.code(
        2,
        match when {
            When::Every { at: None, .. } => 0,
            When::Every { at: Some(_), .. } => 1,
            When::Cron { zone: None, .. } => 2,
            When::Cron { zone: Some(_), .. } => 3,
        },
    );
    flags.flag(!terms.are_none());
    pack_priority(&mut flags, priority);
    flags.flag(ttl.is_some());
    flags.code(2, on_missed_code(on_missed));
    flags.code(1, overlap_code(overlap));
    flags.put(out);
    put_bytes(out, name);
    put_bytes(out, queue);
    put_terms_if_any(out, terms);
    put_priority(out, priority);
    put_if(out, ttl, put_span);
    match when {
        When::Every { every, at } => {
            put_span(out, every);
            put_if(out, at, put_moment);
        }
        When::Cron { expression, zone } => {
            put_bytes(out, expression);
            put_if(out, zone, put_bytes);
        }
    }
    put_bytes(out, payload);
}

/// Takes the rest of any of these commands, after its kind.
pub(super) fn take<'a>(kind: u8, input: &mut &'a [u8]) -> Result<ScheduleCommand<'a>, Malformed> {
    Ok(match kind {
        SCHEDULE_SET => ScheduleCommand::Set(take_set(input)?),
        SCHEDULE_LIST => {
            let mut flags = Packing::take(input)?;
            let has_after = flags.flag();
            flags.end()?;
            ScheduleCommand::List {
                prefix: take_bytes(input)?,
                after: take_if(has_after, input, take_bytes)?,
                count: usize::try_from(take_number(input)?)
                    .map_err(|_| Malformed::OutOfRange("count"))?,
            }
        }
        SCHEDULE_SHOW => ScheduleCommand::Show(take_bytes(input)?),
        SCHEDULE_PAUSE => ScheduleCommand::Pause(take_bytes(input)?),
        SCHEDULE_RESUME => ScheduleCommand::Resume(take_bytes(input)?),
        SCHEDULE_DROP => ScheduleCommand::Drop(take_bytes(input)?),
        SCHEDULE_FIRE => ScheduleCommand::Fire(take_bytes(input)?),
        _ => return Err(Malformed::UnknownKind { what: "command", kind }),
    })
}

fn take_set<'a>(input: &mut &'a [u8]) -> Result<NewSchedule<'a>, Malformed> {
    let mut flags = Packing::take(input)?;
    let (form, terms, priority) = (flags.code(2), flags.flag(), flags.code(2));
    let (ttl, on_missed, overlap) = (flags.flag(), flags.code(2), flags.code(1));
    flags.end()?;
    Ok(NewSchedule {
        name: take_bytes(input)?,
        queue: take_bytes(input)?,
        terms: take_terms_if(terms, input)?,
        priority: take_priority(priority, input)?,
        ttl: take_if(ttl, input, take_span)?,
        when: match form {
            0 | 1 => When::Every {
                every: take_span(input)?,
                at: take_if(form == 1, input, take_moment)?,
            },
            _ => When::Cron {
                expression: take_bytes(input)?,
                zone: take_if(form == 3, input, take_bytes)?,
            },
        },
        on_missed: on_missed_of(on_missed)?,
        overlap: overlap_of(overlap)?,
        payload: take_bytes(input)?,
    })
}
