//! A schedule as bytes: what was decided about it, and how far it has come. Its number and name are
//! written elsewhere.

use std::sync::Arc;

use crate::schedule::{Course, Form, OnMissed, Overlap, Plan};
use crate::task::Bytes;

use crate::records::Malformed;
use crate::records::primitives::{
    put_bytes, put_moment, put_number, put_option, put_signed, put_span, take_byte, take_bytes,
    take_flag, take_moment, take_number, take_option, take_signed, take_span,
};
use crate::records::task::{put_id, put_terms, take_id, take_terms};

/// Appends what was decided about a schedule.
pub fn put_plan(out: &mut Vec<u8>, plan: &Plan) {
    let Plan { queue, payload, terms, priority, ttl, form, on_missed, overlap } = plan;
    put_bytes(out, queue);
    put_terms(out, terms.borrowed());
    put_option(out, *priority, put_signed);
    put_option(out, *ttl, put_span);
    match form {
        Form::Every { every, anchor } => {
            out.push(0);
            put_span(out, *every);
            put_moment(out, *anchor);
        }
        Form::Cron { expression, zone } => {
            out.push(1);
            put_bytes(out, expression);
            put_option(out, zone.as_deref(), put_bytes);
        }
    }
    out.push(on_missed_code(*on_missed));
    out.push(overlap_code(*overlap));
    put_bytes(out, payload);
}

/// Takes what [`put_plan`] appends.
pub fn take_plan(input: &mut &[u8]) -> Result<Plan, Malformed> {
    let queue: Bytes = Arc::from(take_bytes(input)?);
    let terms = take_terms(input)?.kept();
    let priority = take_option(input, take_signed)?;
    let ttl = take_option(input, take_span)?;
    let form = match take_byte(input)? {
        0 => Form::Every { every: take_span(input)?, anchor: take_moment(input)? },
        1 => Form::Cron {
            expression: Arc::from(take_bytes(input)?),
            zone: take_option(input, |input| take_bytes(input).map(Arc::from))?,
        },
        _ => return Err(Malformed::OutOfRange("form")),
    };
    let on_missed = on_missed_of(take_byte(input)?)?;
    let overlap = overlap_of(take_byte(input)?)?;
    let payload = Arc::from(take_bytes(input)?);
    Ok(Plan { queue, payload, terms, priority, ttl, form, on_missed, overlap })
}

/// Appends how far a schedule has come.
pub fn put_course(out: &mut Vec<u8>, course: &Course) {
    let Course { done_until, paused, fired, missed, last_id, last_slot, last_number } = course;
    put_moment(out, *done_until);
    out.push(u8::from(*paused));
    put_number(out, *fired);
    put_number(out, *missed);
    put_option(out, last_id.as_ref(), put_id);
    put_option(out, *last_slot, put_moment);
    put_number(out, *last_number);
}

/// Takes what [`put_course`] appends.
pub fn take_course(input: &mut &[u8]) -> Result<Course, Malformed> {
    Ok(Course {
        done_until: take_moment(input)?,
        paused: take_flag(input, "paused")?,
        fired: take_number(input)?,
        missed: take_number(input)?,
        last_id: take_option(input, take_id)?,
        last_slot: take_option(input, take_moment)?,
        last_number: take_number(input)?,
    })
}

/// The byte of what is done about slots of the time while the server was down.
#[must_use]
pub const fn on_missed_code(on_missed: OnMissed) -> u8 {
    match on_missed {
        OnMissed::One => 0,
        OnMissed::All => 1,
        OnMissed::None => 2,
    }
}

/// The reverse of [`on_missed_code`].
pub const fn on_missed_of(code: u8) -> Result<OnMissed, Malformed> {
    Ok(match code {
        0 => OnMissed::One,
        1 => OnMissed::All,
        2 => OnMissed::None,
        _ => return Err(Malformed::OutOfRange("missed")),
    })
}

/// The byte of what is done while the task of the slot before is not finished.
#[must_use]
pub const fn overlap_code(overlap: Overlap) -> u8 {
    match overlap {
        Overlap::Allow => 0,
        Overlap::Skip => 1,
    }
}

/// The reverse of [`overlap_code`].
pub const fn overlap_of(code: u8) -> Result<Overlap, Malformed> {
    Ok(match code {
        0 => Overlap::Allow,
        1 => Overlap::Skip,
        _ => return Err(Malformed::OutOfRange("overlap")),
    })
}
