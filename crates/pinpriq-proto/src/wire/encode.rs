//! The pieces of replies and deliveries, and the only error in writing them.
//!
//! A server that streams a large reply calls [`put_count`] once and [`put_packet`] for each packet,
//! whenever there is room. A server that writes payloads without copying them uses
//! [`packet_header`] and sends the key and the payload from where they are.

/// The field that a length belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// The name of a queue.
    Queue,
    /// The key of a packet.
    Key,
    /// The payload of a packet.
    Payload,
}

impl Field {
    const fn name(self) -> &'static str {
        match self {
            Self::Queue => "the name of the queue",
            Self::Key => "the key",
            Self::Payload => "the payload",
        }
    }
}

/// A field is longer than 65,535 bytes, which its two length bytes cannot express. Implements
/// `docs/protocol/pinpriq.md#limits`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} is {length} bytes long; the protocol allows at most 65535", field.name())]
pub struct TooLong {
    /// The field that is too long.
    pub field: Field,
    /// Its length in bytes.
    pub length: usize,
}

/// Appends the number of packets that opens a pop reply or a counted delivery.
///
/// `packets` packets must follow. A pop reply with 0 packets is complete with these two bytes.
/// Implements `docs/protocol/pinpriq.md#reply`.
pub fn put_count(out: &mut Vec<u8>, packets: u16) {
    out.extend_from_slice(&packets.to_be_bytes());
}

/// Appends one packet: its two lengths, the key, the payload.
///
/// Refuses a key or payload of more than 65,535 bytes. In that case `out` is unchanged. Costs one
/// copy of both. Implements `docs/protocol/pinpriq.md#packet`.
pub fn put_packet(out: &mut Vec<u8>, key: &[u8], payload: &[u8]) -> Result<(), TooLong> {
    let header = packet_header(key.len(), payload.len())?;
    out.extend_from_slice(&header);
    out.extend_from_slice(key);
    out.extend_from_slice(payload);
    Ok(())
}

/// Returns the four bytes before the key and the payload of a packet, for lengths in bytes.
///
/// Refuses lengths of more than 65,535. Implements `docs/protocol/pinpriq.md#packet`.
pub fn packet_header(key_length: usize, payload_length: usize) -> Result<[u8; 4], TooLong> {
    let [key_high, key_low] = length_bytes(Field::Key, key_length)?;
    let [payload_high, payload_low] = length_bytes(Field::Payload, payload_length)?;
    Ok([key_high, key_low, payload_high, payload_low])
}

/// Converts a length to its two bytes on the wire.
pub(crate) fn length_bytes(field: Field, length: usize) -> Result<[u8; 2], TooLong> {
    match u16::try_from(length) {
        Ok(fits) => Ok(fits.to_be_bytes()),
        Err(_) => Err(TooLong { field, length }),
    }
}
