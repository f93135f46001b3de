//! Changes as records, byte by byte: the section "Records" of `docs/journal.md`.
//!
//! Encoding cannot fail. Decoding is total: any bytes give a record or an error, never a panic,
//! and nothing is allocated from a length that the bytes merely declare. Framing, checksums and
//! places are not known here.

use std::sync::Arc;

use pinpriq_engine::change::{
    Change, Copied, Granted, LaneRecord, LaneTask, MemberRecord, Moved, OwnContent, Publication,
    QueueRecord, RecordKey,
};
use pinpriq_engine::settings::{AfterAck, Ids, Paused, Settings};
use pinpriq_engine::task::{Bytes, Grant, Lease, State, TaskId, TaskRecord};
use pinpriq_engine::time::{Span, Timestamp};

const TASK: u8 = 1;
const MOVED: u8 = 2;
const GRANTED: u8 = 3;
const GONE: u8 = 4;
const QUEUE: u8 = 5;
const QUEUE_GONE: u8 = 6;
const EMPTIED: u8 = 7;
const PUBLISHED: u8 = 8;
const LANE_TASK: u8 = 9;
const LANE: u8 = 10;
const LANE_GONE: u8 = 11;
const LANE_EMPTIED: u8 = 12;
const MEMBER: u8 = 13;
const MEMBER_GONE: u8 = 14;

/// Why bytes are no record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodecError {
    /// They end too early.
    #[error("a record is cut short")]
    Short,
    /// No record has this type byte.
    #[error("there is no record type {0}")]
    UnknownType(u8),
    /// A field holds what it cannot hold.
    #[error("the field {0} of a record is out of range")]
    OutOfRange(&'static str),
}

/// Appends the record of a change. A queue name, key or payload of any length is taken.
pub fn encode(change: &Change, out: &mut Vec<u8>) {
    match change {
        Change::Task(task) => encode_task(task, out),
        Change::Moved(moved) => {
            out.push(MOVED);
            put_number(out, moved.number);
            put_number(out, moved.seq);
            put_option(out, moved.priority, put_signed);
            put_option(out, moved.expires_at, put_moment);
            put_number(out, u64::from(moved.attempts));
            put_state(out, &moved.state);
        }
        Change::Granted(granted) => {
            out.push(GRANTED);
            put_number(out, granted.number);
            put_number(out, granted.incarnation);
            put_number(out, granted.serial);
            put_option(out, granted.deadline, put_moment);
            put_option(out, granted.ttr, put_span);
            put_number(out, u64::from(granted.attempts));
        }
        Change::Gone(number) => {
            out.push(GONE);
            put_number(out, *number);
        }
        Change::Queue(queue) => {
            out.push(QUEUE);
            put_bytes(out, &queue.name);
            out.push(u8::from(queue.created));
            put_settings(out, &queue.settings);
            put_paused(out, queue.paused);
        }
        Change::QueueGone(name) => {
            out.push(QUEUE_GONE);
            put_bytes(out, name);
        }
        Change::Emptied(name) => {
            out.push(EMPTIED);
            put_bytes(out, name);
        }
        Change::Published(publication) => encode_publication(publication, out),
        Change::LaneTask(task) => encode_lane_task(task, out),
        Change::Lane(lane) => {
            out.push(LANE);
            put_number(out, lane.number);
            put_bytes(out, &lane.topic);
            put_number(out, lane.member);
            put_settings(out, &lane.settings);
            put_paused(out, lane.paused);
        }
        Change::LaneGone(number) => {
            out.push(LANE_GONE);
            put_number(out, *number);
        }
        Change::LaneEmptied(number) => {
            out.push(LANE_EMPTIED);
            put_number(out, *number);
        }
        Change::Member(member) => {
            out.push(MEMBER);
            put_number(out, member.incarnation);
            put_bytes(out, &member.name);
            put_span(out, member.lease);
            out.push(u8::from(member.ended));
        }
        Change::MemberGone(incarnation) => {
            out.push(MEMBER_GONE);
            put_number(out, *incarnation);
        }
    }
}

/// Numbers and lanes of the copies are told by how much they rise, since both mostly rise by one.
fn encode_publication(publication: &Publication, out: &mut Vec<u8>) {
    out.push(PUBLISHED);
    put_number(out, publication.first);
    put_number(out, publication.last - publication.first);
    put_option(out, publication.priority, put_signed);
    put_option(out, publication.key.as_deref(), put_bytes);
    put_moment(out, publication.put_at);
    put_option(out, publication.expires_at, put_moment);
    put_number(out, publication.copies.len() as u64);
    let mut former = Copied { number: publication.first, lane: 0 };
    for copied in &publication.copies {
        put_number(out, copied.number - former.number);
        put_number(out, copied.lane - former.lane);
        former = *copied;
    }
    put_bytes(out, &publication.payload);
}

fn encode_lane_task(task: &LaneTask, out: &mut Vec<u8>) {
    out.push(LANE_TASK);
    put_number(out, task.number);
    put_number(out, task.lane);
    put_id(out, &task.id);
    put_number(out, task.seq);
    put_option(out, task.priority, put_signed);
    put_moment(out, task.put_at);
    put_option(out, task.expires_at, put_moment);
    put_number(out, u64::from(task.attempts));
    put_state(out, &task.state);
    put_option(out, task.own.as_ref(), |out, own| {
        put_option(out, own.key.as_deref(), put_bytes);
        put_bytes(out, &own.payload);
    });
}

fn encode_task(task: &TaskRecord, out: &mut Vec<u8>) {
    out.push(TASK);
    put_number(out, task.number);
    put_bytes(out, &task.queue);
    put_id(out, &task.id);
    put_number(out, task.seq);
    put_option(out, task.priority, put_signed);
    put_option(out, task.key.as_deref(), put_bytes);
    put_moment(out, task.put_at);
    put_option(out, task.expires_at, put_moment);
    put_option(out, task.ttr, put_span);
    put_number(out, u64::from(task.attempts));
    put_state(out, &task.state);
    put_bytes(out, &task.payload);
}

fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_number(out, (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned());
}

fn put_moment(out: &mut Vec<u8>, moment: Timestamp) {
    put_number(out, moment.ms());
}

fn put_span(out: &mut Vec<u8>, span: Span) {
    put_number(out, span.ms());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let mask = if planted!(LengthIn16Bits) { 0xFFFF } else { u64::MAX };
    put_number(out, bytes.len() as u64 & mask);
    out.extend_from_slice(bytes);
}

fn put_option<T>(out: &mut Vec<u8>, value: Option<T>, put: fn(&mut Vec<u8>, T)) {
    match value {
        None => out.push(0),
        Some(value) => {
            out.push(1);
            put(out, value);
        }
    }
}

fn put_id(out: &mut Vec<u8>, id: &TaskId) {
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

fn put_paused(out: &mut Vec<u8>, paused: Paused) {
    out.push(u8::from(paused.input) | u8::from(paused.output) << 1);
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

fn put_settings(out: &mut Vec<u8>, settings: &Settings) {
    out.push(match settings.ids {
        Ids::Sequence => 0,
        Ids::Time64 => 1,
        Ids::Uuid => 2,
        Ids::Given => 3,
    });
    put_option(out, settings.ttl, put_span);
    put_option(out, settings.ttr, put_span);
    match settings.after_ack {
        AfterAck::Delete => out.push(0),
        AfterAck::Keep => out.push(1),
        AfterAck::Zombie(stay) => {
            out.push(2);
            put_span(out, stay);
        }
    }
    put_option(out, settings.capacity, put_number);
}

/// Shares one allocation among the queue names of neighbouring records.
#[derive(Debug, Default)]
pub struct Names {
    last: Option<Bytes>,
    /// How often the last one was handed out.
    shared: u32,
}

/// So many records share an allocation at most. Those who read the log ahead and those who take in
/// what was read are two threads, which should seldom count the same references.
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

/// Takes one record off the front of `input`.
pub fn decode(input: &mut &[u8], names: &mut Names) -> Result<Change, CodecError> {
    let kind = take_byte(input)?;
    Ok(match kind {
        TASK => Change::Task(Box::new(take_task(input)?.keep(names))),
        MOVED => Change::Moved(Box::new(Moved {
            number: take_number(input)?,
            seq: take_number(input)?,
            priority: take_option(input, take_signed)?,
            expires_at: take_option(input, take_moment)?,
            attempts: take_attempts(input)?,
            state: take_state(input)?,
        })),
        GRANTED => Change::Granted(Granted {
            number: take_number(input)?,
            incarnation: take_number(input)?,
            serial: take_number(input)?,
            deadline: take_option(input, take_moment)?,
            ttr: take_option(input, take_span)?,
            attempts: take_attempts(input)?,
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
        PUBLISHED => Change::Published(Box::new(take_publication(input)?)),
        LANE_TASK => Change::LaneTask(Box::new(take_lane_task(input)?)),
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
        unknown => return Err(CodecError::UnknownType(unknown)),
    })
}

/// Takes one record off the front of `input` and tells only its key, if it is one that has a
/// place. Copies no payload of a task in a queue.
pub fn decode_key(input: &mut &[u8]) -> Result<Option<RecordKey>, CodecError> {
    match input.first() {
        Some(&TASK) => {
            *input = &input[1..];
            let number = take_task(input)?.number;
            if planted!(PayloadSkippedTwoShort) {
                take_array::<2>(input)?;
            }
            Ok(Some(RecordKey::Task(number)))
        }
        _ => Ok(decode(input, &mut Names::default())?.key()),
    }
}

/// A task whose bytes still lie where they were read.
struct TaskView<'a> {
    number: u64,
    queue: &'a [u8],
    id: IdView<'a>,
    seq: u64,
    priority: Option<i64>,
    key: Option<&'a [u8]>,
    put_at: Timestamp,
    expires_at: Option<Timestamp>,
    ttr: Option<Span>,
    attempts: u32,
    state: State,
    payload: &'a [u8],
}

enum IdView<'a> {
    Number(u64),
    Uuid([u8; 16]),
    Given(&'a [u8]),
}

impl IdView<'_> {
    fn keep(self) -> TaskId {
        match self {
            Self::Number(number) => TaskId::Number(number),
            Self::Uuid(bytes) => TaskId::Uuid(bytes),
            Self::Given(bytes) => TaskId::Given(Arc::from(bytes)),
        }
    }
}

impl TaskView<'_> {
    fn keep(self, names: &mut Names) -> TaskRecord {
        TaskRecord {
            number: self.number,
            queue: names.share(self.queue),
            lane: None,
            away: None,
            id: self.id.keep(),
            seq: self.seq,
            priority: self.priority,
            key: self.key.map(Arc::from),
            payload: Arc::from(self.payload),
            put_at: self.put_at,
            expires_at: self.expires_at,
            ttr: self.ttr,
            attempts: self.attempts,
            state: self.state,
        }
    }
}

fn take_task<'a>(input: &mut &'a [u8]) -> Result<TaskView<'a>, CodecError> {
    Ok(TaskView {
        number: take_number(input)?,
        queue: take_bytes(input)?,
        id: take_id(input)?,
        seq: take_number(input)?,
        priority: take_option(input, take_signed)?,
        key: take_option(input, take_bytes)?,
        put_at: take_moment(input)?,
        expires_at: take_option(input, take_moment)?,
        ttr: take_option(input, take_span)?,
        attempts: take_attempts(input)?,
        state: take_state(input)?,
        payload: take_bytes(input)?,
    })
}

fn take_id<'a>(input: &mut &'a [u8]) -> Result<IdView<'a>, CodecError> {
    Ok(match take_byte(input)? {
        0 => IdView::Number(take_number(input)?),
        1 => IdView::Uuid(take_array(input)?),
        2 => IdView::Given(take_bytes(input)?),
        _ => return Err(CodecError::OutOfRange("id")),
    })
}

fn take_publication(input: &mut &[u8]) -> Result<Publication, CodecError> {
    let first = take_number(input)?;
    let last = take_sum(input, first)?;
    let priority = take_option(input, take_signed)?;
    let key = take_option(input, take_bytes)?;
    let put_at = take_moment(input)?;
    let expires_at = take_option(input, take_moment)?;
    let count = take_number(input)?;
    // Two bytes each at least, so nothing is allocated that was only declared.
    if count > (input.len() / 2) as u64 {
        return Err(CodecError::Short);
    }
    let mut copies = Vec::new();
    let mut former = Copied { number: first, lane: 0 };
    for index in 0..count {
        let number = take_sum(input, former.number)?;
        let lane = take_sum(input, former.lane)?;
        let rises = index == 0 || (number > former.number && lane > former.lane);
        if number > last || !rises {
            return Err(CodecError::OutOfRange("copy"));
        }
        former = Copied { number, lane };
        copies.push(former);
    }
    Ok(Publication {
        first,
        last,
        priority,
        key: key.map(Arc::from),
        payload: Arc::from(take_bytes(input)?),
        put_at,
        expires_at,
        copies,
    })
}

fn take_lane_task(input: &mut &[u8]) -> Result<LaneTask, CodecError> {
    Ok(LaneTask {
        number: take_number(input)?,
        lane: take_number(input)?,
        id: take_id(input)?.keep(),
        seq: take_number(input)?,
        priority: take_option(input, take_signed)?,
        put_at: take_moment(input)?,
        expires_at: take_option(input, take_moment)?,
        attempts: take_attempts(input)?,
        state: take_state(input)?,
        own: take_option(input, |input| {
            let key = take_option(input, take_bytes)?.map(Arc::from);
            Ok(OwnContent { key, payload: Arc::from(take_bytes(input)?) })
        })?,
    })
}

/// A number that is told by how much it exceeds another.
fn take_sum(input: &mut &[u8], from: u64) -> Result<u64, CodecError> {
    from.checked_add(take_number(input)?).ok_or(CodecError::OutOfRange("number"))
}

fn take_byte(input: &mut &[u8]) -> Result<u8, CodecError> {
    let (&byte, rest) = input.split_first().ok_or(CodecError::Short)?;
    *input = rest;
    Ok(byte)
}

fn take_array<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], CodecError> {
    let (array, rest) = input.split_first_chunk::<N>().ok_or(CodecError::Short)?;
    *input = rest;
    Ok(*array)
}

fn take_number(input: &mut &[u8]) -> Result<u64, CodecError> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = take_byte(input)?;
        // The tenth byte has room for one bit, and must not announce an eleventh.
        if shift == 63 && byte > 1 {
            return Err(CodecError::OutOfRange("number"));
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(CodecError::OutOfRange("number"))
}

fn take_signed(input: &mut &[u8]) -> Result<i64, CodecError> {
    let value = take_number(input)?;
    Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}

fn take_attempts(input: &mut &[u8]) -> Result<u32, CodecError> {
    u32::try_from(take_number(input)?).map_err(|_| CodecError::OutOfRange("attempts"))
}

fn take_moment(input: &mut &[u8]) -> Result<Timestamp, CodecError> {
    let ms = take_number(input)?;
    if ms > Timestamp::MAX.ms() {
        return Err(CodecError::OutOfRange("moment"));
    }
    Ok(Timestamp::from_ms(ms))
}

fn take_span(input: &mut &[u8]) -> Result<Span, CodecError> {
    take_number(input).map(Span::from_ms)
}

fn take_bytes<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], CodecError> {
    let length = usize::try_from(take_number(input)?).map_err(|_| CodecError::Short)?;
    let (bytes, rest) = input.split_at_checked(length).ok_or(CodecError::Short)?;
    *input = rest;
    Ok(bytes)
}

fn take_flag(input: &mut &[u8], field: &'static str) -> Result<bool, CodecError> {
    match take_byte(input)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(CodecError::OutOfRange(field)),
    }
}

fn take_option<'a, T>(
    input: &mut &'a [u8],
    take: fn(&mut &'a [u8]) -> Result<T, CodecError>,
) -> Result<Option<T>, CodecError> {
    if take_flag(input, "presence")? { take(input).map(Some) } else { Ok(None) }
}

fn take_state(input: &mut &[u8]) -> Result<State, CodecError> {
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
        _ => return Err(CodecError::OutOfRange("state")),
    })
}

fn take_settings(input: &mut &[u8]) -> Result<Settings, CodecError> {
    Ok(Settings {
        ids: match take_byte(input)? {
            0 => Ids::Sequence,
            1 => Ids::Time64,
            2 => Ids::Uuid,
            3 => Ids::Given,
            _ => return Err(CodecError::OutOfRange("ids")),
        },
        ttl: take_option(input, take_span)?,
        ttr: take_option(input, take_span)?,
        after_ack: match take_byte(input)? {
            0 => AfterAck::Delete,
            1 => AfterAck::Keep,
            2 => AfterAck::Zombie(take_span(input)?),
            _ => return Err(CodecError::OutOfRange("after_ack")),
        },
        capacity: take_option(input, take_number)?,
    })
}

fn take_paused(input: &mut &[u8]) -> Result<Paused, CodecError> {
    let bits = take_byte(input)?;
    if bits > 3 {
        return Err(CodecError::OutOfRange("paused"));
    }
    Ok(Paused { input: bits & 1 != 0, output: bits & 2 != 0 })
}
