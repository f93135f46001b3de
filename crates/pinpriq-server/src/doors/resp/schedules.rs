//! The commands on schedules.

use pinpriq_proto::command::Command;
use pinpriq_proto::schedule::{NewSchedule, OnMissed, Overlap, ScheduleCommand, When};
use pinpriq_proto::task::Terms;

use super::call::{Call, Shape};
use crate::calendars::cron;
use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::options::{AT, CRON, EVERY, KEY, MISSED, OVERLAP, TTL, TTR, ZONE};
use pinpriq_proto::request::parts::{Parts, no_value};

type Done = Result<(), Fault>;

pub(crate) fn set(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    let on_missed = parts.option(MISSED).map(on_missed).transpose()?;
    let overlap = parts.option(OVERLAP).map(overlap).transpose()?;
    let new = NewSchedule {
        name: parts.word(0),
        queue: parts.word(1),
        payload: parts.word(2),
        terms: Terms::of(parts.option(KEY), parts.span(TTR)?),
        priority: parts.priority()?.or(Some(0)),
        ttl: parts.span(TTL)?,
        when: when(parts)?,
        on_missed: on_missed.unwrap_or_default(),
        overlap: overlap.unwrap_or_default(),
    };
    ask(call, ScheduleCommand::Set(new))
}

fn ask(call: &mut Call<'_, '_>, command: ScheduleCommand<'_>) -> Done {
    call.ask(Shape::Plain, &Command::Schedule(command))
}

/// Returns when a schedule is due. A cron expression is checked here, since the engine knows none.
fn when<'a>(parts: &Parts<'a>) -> Result<When<'a>, Fault> {
    let (at, zone) = (parts.moment(AT)?, parts.option(ZONE));
    match (parts.span(EVERY)?, parts.option(CRON)) {
        (Some(_), Some(_)) => {
            Err(Fault::bad("EVERY and CRON both say when it is due: give one of them"))
        }
        (None, None) => Err(Fault::bad("EVERY or CRON says when the schedule is due: give one")),
        (Some(_), None) if zone.is_some() => {
            Err(Fault::bad("ZONE goes with CRON: a fixed distance has no time zone"))
        }
        (Some(every), None) => Ok(When::Every { every, at }),
        (None, Some(_)) if at.is_some() => {
            Err(Fault::bad("AT goes with EVERY: a cron expression says itself when it is due"))
        }
        (None, Some(expression)) => {
            cron(expression, zone).map_err(|refusal| Fault::bad(refusal.to_string()))?;
            Ok(When::Cron { expression, zone })
        }
    }
}

fn on_missed(word: &[u8]) -> Result<OnMissed, Fault> {
    let is_meant = |known: &OnMissed| word.eq_ignore_ascii_case(known.word().as_bytes());
    let known = OnMissed::ALL.into_iter().find(is_meant);
    known.ok_or_else(|| no_value("MISSED is one, all or none", word))
}

fn overlap(word: &[u8]) -> Result<Overlap, Fault> {
    let is_meant = |known: &Overlap| word.eq_ignore_ascii_case(known.word().as_bytes());
    let known = Overlap::ALL.into_iter().find(is_meant);
    known.ok_or_else(|| no_value("OVERLAP is allow or skip", word))
}
