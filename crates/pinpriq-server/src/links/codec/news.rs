//! News: the standing of a client and its counters, then the pieces.

use pinpriq_proto::letters::primitives::{end, put_number, take_byte, take_number, take_small};
use pinpriq_proto::letters::{Malformed, decode_output, encode_output};
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_store::durable::Holds;

use super::{pack, put_sized, take_count, take_sized, unpack};
use crate::clients::ending::Ending;
use crate::letters::letter::{News, Part, Piece, Standing};

const OUTPUT: u8 = 1;
const REPLY: u8 = 2;
const DELIVERED: u8 = 3;
const DONE: u8 = 4;
const LOST: u8 = 5;

/// The client and the request of a part of a reply, which concerns neither.
const NOBODY: (ClientId, RequestId) = (ClientId(0), RequestId(0));

/// Appends news.
///
/// # Panics
/// If a payload was left on a disk, or if a piece answers an inquiry.
pub(crate) fn encode_news(news: &News, out: &mut Vec<u8>) {
    let News { pieces, payloads, tells_refusals, consumed, resets, delivered, standing } = news;
    assert!(payloads.is_none(), "another node has asked for no payloads");
    let Standing { stalled, subscriptions, ended } = *standing;
    out.push(pack([*tells_refusals, stalled]));
    out.push(ended.map_or(0, code_of));
    put_number(out, u64::from(subscriptions));
    put_number(out, *consumed as u64);
    put_number(out, *resets);
    put_number(out, *delivered);
    put_number(out, pieces.len() as u64);
    for piece in pieces {
        put_piece(out, piece);
    }
}

/// Decodes news that fill `bytes` exactly.
pub(crate) fn decode_news(bytes: &[u8]) -> Result<News, Malformed> {
    let mut rest = bytes;
    let input = &mut rest;
    let [tells_refusals, stalled] = unpack(take_byte(input)?)?;
    let ended = match take_byte(input)? {
        0 => None,
        code => Some(ending_of(code)?),
    };
    let subscriptions = take_small(input, "subscriptions")?;
    let consumed = take_count(input, "consumed")?;
    let (resets, delivered) = (take_number(input)?, take_number(input)?);
    let count = take_number(input)?;
    let mut pieces = Vec::new();
    for _ in 0..count {
        pieces.push(take_piece(input)?);
    }
    end(input)?;
    let standing = Standing { stalled, subscriptions, ended };
    Ok(News { pieces, payloads: None, tells_refusals, consumed, resets, delivered, standing })
}

fn put_piece(out: &mut Vec<u8>, piece: &Piece) {
    match piece {
        Piece::Output(output, holds) => {
            assert!(holds.is_empty(), "a shard of a cluster keeps no payloads on its disk");
            out.push(OUTPUT);
            put_sized(out, |out| encode_output(output, out));
        }
        Piece::Part(Part::Reply(reply)) => {
            let ((client, request), reply) = (NOBODY, reply.clone());
            out.push(REPLY);
            put_sized(out, |out| encode_output(&Output::Reply { client, request, reply }, out));
        }
        Piece::Part(Part::Delivered(count)) => {
            out.push(DELIVERED);
            put_number(out, *count);
        }
        Piece::Part(Part::Done) => out.push(DONE),
        Piece::Part(Part::Facts(_) | Part::Clients(_) | Part::Killed(_) | Part::Survey(_)) => {
            unreachable!("an inquiry came from another node")
        }
        Piece::Lost => out.push(LOST),
    }
}

fn take_piece(input: &mut &[u8]) -> Result<Piece, Malformed> {
    Ok(match take_byte(input)? {
        OUTPUT => Piece::Output(decode_output(take_sized(input)?)?, Holds::default()),
        REPLY => Piece::Part(Part::Reply(take_reply(input)?)),
        DELIVERED => Piece::Part(Part::Delivered(take_number(input)?)),
        DONE => Piece::Part(Part::Done),
        LOST => Piece::Lost,
        kind => return Err(Malformed::UnknownKind { what: "piece", kind }),
    })
}

fn take_reply(input: &mut &[u8]) -> Result<Reply, Malformed> {
    match decode_output(take_sized(input)?)? {
        Output::Reply { client, request, reply } if (client, request) == NOBODY => Ok(reply),
        _ => Err(Malformed::OutOfRange("part of a reply")),
    }
}

const fn code_of(ending: Ending) -> u8 {
    match ending {
        Ending::Closed => 1,
        Ending::Quit => 2,
        Ending::Broken => 3,
        Ending::Killed => 4,
        Ending::Late => 5,
        Ending::Malformed => 6,
        Ending::Refused => 7,
        Ending::Unread => 8,
        Ending::StoreFailed => 9,
        Ending::Stopped => 10,
        Ending::TooMany => 11,
        Ending::Unknown => 12,
        Ending::Denied => 13,
        Ending::Handshake => 14,
    }
}

const fn ending_of(code: u8) -> Result<Ending, Malformed> {
    Ok(match code {
        1 => Ending::Closed,
        2 => Ending::Quit,
        3 => Ending::Broken,
        4 => Ending::Killed,
        5 => Ending::Late,
        6 => Ending::Malformed,
        7 => Ending::Refused,
        8 => Ending::Unread,
        9 => Ending::StoreFailed,
        10 => Ending::Stopped,
        11 => Ending::TooMany,
        12 => Ending::Unknown,
        13 => Ending::Denied,
        14 => Ending::Handshake,
        _ => return Err(Malformed::OutOfRange("ending")),
    })
}
