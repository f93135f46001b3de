//! What shards write to each other, as plain data. `home` decides who writes it when, and `host`
//! what is done about it.
//!
//! A command travels encoded, since it borrows its bytes from a buffer that is read into again. An
//! output travels as it is, since it owns its bytes and may stand for payloads on the disk. Nothing
//! in a letter points into the shard that wrote it. Errands and news can be written as bytes for
//! another node, see [`pinpriq_proto::letters::Letter`], except for what is marked as local.

use std::net::SocketAddr;

use pinpriq_proto::fanout::MemberFigures;
use pinpriq_proto::letters::primitives::{put_bytes, take_bytes};
use pinpriq_proto::letters::{Arena, Letter as Encoded, Malformed, decode_command};
use pinpriq_proto::named_limits::LimitShown;
use pinpriq_proto::reply::{Output, Refusal, Reply, TubeShown};
use pinpriq_proto::shares::SharesLook;
use pinpriq_proto::stats::Figures;
use pinpriq_proto::survey::{QueueNews, SurveyPage, Surveyed};
use pinpriq_proto::task::{Bytes, ClientId, Receipt, RequestId};
use pinpriq_store::StoreError;
use pinpriq_store::durable::{Holds, Wanted};
use tokio::sync::oneshot;

use crate::clients::about::{ASIDE, About, Chosen, Dialect, Manners};
use crate::clients::ending::Ending;
use crate::clients::unsent::Unsent;
use crate::config::DoorName;
use crate::facts::Facts;
use crate::tls::socket::Carried;

/// Something that one shard sends to another.
pub(crate) enum Letter {
    /// A connection that was accepted or served elsewhere, and is to be served here.
    Arrival(Arrival),
    /// A question about the shard, on behalf of no client.
    Inquiry(Inquiry, oneshot::Sender<Part>),
    /// What a client wants of queues that live here.
    Errand {
        /// Where its connection is.
        home: Home,
        /// Its client there.
        client: ClientId,
        /// What it wants.
        errand: Errand,
    },
    /// What the host of a shard says about itself. Only hosts of a cluster do.
    Host {
        /// The shard.
        shard: usize,
        /// What it says.
        news: HostNews,
    },
    /// The clients of this home are gone, with all that belongs to them.
    HomeGone(Home),
    /// The users have changed: check that what has begun is still allowed.
    UsersChanged,
    /// The results of a client's errands.
    News {
        /// The shard where the queues live.
        from: usize,
        /// Where the connection is.
        home: Home,
        /// The client there.
        client: ClientId,
        /// The results.
        news: News,
    },
}

/// What a host says about itself to the home of its node.
#[derive(Clone, Debug)]
pub enum HostNews {
    /// It serves, with the tenure of this term.
    Serves(u64),
    /// It has ended, and the log is as the host left it. Everything that it has done was told.
    Released,
    /// It has ended. What was not told may have happened.
    Failed(StoreError),
}

/// Where a client has its connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Home {
    /// In this place of the process.
    Place(usize),
    /// In the process at the other end of this link.
    Link(u64),
}

/// A connection that was accepted.
pub struct Arrival {
    pub(crate) socket: Carried,
    pub(crate) peer: SocketAddr,
    /// The door that it came through.
    pub(crate) door: DoorName,
    /// What is known about its client, if it was served already.
    pub(crate) known: Option<Known>,
}

/// A client that a shard gives up to another.
pub struct Known {
    pub(crate) client: ClientId,
    pub(crate) about: About,
    pub(crate) dialect: Dialect,
    /// Bytes that have arrived and were not carried out.
    pub(crate) input: Vec<u8>,
}

/// What a client wants of another shard. The errands of one client are done in order, unless their
/// description says otherwise.
#[derive(pinpriq_proto::letters::Letter)]
#[letter(unsampled)]
pub(crate) enum Errand {
    /// The first errand. More will follow.
    #[letter(1)]
    Open(Manners),
    /// What the tasks that further commands put count for, if for anything.
    #[letter(11)]
    Account(Option<Bytes>),
    /// Commands to carry out.
    #[letter(2)]
    Commands(Commands),
    /// Further deliveries that the client may be sent.
    #[letter(3)]
    Credit(u32),
    /// How many deliveries the client may be sent since its latest reset, whatever it might be sent
    /// before. What is popped is held first.
    #[letter(12)]
    Permit(u64),
    /// A command to carry out although the client may be blocked.
    #[letter(13)]
    Aside(Commands),
    /// A question of which every shard answers its part.
    #[letter(4)]
    Ask(Question),
    /// Ends everything that belongs to the client, which starts again. Answered with
    /// [`Part::Done`].
    #[letter(5)]
    Reset,
    /// Ends the wait of the blocked command, whose reply comes as if its time had passed.
    #[letter(6)]
    EndWaits,
    /// No more commands will come. If the server stops, the wait of the blocked command ends.
    #[letter(7)]
    End {
        /// Whether the server stops.
        #[letter(1)]
        stopping: bool,
        /// The leases in replies that the client was not sent yet.
        unsent: Vec<Receipt>,
    },
    /// Reads payloads of outputs that were handed over. Started at once.
    #[letter(local)]
    Read(Vec<Wanted>),
    /// This number of outputs was sent to the client. Done at once.
    #[letter(8)]
    Sent(usize),
    /// The connection is gone. Done at once, after the earlier commands that need not wait.
    #[letter(9)]
    Cut {
        /// How many outputs of this shard have reached the shard with the connection.
        heard: u64,
        /// The outputs that were not sent to the client.
        unsent: Unsent,
    },
    /// Outputs that came after the connection was gone. Done at once.
    #[letter(10)]
    Back {
        /// How many outputs.
        outputs: u64,
        /// What the outputs handed over.
        unsent: Unsent,
    },
}

/// A question of which every shard answers its part.
#[derive(pinpriq_proto::letters::Letter)]
#[letter(unsampled)]
pub(crate) enum Question {
    /// The reply of its engine to this one command.
    #[letter(1)]
    Command(Commands),
    /// What it knows apart from its engine.
    #[letter(local)]
    Inquiry(Inquiry),
    /// The number of deliveries made to the client since its latest reset.
    #[letter(2)]
    Delivered,
}

/// A question about a shard that is no client's own, of which every shard answers its part.
pub(crate) enum Inquiry {
    /// The facts about it.
    Facts,
    /// A line for each of its connections.
    Clients,
    /// Ends connections, except for that of the client who asks.
    Kill(Chosen, ClientId),
    /// The figures of its queues, and their news.
    Survey(SurveyWanted),
    /// The shares of this queue that have metrics.
    Shares(Bytes),
    /// This many limits with names after this one.
    Limits(Bytes, usize),
}

/// See [`Inquiry::Survey`]. It is small enough that no client notices.
#[derive(Debug, Default)]
pub(crate) struct SurveyWanted {
    /// The queues and lanes whose figures are wanted.
    pub(crate) figures_of: Vec<Surveyed>,
    /// If given, this many further names are wanted, after this one if there is one.
    pub(crate) names: Option<(Option<Surveyed>, usize)>,
    /// The most news of queues that are to be kept until the next survey. With 0 none are.
    pub(crate) news_max: usize,
}

/// The answer to a [`SurveyWanted`].
#[derive(Debug, Default)]
pub(crate) struct SurveyPart {
    /// The figures of all queues and lanes together.
    pub(crate) totals: Figures,
    /// The figures of those that exist, in the order in which they were asked for.
    pub(crate) figures: Vec<Option<Figures>>,
    /// Those of them whose shares have metrics.
    pub(crate) metered: Vec<Bytes>,
    /// The names, if they were asked for.
    pub(crate) page: SurveyPage,
    /// The news since the last survey that wanted any.
    pub(crate) news: Vec<QueueNews>,
    /// Whether some news were left out.
    pub(crate) news_were_lost: bool,
}

/// One shard's part of an answer.
#[derive(pinpriq_proto::letters::Letter)]
#[letter(unsampled)]
pub(crate) enum Part {
    /// The reply of its engine.
    #[letter(1)]
    Reply(Reply),
    /// See [`Inquiry::Facts`].
    #[letter(local)]
    Facts(Box<Facts>),
    /// See [`Inquiry::Clients`].
    #[letter(local)]
    Clients(Vec<(ClientId, String)>),
    /// The number of connections that it ends.
    #[letter(local)]
    Killed(u64),
    /// See [`Inquiry::Survey`].
    #[letter(local)]
    Survey(Box<SurveyPart>),
    /// See [`Inquiry::Shares`].
    #[letter(local)]
    Shares(SharesLook),
    /// See [`Inquiry::Limits`].
    #[letter(local)]
    Limits(Vec<LimitShown>),
    /// See [`Question::Delivered`].
    #[letter(2)]
    Delivered(u64),
    /// It has done what it was asked.
    #[letter(3)]
    Done,
}

/// The results of errands.
#[derive(Default, pinpriq_proto::letters::Letter)]
#[letter(unsampled)]
pub(crate) struct News {
    /// Outputs and parts of replies, in order.
    pub(crate) pieces: Vec<Piece>,
    /// The result of reading payloads, if it was requested.
    #[letter(local = is_none)]
    pub(crate) payloads: Option<Result<Vec<Bytes>, Refusal>>,
    /// Whether the client's protocol can report a refusal.
    #[letter(1)]
    pub(crate) tells_refusals: bool,
    /// The bytes of commands that were carried out.
    pub(crate) consumed: usize,
    /// How often the client was reset.
    pub(crate) resets: u64,
    /// The number of deliveries made to it since.
    pub(crate) delivered: u64,
    /// The standing of the client.
    pub(crate) standing: Standing,
}

impl News {
    /// Returns the number of outputs.
    pub(crate) fn outputs(&self) -> u64 {
        let outputs = self.pieces.iter().filter(|piece| matches!(piece, Piece::Output(..)));
        (outputs.count() + self.begun()) as u64
    }

    /// Returns the number of outputs that are the beginning of a reply.
    pub(crate) fn begun(&self) -> usize {
        self.pieces.iter().filter(|piece| piece.is_begun()).count()
    }

    /// Returns the number of replies, and of parts of replies.
    pub(crate) fn replies(&self) -> usize {
        let is_reply = |piece: &&Piece| {
            let is_apart = matches!(piece, Piece::Output(Output::Reply { request: ASIDE, .. }, _));
            let is_delivery =
                matches!(piece, Piece::Output(Output::Delivery { .. } | Output::Notice(_), _));
            !is_apart && !is_delivery && !piece.is_begun()
        };
        self.pieces.iter().filter(is_reply).count()
    }

    /// Returns what the outputs hand over.
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

/// The standing of a client in a shard that does not have its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_proto::letters::Letter)]
#[letter(unsampled)]
pub(crate) struct Standing {
    /// Commands or other errands have to wait.
    #[letter(1)]
    pub(crate) stalled: bool,
    /// How many subscriptions it has.
    pub(crate) subscriptions: u32,
    /// Why nothing more will be done for it, if so.
    #[letter(2)]
    pub(crate) ended: Option<Ending>,
}

/// An output or a part of a reply for a client of another shard, or the lack of a reply.
#[derive(pinpriq_proto::letters::Letter)]
#[letter(unsampled)]
pub(crate) enum Piece {
    /// An output whose changes are durable, with what keeps its payloads readable.
    #[letter(1)]
    Output(Output, #[letter(local = is_empty)] Holds),
    /// A shard's part of a reply.
    #[letter(2)]
    Part(Part),
    /// The next reply, which will never come.
    #[letter(3)]
    Lost,
    /// The first members of the next reply, which tells the rest of them. Counts as an output.
    #[letter(4)]
    Members(Vec<MemberFigures>),
    /// The same for tubes in the next part of a reply.
    #[letter(5)]
    Tubes(Vec<TubeShown>),
}

impl Piece {
    /// Whether it is the beginning of a reply, or of a part of one.
    const fn is_begun(&self) -> bool {
        matches!(self, Self::Members(_) | Self::Tubes(_))
    }

    /// Whether it is a reply that hands tasks over under leases.
    pub(crate) const fn is_lease(&self) -> bool {
        match self {
            Self::Output(Output::Reply { reply: Reply::Tasks { tasks, popped: false }, .. }, _) => {
                !tasks.is_empty()
            }
            _ => false,
        }
    }
}

/// Encoded commands, one after the other, each with the number of its request.
#[derive(Default)]
pub(crate) struct Commands {
    bytes: Vec<u8>,
    /// Where the first command begins that was not passed over.
    at: usize,
}

/// The number of bytes before each encoded command: its request and its length.
const HEAD_BYTES: usize = 12;

impl Commands {
    /// Returns the number of bytes that a command occupies here, given that of its encoding.
    pub(crate) const fn length(encoded: usize) -> usize {
        HEAD_BYTES + encoded
    }

    /// Adds a command that `encode` appends to a buffer. Returns the number of bytes that it
    /// occupies here.
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

    /// Returns the first command, with its request and the number of bytes that it occupies here.
    pub(crate) fn first(&self) -> Option<(RequestId, &[u8], usize)> {
        let (head, rest) = self.bytes[self.at..].split_first_chunk::<HEAD_BYTES>()?;
        let (request, length) = head.split_first_chunk::<8>()?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let request = RequestId(u64::from_le_bytes(*request));
        Some((request, &rest[..length], HEAD_BYTES + length))
    }

    /// Returns the number of commands that were not passed over.
    pub(crate) fn count(&self) -> usize {
        let (mut at, mut count) = (self.at, 0);
        while let Some(head) = self.bytes.get(at..at + HEAD_BYTES) {
            let length = head.last_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length));
            at += HEAD_BYTES + length as usize;
            count += 1;
        }
        count
    }

    /// Passes over a command that occupies this number of bytes here.
    pub(crate) const fn pass(&mut self, length: usize) {
        self.at += length;
    }

    /// Returns the number of bytes that were not passed over.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether all were passed over.
    pub(crate) const fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }
}

impl<'a> Encoded<'a> for Commands {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.bytes[self.at..]);
    }

    /// Every command is decoded once, so that the shard can rely on them.
    fn take(input: &mut &'a [u8], _: &'a Arena) -> Result<Self, Malformed> {
        let bytes = take_bytes(input)?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (head, after) = rest.split_first_chunk::<HEAD_BYTES>().ok_or(Malformed::Short)?;
            let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
            let (command, after) = after.split_at_checked(length).ok_or(Malformed::Short)?;
            decode_command(command, |_| ())?;
            rest = after;
        }
        Ok(Self { bytes: bytes.to_vec(), at: 0 })
    }
}
