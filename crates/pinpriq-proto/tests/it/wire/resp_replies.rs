//! RESP replies: the bytes of the writer, and the results of the client's decoder.

use pinpriq_proto::wire::resp::{MalformedReply, Protocol, ReplyLimits, Value, Writer};
use proptest::prelude::*;

use crate::wire::resp_samples::values_in;

/// Checks the output for each version of the protocol.
fn check(write: impl Fn(&mut Writer<'_>), resp2: &str, resp3: &str) {
    for (protocol, expected) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
        let mut out = b"before".to_vec();
        let mut writer = Writer::new(&mut out, protocol);
        assert_eq!(writer.protocol(), protocol);
        write(&mut writer);
        let written = out.escape_ascii().to_string();
        assert_eq!(written, format!("before{expected}").as_bytes().escape_ascii().to_string());
    }
}

/// Checks that the output is the same for both versions.
fn check_both(write: impl Fn(&mut Writer<'_>), expected: &str) {
    check(write, expected, expected);
}

#[test]
fn every_piece_is_written_as_its_version_has_it() {
    check_both(|writer| writer.simple("OK"), "+OK\r\n");
    check_both(|writer| writer.bulk(b""), "$0\r\n\r\n");
    check_both(|writer| writer.bulk(b"a\r\n\0b"), "$5\r\na\r\n\0b\r\n");
    check_both(|writer| writer.bulk(&[b'x'; 100]), &format!("$100\r\n{}\r\n", "x".repeat(100)));
    check_both(|writer| writer.array(0), "*0\r\n");
    check_both(|writer| writer.array(65_536), "*65536\r\n");
    check(
        |writer| {
            writer.null();
            writer.null_array();
        },
        "$-1\r\n*-1\r\n",
        "_\r\n_\r\n",
    );
    check(|writer| writer.map(3), "*6\r\n", "%3\r\n");
    check(|writer| writer.push(5), "*5\r\n", ">5\r\n");
    check(|writer| writer.boolean(true), ":1\r\n", "#t\r\n");
    check(|writer| writer.boolean(false), ":0\r\n", "#f\r\n");
    check(|writer| writer.verbatim("a\nb"), "$3\r\na\nb\r\n", "=7\r\ntxt:a\nb\r\n");
    check(
        |writer| assert_eq!(writer.attribute(1), writer.protocol() == Protocol::Resp3),
        "",
        "|1\r\n",
    );
}

#[test]
fn numbers_are_written_in_full() {
    for number in [0, 1, 9, 10, 99, 100, 1_000, i64::MAX, -1, -10, i64::MIN] {
        check_both(|writer| writer.integer(number), &format!(":{number}\r\n"));
    }
    for number in [0, 9, 10, 12_345, u64::MAX] {
        let length = number.to_string().len();
        check_both(|writer| writer.bulk_number(number), &format!("${length}\r\n{number}\r\n"));
    }
}

#[test]
fn no_text_ends_its_line() {
    check_both(|writer| writer.simple("a\r\nb\nc\0d\x7Fé"), "+a  b c d é\r\n");
    check_both(
        |writer| writer.error("ERR", format_args!("unknown command '{}'", "x\r\n+OK\r\n")),
        "-ERR unknown command 'x  +OK  '\r\n",
    );
    check_both(
        |writer| writer.error("BADARG\r\n", "\u{85}\u{2028}"),
        "-BADARG   \u{85}\u{2028}\r\n",
    );
}

/// Replies with every type, as bytes and as values.
fn replies() -> Vec<(&'static [u8], Vec<Value>)> {
    let simple = |text: &str| Value::Simple(text.into());
    let bulk = |text: &str| Value::Bulk(text.into());
    vec![
        (b"+OK\r\n+\r\n", vec![simple("OK"), simple("")]),
        (
            b"-ERR a b\r\n!3\r\na\r\n\r\n",
            vec![Value::Error("ERR a b".into()), Value::Error("a\r\n".into())],
        ),
        (
            b":0\r\n:-9223372036854775808\r\n:+5\r\n",
            vec![Value::Integer(0), Value::Integer(i64::MIN), Value::Integer(5)],
        ),
        (b"$0\r\n\r\n$4\r\n\r\n\r\n\r\n", vec![bulk(""), bulk("\r\n\r\n")]),
        (b"$-1\r\n*-1\r\n_\r\n", vec![Value::Null; 3]),
        (b"#t\r\n#f\r\n", vec![Value::Boolean(true), Value::Boolean(false)]),
        (
            b",1.5\r\n,-inf\r\n,1e3\r\n",
            vec![Value::Double(1.5), Value::Double(f64::NEG_INFINITY), Value::Double(1e3)],
        ),
        (b"(-34928903284092385\r\n", vec![Value::BigNumber("-34928903284092385".into())]),
        (b"=6\r\ntxt:ab\r\n", vec![Value::Verbatim { format: *b"txt", text: b"ab".into() }]),
        (
            b"*0\r\n%0\r\n~0\r\n>0\r\n",
            vec![Value::Array(vec![]), Value::Map(vec![]), Value::Set(vec![]), Value::Push(vec![])],
        ),
        (
            b"*2\r\n*1\r\n$1\r\na\r\n*0\r\n:1\r\n",
            vec![
                Value::Array(vec![Value::Array(vec![bulk("a")]), Value::Array(vec![])]),
                Value::Integer(1),
            ],
        ),
        (
            b"%2\r\n+a\r\n:1\r\n+b\r\n~1\r\n_\r\n",
            vec![Value::Map(vec![
                (simple("a"), Value::Integer(1)),
                (simple("b"), Value::Set(vec![Value::Null])),
            ])],
        ),
        (b">2\r\n$4\r\ntask\r\n:7\r\n", vec![Value::Push(vec![bulk("task"), Value::Integer(7)])]),
        (
            b"|1\r\n+k\r\n*1\r\n+v\r\n*2\r\n|0\r\n:1\r\n|1\r\n+k\r\n+v\r\n:2\r\n",
            vec![Value::Array(vec![Value::Integer(1), Value::Integer(2)])],
        ),
    ]
}

#[test]
fn replies_are_read_however_they_are_divided() {
    let limits = ReplyLimits::default();
    for (bytes, expected) in replies() {
        let text = bytes.escape_ascii();
        for first in 0..=bytes.len() {
            let (a, b) = bytes.split_at(first);
            assert_eq!(values_in(limits, [a, b]), (expected.clone(), Ok(0)), "{text} at {first}");
        }
        assert_eq!(values_in(limits, bytes.chunks(1)), (expected, Ok(0)), "{text} by the byte");
    }
}

#[test]
fn malformed_replies_are_refused() {
    let cases: [(&[u8], MalformedReply); 20] = [
        (b"PONG\r\n", MalformedReply::UnknownType(b'P')),
        (b"\r\n", MalformedReply::UnknownType(b'\r')),
        (b"$?\r\n", MalformedReply::InvalidLength(b'$')),
        (b"$-2\r\n", MalformedReply::InvalidLength(b'$')),
        (b"*01\r\n", MalformedReply::InvalidLength(b'*')),
        (b"%-1\r\n", MalformedReply::InvalidLength(b'%')),
        (b">-1\r\n", MalformedReply::InvalidLength(b'>')),
        (b"$1\r\nab\r\n", MalformedReply::MissingLineEnd),
        (b"+a\n", MalformedReply::MissingLineEnd),
        (b"+a\rb", MalformedReply::MissingLineEnd),
        (b": 1\r\n", MalformedReply::InvalidLine(b':')),
        (b":\r\n", MalformedReply::InvalidLine(b':')),
        (b"#x\r\n", MalformedReply::InvalidLine(b'#')),
        (b"_x\r\n", MalformedReply::InvalidLine(b'_')),
        (b"(12x\r\n", MalformedReply::InvalidLine(b'(')),
        (b",abc\r\n", MalformedReply::InvalidLine(b',')),
        (b"=3\r\ntxt\r\n", MalformedReply::InvalidLine(b'=')),
        (b"*1\r\n>1\r\n", MalformedReply::MisplacedPush),
        (b"$1001\r\n", MalformedReply::TooLarge),
        (b"%50\r\n", MalformedReply::TooLarge),
    ];
    let limits = ReplyLimits { reply_bytes_max: 1_000, values_max: 99 };
    for (bytes, malformed) in cases {
        let text = bytes.escape_ascii();
        assert_eq!(values_in(limits, [bytes]), (vec![], Err(malformed)), "{text}");
        assert_eq!(values_in(limits, bytes.chunks(1)), (vec![], Err(malformed)), "{text}");
        assert!(!malformed.to_string().contains(char::is_control));
    }
}

#[test]
fn replies_are_bounded() {
    let limits = ReplyLimits { reply_bytes_max: 1_000, values_max: 99 };
    let deep = |depth: usize| [b"*1\r\n".repeat(depth), b"_\r\n".to_vec()].concat();
    assert_eq!(values_in(limits, [&deep(32)[..]]).1, Ok(0));
    assert_eq!(values_in(limits, [&deep(33)[..]]).1, Err(MalformedReply::TooDeep));
    let wide = |width: usize| [format!("*{width}\r\n").into(), b"_\r\n".repeat(width)].concat();
    assert_eq!(values_in(limits, [&wide(98)[..]]).1, Ok(0));
    assert_eq!(values_in(limits, [&wide(99)[..]]).1, Err(MalformedReply::TooLarge));
    let attributes = b"|0\r\n".repeat(100);
    assert_eq!(values_in(limits, [&attributes[..]]).1, Err(MalformedReply::TooLarge));
    let halves = [b"*2\r\n$500\r\n".to_vec(), vec![0; 500], b"\r\n$490\r\n".to_vec()].concat();
    assert_eq!(values_in(limits, halves.chunks(7)).1, Err(MalformedReply::TooLarge));
    let line = [b"+".to_vec(), vec![b'a'; 70_000]].concat();
    let limits = ReplyLimits::default();
    assert_eq!(values_in(limits, line.chunks(999)).1, Err(MalformedReply::TooLarge));
    // The limits apply to one reply, not to a stream.
    let stream = b"+OK\r\n".repeat(1_000);
    assert_eq!(
        values_in(ReplyLimits { reply_bytes_max: 5, values_max: 1 }, [&stream[..]]).1,
        Ok(0)
    );
}

/// Values that can be written and read again with RESP3.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        "[ -~é]{0,20}".prop_map(Value::Simple),
        "[A-Z]{1,9} [ -~]{0,20}".prop_map(Value::Error),
        any::<i64>().prop_map(Value::Integer),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Bulk),
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
    ];
    leaf.prop_recursive(4, 40, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            proptest::collection::vec((inner.clone(), inner), 0..4).prop_map(Value::Map),
        ]
    })
}

/// Writes a value.
fn write(writer: &mut Writer<'_>, value: &Value) {
    match value {
        Value::Simple(text) => writer.simple(text),
        Value::Error(text) => {
            let (word, sentence) = text.split_once(' ').unwrap();
            writer.error(word, sentence);
        }
        Value::Integer(number) => writer.integer(*number),
        Value::Bulk(bytes) => writer.bulk(bytes),
        Value::Null => writer.null(),
        Value::Boolean(truth) => writer.boolean(*truth),
        Value::Array(elements) => {
            writer.array(elements.len());
            for element in elements {
                write(writer, element);
            }
        }
        Value::Map(pairs) => {
            writer.map(pairs.len());
            for (key, value) in pairs {
                write(writer, key);
                write(writer, value);
            }
        }
        other => panic!("{other:?} is not written by servers"),
    }
}

/// Returns what RESP2 preserves of a value.
fn flattened(value: Value) -> Value {
    match value {
        Value::Boolean(truth) => Value::Integer(truth.into()),
        Value::Array(elements) => Value::Array(elements.into_iter().map(flattened).collect()),
        Value::Map(pairs) => Value::Array(
            pairs.into_iter().flat_map(|(key, value)| [flattened(key), flattened(value)]).collect(),
        ),
        other => other,
    }
}

proptest! {
    #[test]
    fn values_come_back_as_they_were_written(value in value(), chunk in 1..20_usize) {
        let limits = ReplyLimits::default();
        let mut bytes = Vec::new();
        write(&mut Writer::new(&mut bytes, Protocol::Resp3), &value);
        prop_assert_eq!(values_in(limits, bytes.chunks(chunk)), (vec![value.clone()], Ok(0)));
        bytes.clear();
        write(&mut Writer::new(&mut bytes, Protocol::Resp2), &value);
        prop_assert_eq!(values_in(limits, bytes.chunks(chunk)), (vec![flattened(value)], Ok(0)));
    }

    #[test]
    fn any_bytes_read_the_same_however_they_are_divided(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            proptest::collection::vec(
                proptest::sample::select(&b"\r\n\r\n\r\n*$%~>|_#t01-3+:,(=!a"[..]),
                0..200,
            ),
        ],
        chunk in 1..9_usize,
    ) {
        let limits = ReplyLimits { reply_bytes_max: 90, values_max: 10 };
        // Compared as text, since NaN is not equal to itself.
        let whole = format!("{:?}", values_in(limits, [&bytes[..]]));
        prop_assert_eq!(format!("{:?}", values_in(limits, bytes.chunks(chunk))), whole);
    }
}
