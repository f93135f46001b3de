//! Encodes changes as records and decodes them: the section "Records" of
//! `docs/internals/journal.md`.
//!
//! Encoding cannot fail. Decoding is total: any bytes give a record or an error, never a panic, and
//! nothing is allocated from a length that the bytes merely declare. `pinpriq-proto` encodes what
//! a task contains. This module knows nothing about framing, checksums and places.

mod former;

use std::sync::Arc;

use pinpriq_proto::change::{
    Change, Copied, Granted, LaneRecord, MemberRecord, Moved, Publication, QueueRecord, RecordKey,
    ScheduleMoved, ScheduleRecord,
};
use pinpriq_proto::details::{Detail, DetailKind};
use pinpriq_proto::records::Malformed;
use pinpriq_proto::records::primitives::{
    put_bytes, put_moment, put_number, put_option, put_span, take_byte, take_bytes, take_flag,
    take_moment, take_number, take_option, take_small, take_span,
};
use pinpriq_proto::records::settings::{put_settings, take_settings};
use pinpriq_proto::records::task::{
    put_progress, put_task, put_terms, take_progress, take_task, take_terms,
};
use pinpriq_proto::schedule::{Course, Plan};
use pinpriq_proto::settings::{Pause, Paused};
use pinpriq_proto::task::{Bytes, LaneName, Progress};

/// Record types that are missing here are those of details, or were written by older versions only.
const GRANTED: u8 = 3;
const GONE: u8 = 4;
const QUEUE_GONE: u8 = 6;
const EMPTIED: u8 = 7;
const LANE_GONE: u8 = 11;
const LANE_EMPTIED: u8 = 12;
const MEMBER: u8 = 13;
const MEMBER_GONE: u8 = 14;
const TASK: u8 = 15;
const LANE_TASK: u8 = 16;
const MOVED: u8 = 17;
const PUBLISHED: u8 = 18;
const QUEUE: u8 = 19;
const LANE: u8 = 20;
const SCHEDULE: u8 = 21;
const SCHEDULE_GONE: u8 = 22;
const SCHEDULE_MOVED: u8 = 23;

/// Appends the record of a change. Accepts a queue name, key or payload of any length.
pub fn encode(change: &Change, out: &mut Vec<u8>) {
    match change {
        Change::Task(task) => {
            match &task.lane {
                None => {
                    out.push(TASK);
                    put_bytes(out, &task.queue);
                }
                Some(lane) => {
                    out.push(LANE_TASK);
                    put_number(out, lane.number);
                }
            }
            put_task(out, task);
        }
        Change::Moved(moved) => {
            put_number_of(out, MOVED, moved.number);
            put_progress(out, moved.number, &moved.progress);
        }
        Change::Published(publication, copies) => {
            out.push(PUBLISHED);
            put_publication(out, publication);
            put_copies(out, publication.first, copies);
            put_bytes(out, &publication.payload);
        }
        Change::Granted(granted) => put_granted(out, granted),
        Change::Gone(number) => put_number_of(out, GONE, *number),
        Change::Queue(queue) => {
            out.push(QUEUE);
            put_bytes(out, &queue.name);
            out.push(u8::from(queue.created));
            put_settings(out, &queue.settings);
            put_paused(out, queue.paused);
        }
        Change::QueueGone(name) => put_name_of(out, QUEUE_GONE, name),
        Change::Emptied(name) => put_name_of(out, EMPTIED, name),
        Change::Lane(lane) => {
            put_number_of(out, LANE, lane.number);
            put_bytes(out, &lane.topic);
            put_number(out, lane.member);
            put_settings(out, &lane.settings);
            put_paused(out, lane.paused);
        }
        Change::LaneGone(number) => put_number_of(out, LANE_GONE, *number),
        Change::LaneEmptied(number) => put_number_of(out, LANE_EMPTIED, *number),
        Change::Member(member) => {
            out.push(MEMBER);
            put_number(out, member.incarnation);
            put_bytes(out, &member.name);
            put_span(out, member.lease);
            out.push(u8::from(member.ended));
        }
        Change::MemberGone(incarnation) => put_number_of(out, MEMBER_GONE, *incarnation),
        Change::Schedule(schedule) => put_schedule(out, schedule),
        Change::ScheduleMoved(moved) => {
            put_number_of(out, SCHEDULE_MOVED, moved.number);
            moved.course.put_in(out);
        }
        Change::ScheduleGone(number) => put_number_of(out, SCHEDULE_GONE, *number),
        Change::Detail(detail) => {
            out.push(detail.kind().types().0);
            detail.put_in(out);
        }
        Change::DetailGone(kind, number) => put_number_of(out, kind.types().1, *number),
    }
}

fn put_granted(out: &mut Vec<u8>, granted: &Granted) {
    put_number_of(out, GRANTED, granted.number);
    put_number(out, granted.incarnation);
    put_number(out, granted.serial);
    put_option(out, granted.deadline, put_moment);
    put_option(out, granted.ttr, put_span);
    put_number(out, u64::from(granted.attempts));
}

/// Writes a record that consists of a number, or begins with one.
fn put_number_of(out: &mut Vec<u8>, kind: u8, number: u64) {
    out.push(kind);
    put_number(out, number);
}

/// Writes a record that consists only of a name.
fn put_name_of(out: &mut Vec<u8>, kind: u8, name: &[u8]) {
    out.push(kind);
    put_bytes(out, name);
}

fn put_publication(out: &mut Vec<u8>, publication: &Publication) {
    let Publication { first, last, put_at, terms, priority, expires_at, payload: _ } = publication;
    put_number(out, *first);
    put_number(out, last - first);
    put_moment(out, *put_at);
    put_terms(out, terms.borrowed());
    let progress = Progress { expires_at: *expires_at, ..Progress::fresh(*first, *priority) };
    put_progress(out, *first, &progress);
}

/// Writes the numbers and lanes of the copies as differences from the copy before, since both
/// mostly rise by one.
fn put_copies(out: &mut Vec<u8>, first: u64, copies: &[Copied]) {
    put_number(out, copies.len() as u64);
    let mut former = Copied { number: first, lane: 0 };
    for copied in copies {
        put_number(out, copied.number - former.number);
        put_number(out, copied.lane - former.lane);
        former = *copied;
    }
}

fn put_schedule(out: &mut Vec<u8>, schedule: &ScheduleRecord) {
    put_number_of(out, SCHEDULE, schedule.number);
    put_bytes(out, &schedule.name);
    schedule.plan.put_in(out);
    schedule.course.put_in(out);
}

/// Two bits say which sides are paused, and two more for which of them a moment follows at which
/// that ends by itself.
fn put_paused(out: &mut Vec<u8>, paused: Paused) {
    let bits = |side: Pause| u8::from(side.is_on()) | u8::from(side.until().is_some()) << 2;
    out.push(bits(paused.input) | bits(paused.output) << 1);
    for at in [paused.input.until(), paused.output.until()].into_iter().flatten() {
        put_moment(out, at);
    }
}

/// Shares one allocation among the queue names of neighbouring records.
#[derive(Debug, Default)]
pub struct Names {
    last: Option<Bytes>,
    /// How often the last name was handed out.
    shared: u32,
}

/// The most records that share an allocation. One thread reads the log ahead and another uses the
/// records, and the two should seldom count the same references.
const SHARERS_MAX: u32 = 1_024;

impl Names {
    fn share(&mut self, name: &[u8]) -> Bytes {
        match &self.last {
            Some(last) if self.shared < SHARERS_MAX && **last == *name => {
                self.shared += 1;
                Arc::clone(last)
            }
            _ => {
                let name: Bytes = Arc::from(name);
                self.last = Some(Arc::clone(&name));
                self.shared = 1;
                name
            }
        }
    }
}

/// Decodes one record from the front of `input`.
pub fn decode(input: &mut &[u8], names: &mut Names) -> Result<Change, Malformed> {
    let kind = take_byte(input)?;
    Ok(match kind {
        TASK => {
            let queue = names.share(take_bytes(input)?);
            Change::Task(Box::new(take_task(input)?.kept(queue, None)))
        }
        LANE_TASK => {
            let lane = LaneName::numbered(take_number(input)?);
            Change::Task(Box::new(take_task(input)?.kept(Bytes::default(), Some(lane))))
        }
        MOVED => {
            let number = take_number(input)?;
            let progress = take_progress(input, number)?;
            Change::Moved(Box::new(Moved { number, progress }))
        }
        GRANTED => Change::Granted(Granted {
            number: take_number(input)?,
            incarnation: take_number(input)?,
            serial: take_number(input)?,
            deadline: take_option(input, take_moment)?,
            ttr: take_option(input, take_span)?,
            attempts: take_small(input, "attempts")?,
        }),
        GONE => Change::Gone(take_number(input)?),
        QUEUE => Change::Queue(Box::new(QueueRecord {
            name: names.share(take_bytes(input)?),
            created: take_flag(input, "created")?,
            settings: take_settings(input)?,
            paused: take_paused(input)?,
        })),
        QUEUE_GONE => Change::QueueGone(names.share(take_bytes(input)?)),
        EMPTIED => Change::Emptied(names.share(take_bytes(input)?)),
        PUBLISHED => take_publication(input)?,
        LANE => Change::Lane(Box::new(LaneRecord {
            number: take_number(input)?,
            topic: names.share(take_bytes(input)?),
            member: take_number(input)?,
            settings: take_settings(input)?,
            paused: take_paused(input)?,
        })),
        LANE_GONE => Change::LaneGone(take_number(input)?),
        LANE_EMPTIED => Change::LaneEmptied(take_number(input)?),
        MEMBER => Change::Member(Box::new(MemberRecord {
            incarnation: take_number(input)?,
            name: Arc::from(take_bytes(input)?),
            lease: take_span(input)?,
            ended: take_flag(input, "ended")?,
        })),
        MEMBER_GONE => Change::MemberGone(take_number(input)?),
        SCHEDULE => Change::Schedule(Box::new(ScheduleRecord {
            number: take_number(input)?,
            name: Arc::from(take_bytes(input)?),
            plan: Plan::take_from(input)?,
            course: Course::take_from(input)?,
        })),
        SCHEDULE_MOVED => Change::ScheduleMoved(Box::new(ScheduleMoved {
            number: take_number(input)?,
            course: Course::take_from(input)?,
        })),
        SCHEDULE_GONE => Change::ScheduleGone(take_number(input)?),
        kind => match detail_of(kind) {
            Some((detail, true)) => {
                let mut name = |name: &[u8]| names.share(name);
                Change::Detail(Box::new(Detail::take_from(detail, input, &mut name)?))
            }
            Some((detail, false)) => Change::DetailGone(detail, take_number(input)?),
            None => former::decode(kind, input, names)?,
        },
    })
}

/// The kind of details that have this type of record, and whether one is there.
fn detail_of(record: u8) -> Option<(DetailKind, bool)> {
    let kinds = DetailKind::ALL.into_iter();
    let both = kinds.flat_map(|kind| [(kind.types().0, kind, true), (kind.types().1, kind, false)]);
    let mut found = both.filter(|(known, ..)| *known == record);
    found.next().map(|(_, kind, is_there)| (kind, is_there))
}

/// Decodes one record from the front of `input` and returns only its key, or none for a record
/// without a place. Copies no payload of a task.
pub fn decode_key(input: &mut &[u8]) -> Result<Option<RecordKey>, Malformed> {
    let mut rest = *input;
    match take_byte(&mut rest)? {
        TASK => _ = take_bytes(&mut rest)?,
        LANE_TASK => _ = take_number(&mut rest)?,
        _ => return Ok(decode(input, &mut Names::default())?.key()),
    }
    *input = rest;
    let number = take_task(input)?.number;
    Ok(Some(RecordKey::Task(number)))
}

fn take_publication(input: &mut &[u8]) -> Result<Change, Malformed> {
    let first = take_number(input)?;
    let last = take_sum(input, first)?;
    let put_at = take_moment(input)?;
    let terms = take_terms(input)?.kept();
    let progress = take_progress(input, first)?;
    let (priority, expires_at) = (progress.priority, progress.expires_at);
    let of_publication = Progress { expires_at, ..Progress::fresh(first, priority) };
    if progress != of_publication {
        return Err(Malformed::OutOfRange("attribute"));
    }
    let copies = take_copies(input, first, last)?;
    let payload = Arc::from(take_bytes(input)?);
    let publication = Publication { first, last, put_at, terms, priority, expires_at, payload };
    Ok(Change::Published(Box::new(publication), copies))
}

fn take_copies(input: &mut &[u8], first: u64, last: u64) -> Result<Vec<Copied>, Malformed> {
    let count = take_number(input)?;
    // Each copy has at least two bytes, so nothing is allocated that is only declared.
    if count > (input.len() / 2) as u64 {
        return Err(Malformed::Short);
    }
    let mut copies = Vec::new();
    let mut former = Copied { number: first, lane: 0 };
    for index in 0..count {
        let number = take_sum(input, former.number)?;
        let lane = take_sum(input, former.lane)?;
        let rises = index == 0 || (number > former.number && lane > former.lane);
        if number > last || !rises {
            return Err(Malformed::OutOfRange("copy"));
        }
        former = Copied { number, lane };
        copies.push(former);
    }
    Ok(copies)
}

/// Reads a number that is written as its difference from another.
fn take_sum(input: &mut &[u8], from: u64) -> Result<u64, Malformed> {
    from.checked_add(take_number(input)?).ok_or(Malformed::OutOfRange("number"))
}

fn take_paused(input: &mut &[u8]) -> Result<Paused, Malformed> {
    let bits = take_byte(input)?;
    if bits > 15 {
        return Err(Malformed::OutOfRange("paused"));
    }
    let mut side = |bits: u8| match (bits & 1 != 0, bits & 4 != 0) {
        (false, false) => Ok(Pause::Off),
        (true, false) => Ok(Pause::Endless),
        (true, true) => Ok(Pause::Until(take_moment(input)?)),
        (false, true) => Err(Malformed::OutOfRange("paused")),
    };
    Ok(Paused { input: side(bits)?, output: side(bits >> 1)? })
}
