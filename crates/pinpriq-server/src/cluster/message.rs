//! What nodes say to each other over a link.
//!
//! Each message has its length before it, in four bytes, the lowest first. A *body* is a piece of
//! the messages of one link, so a message may begin in one body and end in a later one. How a
//! message is written follows from its declaration, and so does what a node makes of what a newer
//! one says: see [`pinpriq_proto::letters::Letter`]. What happens with a message is in `exchange`.
//!
//! Decoding is total: any bytes give a message or an error, never a panic, and no allocation
//! depends on a length that was only declared. Commands are decoded once on the way in, so a guest
//! finds only commands that it can carry out.

use pinpriq_proto::letters::{Letter, Malformed, check_reply, decode};
use pinpriq_proto::reply::Output;
use pinpriq_proto::task::ClientId;

use crate::letters::letter::{Errand, News, Part, Piece, Question};

/// The bytes before each message: its length.
const LENGTH_BYTES: usize = 4;

/// Something that one node says to another.
#[derive(pinpriq_proto::letters::Letter)]
#[letter(unsampled)]
pub(crate) enum Message {
    /// The sender serves this shard, with the tenure of this term.
    #[letter(1)]
    Serves {
        shard: usize,
        term: u64,
        /// The last entry of its log, and the last one that is applied, if the sender says so.
        #[letter(1)]
        extent: Option<(u64, u64)>,
        /// Whether the host says nothing at the moment, because its log does not answer.
        #[letter(2)]
        is_suspended: bool,
    },
    /// The sender has given up this shard and has told all that it has done.
    #[letter(2)]
    Released { shard: usize },
    /// The sender has lost this shard. What it did not tell may have happened.
    #[letter(3)]
    Failed { shard: usize },
    /// For a client of the receiver: what has become of its errands in this shard.
    #[letter(4)]
    News { shard: usize, client: ClientId, news: News },
    /// What a client of the sender wants of this shard, as long as the receiver serves it with the
    /// tenure of this term.
    #[letter(5)]
    Errand { shard: usize, term: u64, client: ClientId, errand: Errand },
    /// What the wall clock of the sender says, in milliseconds since the Unix epoch.
    #[letter(6)]
    Clock { wall_ms: u64 },
}

/// Appends a message.
///
/// # Panics
/// If something in it stays in its process: a payload on a disk, or a question about a shard that
/// no client asks. A store of a cluster leaves no payload on a disk.
pub(crate) fn put(message: &Message, body: &mut Vec<u8>) {
    let start = body.len();
    body.extend_from_slice(&[0; LENGTH_BYTES]);
    message.put(body);
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
        left = &rest[message.len()..];
        let message = decode(message)?;
        check(&message)?;
        hear(message);
    }
    Ok(bytes.len() - left.len())
}

/// Refuses what no host and no home says.
fn check(message: &Message) -> Result<(), Malformed> {
    match message {
        // An answer is awaited, and there is one for one command.
        Message::Errand {
            errand: Errand::Aside(commands) | Errand::Ask(Question::Command(commands)),
            ..
        } if commands.count() != 1 => Err(Malformed::OutOfRange("commands of a question")),
        Message::News { news, .. } => news.pieces.iter().try_for_each(|piece| match piece {
            Piece::Output(Output::Reply { reply, .. }, _) | Piece::Part(Part::Reply(reply)) => {
                check_reply(reply)
            }
            _ => Ok(()),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
