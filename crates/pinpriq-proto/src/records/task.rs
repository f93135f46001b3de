//! A task as bytes, without its queue or lane, which are written elsewhere.
//!
//! This is the one list of a task's attributes, on disk and in letters. To add one, give it the
//! next tag, its place in `ATTRIBUTES`, a line in [`put_task`] or [`put_terms`], and a line where
//! they are taken.

use std::sync::Arc;

use crate::assign::Assign;
use crate::batches::{AFTER_MAX, After, OnlyIf};
use crate::limits;
use crate::schedule::Scheduled;
use crate::task::history::{Attempt, Contact, End, History, How};
use crate::task::{
    Burial, Bytes, COST_USUAL, Cancelled, ClientId, Counts, GivenTerms, Grant, Holder, Holds,
    LaneName, Lease, Origin, Past, Progress, Retries, State, TaskId, TaskRecord, Terms, Trace,
    headers,
};
use crate::time::{Span, Timestamp};

use crate::records::Malformed;
use crate::records::primitives::{
    put_bytes, put_moment, put_number, put_option, put_signed, put_span, take_byte, take_bytes,
    take_moment, take_number, take_option, take_signed, take_small, take_span,
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
const FAILURES: u8 = 11;
const REASON: u8 = 12;
const ORIGIN: u8 = 13;
const SCHEDULED: u8 = 14;
const UNIQUE: u8 = 15;
/// The place of a buried task among those that are buried.
const BURIAL: u8 = 16;
const DELAY: u8 = 17;
/// How often some things have happened to the task.
const COUNTS: u8 = 18;
/// The lease ends with the connection of its holder. It is never written to a store.
const TIED: u8 = 19;
const SHARE: u8 = 20;
const COST: u8 = 21;
/// It holds back the other tasks of its key.
const HELD: u8 = 22;
/// When it has begun to age, if that was not its put.
const START: u8 = 23;
/// What a step of its priority counts, if that is not what its queue says.
const AGEING: u8 = 24;
/// The headers, as [`headers::encode`] writes them.
const HEADERS: u8 = 25;
/// Why a taken task was cancelled, and the deadline of its lease without the grace.
const CANCELLED: u8 = 26;
/// How far the work has come, for who takes it next.
const CHECKPOINT: u8 = 27;
/// How far the work has come, for people. It is never written to a store.
const PROGRESS_TEXT: u8 = 28;
/// After how many failures it is not tried again, 0 for never, if not as its queue says.
const ATTEMPTS_MAX: u8 = 29;
/// How long it waits after a failure, 0 for not at all, if not as its queue says.
const BACKOFF: u8 = 30;
/// The longest that it waits after a failure, if not as its queue says.
const BACKOFF_MAX: u8 = 31;

/// What has come of the work, for a finished task.
const RESULT: u8 = 32;
/// The last attempts, oldest first.
const HISTORY: u8 = 33;
/// The batch in which it is pending.
const BATCH: u8 = 34;
/// The batches that it waits for, and whether it is worth doing then.
const AFTER: u8 = 35;

/// What an attribute belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Task,
    Terms,
    Progress,
}

/// All attributes, in the order in which they are written.
const ATTRIBUTES: [(u8, Part); 35] = [
    (ID, Part::Task),
    (KEY, Part::Terms),
    (TTR, Part::Terms),
    (SHARE, Part::Terms),
    (COST, Part::Terms),
    (HEADERS, Part::Terms),
    (ATTEMPTS_MAX, Part::Terms),
    (BACKOFF, Part::Terms),
    (BACKOFF_MAX, Part::Terms),
    (PRIORITY, Part::Progress),
    (SEQ, Part::Progress),
    (EXPIRES_AT, Part::Progress),
    (ATTEMPTS, Part::Progress),
    (STATE, Part::Progress),
    (FAILURES, Part::Progress),
    (REASON, Part::Progress),
    (BURIAL, Part::Progress),
    (DELAY, Part::Progress),
    (COUNTS, Part::Progress),
    (HELD, Part::Progress),
    (START, Part::Progress),
    (AGEING, Part::Progress),
    (CANCELLED, Part::Progress),
    (CHECKPOINT, Part::Progress),
    (RESULT, Part::Progress),
    (HISTORY, Part::Progress),
    (AFTER, Part::Progress),
    (ORIGIN, Part::Task),
    (SCHEDULED, Part::Task),
    (UNIQUE, Part::Task),
    (BATCH, Part::Task),
    (SHARED, Part::Task),
    (HOLDER, Part::Task),
    (TIED, Part::Task),
    (PROGRESS_TEXT, Part::Task),
];

/// The place of each attribute in `ATTRIBUTES`, counted from 1, by its tag.
const PLACES: [u8; 256] = {
    let mut places = [0; 256];
    let mut place = 0;
    while place < ATTRIBUTES.len() {
        let (tag, _) = ATTRIBUTES[place];
        place += 1;
        places[tag as usize] = place.to_le_bytes()[0];
    }
    places
};

/// A task that borrows its bytes from where they were read, except for reason, origin,
/// schedule and unique key.
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
    terms: GivenTerms<'a>,
    progress: Progress,
    /// Hardly any task has one.
    past: Option<Box<Past>>,
    shared: bool,
}

/// Appends a task without its queue and lane. The place of a payload that was left in the store is
/// not encoded.
pub fn put_task(out: &mut Vec<u8>, task: &TaskRecord) {
    put_number(out, task.number);
    put_moment(out, task.put_at);
    if task.id != TaskId::Number(task.number) {
        out.push(ID);
        task.id.put_in(out);
    }
    put_terms_open(out, &task.terms);
    put_progress_open(out, task.number, &task.progress);
    put_attribute(out, ORIGIN, task.origin(), |out, it| it.put_in(out));
    put_attribute(out, SCHEDULED, task.scheduled(), |out, it| it.put_in(out));
    put_attribute(out, UNIQUE, task.unique(), |out, key| put_bytes(out, key));
    put_attribute(out, BATCH, task.batch(), |out, name| put_bytes(out, name));
    if task.shared {
        out.push(SHARED);
    }
    if let State::Taken(Lease { holder: Some(holder), .. }) = task.progress.state {
        out.push(HOLDER);
        put_number(out, holder.client.0);
        if holder.is_tied {
            out.push(TIED);
        }
    }
    put_attribute(out, PROGRESS_TEXT, task.progress.text(), |out, text| put_bytes(out, text));
    out.push(END);
    put_bytes(out, &task.payload);
}

/// Takes what [`put_task`] appends.
#[inline]
pub fn take_task<'a>(input: &mut &'a [u8]) -> Result<TaskView<'a>, Malformed> {
    let number = take_number(input)?;
    let put_at = take_moment(input)?;
    let attributes = Attributes::take(input, number, None)?;
    Ok(TaskView { number, put_at, attributes, payload: take_bytes(input)? })
}

/// Appends the terms that a producer set for good.
pub fn put_terms(out: &mut Vec<u8>, terms: GivenTerms<'_>) {
    put_terms_open(out, &terms);
    out.push(END);
}

/// Takes what [`put_terms`] appends.
pub fn take_terms<'a>(input: &mut &'a [u8]) -> Result<GivenTerms<'a>, Malformed> {
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
    #[inline]
    pub fn kept(self, queue: Bytes, lane: Option<LaneName>) -> TaskRecord {
        let Attributes { own_id, terms, progress, past, shared } = self.attributes;
        TaskRecord {
            number: self.number,
            queue,
            lane,
            id: own_id.unwrap_or(TaskId::Number(self.number)),
            put_at: self.put_at,
            terms: terms.kept(),
            progress,
            past,
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
        let mut found =
            Self { own_id: None, terms: Terms::NONE, progress, past: None, shared: false };
        let mut last = 0;
        loop {
            let tag = take_byte(input)?;
            if tag == END {
                return Ok(found);
            }
            let place = PLACES[usize::from(tag)];
            if place == 0 {
                return Err(Malformed::UnknownAttribute(tag));
            }
            let is_of_part = part.is_none_or(|part| part == ATTRIBUTES[usize::from(place) - 1].1);
            if place <= last || !is_of_part {
                return Err(Malformed::OutOfRange("attribute"));
            }
            last = place;
            let Self { terms, progress, .. } = &mut found;
            match tag {
                ID => {
                    let id = unusual(TaskId::take_from(input)?, &TaskId::Number(number), "id")?;
                    found.own_id = Some(id);
                }
                KEY => terms.key = Some(take_bytes(input)?),
                TTR => terms.ttr = Some(take_span(input)?),
                SHARE | COST | HEADERS | ATTEMPTS_MAX | BACKOFF | BACKOFF_MAX => {
                    take_extra(tag, input, terms)?;
                }
                PRIORITY => progress.priority = Some(take_signed(input)?),
                SEQ => progress.seq = unusual(take_number(input)?, &number, "seq")?,
                EXPIRES_AT => progress.expires_at = Some(take_moment(input)?),
                ATTEMPTS => {
                    progress.attempts = unusual(take_small(input, "attempts")?, &0, "attempts")?;
                }
                STATE => {
                    let (state, reason) = take_state(input)?;
                    progress.state = unusual(state, &State::Ready, "state")?;
                    progress.reason = reason;
                }
                FAILURES => {
                    progress.failures = unusual(take_small(input, "failures")?, &0, "failures")?;
                }
                REASON => {
                    let reason = take_bytes(input)?;
                    // A buried task has its reason with its state, unless that is empty.
                    if matches!(progress.state, State::Buried(_))
                        && !(reason.is_empty() && progress.reason.is_none())
                    {
                        return Err(Malformed::OutOfRange("reason"));
                    }
                    progress.reason = Some(Arc::from(reason));
                }
                BURIAL | DELAY | COUNTS | HELD | START | AGEING | CANCELLED | CHECKPOINT
                | RESULT | HISTORY | AFTER | PROGRESS_TEXT => take_rest(tag, input, progress)?,
                ORIGIN | SCHEDULED | UNIQUE | BATCH => take_past(tag, input, &mut found.past)?,
                SHARED => found.shared = true,
                _ => match &mut progress.state {
                    State::Taken(lease) => take_holder(tag, input, &mut lease.holder)?,
                    _ => return Err(Malformed::OutOfRange("holder")),
                },
            }
        }
    }
}

#[cold]
fn take_extra<'a>(
    tag: u8,
    input: &mut &'a [u8],
    terms: &mut GivenTerms<'a>,
) -> Result<(), Malformed> {
    *terms = match tag {
        SHARE => terms.with(Some(take_bytes(input)?), COST_USUAL),
        COST => {
            let cost = unusual(take_small(input, "cost")?, &COST_USUAL, "cost")?;
            terms.with(terms.share().copied(), cost)
        }
        HEADERS => {
            let bytes = unusual(take_bytes(input)?, &&b""[..], "headers")?;
            headers::check_form(bytes)?;
            terms.with_headers(Some(bytes))
        }
        _ => {
            let mut retries = terms.retries();
            match tag {
                ATTEMPTS_MAX => {
                    let attempts = Some(take_small(input, "attempts")?).filter(|count| *count > 0);
                    if attempts.is_some_and(|count| count > limits::ATTEMPTS_MAX) {
                        return Err(Malformed::OutOfRange("attempts"));
                    }
                    retries.attempts = Assign::To(attempts);
                }
                BACKOFF => {
                    let backoff = take_backoff(input)?;
                    let backoff = Some(backoff).filter(|span| !span.is_zero());
                    retries.backoff = Assign::To(backoff);
                }
                _ => {
                    let most = unusual(take_backoff(input)?, &Span::ZERO, "longest back-off")?;
                    retries.backoff_max = Some(most);
                }
            }
            terms.with_retries(retries)
        }
    };
    Ok(())
}

fn take_backoff(input: &mut &[u8]) -> Result<Span, Malformed> {
    let ms = unusual(take_small(input, "back-off")?, &u32::MAX, "back-off")?;
    Ok(Span::from_ms(ms.into()))
}

#[cold]
fn take_holder(tag: u8, input: &mut &[u8], holder: &mut Option<Holder>) -> Result<(), Malformed> {
    match holder {
        Some(holder) if tag == TIED => holder.is_tied = true,
        None if tag == HOLDER => *holder = Some(Holder::of(ClientId(take_number(input)?))),
        _ => return Err(Malformed::OutOfRange("holder")),
    }
    Ok(())
}

#[cold]
fn take_rest(tag: u8, input: &mut &[u8], progress: &mut Progress) -> Result<(), Malformed> {
    match tag {
        BURIAL => match &mut progress.state {
            State::Buried(burial) => {
                *burial = Burial::of_number(unusual(take_number(input)?, &0, "burial")?);
            }
            _ => return Err(Malformed::OutOfRange("burial")),
        },
        DELAY => {
            let delay = unusual(take_span(input)?, &Span::ZERO, "delay")?;
            progress.trace = Trace::of(delay, Counts::NONE);
        }
        CANCELLED | PROGRESS_TEXT if !matches!(progress.state, State::Taken(_)) => {
            return Err(Malformed::OutOfRange("lease"));
        }
        RESULT if !progress.state.kind().is_finished() => {
            return Err(Malformed::OutOfRange("result"));
        }
        AFTER if progress.state != State::HELD => return Err(Malformed::OutOfRange("after")),
        HELD | START | AGEING | CANCELLED | CHECKPOINT | RESULT | HISTORY | AFTER
        | PROGRESS_TEXT => {
            let mut trace = progress.trace.take().map_or(Trace::NONE, |trace| *trace);
            match tag {
                HELD => trace.is_held = true,
                START => trace.aged.start = Some(take_moment(input)?),
                AGEING => trace.aged.ageing = Some(take_span(input)?),
                CHECKPOINT => {
                    let checkpoint = unusual(take_bytes(input)?, &&b""[..], "checkpoint")?;
                    trace.checkpoint = Some(Arc::from(checkpoint));
                }
                RESULT => trace.result = Some(Arc::from(take_bytes(input)?)),
                HISTORY => {
                    let is_taken = matches!(progress.state, State::Taken(_));
                    trace.history = Some(take_history(input, is_taken)?);
                }
                AFTER => trace.after = Some(take_after(input)?),
                PROGRESS_TEXT => {
                    let text = unusual(take_bytes(input)?, &&b""[..], "progress")?;
                    trace.progress_text = Some(Arc::from(text));
                }
                _ => {
                    let reason = Arc::from(take_bytes(input)?);
                    let deadline = take_option(input, take_moment)?;
                    trace.cancelled = Some(Cancelled { reason, deadline });
                }
            }
            progress.trace = trace.kept();
        }
        _ => {
            let mut count = || take_small(input, "count");
            let (timeouts, releases, buries, kicks) = (count()?, count()?, count()?, count()?);
            let counts = Counts { timeouts, releases, buries, kicks };
            let counts = unusual(counts, &Counts::NONE, "counts")?;
            progress.trace = Trace::of(progress.delay(), counts);
        }
    }
    Ok(())
}

#[cold]
fn take_past(tag: u8, input: &mut &[u8], past: &mut Option<Box<Past>>) -> Result<(), Malformed> {
    let past = past.get_or_insert_default();
    match tag {
        ORIGIN => past.origin = Some(Origin::take_from(input)?),
        SCHEDULED => past.scheduled = Some(Scheduled::take_from(input)?),
        UNIQUE => past.unique = Some(Arc::from(take_bytes(input)?)),
        _ => past.batch = Some(Arc::from(take_bytes(input)?)),
    }
    Ok(())
}

/// Refuses an attribute with the value that is the default when it is left out.
fn unusual<T: PartialEq>(value: T, usual: &T, field: &'static str) -> Result<T, Malformed> {
    if value == *usual { Err(Malformed::OutOfRange(field)) } else { Ok(value) }
}

#[inline]
fn put_terms_open<B: AsRef<[u8]>, S: Holds<B>>(out: &mut Vec<u8>, terms: &Terms<B, S>) {
    let Terms { key, ttr, .. } = terms;
    put_attribute(out, KEY, key.as_ref().map(B::as_ref), put_bytes);
    put_attribute(out, TTR, *ttr, put_span);
    if !terms.are_plain() {
        put_extras(out, terms.borrowed());
    }
}

#[cold]
#[inline(never)]
fn put_extras(out: &mut Vec<u8>, terms: GivenTerms<'_>) {
    put_attribute(out, SHARE, terms.share().copied(), put_bytes);
    let cost = Some(terms.cost()).filter(|cost| *cost != COST_USUAL);
    put_attribute(out, COST, cost, |out, cost| put_number(out, cost.into()));
    put_attribute(out, HEADERS, terms.headers().copied(), put_bytes);
    let Retries { attempts, backoff, backoff_max } = terms.retries();
    let attempts = attempts.given().map(|count| count.unwrap_or(0).into());
    put_attribute(out, ATTEMPTS_MAX, attempts, put_number);
    let backoff = backoff.given().map(|span| span.unwrap_or(Span::ZERO));
    put_attribute(out, BACKOFF, backoff, put_span);
    put_attribute(out, BACKOFF_MAX, backoff_max, put_span);
}

#[inline]
fn put_progress_open(out: &mut Vec<u8>, number: u64, progress: &Progress) {
    let Progress { priority, seq, expires_at, attempts, failures, reason, .. } = progress;
    let Progress { trace, state, .. } = progress;
    let attempts = u64::from(*attempts);
    put_attribute(out, PRIORITY, *priority, put_signed);
    put_attribute(out, SEQ, Some(*seq).filter(|seq| *seq != number), put_number);
    put_attribute(out, EXPIRES_AT, *expires_at, put_moment);
    put_attribute(out, ATTEMPTS, Some(attempts).filter(|count| *count > 0), put_number);
    if !matches!(state, State::Ready) {
        out.push(STATE);
        put_state(out, state, reason.as_deref());
    }
    if *failures > 0 || reason.is_some() {
        put_failures(out, progress);
    }
    if trace.is_some() || matches!(state, State::Buried(_)) {
        put_rest(out, progress);
    }
}

#[inline(never)]
fn put_rest(out: &mut Vec<u8>, progress: &Progress) {
    let (delay, counts) = (progress.delay(), progress.counts());
    if let State::Buried(burial) = progress.state {
        let known = Some(burial.number()).filter(|number| *number > 0);
        put_attribute(out, BURIAL, known, put_number);
    }
    put_attribute(out, DELAY, Some(delay).filter(|delay| !delay.is_zero()), put_span);
    if !counts.are_none() {
        let Counts { timeouts, releases, buries, kicks } = counts;
        out.push(COUNTS);
        for count in [timeouts, releases, buries, kicks] {
            put_number(out, count.into());
        }
    }
    if progress.is_held() {
        out.push(HELD);
    }
    put_attribute(out, START, progress.aged().start, put_moment);
    put_attribute(out, AGEING, progress.aged().ageing, put_span);
    put_attribute(out, CANCELLED, progress.cancelled(), |out, Cancelled { reason, deadline }| {
        put_bytes(out, reason);
        put_option(out, *deadline, put_moment);
    });
    put_attribute(out, CHECKPOINT, progress.checkpoint(), |out, bytes| put_bytes(out, bytes));
    put_attribute(out, RESULT, progress.result(), |out, bytes| put_bytes(out, bytes));
    let attempts = Some(progress.history()).filter(|attempts| !attempts.is_empty());
    put_attribute(out, HISTORY, attempts, put_history);
    put_attribute(out, AFTER, progress.after(), put_after);
}

fn put_after(out: &mut Vec<u8>, after: &After) {
    put_number(out, after.names.len() as u64);
    after.names.iter().for_each(|name| put_bytes(out, name));
    out.push(after.only_if as u8);
    out.push(u8::from(after.any_failed));
}

/// Takes what [`put_after`] appends.
#[cold]
fn take_after(input: &mut &[u8]) -> Result<After, Malformed> {
    const WRONG: Malformed = Malformed::OutOfRange("after");
    let count = usize::try_from(take_small(input, "after")?).unwrap_or(usize::MAX);
    if count > AFTER_MAX {
        return Err(WRONG);
    }
    let names = (0..count).map(|_| take_bytes(input).map(Arc::from)).collect::<Result<_, _>>()?;
    let only_if = OnlyIf::ALL.get(usize::from(take_byte(input)?)).copied().ok_or(WRONG)?;
    let any_failed = match take_byte(input)? {
        0 => false,
        1 => true,
        _ => return Err(WRONG),
    };
    Ok(After { names, only_if, any_failed })
}

/// Appends attempts, of which there is at least one.
fn put_history(out: &mut Vec<u8>, attempts: &[Attempt]) {
    put_number(out, attempts.len() as u64);
    for Attempt { client, contact: Contact { name, address }, taken_at, end } in attempts {
        put_option(out, client.map(|client| client.0), put_number);
        put_bytes(out, name);
        put_bytes(out, address);
        put_moment(out, *taken_at);
        put_option(out, end.as_ref(), |out, End { at, how, reason }| {
            put_moment(out, *at);
            out.push(*how as u8);
            put_option(out, reason.as_deref(), put_bytes);
        });
    }
}

/// Takes what [`put_history`] appends. Only the last attempt of a taken task may be under way.
#[cold]
fn take_history(input: &mut &[u8], is_taken: bool) -> Result<History, Malformed> {
    let count = unusual(take_small(input, "history")?, &0, "history")?;
    if count > u32::from(limits::HISTORY_MAX) + 1 {
        return Err(Malformed::OutOfRange("history"));
    }
    let attempts: Result<Vec<Attempt>, Malformed> = (1..=count)
        .map(|number| {
            let attempt = take_attempt(input)?;
            let may_be_open = is_taken && number == count;
            if attempt.end.is_some() || may_be_open {
                Ok(attempt)
            } else {
                Err(Malformed::OutOfRange("attempt"))
            }
        })
        .collect();
    Ok(attempts?.into())
}

fn take_attempt(input: &mut &[u8]) -> Result<Attempt, Malformed> {
    let client = take_option(input, take_number)?.map(ClientId);
    let (name, address) = (Arc::from(take_bytes(input)?), Arc::from(take_bytes(input)?));
    let taken_at = take_moment(input)?;
    let end = take_option(input, |input| {
        let at = take_moment(input)?;
        let how = How::ALL.get(usize::from(take_byte(input)?));
        let how = *how.ok_or(Malformed::OutOfRange("attempt"))?;
        let reason = take_option(input, |input| take_bytes(input).map(Arc::from))?;
        Ok(End { at, how, reason })
    })?;
    Ok(Attempt { client, contact: Contact { name, address }, taken_at, end })
}

#[inline(never)]
fn put_failures(out: &mut Vec<u8>, progress: &Progress) {
    let Progress { failures, reason, state, .. } = progress;
    put_attribute(out, FAILURES, Some(*failures).filter(|count| *count > 0), |out, count| {
        put_number(out, count.into());
    });
    let is_buried = matches!(state, State::Buried(_));
    let apart = reason.as_deref().filter(|text| !is_buried || text.is_empty());
    put_attribute(out, REASON, apart, put_bytes);
}

#[inline]
fn put_attribute<T>(out: &mut Vec<u8>, tag: u8, value: Option<T>, put: fn(&mut Vec<u8>, T)) {
    if let Some(value) = value {
        out.push(tag);
        put(out, value);
    }
}

/// Appends a state. That of a buried task comes with the reason, which is empty if there is none.
fn put_state(out: &mut Vec<u8>, state: &State, reason: Option<&[u8]>) {
    match state {
        State::Ready => out.push(0),
        State::Taken(lease) => {
            out.push(1);
            put_number(out, lease.grant.incarnation);
            put_number(out, lease.grant.serial);
            put_option(out, lease.deadline, put_moment);
            put_option(out, lease.ttr, put_span);
        }
        State::Waiting { ready_at: Some(ready_at) } => {
            out.push(2);
            put_moment(out, *ready_at);
        }
        State::Waiting { ready_at: None } => out.push(6),
        State::Buried(_) => {
            out.push(3);
            put_bytes(out, reason.unwrap_or_default());
        }
        State::Zombie { purge_at } => {
            out.push(4);
            put_moment(out, *purge_at);
        }
        State::Done => out.push(5),
    }
}

/// Takes a state, and the reason if it comes with one. Records of older versions contain states in
/// this form too.
pub fn take_state(input: &mut &[u8]) -> Result<(State, Option<Bytes>), Malformed> {
    let mut reason = None;
    let state = match take_byte(input)? {
        0 => State::Ready,
        1 => State::Taken(Lease {
            grant: Grant { incarnation: take_number(input)?, serial: take_number(input)? },
            holder: None,
            deadline: take_option(input, take_moment)?,
            ttr: take_option(input, take_span)?,
        }),
        2 => State::Waiting { ready_at: Some(take_moment(input)?) },
        3 => {
            reason = Some(take_bytes(input)?).filter(|text| !text.is_empty()).map(Arc::from);
            State::Buried(Burial::UNKNOWN)
        }
        4 => State::Zombie { purge_at: take_moment(input)? },
        5 => State::Done,
        6 => State::Waiting { ready_at: None },
        _ => return Err(Malformed::OutOfRange("state")),
    };
    Ok((state, reason))
}
