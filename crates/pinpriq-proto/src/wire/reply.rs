//! The client's side of what a server sends: pop replies and deliveries, packet by packet.
//!
//! A reply may be as large as 8 GiB, so it is never collected. The decoder returns one piece at a
//! time and stores only the number of packets that are still to come. Telling a pop reply from a
//! delivery is up to the client, see `docs/protocol/pinpriq.md#telling-frames-apart`.

use crate::wire::decode::length_of;

/// The two lengths that open a packet.
const PACKET_HEADER_BYTES: usize = 4;
/// The number that opens a counted frame.
const COUNT_BYTES: usize = 2;

/// How the stream is framed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Framing {
    /// A count, then this many packets: every pop reply, and a delivery unless the server was
    /// configured otherwise. Implements `docs/protocol/pinpriq.md#reply`.
    #[default]
    Counted,
    /// Packets without a count: deliveries of a server with bare framing. Implements
    /// `docs/protocol/pinpriq.md#delivery`.
    Bare,
}

/// A packet as it left its queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Packet<'a> {
    /// 0 to 65,535 bytes.
    pub key: &'a [u8],
    /// 0 to 65,535 bytes.
    pub payload: &'a [u8],
}

/// What is at the front of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    /// The bytes are the beginning of a valid piece, but not all of it.
    Incomplete {
        /// The minimum length of the piece, counted from its first byte. It is always more than the
        /// given bytes and never more than the real length, and so at most 131,074. A client that
        /// reads only up to this never reads into the next frame.
        needed_at_least: usize,
    },
    /// A frame begins, and this many packets follow. With 0 the frame ends here: the queue was
    /// empty.
    Count {
        /// The number of packets that follow.
        packets: u16,
        /// The number of bytes of this piece in the buffer.
        length: usize,
    },
    /// A packet, borrowed from the buffer.
    Packet {
        /// The packet.
        packet: Packet<'a>,
        /// The number of packets of the same frame that follow. Always 0 with bare framing, which
        /// does not mark the end of a group.
        left: u16,
        /// The number of bytes of this piece in the buffer.
        length: usize,
    },
}

/// Reads replies and deliveries from a stream, piece by piece.
///
/// The decoder stores two small values and no bytes. Implements `docs/protocol/pinpriq.md#reply`
/// and `docs/protocol/pinpriq.md#delivery`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReplyDecoder {
    framing: Framing,
    /// Packets of the current frame that are still to come; 0 between frames.
    left: u16,
}

impl ReplyDecoder {
    /// Creates a decoder at the start of a frame.
    #[must_use]
    pub const fn new(framing: Framing) -> Self {
        Self { framing, left: 0 }
    }

    /// Whether the stream is between two frames. Only there may it end.
    #[must_use]
    pub const fn is_between_frames(&self) -> bool {
        self.left == 0
    }

    /// Decodes the piece at the front of `buffer`.
    ///
    /// After a count or a packet, drop its `length` bytes from the front and call again. After
    /// [`Piece::Incomplete`], call again with the same bytes and more after them. No bytes are
    /// refused: every sequence is a stream of frames. Costs O(1) and allocates nothing.
    pub fn decode<'a>(&mut self, buffer: &'a [u8]) -> Piece<'a> {
        if self.framing == Framing::Counted && self.left == 0 {
            return self.decode_count(buffer);
        }
        let Some((header, body)) = buffer.split_first_chunk::<PACKET_HEADER_BYTES>() else {
            return Piece::Incomplete { needed_at_least: PACKET_HEADER_BYTES };
        };
        let [key_0, key_1, payload_0, payload_1] = *header;
        let key_length = length_of([key_0, key_1]);
        let payload_length = length_of([payload_0, payload_1]);
        let length = PACKET_HEADER_BYTES.saturating_add(key_length).saturating_add(payload_length);
        let fields = body
            .split_at_checked(key_length)
            .and_then(|(key, rest)| Some(Packet { key, payload: rest.get(..payload_length)? }));
        let Some(packet) = fields else {
            return Piece::Incomplete { needed_at_least: length };
        };
        // With bare framing this is already 0 and stays 0.
        self.left = self.left.saturating_sub(1);
        Piece::Packet { packet, left: self.left, length }
    }

    /// Decodes the number that opens a counted frame.
    fn decode_count<'a>(&mut self, buffer: &'a [u8]) -> Piece<'a> {
        let Some(count) = buffer.first_chunk::<COUNT_BYTES>() else {
            return Piece::Incomplete { needed_at_least: COUNT_BYTES };
        };
        self.left = u16::from_be_bytes(*count);
        Piece::Count { packets: self.left, length: COUNT_BYTES }
    }
}
