//! Records as versions 1 to 3 wrote them. They are read and never written.
//!
//! Every field had a fixed place, with a byte before optional ones, and tasks of lanes had other
//! record types than those of queues. Records that have not changed since are not here.

use std::sync::Arc;

use pinpriq_proto::change::{Change, Copied, LaneRecord, Moved, Publication, QueueRecord};
use pinpriq_proto::records::Malformed;
use pinpriq_proto::records::primitives::{
    take_byte, take_bytes, take_flag, take_moment, take_number, take_option, take_signed,
    take_small, take_span,
};
use pinpriq_proto::records::task::take_state;
use pinpriq_proto::settings::{AfterAck, Ids, Settings};
use pinpriq_proto::task::{LaneName, Progress, TaskId, TaskRecord, Terms};

use super::{Names, take_copies, take_paused, take_sum};

/// The types of these records.
const TASK: u8 = 1;
const MOVED: u8 = 2;
const QUEUE: u8 = 5;
const PUBLISHED: u8 = 8;
const LANE_TASK: u8 = 9;
const LANE: u8 = 10;

/// Decodes the rest of a record of this type.
pub(super) fn decode(kind: u8, input: &mut &[u8], names: &mut Names) -> Result<Change, Malformed> {
    Ok(match kind {
        TASK => Change::Task(Box::new(take_task(input, names)?)),
        MOVED => Change::Moved(Box::new(Moved {
            number: take_number(input)?,
            progress: {
                let (seq, priority) = (take_number(input)?, take_option(input, take_signed)?);
                take_progress(seq, priority, input)?
            },
        })),
        QUEUE => Change::Queue(Box::new(QueueRecord {
            name: names.share(take_bytes(input)?),
            created: take_flag(input, "created")?,
            settings: take_settings(input)?,
            paused: take_paused(input)?,
        })),
        PUBLISHED => take_publication(input)?,
        LANE_TASK => Change::Task(Box::new(take_lane_task(input)?)),
        LANE => Change::Lane(Box::new(LaneRecord {
            number: take_number(input)?,
            topic: names.share(take_bytes(input)?),
            member: take_number(input)?,
            settings: take_settings(input)?,
            paused: take_paused(input)?,
        })),
        kind => return Err(Malformed::UnknownKind { what: "record", kind }),
    })
}

fn take_task(input: &mut &[u8], names: &mut Names) -> Result<TaskRecord, Malformed> {
    let number = take_number(input)?;
    let queue = names.share(take_bytes(input)?);
    let id = TaskId::take_from(input)?;
    let (seq, priority) = (take_number(input)?, take_option(input, take_signed)?);
    let key = take_option(input, take_bytes)?;
    let put_at = take_moment(input)?;
    let expires_at = take_option(input, take_moment)?;
    let ttr = take_option(input, take_span)?;
    let attempts = take_small(input, "attempts")?;
    let (state, reason) = take_state(input)?;
    Ok(TaskRecord {
        number,
        queue,
        lane: None,
        id,
        put_at,
        terms: Terms::of(key, ttr).kept(),
        progress: Progress {
            expires_at,
            attempts,
            reason,
            state,
            ..Progress::fresh(seq, priority)
        },
        past: None,
        payload: Arc::from(take_bytes(input)?),
        away: None,
        shared: false,
    })
}

fn take_lane_task(input: &mut &[u8]) -> Result<TaskRecord, Malformed> {
    let (number, lane) = (take_number(input)?, take_number(input)?);
    let id = TaskId::take_from(input)?;
    let (seq, priority) = (take_number(input)?, take_option(input, take_signed)?);
    let put_at = take_moment(input)?;
    let progress = take_progress(seq, priority, input)?;
    let own = take_option(input, |input| {
        let key = take_option(input, take_bytes)?;
        Ok((key, take_bytes(input)?))
    })?;
    let (key, payload) = own.unwrap_or_default();
    Ok(TaskRecord {
        number,
        queue: Arc::default(),
        lane: Some(LaneName::numbered(lane)),
        id,
        put_at,
        terms: Terms { key, ..Terms::NONE }.kept(),
        progress,
        past: None,
        payload: Arc::from(payload),
        away: None,
        shared: own.is_none(),
    })
}

/// The fields after seq and priority.
fn take_progress(
    seq: u64,
    priority: Option<i64>,
    input: &mut &[u8],
) -> Result<Progress, Malformed> {
    let expires_at = take_option(input, take_moment)?;
    let attempts = take_small(input, "attempts")?;
    let (state, reason) = take_state(input)?;
    let fresh = Progress::fresh(seq, priority);
    Ok(Progress { expires_at, attempts, reason, state, ..fresh })
}

fn take_publication(input: &mut &[u8]) -> Result<Change, Malformed> {
    let first = take_number(input)?;
    let last = take_sum(input, first)?;
    let priority = take_option(input, take_signed)?;
    let key = take_option(input, take_bytes)?;
    let put_at = take_moment(input)?;
    let expires_at = take_option(input, take_moment)?;
    let copies: Vec<Copied> = take_copies(input, first, last)?;
    let publication = Publication {
        first,
        last,
        put_at,
        terms: Terms { key, ..Terms::NONE }.kept(),
        priority,
        expires_at,
        payload: Arc::from(take_bytes(input)?),
    };
    Ok(Change::Published(Box::new(publication), copies))
}

fn take_settings(input: &mut &[u8]) -> Result<Settings, Malformed> {
    Ok(Settings {
        ids: match take_byte(input)? {
            0 => Ids::Sequence,
            1 => Ids::Time64,
            2 => Ids::Uuid,
            3 => Ids::Given,
            _ => return Err(Malformed::OutOfRange("ids")),
        },
        ttl: take_option(input, take_span)?,
        ttr: take_option(input, take_span)?,
        after_ack: match take_byte(input)? {
            0 => AfterAck::Delete,
            1 => AfterAck::Keep,
            2 => AfterAck::Zombie(take_span(input)?),
            _ => return Err(Malformed::OutOfRange("after_ack")),
        },
        capacity: take_option(input, take_number)?,
        ..Settings::default()
    })
}
