//! The pinpriq protocol: bytes to requests and to frames, whole and in pieces, and back.
//!
//! The first byte chooses the pieces. The rest is read once as requests, and as frames in either
//! framing. Every request and every frame has exactly one encoding, so encoding what was read must
//! give the same bytes.

use std::ops::ControlFlow;

use pinpriq_proto::wire::{
    Decoded, Framing, Piece, REQUEST_BYTES_MAX, ReplyDecoder, Request, decode_request, put_count,
    put_packet,
};

use crate::fuzz::cutting::{Cut, Step, feed};
use crate::fuzz::feed::Feed;

/// The longest packet: its two lengths, a key and a payload.
const PACKET_BYTES_MAX: usize = 4 + 2 * 65_535;

/// Reads any bytes as requests and as frames.
///
/// # Panics
/// If the pieces make a difference, or if encoding what was read gives other bytes.
pub fn pinpriq_wire(bytes: &[u8]) {
    let mut input = Feed::new(bytes);
    let cut = Cut::Drawn(u64::from(input.byte()));
    let stream = input.rest();
    let whole = requests_in(stream, Cut::Whole);
    for cut in [Cut::Bytes, cut] {
        assert_eq!(whole, requests_in(stream, cut), "requests in pieces: {cut:?}");
    }
    for framing in [Framing::Counted, Framing::Bare] {
        let whole = frames_in(stream, framing, Cut::Whole);
        for cut in [Cut::Bytes, cut] {
            let pieces = frames_in(stream, framing, cut);
            assert_eq!(whole, pieces, "{framing:?} frames in pieces: {cut:?}");
        }
    }
}

/// Returns every request in the stream, the rest, and whether the rest is not a request at all.
fn requests_in(stream: &[u8], cut: Cut) -> (Vec<Request<'_>>, &[u8], bool) {
    let mut seen = Vec::new();
    let mut written = Vec::new();
    let mut is_malformed = false;
    let rest = feed(stream, cut, |buffer| match decode_request(buffer) {
        Err(_) => {
            is_malformed = true;
            ControlFlow::Break(())
        }
        Ok(Decoded::Incomplete { needed_at_least }) => {
            assert!(needed_at_least > buffer.len(), "more is needed than there is");
            assert!(needed_at_least <= REQUEST_BYTES_MAX, "a buffer of that size is enough");
            ControlFlow::Continue(Step::Wait(0))
        }
        Ok(Decoded::Message { request, length }) => {
            written.clear();
            assert_eq!(request.put(&mut written), Ok(()));
            assert_eq!(written, buffer[..length], "a request is written again as it was");
            for shorter in 0..length {
                // The decoder never asks for more bytes than the request has.
                if let Ok(Decoded::Incomplete { needed_at_least }) =
                    decode_request(&buffer[..shorter])
                {
                    assert!((shorter + 1..=length).contains(&needed_at_least));
                } else {
                    panic!("{shorter} of {length} bytes are no proper beginning");
                }
            }
            seen.push(request);
            ControlFlow::Continue(Step::Drop(length))
        }
    });
    (seen, rest, is_malformed)
}

/// Returns what a client reads from a stream of frames, in order, and the rest.
fn frames_in(stream: &[u8], framing: Framing, cut: Cut) -> (Vec<Piece<'_>>, &[u8], bool) {
    let mut decoder = ReplyDecoder::new(framing);
    let mut seen = Vec::new();
    let mut written = Vec::new();
    // The number of packets still to come in the frame, counted here.
    let mut left = 0_u16;
    let rest = feed(stream, cut, |buffer| {
        let piece = decoder.decode(buffer);
        written.clear();
        let length = match piece {
            Piece::Incomplete { needed_at_least } => {
                assert!((buffer.len() + 1..=PACKET_BYTES_MAX).contains(&needed_at_least));
                return ControlFlow::Continue(Step::Wait(0));
            }
            Piece::Count { packets, length } => {
                assert_eq!((framing, left), (Framing::Counted, 0), "a frame begins");
                left = packets;
                put_count(&mut written, packets);
                length
            }
            Piece::Packet { packet, left: told, length } => {
                if framing == Framing::Counted {
                    left -= 1;
                }
                assert_eq!(told, left, "the page says how many packets follow");
                assert_eq!(put_packet(&mut written, packet.key, packet.payload), Ok(()));
                length
            }
        };
        assert_eq!(written, buffer[..length], "a piece is written again as it was");
        assert_eq!(decoder.is_between_frames(), left == 0);
        seen.push(piece);
        ControlFlow::Continue(Step::Drop(length))
    });
    (seen, rest, decoder.is_between_frames())
}
