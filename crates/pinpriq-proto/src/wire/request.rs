//! The five requests that a client can send, and their bytes.
//!
//! A [`Request`] borrows all of its byte fields. Requests are decoded in `decode.rs`. What a
//! request does to a queue is not part of this crate.

use crate::wire::encode::{Field, TooLong, length_bytes, packet_header};

/// The first byte of a push, `p`.
pub(crate) const PUSH: u8 = 0x70;
/// The first byte of a pop, `P`.
pub(crate) const POP: u8 = 0x50;
/// The first byte of a subscribe, `s`.
pub(crate) const SUBSCRIBE: u8 = 0x73;
/// The first byte of an unsubscribe, `u`.
pub(crate) const UNSUBSCRIBE: u8 = 0x75;
/// The whole of a ready message, `A`: one credit. Implements `docs/protocol/pinpriq.md#ready`.
pub const READY: u8 = 0x41;

/// The length of the part of a push before its variable part: the operation, the length of the
/// queue's name, the TTL, the priority, and the two lengths that open the packet.
pub(crate) const PUSH_HEADER_BYTES: usize = 10;
/// The length of the part before the name in a pop, a subscribe and an unsubscribe.
pub(crate) const NAMED_HEADER_BYTES: usize = 3;

/// The longest request, in bytes: a push with a key, a payload and a name of 65,535 bytes each.
/// A buffer of this size can hold any one request. Implements `docs/protocol/pinpriq.md#limits`.
pub const REQUEST_BYTES_MAX: usize = PUSH_HEADER_BYTES + 3 * 65_535;

/// One request of a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Request<'a> {
    /// Puts a packet into a queue. There is no reply. Implements `docs/protocol/pinpriq.md#push`.
    Push {
        /// The name of the queue: 0 to 65,535 bytes of any value.
        queue: &'a [u8],
        /// How long the packet may wait, in milliseconds. An option of the server says what 0
        /// means.
        ttl_ms: u16,
        /// 1 is the most urgent and 255 the least. A packet with 0 is never selected.
        priority: u8,
        /// 0 to 65,535 bytes of any value. Packets with the same key leave together.
        key: &'a [u8],
        /// 0 to 65,535 bytes of any value.
        payload: &'a [u8],
    },
    /// Takes the most urgent packet and its group. There is always a reply, and this never blocks.
    /// Implements `docs/protocol/pinpriq.md#pop`.
    Pop {
        /// The name of the queue: 0 to 65,535 bytes of any value.
        queue: &'a [u8],
    },
    /// Makes the connection a subscriber of the queue. There is no reply. Implements
    /// `docs/protocol/pinpriq.md#subscribe`.
    Subscribe {
        /// The name of the queue: 0 to 65,535 bytes of any value.
        queue: &'a [u8],
    },
    /// Ends a subscription. There is no reply. Implements
    /// `docs/protocol/pinpriq.md#unsubscribe`.
    Unsubscribe {
        /// The name of the queue: 0 to 65,535 bytes of any value.
        queue: &'a [u8],
    },
    /// Gives the server credit for one delivery. There is no reply. Implements
    /// `docs/protocol/pinpriq.md#ready`.
    Ready,
}

impl Request<'_> {
    /// Appends the bytes of this request to `out`.
    ///
    /// Refuses a name, key or payload of more than 65,535 bytes. In that case `out` is unchanged.
    /// Costs one copy of each byte field.
    pub fn put(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        match *self {
            Request::Push { queue, ttl_ms, priority, key, payload } => {
                let name_length = length_bytes(Field::Queue, queue.len())?;
                let packet = packet_header(key.len(), payload.len())?;
                out.push(PUSH);
                out.extend_from_slice(&name_length);
                out.extend_from_slice(&ttl_ms.to_be_bytes());
                out.push(priority);
                out.extend_from_slice(&packet);
                out.extend_from_slice(key);
                out.extend_from_slice(payload);
                out.extend_from_slice(queue);
                Ok(())
            }
            Request::Pop { queue } => put_named(out, POP, queue),
            Request::Subscribe { queue } => put_named(out, SUBSCRIBE, queue),
            Request::Unsubscribe { queue } => put_named(out, UNSUBSCRIBE, queue),
            Request::Ready => {
                out.push(READY);
                Ok(())
            }
        }
    }
}

/// Appends a request that consists only of the name of a queue.
fn put_named(out: &mut Vec<u8>, operation: u8, queue: &[u8]) -> Result<(), TooLong> {
    let name_length = length_bytes(Field::Queue, queue.len())?;
    out.push(operation);
    out.extend_from_slice(&name_length);
    out.extend_from_slice(queue);
    Ok(())
}
