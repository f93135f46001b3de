//! What nodes say to each other over a link, byte by byte.
//!
//! Each message has its length before it. A *body* is a piece of the messages of one link, so a
//! message may begin in one body and end in a later one. What an errand or news look
//! like is in `links::codec`; what happens with a message is in `exchange`. All numbers are little
//! endian.

use pinpriq_proto::letters::Malformed;
use pinpriq_proto::task::ClientId;
use pinpriq_store::Extent;

use crate::facts::cluster::LogFacts;
use crate::letters::letter::{Errand, News};
use crate::links::codec::{decode_errand, decode_news, encode_errand, encode_news};

const SERVES: u8 = 1;
const RELEASED: u8 = 2;
const FAILED: u8 = 3;
const NEWS: u8 = 4;
const ERRAND: u8 = 5;
const CLOCK: u8 = 6;

/// The bytes before each message: its length.
const LENGTH_BYTES: usize = 4;

/// Something that one node says to another.
pub(crate) enum Message {
    /// The sender serves this shard, with the tenure of this term. It may say how the log fares.
    Serves(usize, u64, Option<LogFacts>),
    /// The sender has given up this shard and has told all that it has done.
    Released(usize),
    /// The sender has lost this shard. What it did not tell may have happened.
    Failed(usize),
    /// For a client of the receiver: what has become of its errands in this shard.
    News(usize, ClientId, News),
    /// What a client of the sender wants of this shard, as long as the receiver serves it with the
    /// tenure of this term.
    Errand((usize, u64), ClientId, Errand),
    /// What the wall clock of the sender says, in milliseconds since the Unix epoch.
    Clock(u64),
}

/// Appends what says that a shard is served.
pub(crate) fn put_serves(body: &mut Vec<u8>, shard: usize, term: u64) {
    put(body, SERVES, shard, |out| out.extend_from_slice(&term.to_le_bytes()));
}

/// Appends the same with how the log fares. Nodes that do not know of that read over it.
pub(crate) fn put_log(body: &mut Vec<u8>, term: u64, log: LogFacts) {
    put(body, SERVES, log.shard, |out| {
        for number in [term, log.extent.head, log.extent.applied, log.is_suspended.into()] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    });
}

/// Appends what says that a shard is no longer served.
pub(crate) fn put_ended(body: &mut Vec<u8>, shard: usize, in_order: bool) {
    put(body, if in_order { RELEASED } else { FAILED }, shard, |_| {});
}

/// Appends what the wall clock says.
pub(crate) fn put_clock(body: &mut Vec<u8>, wall_ms: u64) {
    put(body, CLOCK, 0, |out| out.extend_from_slice(&wall_ms.to_le_bytes()));
}

/// Appends news for a client.
pub(crate) fn put_news(body: &mut Vec<u8>, (shard, client): (usize, ClientId), news: &News) {
    put(body, NEWS, shard, |out| {
        out.extend_from_slice(&client.0.to_le_bytes());
        encode_news(news, out);
    });
}

/// Appends an errand of a client for the host with this term.
pub(crate) fn put_errand(
    body: &mut Vec<u8>,
    (shard, term): (usize, u64),
    client: ClientId,
    errand: &Errand,
) {
    put(body, ERRAND, shard, |out| {
        out.extend_from_slice(&term.to_le_bytes());
        out.extend_from_slice(&client.0.to_le_bytes());
        encode_errand(errand, out);
    });
}

fn put(body: &mut Vec<u8>, kind: u8, shard: usize, rest: impl FnOnce(&mut Vec<u8>)) {
    let start = body.len();
    body.extend_from_slice(&[0; LENGTH_BYTES]);
    body.push(kind);
    let Ok(shard) = u16::try_from(shard) else { unreachable!("shard {shard} is too high") };
    body.extend_from_slice(&shard.to_le_bytes());
    rest(body);
    let length = body.len() - start - LENGTH_BYTES;
    let Ok(length) = u32::try_from(length) else {
        unreachable!("a message of {length} bytes was written")
    };
    body[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// Reads the complete messages at the front of `bytes`, and passes each to `hear`. Returns the
/// number of bytes that it has read. Stops at the first message that is none.
pub(crate) fn read(bytes: &[u8], mut hear: impl FnMut(Message)) -> Result<usize, Malformed> {
    let mut left = bytes;
    while let Some((length, rest)) = left.split_first_chunk::<LENGTH_BYTES>() {
        let Some(message) = rest.get(..u32::from_le_bytes(*length) as usize) else { break };
        hear(one(message)?);
        left = &rest[message.len()..];
    }
    Ok(bytes.len() - left.len())
}

fn one(message: &[u8]) -> Result<Message, Malformed> {
    let ([kind, low, high], rest) = message.split_first_chunk::<3>().ok_or(Malformed::Short)?;
    let shard = usize::from(u16::from_le_bytes([*low, *high]));
    match *kind {
        SERVES => {
            let (term, rest) = number(rest)?;
            Ok(Message::Serves(shard, term, log(shard, rest)))
        }
        RELEASED => Ok(Message::Released(shard)),
        FAILED => Ok(Message::Failed(shard)),
        NEWS => {
            let (client, rest) = number(rest)?;
            Ok(Message::News(shard, ClientId(client), decode_news(rest)?))
        }
        ERRAND => {
            let (term, rest) = number(rest)?;
            let (client, rest) = number(rest)?;
            Ok(Message::Errand((shard, term), ClientId(client), decode_errand(rest)?))
        }
        CLOCK => Ok(Message::Clock(number(rest)?.0)),
        kind => Err(Malformed::UnknownKind { what: "message", kind }),
    }
}

fn log(shard: usize, bytes: &[u8]) -> Option<LogFacts> {
    let (head, rest) = number(bytes).ok()?;
    let (applied, rest) = number(rest).ok()?;
    let is_suspended = number(rest).ok()?.0 != 0;
    Some(LogFacts { shard, extent: Extent { head, applied }, is_suspended })
}

fn number(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let (number, rest) = bytes.split_first_chunk::<8>().ok_or(Malformed::Short)?;
    Ok((u64::from_le_bytes(*number), rest))
}
