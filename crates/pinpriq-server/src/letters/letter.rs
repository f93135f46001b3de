//! What shards write to each other. Plain data: who writes it when is the business of `home`, what
//! is done about it that of `host`.
//!
//! A command travels encoded, since it borrows its bytes from a buffer that is read into again. An
//! output travels as it is, since it owns its bytes and may stand for payloads on the disk. Nothing
//! in a letter points into the shard that wrote it, so each has a form in bytes.

use std::net::{SocketAddr, TcpStream};

use pinpriq_engine::reply::{Output, Refusal, Reply};
use pinpriq_engine::task::{Bytes, ClientId, RequestId};
use pinpriq_store::durable::{Holds, Wanted};

use crate::config::DoorName;
use crate::host::facts::Facts;
use crate::session::about::{About, Chosen, Dialect, Manners};
use crate::session::ending::Ending;
use crate::session::unsent::Unsent;

/// Something that one shard has for another.
pub(crate) enum Letter {
    /// A connection that was accepted elsewhere, or served there, and is to be served here.
    Arrival(Arrival),
    /// What a client wants of queues that live here.
    Errand {
        /// The shard that has the connection.
        home: usize,
        /// Its client there.
        client: ClientId,
        /// What it wants.
        errand: Errand,
    },
    /// What became of the errands of a client.
    News {
        /// The shard where the queues live.
        from: usize,
        /// The client in the shard that has the connection.
        client: ClientId,
        /// What has become of them.
        news: News,
    },
}

/// A connection that was accepted.
pub(crate) struct Arrival {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    /// The door that it came through.
    pub(crate) door: DoorName,
    /// What is known of its client, if it was served already.
    pub(crate) known: Option<Known>,
}

/// A client that a shard gives up to another.
pub(crate) struct Known {
    pub(crate) client: ClientId,
    pub(crate) about: About,
    pub(crate) dialect: Dialect,
    /// What has come and was not carried out.
    pub(crate) input: Vec<u8>,
}

/// What a client wants of another shard. The errands of one client are done in order, but for those
/// that say otherwise.
pub(crate) enum Errand {
    /// The first of all: more will follow.
    Open(Manners),
    /// Commands to carry out.
    Commands(Commands),
    /// Further deliveries that the client may be sent.
    Credit(u32),
    /// One question of which every shard answers its part.
    Ask(Question),
    /// Everything that belongs to the client ends, and it begins anew. Answered with
    /// [`Part::Done`].
    Reset,
    /// The blocked command is answered as if its time were up.
    EndWaits,
    /// No more commands will come. If the server stops, the blocked command is refused.
    End {
        /// Whether the server stops.
        stopping: bool,
    },
    /// Payloads of outputs that were handed over are to be read. Begun at once.
    Read(Vec<Wanted>),
    /// This number of outputs has left for the client. Done at once.
    Sent(usize),
    /// The connection is gone. Done at once, with the commands before it that need not wait.
    Cut {
        /// How many outputs the shard with the connection has received of this one.
        heard: u64,
        /// Those that did not leave for the client.
        unsent: Unsent,
    },
    /// Outputs that came when the connection was gone already. Done at once.
    Back {
        /// How many outputs.
        outputs: u64,
        /// What they handed over.
        unsent: Unsent,
    },
}

/// What every shard is asked for its part of.
pub(crate) enum Question {
    /// The reply of its engine to this one command.
    Command(Commands),
    /// The facts about it.
    Facts,
    /// A line for each of its connections.
    Clients,
    /// To end connections, but for that of the client who asks.
    Kill(Chosen, ClientId),
    /// How many deliveries it has made to the client since that began anew.
    Delivered,
}

/// One shard's part of an answer.
pub(crate) enum Part {
    /// The reply of its engine.
    Reply(Reply),
    /// See [`Question::Facts`].
    Facts(Box<Facts>),
    /// See [`Question::Clients`].
    Clients(Vec<(ClientId, String)>),
    /// How many connections it ends.
    Killed(u64),
    /// See [`Question::Delivered`].
    Delivered(u64),
    /// It has done what it was asked.
    Done,
}

/// What has become of errands.
#[derive(Default)]
pub(crate) struct News {
    /// Outputs, and parts of answers, in order.
    pub(crate) pieces: Vec<Piece>,
    /// What came of reading payloads, if that was asked for.
    pub(crate) payloads: Option<Result<Vec<Bytes>, Refusal>>,
    /// Whether the client can be told of a refusal.
    pub(crate) tells_refusals: bool,
    /// How many bytes of commands were carried out.
    pub(crate) consumed: usize,
    /// How often the client has begun anew.
    pub(crate) resets: u64,
    /// How many deliveries were made to it since.
    pub(crate) delivered: u64,
    /// How it stands with the client.
    pub(crate) standing: Standing,
}

impl News {
    /// How many outputs there are.
    pub(crate) fn outputs(&self) -> u64 {
        let outputs = self.pieces.iter().filter(|piece| matches!(piece, Piece::Output(..)));
        outputs.count() as u64
    }

    /// What the outputs hand over.
    pub(crate) fn into_unsent(self) -> Unsent {
        let mut unsent = Unsent::default();
        for piece in self.pieces {
            if let Piece::Output(output, holds) = piece {
                unsent.add(output, &holds);
            }
        }
        unsent
    }
}

/// How it stands with a client in a shard that does not have its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Standing {
    /// Commands or other errands have to wait.
    pub(crate) stalled: bool,
    /// It has subscriptions.
    pub(crate) subscribed: bool,
    /// Why nothing more will be done for it, if it is so.
    pub(crate) ended: Option<Ending>,
}

/// One of the things that a shard has for a client of another.
pub(crate) enum Piece {
    /// An output whose changes are durable, with what keeps its payloads readable.
    Output(Output, Holds),
    /// A shard's part of an answer.
    Part(Part),
}

/// Encoded commands, one after the other, each with the number of its request.
#[derive(Default)]
pub(crate) struct Commands {
    bytes: Vec<u8>,
    /// Where the first stands that was not taken.
    at: usize,
}

/// The number of bytes before each encoded command: its request and its length.
const HEAD_BYTES: usize = 12;

impl Commands {
    /// Adds a command that `encode` appends to a buffer. Returns how many bytes it takes here.
    pub(crate) fn push(&mut self, request: RequestId, encode: impl FnOnce(&mut Vec<u8>)) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&request.0.to_le_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        encode(&mut self.bytes);
        let length = self.bytes.len() - start;
        let Ok(encoded) = u32::try_from(length - HEAD_BYTES) else {
            unreachable!("a command of {length} bytes came through a door")
        };
        self.bytes[start + 8..start + HEAD_BYTES].copy_from_slice(&encoded.to_le_bytes());
        length
    }

    /// The first command, with its request and the number of bytes that it takes here.
    pub(crate) fn first(&self) -> Option<(RequestId, &[u8], usize)> {
        let (head, rest) = self.bytes[self.at..].split_first_chunk::<HEAD_BYTES>()?;
        let (request, length) = head.split_first_chunk::<8>()?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let request = RequestId(u64::from_le_bytes(*request));
        Some((request, &rest[..length], HEAD_BYTES + length))
    }

    /// Passes over a command that takes this number of bytes here.
    pub(crate) const fn pass(&mut self, length: usize) {
        self.at += length;
    }

    /// How many bytes were not passed over.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether all were passed over.
    pub(crate) const fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }
}
