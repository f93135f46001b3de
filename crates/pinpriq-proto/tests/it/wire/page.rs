//! Tests the protocol page: the code reads and writes its test vectors, in both directions.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use pinpriq_proto::wire::{Decoded, Framing, Request, decode_request, put_count, put_packet};

use crate::wire::samples::{OwnedPiece, bytes_of, pieces_in, push};

const PAGE: &str = include_str!("../../../../../docs/protocol/pinpriq.md");

/// The sources whose comments name sections of the page.
const SOURCES: [&str; 5] = [
    include_str!("../../../src/wire.rs"),
    include_str!("../../../src/wire/decode.rs"),
    include_str!("../../../src/wire/encode.rs"),
    include_str!("../../../src/wire/reply.rs"),
    include_str!("../../../src/wire/request.rs"),
];

/// The test vectors of the page: a message in words, and its bytes.
fn vectors() -> Vec<(&'static str, Vec<u8>)> {
    let (_, block) = PAGE.split_once("```vectors\n").expect("the page has test vectors");
    let (block, _) = block.split_once("\n```").expect("the block of test vectors ends");
    let lines: Vec<_> = block.lines().collect();
    lines.chunks_exact(2).map(|pair| (pair[0], unhex(pair[1]))).collect()
}

fn unhex(line: &str) -> Vec<u8> {
    line.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// The value of `name` in the words of a message.
fn value<'a>(words: &'a str, name: &str) -> &'a str {
    let start = format!("{name}=");
    words.split(' ').find_map(|word| word.strip_prefix(&start)).expect("the field is there")
}

/// Returns the request that a message in words describes, if it is one.
fn request_of(words: &str) -> Option<Request<'_>> {
    let queue = |words| value(words, "queue").as_bytes();
    Some(match words.split(' ').next()? {
        "push" => push(
            queue(words),
            value(words, "ttl_ms").parse().unwrap(),
            value(words, "priority").parse().unwrap(),
            value(words, "key").as_bytes(),
            value(words, "payload").as_bytes(),
        ),
        "pop" => Request::Pop { queue: queue(words) },
        "subscribe" => Request::Subscribe { queue: queue(words) },
        "unsubscribe" => Request::Unsubscribe { queue: queue(words) },
        "ready" => Request::Ready,
        _ => return None,
    })
}

/// Returns the packets of a frame in words.
fn packets_of(words: &str) -> Vec<(&str, &str)> {
    words.split(' ').skip(1).map(|word| word.split_once('=').unwrap()).collect()
}

/// Returns the anchor that GitHub generates for a heading.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

#[test]
fn the_vectors_are_those_of_all_messages() {
    let kinds: BTreeSet<_> =
        vectors().iter().map(|(words, _)| words.split(' ').next().unwrap()).collect();
    let expected =
        ["push", "pop", "subscribe", "ready", "unsubscribe", "reply", "delivery", "bare-delivery"];
    assert_eq!(kinds, BTreeSet::from(expected));
    assert_eq!(vectors().len(), 11);
}

#[test]
fn requests_are_written_and_read_as_the_page_says() {
    for (words, bytes) in vectors() {
        let Some(request) = request_of(words) else { continue };
        assert_eq!(bytes_of(request), bytes, "{words}");
        let whole = Decoded::Message { request, length: bytes.len() };
        assert_eq!(decode_request(&bytes), Ok(whole), "{words}");
    }
}

#[test]
fn frames_are_written_and_read_as_the_page_says() {
    for (words, bytes) in vectors() {
        if request_of(words).is_some() {
            continue;
        }
        let counted = !words.starts_with("bare-");
        let framing = if counted { Framing::Counted } else { Framing::Bare };
        let packets = packets_of(words);
        let mut left = u16::try_from(packets.len()).unwrap();
        let mut written = Vec::new();
        let mut expected = Vec::new();
        if counted {
            put_count(&mut written, left);
            expected.push(OwnedPiece::Count(left));
        }
        for (key, payload) in packets {
            put_packet(&mut written, key.as_bytes(), payload.as_bytes()).unwrap();
            left -= 1;
            expected.push(OwnedPiece::Packet {
                key: key.into(),
                payload: payload.into(),
                left: if counted { left } else { 0 },
            });
        }
        assert_eq!(written, bytes, "{words}");
        assert_eq!(pieces_in(framing, bytes.chunks(1)), (expected, Vec::new()), "{words}");
    }
}

#[test]
fn the_hex_in_the_text_is_that_of_the_vectors() {
    let prose = PAGE.replace('\n', " ");
    for (words, bytes) in vectors() {
        // These are explained byte by byte, with words in between, or only in the vectors.
        if words.starts_with("push") || words.len() < 6 || words.starts_with("bare") {
            continue;
        }
        let mut hex = String::new();
        for byte in bytes {
            write!(hex, "{byte:02X} ").unwrap();
        }
        assert!(prose.matches(hex.trim_end()).count() >= 2, "{words} stands in the text too");
    }
}

#[test]
fn every_section_that_the_code_names_is_on_the_page() {
    let sections: BTreeSet<_> =
        PAGE.lines().filter_map(|line| line.strip_prefix("## ")).map(anchor).collect();
    let mut named = BTreeSet::new();
    for source in SOURCES {
        for reference in source.split("docs/protocol/pinpriq.md#").skip(1) {
            named.insert(reference.split('`').next().unwrap().to_owned());
        }
    }
    assert!(named.contains("push"), "the code names sections");
    assert_eq!(named.difference(&sections).collect::<Vec<_>>(), Vec::<&String>::new());
}
