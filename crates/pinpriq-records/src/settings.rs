//! The settings of a queue as bytes.

use pinpriq_engine::settings::{AfterAck, Ids, Settings};

use crate::Malformed;
use crate::primitives::{put_number, put_span, take_byte, take_number, take_span};

/// Behind the last setting.
const END: u8 = 0;
const IDS: u8 = 1;
const TTL: u8 = 2;
const TTR: u8 = 3;
const AFTER_ACK: u8 = 4;
const CAPACITY: u8 = 5;

/// Appends those settings that are not the default.
pub fn put_settings(out: &mut Vec<u8>, settings: &Settings) {
    let Settings { ids, ttl, ttr, after_ack, capacity } = settings;
    let ids = match ids {
        Ids::Sequence => None,
        Ids::Time64 => Some(1),
        Ids::Uuid => Some(2),
        Ids::Given => Some(3),
    };
    if let Some(ids) = ids {
        out.extend([IDS, ids]);
    }
    if let Some(ttl) = ttl {
        out.push(TTL);
        put_span(out, *ttl);
    }
    if let Some(ttr) = ttr {
        out.push(TTR);
        put_span(out, *ttr);
    }
    match after_ack {
        AfterAck::Delete => {}
        AfterAck::Keep => out.extend([AFTER_ACK, 1]),
        AfterAck::Zombie(stay) => {
            out.extend([AFTER_ACK, 2]);
            put_span(out, *stay);
        }
    }
    if let Some(capacity) = capacity {
        out.push(CAPACITY);
        put_number(out, *capacity);
    }
    out.push(END);
}

/// Takes what [`put_settings`] appends.
pub fn take_settings(input: &mut &[u8]) -> Result<Settings, Malformed> {
    let mut settings = Settings::default();
    let mut last = END;
    loop {
        let tag = take_byte(input)?;
        if tag == END {
            return Ok(settings);
        }
        if tag > CAPACITY {
            return Err(Malformed::UnknownAttribute(tag));
        }
        if tag <= last {
            return Err(Malformed::OutOfRange("setting"));
        }
        last = tag;
        match tag {
            IDS => {
                settings.ids = match take_byte(input)? {
                    1 => Ids::Time64,
                    2 => Ids::Uuid,
                    3 => Ids::Given,
                    _ => return Err(Malformed::OutOfRange("ids")),
                }
            }
            TTL => settings.ttl = Some(take_span(input)?),
            TTR => settings.ttr = Some(take_span(input)?),
            AFTER_ACK => {
                settings.after_ack = match take_byte(input)? {
                    1 => AfterAck::Keep,
                    2 => AfterAck::Zombie(take_span(input)?),
                    _ => return Err(Malformed::OutOfRange("after_ack")),
                }
            }
            _ => settings.capacity = Some(take_number(input)?),
        }
    }
}
