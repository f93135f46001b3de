//! The request decoder: every opcode, every prefix, every split, every size.

use pinpriq_proto::wire::{
    Decoded, Malformed, READY, REQUEST_BYTES_MAX, Request, decode_request, put_count,
};
use proptest::prelude::*;

use crate::wire::samples::{bytes_of, push, requests, requests_in};

/// The first bytes that open a request.
const OPCODES: [u8; 5] = [0x70, 0x50, 0x73, 0x75, 0x41];

#[test]
fn every_first_byte_is_known_or_refused() {
    for opcode in 0..=u8::MAX {
        let buffer = [opcode];
        let outcome = decode_request(&buffer);
        let expected = match opcode {
            READY => Ok(Decoded::Message { request: Request::Ready, length: 1 }),
            0x70 => Ok(Decoded::Incomplete { needed_at_least: 10 }),
            0x50 | 0x73 | 0x75 => Ok(Decoded::Incomplete { needed_at_least: 3 }),
            unknown => Err(Malformed::UnknownOpcode(unknown)),
        };
        assert_eq!(outcome, expected, "first byte 0x{opcode:02X}");
        assert_eq!(outcome.is_ok(), OPCODES.contains(&opcode));
    }
}

#[test]
fn an_unknown_first_byte_is_refused_whatever_follows() {
    let refusal = decode_request(b"\r\n\x41").unwrap_err();
    assert_eq!(refusal, Malformed::UnknownOpcode(0x0D));
    assert_eq!(refusal.to_string(), "no request begins with byte 0x0D");
}

#[test]
fn nothing_is_incomplete() {
    assert_eq!(decode_request(b""), Ok(Decoded::Incomplete { needed_at_least: 1 }));
}

#[test]
fn every_prefix_is_incomplete_and_asks_for_more_but_not_too_much() {
    for request in requests() {
        let bytes = bytes_of(request);
        for length in 0..bytes.len() {
            let Ok(Decoded::Incomplete { needed_at_least }) = decode_request(&bytes[..length])
            else {
                panic!("{length} bytes of {request:?} are no whole request");
            };
            assert!(needed_at_least > length);
            assert!(needed_at_least <= bytes.len());
        }
        let whole = Decoded::Message { request, length: bytes.len() };
        assert_eq!(decode_request(&bytes), Ok(whole));
    }
}

#[test]
fn what_follows_a_request_does_not_matter() {
    for request in requests() {
        let mut bytes = bytes_of(request);
        let length = bytes.len();
        bytes.extend_from_slice(b"\xff\xff\xff\xff");
        assert_eq!(decode_request(&bytes), Ok(Decoded::Message { request, length }));
    }
}

#[test]
fn every_split_in_two_gives_the_same_requests() {
    let expected: Vec<_> = requests().into_iter().map(bytes_of).collect();
    let stream = expected.concat();
    for at in 0..=stream.len() {
        let (head, tail) = stream.split_at(at);
        assert_eq!(requests_in([head, tail].into_iter()), (expected.clone(), Vec::new()));
    }
}

#[test]
fn chunks_of_every_size_give_the_same_requests() {
    let expected: Vec<_> = requests().into_iter().map(bytes_of).collect();
    let stream = expected.concat();
    for size in 1..=stream.len() {
        assert_eq!(requests_in(stream.chunks(size)), (expected.clone(), Vec::new()));
    }
}

#[test]
fn the_smallest_and_the_largest_push_have_their_documented_sizes() {
    assert_eq!(bytes_of(push(b"", 0, 0, b"", b"")).len(), 10);

    let field = vec![0x70; 65_535];
    let largest = bytes_of(push(&field, u16::MAX, u8::MAX, &field, &field));
    assert_eq!((largest.len(), REQUEST_BYTES_MAX), (196_615, 196_615));
    let whole = Decoded::Message {
        request: push(&field, u16::MAX, u8::MAX, &field, &field),
        length: REQUEST_BYTES_MAX,
    };
    assert_eq!(decode_request(&largest), Ok(whole));
    let (_, all_but_one) = largest.split_last().unwrap();
    let incomplete = Decoded::Incomplete { needed_at_least: REQUEST_BYTES_MAX };
    assert_eq!(decode_request(all_but_one), Ok(incomplete));
}

#[test]
fn a_push_of_every_size_is_decoded() {
    let mut buffer = vec![b'x'; REQUEST_BYTES_MAX];
    buffer[0] = 0x70;
    for body in 0..=3 * 65_535_usize {
        // One field after the other grows to its largest.
        let key = body.min(65_535);
        let payload = body.saturating_sub(65_535).min(65_535);
        let name = body.saturating_sub(2 * 65_535);
        for (at, length) in [(1, name), (6, key), (8, payload)] {
            buffer[at..at + 2].copy_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
        }
        let (whole, lengths) = (10 + body, (name, key, payload));
        let Ok(Decoded::Message { request: Request::Push { queue, key, payload, .. }, length }) =
            decode_request(&buffer[..whole])
        else {
            panic!("{whole} bytes are a whole push");
        };
        assert_eq!((queue.len(), key.len(), payload.len()), lengths);
        assert_eq!(length, whole);
        assert!(matches!(
            decode_request(&buffer[..whole - 1]),
            Ok(Decoded::Incomplete { needed_at_least }) if needed_at_least == whole
        ));
    }
}

#[test]
fn a_largest_push_arrives_one_byte_at_a_time() {
    let field = vec![0; 65_535];
    let request = push(&field, 1, 1, &field, &field);
    let bytes = bytes_of(request);
    for length in 0..bytes.len() {
        let outcome = decode_request(&bytes[..length]);
        assert!(matches!(outcome, Ok(Decoded::Incomplete { .. })), "{length} bytes");
    }
    let whole = Decoded::Message { request, length: bytes.len() };
    assert_eq!(decode_request(&bytes), Ok(whole));
}

#[test]
fn encoding_refuses_fields_that_two_length_bytes_cannot_say() {
    let long = vec![0; 65_536];
    let refused = [
        (push(&long, 0, 0, b"", b""), "the name of the queue"),
        (push(b"", 0, 0, &long, b""), "the key"),
        (push(b"", 0, 0, b"", &long), "the payload"),
        (Request::Pop { queue: &long }, "the name of the queue"),
        (Request::Subscribe { queue: &long }, "the name of the queue"),
        (Request::Unsubscribe { queue: &long }, "the name of the queue"),
    ];
    for (request, field) in refused {
        let mut out = Vec::new();
        put_count(&mut out, 1);
        let sentence = request.put(&mut out).unwrap_err().to_string();
        let expected = format!("{field} is 65536 bytes long; the protocol allows at most 65535");
        assert_eq!(sentence, expected);
        assert_eq!(out, [0, 1], "a refusal leaves the buffer as it was");
    }
}

proptest! {
    #[test]
    fn hostile_bytes_never_panic_and_never_ask_for_too_much(
        opcode in proptest::option::of(proptest::sample::select(&OPCODES[..])),
        mut bytes in proptest::collection::vec(any::<u8>(), 0..512),
    ) {
        if let (Some(first), Some(opcode)) = (bytes.first_mut(), opcode) {
            *first = opcode;
        }
        match decode_request(&bytes) {
            Ok(Decoded::Incomplete { needed_at_least }) => {
                prop_assert!(needed_at_least > bytes.len());
                prop_assert!(needed_at_least <= REQUEST_BYTES_MAX);
            }
            Ok(Decoded::Message { request, length }) => {
                prop_assert!((1..=bytes.len()).contains(&length));
                prop_assert_eq!(&bytes_of(request)[..], &bytes[..length]);
            }
            Err(Malformed::UnknownOpcode(unknown)) => {
                prop_assert_eq!(Some(&unknown), bytes.first());
                prop_assert!(!OPCODES.contains(&unknown));
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
