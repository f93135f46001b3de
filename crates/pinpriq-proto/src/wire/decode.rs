//! The server's side of a request: bytes in, one borrowed [`Request`] out.
//!
//! The protocol has no length of the whole message. The length follows from the fixed part at its
//! start, and [`decode_request`] reads only that part. It needs no state between calls: another
//! call with one byte more costs the same few additions. So a peer that sends one byte at a time
//! costs no more than one that sends all of them.

use crate::wire::request::{
    NAMED_HEADER_BYTES, POP, PUSH, PUSH_HEADER_BYTES, READY, Request, SUBSCRIBE, UNSUBSCRIBE,
};

/// What is at the front of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoded<'a> {
    /// The bytes are the beginning of a valid request, but not all of it.
    Incomplete {
        /// The minimum length of the request, counted from its first byte. It is always more than
        /// the given bytes and never more than the real length, and so at most
        /// [`REQUEST_BYTES_MAX`]. Calling again with fewer bytes does no harm, but gives no
        /// other result.
        needed_at_least: usize,
    },
    /// A whole request.
    Message {
        /// The request, borrowed from the buffer.
        request: Request<'a>,
        /// The number of bytes of the request in the buffer, 1 to [`REQUEST_BYTES_MAX`].
        length: usize,
    },
}

/// The bytes are not the beginning of any request.
///
/// The stream cannot be read any further, since nothing marks the start of the next request.
/// Implements `docs/protocol/pinpriq.md#closing`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// No request begins with this byte.
    #[error("no request begins with byte 0x{0:02X}")]
    UnknownOpcode(u8),
}

/// Decodes the request at the front of `buffer`.
///
/// Refuses a first byte that opens no request. Every other byte is valid in every place. Costs
/// O(1), whatever the lengths of the buffer and of the request, and allocates nothing. An empty
/// buffer is incomplete. Implements `docs/protocol/pinpriq.md#requests`.
pub fn decode_request(buffer: &[u8]) -> Result<Decoded<'_>, Malformed> {
    let Some(&opcode) = buffer.first() else {
        return Ok(Decoded::Incomplete { needed_at_least: 1 });
    };
    Ok(match opcode {
        PUSH => decode_push(buffer),
        POP => decode_named(buffer, |queue| Request::Pop { queue }),
        SUBSCRIBE => decode_named(buffer, |queue| Request::Subscribe { queue }),
        UNSUBSCRIBE => decode_named(buffer, |queue| Request::Unsubscribe { queue }),
        READY => Decoded::Message { request: Request::Ready, length: 1 },
        unknown => return Err(Malformed::UnknownOpcode(unknown)),
    })
}

/// Decodes a push. The name of the queue comes last, after the packet.
fn decode_push(buffer: &[u8]) -> Decoded<'_> {
    let Some((header, body)) = buffer.split_first_chunk::<PUSH_HEADER_BYTES>() else {
        return Decoded::Incomplete { needed_at_least: PUSH_HEADER_BYTES };
    };
    let [_, name_0, name_1, ttl_0, ttl_1, priority, key_0, key_1, payload_0, payload_1] = *header;
    let name_length = length_of([name_0, name_1]);
    let key_length = length_of([key_0, key_1]);
    let payload_length = length_of([payload_0, payload_1]);
    let length = PUSH_HEADER_BYTES
        .saturating_add(key_length)
        .saturating_add(payload_length)
        .saturating_add(name_length);
    let fields = body.split_at_checked(key_length).and_then(|(key, rest)| {
        let (payload, rest) = rest.split_at_checked(payload_length)?;
        Some((key, payload, rest.get(..name_length)?))
    });
    let Some((key, payload, queue)) = fields else {
        return Decoded::Incomplete { needed_at_least: length };
    };
    let ttl_ms = u16::from_be_bytes([ttl_0, ttl_1]);
    Decoded::Message { request: Request::Push { queue, ttl_ms, priority, key, payload }, length }
}

/// Decodes a request that consists only of the name of a queue.
fn decode_named<'a>(
    buffer: &'a [u8],
    request: impl FnOnce(&'a [u8]) -> Request<'a>,
) -> Decoded<'a> {
    let Some(([_, high, low], body)) = buffer.split_first_chunk::<NAMED_HEADER_BYTES>() else {
        return Decoded::Incomplete { needed_at_least: NAMED_HEADER_BYTES };
    };
    let name_length = length_of([*high, *low]);
    let length = NAMED_HEADER_BYTES.saturating_add(name_length);
    match body.get(..name_length) {
        Some(queue) => Decoded::Message { request: request(queue), length },
        None => Decoded::Incomplete { needed_at_least: length },
    }
}

/// Converts the two bytes of a length to a number of bytes.
pub(crate) fn length_of(bytes: [u8; 2]) -> usize {
    usize::from(u16::from_be_bytes(bytes))
}
