//! The RESP request decoder: what it reads, in every division, and what it refuses.

use std::fmt::Write;

use pinpriq_proto::wire::resp::{Decoded, Malformed, RequestDecoder, RequestLimits, put_command};
use proptest::prelude::*;

use crate::wire::resp_samples::{LIMITS, Seen, seen_in, words};

/// Streams with every outcome but errors, each with its contents.
fn streams() -> Vec<(&'static [u8], Vec<Seen>)> {
    let too_large = |argument, bytes| Seen::TooLarge { argument, bytes };
    vec![
        (b"*1\r\n$4\r\nPING\r\n", vec![words(&[b"PING"])]),
        (
            b"*3\r\n$3\r\nPUT\r\n$4\r\njobs\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n",
            vec![words(&[b"PUT", b"jobs", b""]), words(&[b"PING"])],
        ),
        (b"*2\r\n$2\r\n\r\n\r\n$4\r\n*1\r\n\r\n", vec![words(&[b"\r\n", b"*1\r\n"])]),
        (b"*1\r\n$12\r\n\x00\xff\r\n$4\r\nPING\r\n", vec![words(&[b"\x00\xff\r\n$4\r\nPING"])]),
        (b"*0\r\n*-1\r\n\r\n\n \t \r\n", vec![Seen::Empty; 5]),
        (b"PING\r\nping  a\tb\n", vec![words(&[b"PING"]), words(&[b"ping", b"a", b"b"])]),
        (
            b"PUT \"a b\" 'c \\' \"d' \"\\x00\\xfF\\n\\r\\t\\b\\a\\\\\\\"\\q\\x1\" e\"f\"\r\n",
            vec![words(&[b"PUT", b"a b", b"c ' \"d", b"\x00\xff\n\r\t\x08\x07\\\"qx1", b"ef"])],
        ),
        (b"a\x0bb \x0b\x0cc \"\" ''\r\n", vec![words(&[b"a\x0bb", b"c", b"", b""])]),
        (b"\x00 \xff\n$4\n", vec![words(&[b"\x00", b"\xff"]), words(&[b"$4"])]),
        (
            b"PING a\r\n*2\r\n$4\r\nPONG\r\n$1\r\nb\r\nPING\n",
            vec![words(&[b"PING", b"a"]), words(&[b"PONG", b"b"]), words(&[b"PING"])],
        ),
        (
            b"0123456789abcdef0123456789abcdef\n",
            vec![words(&[b"0123456789abcdef0123456789abcdef"])],
        ),
        (b"a\rb\r\r\n", vec![words(&[b"a", b"b"])]),
        (
            b"*3\r\n$3\r\nPUT\r\n$33\r\n*1\r\n$4\r\nEVIL\r\n*1\r\n$4\r\nEVIL\r\nabcde\r\n\
              $1\r\nx\r\nPING\r\n",
            vec![too_large(1, 33), words(&[b"PING"])],
        ),
        (
            b"*1\r\n$32\r\n0123456789abcdef0123456789abcdef\r\n\
              *1\r\n$33\r\n0123456789abcdef0123456789abcdef.\r\n",
            vec![words(&[b"0123456789abcdef0123456789abcdef"]), too_large(0, 33)],
        ),
        (
            // Each fits, but all of them together do not.
            b"*6\r\n$30\r\n0123456789abcdef0123456789abcd\r\n\
              $30\r\n0123456789abcdef0123456789abcd\r\n\
              $30\r\n0123456789abcdef0123456789abcd\r\n\
              $20\r\n0123456789abcdef0123\r\n$0\r\n\r\n$1\r\nx\r\n*0\r\n",
            vec![too_large(3, 20), Seen::Empty],
        ),
        (
            b"PUT 0123456789abcdef0123456789abcdef. x\nPING\n",
            vec![too_large(1, 33), words(&[b"PING"])],
        ),
    ]
}

/// Byte strings that begin no request, each with the length of the shortest part that shows it.
const MALFORMED: [(&[u8], usize, Malformed); 41] = [
    (b"*-2\r\n", 3, Malformed::InvalidMultibulkLength),
    (b"*-10\r\n", 4, Malformed::InvalidMultibulkLength),
    (b"*-1\n", 4, Malformed::InvalidMultibulkLength),
    (b"*-1x", 4, Malformed::InvalidMultibulkLength),
    (b"*--1\r\n", 3, Malformed::InvalidMultibulkLength),
    (b"*-0\r\n", 3, Malformed::InvalidMultibulkLength),
    (b"*\r\n", 2, Malformed::InvalidMultibulkLength),
    (b"*\n", 2, Malformed::InvalidMultibulkLength),
    (b"*\0", 2, Malformed::InvalidMultibulkLength),
    (b"*+1\r\n", 2, Malformed::InvalidMultibulkLength),
    (b"* 1\r\n", 2, Malformed::InvalidMultibulkLength),
    (b"*1 \r\n", 3, Malformed::InvalidMultibulkLength),
    (b"*01\r\n", 3, Malformed::InvalidMultibulkLength),
    (b"*00\r\n", 3, Malformed::InvalidMultibulkLength),
    (b"*1\n", 3, Malformed::InvalidMultibulkLength),
    (b"*1\rx", 4, Malformed::InvalidMultibulkLength),
    (b"*0x1\r\n", 3, Malformed::InvalidMultibulkLength),
    (b"*9\r\n", 4, Malformed::InvalidMultibulkLength),
    (b"*2147483648\r\n", 13, Malformed::InvalidMultibulkLength),
    (b"*18446744073709551616\r\n", 21, Malformed::InvalidMultibulkLength),
    (b"*99999999999999999999999999", 21, Malformed::InvalidMultibulkLength),
    (b"*1\r\n$-1\r\n", 6, Malformed::InvalidBulkLength),
    (b"*1\r\n$+1\r\n", 6, Malformed::InvalidBulkLength),
    (b"*1\r\n$ 1\r\n", 6, Malformed::InvalidBulkLength),
    (b"*1\r\n$1 \r\n", 7, Malformed::InvalidBulkLength),
    (b"*1\r\n$05\r\n", 7, Malformed::InvalidBulkLength),
    (b"*1\r\n$5\n", 7, Malformed::InvalidBulkLength),
    (b"*1\r\n$\r\n", 6, Malformed::InvalidBulkLength),
    (b"*1\r\n$blabla\r\n", 6, Malformed::InvalidBulkLength),
    (b"*1\r\n$201\r\n", 10, Malformed::InvalidBulkLength),
    (b"*1\r\n$9223372036854775807\r\n", 26, Malformed::InvalidBulkLength),
    (b"*1\r\n$18446744073709551615\r\n", 27, Malformed::InvalidBulkLength),
    (b"*1\r\nfoo\r\n", 5, Malformed::ExpectedBulk(b'f')),
    (b"*1\r\n*1\r\n$1\r\nx\r\n", 5, Malformed::ExpectedBulk(b'*')),
    (b"*1\r\n:1\r\n", 5, Malformed::ExpectedBulk(b':')),
    (b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", 21, Malformed::ExpectedBulk(b'f')),
    (b"*2\r\n$5\r\nabcdexx", 14, Malformed::MissingLineEnd),
    (b"*2\r\n$5\r\nabcde\rx", 15, Malformed::MissingLineEnd),
    (b"*2\r\n$5\r\nabcde\n", 14, Malformed::MissingLineEnd),
    (b"set \"\"\"test-key\"\"\" test-value\r\n", 31, Malformed::UnbalancedQuotes),
    (b"a b c d e f g h i\r\n", 19, Malformed::TooBigInline),
];

#[test]
fn streams_are_read() {
    for (bytes, expected) in streams() {
        assert_eq!(seen_in(LIMITS, [bytes]), (expected, 0), "{}", bytes.escape_ascii());
    }
}

#[test]
fn every_division_of_a_stream_reads_the_same() {
    for (bytes, expected) in streams() {
        let text = bytes.escape_ascii();
        for first in 0..=bytes.len() {
            let (a, b) = bytes.split_at(first);
            assert_eq!(seen_in(LIMITS, [a, b]), (expected.clone(), 0), "{text} at {first}");
        }
        assert_eq!(seen_in(LIMITS, bytes.chunks(1)), (expected, 0), "{text} by the byte");
    }
}

#[test]
fn every_prefix_of_a_request_is_incomplete() {
    let mut bytes = Vec::new();
    put_command(&mut bytes, &[b"PUT", b"jobs", b"\r\n*1\r\n", b""]);
    for request in [&bytes[..], b"PUT jobs \"a\\x00\"\r\n"] {
        for length in 0..request.len() {
            let mut decoder = RequestDecoder::new(LIMITS);
            assert_eq!(decoder.decode(&request[..length]), Ok(Decoded::Incomplete));
            assert_eq!(decoder.decode(&request[..length]), Ok(Decoded::Incomplete));
            assert_eq!(decoder.decode(request), Ok(Decoded::Request { length: request.len() }));
            assert!(decoder.is_between_requests());
        }
    }
}

#[test]
fn what_is_malformed_is_refused_as_soon_as_it_shows() {
    for (bytes, enough, malformed) in MALFORMED {
        let text = bytes.escape_ascii();
        let expected = (vec![Seen::Malformed(malformed)], 0);
        assert_eq!(seen_in(LIMITS, [bytes]), expected, "{text}");
        assert_eq!(seen_in(LIMITS, bytes.chunks(1)), expected, "{text} by the byte");
        assert_eq!(seen_in(LIMITS, [&bytes[..enough]]), expected, "{text} at {enough}");
        let before = &bytes[..enough - 1];
        assert_eq!(seen_in(LIMITS, [before]), (vec![], enough - 1), "{text} before {enough}");
    }
}

#[test]
fn quotes_must_close_and_stand_alone() {
    for line in ["\"", "'", "a \"b", "a 'b", "\"a\\", "'a\\'", "\"a\"b", "'a'b", "\"a\"\"b\""] {
        let line = format!("{line}\r\n");
        let expected = vec![Seen::Malformed(Malformed::UnbalancedQuotes)];
        assert_eq!(seen_in(LIMITS, [line.as_bytes()]).0, expected, "{line}");
    }
}

#[test]
fn requests_of_http_are_told_apart() {
    let lines: [&[u8]; 6] = [
        b"POST / HTTP/1.1\r\n",
        b"post / HTTP/1.1\n",
        b"Host: localhost\r\n",
        b"HOST:\r\n",
        b" \thost: \"\r\n",
        b"POST\r\n",
    ];
    for line in lines {
        let expected = vec![Seen::Malformed(Malformed::ForeignProtocol)];
        assert_eq!(seen_in(LIMITS, [line]).0, expected);
    }
    assert_eq!(seen_in(LIMITS, [&b"POSTER a\n"[..]]).0, [words(&[b"POSTER", b"a"])]);
    assert!(!Malformed::ForeignProtocol.is_answered());
    assert!(Malformed::TooBigInline.is_answered());
}

#[test]
fn errors_are_worded_as_in_redis() {
    let texts = [
        (Malformed::InvalidMultibulkLength, "invalid multibulk length"),
        (Malformed::InvalidBulkLength, "invalid bulk length"),
        (Malformed::ExpectedBulk(b'f'), "expected '$', got 'f'"),
        (Malformed::ExpectedBulk(b'\''), "expected '$', got '''"),
        (Malformed::ExpectedBulk(b'\r'), "expected '$', got '\\r'"),
        (Malformed::ExpectedBulk(0xFF), "expected '$', got '\\xff'"),
        (Malformed::UnbalancedQuotes, "unbalanced quotes in request"),
        (Malformed::TooBigInline, "too big inline request"),
    ];
    for (malformed, text) in texts {
        assert_eq!(malformed.to_string(), text);
    }
}

#[test]
fn an_endless_line_is_refused_at_its_limit() {
    let limits = RequestLimits::default();
    let mut decoder = RequestDecoder::new(limits);
    let mut line = vec![b'a'; limits.inline_bytes_max];
    assert_eq!(decoder.decode(&line), Ok(Decoded::Incomplete));
    line.push(b'\n');
    let length = line.len();
    assert_eq!(decoder.clone().decode(&line), Ok(Decoded::Request { length }));
    line[length - 1] = b'a';
    assert_eq!(decoder.decode(&line), Err(Malformed::TooBigInline));
    line.push(b'\n');
    let mut decoder = RequestDecoder::new(limits);
    assert_eq!(decoder.decode(&line), Err(Malformed::TooBigInline));
}

#[test]
fn a_large_argument_is_skipped_up_to_a_limit_of_its_own() {
    let limits = RequestLimits::for_bulks(1_000);
    let chunk = [b'\n'; 4_096];
    let large = (64 << 20) - 1;
    let head = format!("*3\r\n$3\r\nPUT\r\n${large}\r\n").into_bytes();
    let body = std::iter::repeat_n(&chunk[..], large / chunk.len());
    let tail = [&chunk[..large % chunk.len()], b"\r\n$1\r\nx\r\nPING\n"];
    let stream = std::iter::once(&head[..]).chain(body).chain(tail);
    let expected = vec![Seen::TooLarge { argument: 1, bytes: large }, words(&[b"PING"])];
    assert_eq!(seen_in(limits, stream), (expected, 0));

    // One byte is left for the arguments after it.
    let head = format!("*3\r\n${large}\r\n").into_bytes();
    let body = std::iter::repeat_n(&chunk[..], large / chunk.len());
    let tail = [&chunk[..large % chunk.len()], b"\r\n$2\r\n"];
    let stream = std::iter::once(&head[..]).chain(body).chain(tail);
    let expected = vec![Seen::Malformed(Malformed::InvalidBulkLength)];
    assert_eq!(seen_in(limits, stream), (expected, 0));
}

#[test]
fn a_request_may_be_as_long_as_its_limit() {
    let mut bytes = Vec::new();
    put_command(&mut bytes, &[b"PUT", b"jobs", b"payload"]);
    let limit = |request_bytes_max| RequestLimits { request_bytes_max, ..LIMITS };
    let expected = vec![words(&[b"PUT", b"jobs", b"payload"])];
    assert_eq!(seen_in(limit(bytes.len()), [&bytes[..]]), (expected, 0));
    let expected = vec![Seen::TooLarge { argument: 2, bytes: 7 }];
    assert_eq!(seen_in(limit(bytes.len() - 1), [&bytes[..]]), (expected, 0));
}

#[test]
fn other_limits_hold_from_the_next_line_on() {
    let mut decoder = RequestDecoder::new(RequestLimits { arguments_max: 1, ..LIMITS });
    let bytes = b"*2\r\n$1\r\na\r\n$1\r\nb\r\n";
    assert_eq!(decoder.decode(bytes), Err(Malformed::InvalidMultibulkLength));
    decoder.set_limits(LIMITS);
    assert_eq!(decoder.limits(), &LIMITS);
    assert_eq!(decoder.decode(bytes), Ok(Decoded::Request { length: bytes.len() }));
    let arguments = decoder.arguments(bytes);
    assert_eq!(arguments.iter().rev().collect::<Vec<_>>(), [b"b", b"a"]);
    assert_eq!(decoder.arguments(b"").at(0), Some(&b""[..]), "the wrong buffer does no harm");
}

/// Bytes that have a special meaning somewhere.
const TELLING: &[u8] = b"\r\n*$012-3 '\"\\xa\0";

/// Arguments with bytes that could confuse a decoder.
fn argument() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..32),
        proptest::collection::vec(proptest::sample::select(&b"\r\n*$01-\0a"[..]), 0..32),
    ]
}

proptest! {
    #[test]
    fn commands_come_back_as_they_were_put(
        commands in proptest::collection::vec(proptest::collection::vec(argument(), 1..40), 1..8),
        chunk in 1..50_usize,
    ) {
        let mut bytes = Vec::new();
        for command in &commands {
            let slices: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            put_command(&mut bytes, &slices);
        }
        let expected: Vec<Seen> = commands.into_iter().map(Seen::Request).collect();
        let limits = RequestLimits::default();
        prop_assert_eq!(seen_in(limits, bytes.chunks(chunk)), (expected, 0));
    }

    #[test]
    fn any_bytes_read_the_same_however_they_are_divided(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..300),
            proptest::collection::vec(proptest::sample::select(TELLING), 0..300),
            pieces(),
        ],
        chunk in 1..20_usize,
    ) {
        prop_assert_eq!(seen_in(LIMITS, bytes.chunks(chunk)), seen_in(LIMITS, [&bytes[..]]));
    }

    #[test]
    fn any_word_can_be_quoted(word in proptest::collection::vec(any::<u8>(), 0..1_000)) {
        let mut line = "ECHO \"".to_owned();
        for byte in &word {
            write!(line, "\\x{byte:02x}").unwrap();
        }
        line.push_str("\"\r\n");
        let limits = RequestLimits::default();
        let expected = vec![words(&[b"ECHO", &word])];
        prop_assert_eq!(seen_in(limits, [line.as_bytes()]), (expected, 0));
    }
}

/// Streams of parts that often form something valid.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&[u8]; 14] = [
        b"*1\r\n",
        b"*2\r\n",
        b"*0\r\n",
        b"*-1\r\n",
        b"$1\r\na\r\n",
        b"$0\r\n\r\n",
        b"$40\r\n0123456789012345678901234567890123456789\r\n",
        b"$30\r\n012345678901234567890123456789\r\n",
        b"$99\r\n",
        b"PING\r\n",
        b"\r\n",
        b"\"a\" ",
        b"$",
        b"x",
    ];
    proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..24)
        .prop_map(|pieces| pieces.concat())
}
