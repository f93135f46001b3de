//! Figures of queues and members, and the settings and pause of a queue.

use std::sync::Arc;

use crate::fanout::MemberFigures;
use crate::histogram::TimeHistogram;
use crate::records::primitives::{
    put_bytes, put_if, put_moment, put_number, put_signed, put_span, take_byte, take_bytes,
    take_if, take_moment, take_number, take_signed, take_span,
};
use crate::records::settings::{put_settings, take_settings};
use crate::reply::{TubeShown, TubesShown};
use crate::settings::{Paused, Settings};
use crate::stats::{Counters, Figures, Move, Times};

use crate::letters::Malformed;
use crate::letters::fields::{kind_code, kind_of};
use crate::letters::flags::{Packed, Packing};
use crate::letters::list::{put_list, take_vec};
use crate::letters::paused;

pub(super) fn put_figures(out: &mut Vec<u8>, figures: &Figures) {
    let Figures {
        counters,
        oldest_ready,
        priorities,
        takers,
        subscribers,
        paused: state,
        paused_queues,
        queues,
        missed,
        holds_dead_letters,
    } = figures;
    let mut flags = Packed::default();
    flags.flag(oldest_ready.is_some());
    paused::pack(&mut flags, *state);
    flags.flag(missed.is_some());
    flags.flag(counters.times.is_some());
    flags.flag(!priorities.is_empty());
    flags.flag(*holds_dead_letters);
    flags.put(out);
    put_counters(out, counters);
    put_if(out, counters.times.as_deref(), put_times);
    put_if(out, *oldest_ready, put_span);
    if !priorities.is_empty() {
        put_list(out, priorities, |out, (priority, count)| {
            put_signed(out, *priority);
            put_number(out, *count);
        });
    }
    put_number(out, *takers);
    put_number(out, *subscribers);
    put_number(out, *paused_queues);
    put_number(out, *queues);
    put_if(out, *missed, put_number);
    paused::put(out, *state);
}

pub(super) fn take_figures(input: &mut &[u8]) -> Result<Figures, Malformed> {
    let mut flags = Packing::take(input)?;
    let oldest_ready = flags.flag();
    let choices = paused::unpack(&mut flags);
    let missed = flags.flag();
    let (times, priorities) = (flags.flag(), flags.flag());
    let holds_dead_letters = flags.flag();
    flags.end()?;
    let mut counters = take_counters(input)?;
    counters.times = take_if(times, input, take_times)?.map(Box::new);
    let figures = Figures {
        counters,
        oldest_ready: take_if(oldest_ready, input, take_span)?,
        priorities: if priorities { take_priorities(input)? } else { Vec::new() },
        takers: take_number(input)?,
        subscribers: take_number(input)?,
        paused: Paused::default(),
        paused_queues: take_number(input)?,
        queues: take_number(input)?,
        missed: take_if(missed, input, take_number)?,
        holds_dead_letters,
    };
    Ok(Figures { paused: paused::take(&choices, input)?, ..figures })
}

pub(super) fn put_tubes(out: &mut Vec<u8>, shown: &TubesShown) {
    put_number(out, shown.put);
    put_number(out, shown.timeouts);
    put_number(out, shown.reserves);
    put_list(out, &shown.tubes, put_tube);
}

pub(super) fn take_tubes(input: &mut &[u8]) -> Result<TubesShown, Malformed> {
    let (put, timeouts) = (take_number(input)?, take_number(input)?);
    let reserves = take_number(input)?;
    Ok(TubesShown { tubes: take_vec(input, take_tube)?, put, timeouts, reserves })
}

fn put_tube(out: &mut Vec<u8>, tube: &TubeShown) {
    let TubeShown { name, came_at, came_after, counts, urgent, put, deletes, .. } = tube;
    let TubeShown { exists, reserves, paused, paused_for, .. } = tube;
    let mut flags = Packed::default();
    flags.flag(*exists);
    paused::pack(&mut flags, *paused);
    flags.put(out);
    put_bytes(out, name);
    put_moment(out, *came_at);
    for number in counts.iter().chain([came_after, urgent, put, deletes, reserves]) {
        put_number(out, *number);
    }
    put_span(out, *paused_for);
    paused::put(out, *paused);
}

fn take_tube(input: &mut &[u8]) -> Result<TubeShown, Malformed> {
    let mut flags = Packing::take(input)?;
    let exists = flags.flag();
    let choices = paused::unpack(&mut flags);
    flags.end()?;
    let (name, came_at) = (Arc::from(take_bytes(input)?), take_moment(input)?);
    let counts = take_counts(input)?;
    Ok(TubeShown {
        name,
        exists,
        came_at,
        counts,
        came_after: take_number(input)?,
        urgent: take_number(input)?,
        put: take_number(input)?,
        deletes: take_number(input)?,
        reserves: take_number(input)?,
        paused_for: take_span(input)?,
        paused: paused::take(&choices, input)?,
    })
}

fn take_counts(input: &mut &[u8]) -> Result<[u64; 6], Malformed> {
    let mut counts = [0; 6];
    for count in &mut counts {
        *count = take_number(input)?;
    }
    Ok(counts)
}

fn put_counters(out: &mut Vec<u8>, counters: &Counters) {
    let Counters { counts, moves, put, acked, expired, killed, dead, evicted, moved, .. } =
        counters;
    let Counters { purged, revived, failures, duplicates, bytes, .. } = counters;
    for count in counts {
        put_number(out, *count);
    }
    put_list(out, moves, |out, (step, times)| {
        out.push(kind_code(step.from()) << 4 | kind_code(step.to()));
        put_number(out, *times);
    });
    let ends = [put, acked, expired, killed, dead, evicted, moved];
    for number in ends.into_iter().chain([failures, duplicates, bytes, purged, revived]) {
        put_number(out, *number);
    }
}

fn take_counters(input: &mut &[u8]) -> Result<Counters, Malformed> {
    Ok(Counters {
        counts: take_counts(input)?,
        moves: take_vec(input, |input| {
            let step = take_byte(input)?;
            let step = Move::new(kind_of(step >> 4)?, kind_of(step & 0x0f)?);
            Ok((step, take_number(input)?))
        })?,
        put: take_number(input)?,
        acked: take_number(input)?,
        expired: take_number(input)?,
        killed: take_number(input)?,
        dead: take_number(input)?,
        evicted: take_number(input)?,
        moved: take_number(input)?,
        failures: take_number(input)?,
        duplicates: take_number(input)?,
        bytes: take_number(input)?,
        purged: take_number(input)?,
        revived: take_number(input)?,
        times: None,
    })
}

fn put_times(out: &mut Vec<u8>, times: &Times) {
    let Times { waited, held, limited_ms } = times;
    for TimeHistogram { sum_ms, counts } in [waited, held] {
        put_number(out, *sum_ms);
        for count in counts {
            put_number(out, *count);
        }
    }
    put_number(out, *limited_ms);
}

fn take_times(input: &mut &[u8]) -> Result<Times, Malformed> {
    Ok(Times {
        waited: take_histogram(input)?,
        held: take_histogram(input)?,
        limited_ms: take_number(input)?,
    })
}

fn take_histogram(input: &mut &[u8]) -> Result<TimeHistogram, Malformed> {
    let mut histogram = TimeHistogram { sum_ms: take_number(input)?, ..TimeHistogram::default() };
    for count in &mut histogram.counts {
        *count = take_number(input)?;
    }
    Ok(histogram)
}

fn take_priorities(input: &mut &[u8]) -> Result<Vec<(i64, u64)>, Malformed> {
    let priorities = take_vec(input, |input| Ok((take_signed(input)?, take_number(input)?)))?;
    if priorities.is_empty() { Err(Malformed::OutOfRange("priorities")) } else { Ok(priorities) }
}

pub(super) fn put_member(out: &mut Vec<u8>, figures: &MemberFigures) {
    let MemberFigures { member, incarnation, lease_until, ready, taken } = figures;
    put_bytes(out, member);
    put_number(out, *incarnation);
    put_moment(out, *lease_until);
    put_number(out, *ready);
    put_number(out, *taken);
}

pub(super) fn take_member(input: &mut &[u8]) -> Result<MemberFigures, Malformed> {
    Ok(MemberFigures {
        member: Arc::from(take_bytes(input)?),
        incarnation: take_number(input)?,
        lease_until: take_moment(input)?,
        ready: take_number(input)?,
        taken: take_number(input)?,
    })
}

pub(super) fn put_shown_settings(
    out: &mut Vec<u8>,
    settings: &Settings,
    state: Paused,
    created: bool,
) {
    let mut flags = Packed::default();
    paused::pack(&mut flags, state);
    flags.flag(created);
    flags.put(out);
    put_settings(out, settings);
    paused::put(out, state);
}

pub(super) fn take_shown_settings(
    input: &mut &[u8],
) -> Result<(Settings, Paused, bool), Malformed> {
    let mut flags = Packing::take(input)?;
    let choices = paused::unpack(&mut flags);
    let created = flags.flag();
    flags.end()?;
    let settings = take_settings(input)?;
    Ok((settings, paused::take(&choices, input)?, created))
}
