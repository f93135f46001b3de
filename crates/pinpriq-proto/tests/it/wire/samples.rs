//! Messages that several test files share, and the two ways to read a stream of them.

use pinpriq_proto::wire::{Decoded, Framing, Piece, ReplyDecoder, Request, decode_request};

/// A piece of a reply that owns its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum OwnedPiece {
    Count(u16),
    Packet { key: Vec<u8>, payload: Vec<u8>, left: u16 },
}

/// One request of each kind, with empty and with unusual fields.
pub(crate) fn requests() -> Vec<Request<'static>> {
    vec![
        push(b"jobs", 1_000, 1, b"k1", b"hello"),
        push(b"jobs", 65_535, 0, b"", b""),
        push(b"", 0, 255, b"pPsuA", b"\x00\xff"),
        Request::Ready,
        Request::Pop { queue: b"jobs" },
        Request::Pop { queue: b"" },
        Request::Subscribe { queue: b"a\x00/\xff" },
        Request::Ready,
        Request::Ready,
        Request::Unsubscribe { queue: b"AAAA" },
        push(b"p", 7, 7, b"", b"only a payload"),
    ]
}

/// A push, with its fields in the order of the wire except for the name.
pub(crate) fn push<'a>(
    queue: &'a [u8],
    ttl_ms: u16,
    priority: u8,
    key: &'a [u8],
    payload: &'a [u8],
) -> Request<'a> {
    Request::Push { queue, ttl_ms, priority, key, payload }
}

/// The bytes of one request.
pub(crate) fn bytes_of(request: Request<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.put(&mut bytes).unwrap();
    bytes
}

/// Feeds `chunks` to the request decoder like a server: unread bytes stay in front of the next
/// chunk. Returns the encoded form of each request, and what was left at the end.
pub(crate) fn requests_in<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut buffer = Vec::new();
    let mut seen = Vec::new();
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        while let Decoded::Message { request, length } = decode_request(&buffer).unwrap() {
            let bytes = bytes_of(request);
            assert_eq!(bytes, buffer[..length], "the length is that of the request");
            seen.push(bytes);
            buffer.drain(..length);
        }
    }
    (seen, buffer)
}

/// Feeds `chunks` to the reply decoder like a client.
pub(crate) fn pieces_in<'a>(
    framing: Framing,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> (Vec<OwnedPiece>, Vec<u8>) {
    let mut decoder = ReplyDecoder::new(framing);
    let mut buffer = Vec::new();
    let mut seen = Vec::new();
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        loop {
            let (piece, length) = match decoder.decode(&buffer) {
                Piece::Incomplete { needed_at_least } => {
                    assert!(needed_at_least > buffer.len(), "asks for more than it was given");
                    break;
                }
                Piece::Count { packets, length } => (OwnedPiece::Count(packets), length),
                Piece::Packet { packet, left, length } => {
                    let (key, payload) = (packet.key.to_vec(), packet.payload.to_vec());
                    (OwnedPiece::Packet { key, payload, left }, length)
                }
            };
            seen.push(piece);
            buffer.drain(..length);
        }
    }
    (seen, buffer)
}
