//! The pieces of replies, and the decoder that reads them back.

use pinpriq_proto::wire::{Framing, Piece, ReplyDecoder, packet_header, put_count, put_packet};
use proptest::prelude::*;

use crate::wire::samples::{OwnedPiece, pieces_in};

fn packet(key: &[u8], payload: &[u8], left: u16) -> OwnedPiece {
    OwnedPiece::Packet { key: key.to_vec(), payload: payload.to_vec(), left }
}

/// An empty reply, a reply of three packets, and a delivery of one.
fn three_frames() -> (Vec<u8>, Vec<OwnedPiece>) {
    let mut stream = Vec::new();
    put_count(&mut stream, 0);
    put_count(&mut stream, 3);
    put_packet(&mut stream, b"k1", b"hello").unwrap();
    put_packet(&mut stream, b"k1", b"b").unwrap();
    put_packet(&mut stream, b"k1", b"").unwrap();
    put_count(&mut stream, 1);
    put_packet(&mut stream, b"", b"").unwrap();
    let pieces = vec![
        OwnedPiece::Count(0),
        OwnedPiece::Count(3),
        packet(b"k1", b"hello", 2),
        packet(b"k1", b"b", 1),
        packet(b"k1", b"", 0),
        OwnedPiece::Count(1),
        packet(b"", b"", 0),
    ];
    (stream, pieces)
}

#[test]
fn chunks_of_every_size_give_the_same_pieces() {
    let (stream, pieces) = three_frames();
    for size in 1..=stream.len() {
        let outcome = pieces_in(Framing::Counted, stream.chunks(size));
        assert_eq!(outcome, (pieces.clone(), Vec::new()), "chunks of {size}");
    }
}

#[test]
fn a_client_that_reads_what_is_asked_for_never_reads_into_the_next_frame() {
    let (stream, pieces) = three_frames();
    let mut decoder = ReplyDecoder::new(Framing::Counted);
    let (mut start, mut end, mut seen) = (0, 0, 0);
    while seen < pieces.len() {
        match decoder.decode(&stream[start..end]) {
            Piece::Incomplete { needed_at_least } => end = start + needed_at_least,
            Piece::Count { length, .. } | Piece::Packet { length, .. } => {
                start += length;
                seen += 1;
                assert_eq!(start, end, "no byte was read beyond the piece");
            }
        }
    }
    assert_eq!(end, stream.len());
    assert!(decoder.is_between_frames());
}

#[test]
fn the_decoder_knows_when_a_stream_may_end() {
    let mut decoder = ReplyDecoder::default();
    assert!(decoder.is_between_frames());
    assert_eq!(decoder.decode(b"\x00\x00"), Piece::Count { packets: 0, length: 2 });
    assert!(decoder.is_between_frames());
    assert_eq!(decoder.decode(b"\x00\x01"), Piece::Count { packets: 1, length: 2 });
    assert!(!decoder.is_between_frames());
}

#[test]
fn bare_frames_have_no_count() {
    let mut stream = Vec::new();
    put_packet(&mut stream, b"k1", b"hello").unwrap();
    put_packet(&mut stream, b"k1", b"b").unwrap();
    let pieces = vec![packet(b"k1", b"hello", 0), packet(b"k1", b"b", 0)];
    for size in 1..=stream.len() {
        assert_eq!(pieces_in(Framing::Bare, stream.chunks(size)), (pieces.clone(), Vec::new()));
    }
}

#[test]
fn the_largest_number_of_packets_is_counted_down_to_nothing() {
    let mut stream = Vec::new();
    put_count(&mut stream, u16::MAX);
    for _ in 0..u16::MAX {
        put_packet(&mut stream, b"", b"x").unwrap();
    }
    let mut decoder = ReplyDecoder::new(Framing::Counted);
    let (mut start, mut packets) = (0, 0_u32);
    while start < stream.len() {
        match decoder.decode(&stream[start..]) {
            Piece::Incomplete { .. } => panic!("the stream is whole"),
            Piece::Count { packets, length } => {
                assert_eq!(packets, u16::MAX);
                start += length;
            }
            Piece::Packet { left, length, .. } => {
                packets += 1;
                assert_eq!(u32::from(left) + packets, 65_535);
                start += length;
            }
        }
    }
    assert_eq!(packets, 65_535);
}

#[test]
fn packets_refuse_fields_that_two_length_bytes_cannot_say() {
    let largest = vec![0; 65_535];
    let mut out = Vec::new();
    put_packet(&mut out, &largest, &largest).unwrap();
    assert_eq!(out.len(), 131_074);
    assert_eq!(packet_header(65_535, 65_535), Ok([0xFF; 4]));

    let long = vec![0; 65_536];
    out.clear();
    assert!(put_packet(&mut out, &long, b"").is_err());
    assert!(put_packet(&mut out, b"", &long).is_err());
    assert!(out.is_empty(), "a refusal leaves the buffer as it was");
    assert!(packet_header(65_536, 0).is_err());
    assert!(packet_header(0, 65_536).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_a_stream_of_pieces(
        bytes in proptest::collection::vec(any::<u8>(), 0..512),
        counted in any::<bool>(),
    ) {
        let framing = if counted { Framing::Counted } else { Framing::Bare };
        let mut decoder = ReplyDecoder::new(framing);
        let mut start = 0;
        loop {
            let rest = &bytes[start..];
            match decoder.decode(rest) {
                Piece::Incomplete { needed_at_least } => {
                    prop_assert!(needed_at_least > rest.len());
                    prop_assert!(needed_at_least <= 131_074);
                    break;
                }
                Piece::Count { length, .. } | Piece::Packet { length, .. } => {
                    prop_assert!((1..=rest.len()).contains(&length));
                    start += length;
                }
            }
        }
    }
}
