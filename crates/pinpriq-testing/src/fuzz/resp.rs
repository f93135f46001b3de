//! RESP: bytes to requests and to replies, whole and in pieces, and back.
//!
//! The first byte chooses the limits, the second the pieces; the rest is the stream. This module
//! does not know what the commands mean.

use std::ops::ControlFlow;

use pinpriq_proto::wire::resp::{
    Decoded, DecodedReply, MalformedReply, Protocol, ReplyDecoder, ReplyLimits, RequestDecoder,
    RequestLimits, Value, Writer, put_command,
};

use crate::fuzz::cutting::{Cut, Step, feed};
use crate::fuzz::feed::Feed;

/// So small that short inputs reach every limit.
const NARROW: RequestLimits = RequestLimits {
    arguments_max: 4,
    bulk_bytes_max: 12,
    skipped_bytes_max: 48,
    request_bytes_max: 64,
    inline_bytes_max: 24,
};

/// The same for replies.
const NARROW_REPLIES: ReplyLimits = ReplyLimits { reply_bytes_max: 64, values_max: 6 };

/// What a server reads from a stream of requests. A command that is too large is one item.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Read {
    Request(Vec<Vec<u8>>),
    Empty,
    TooLarge { argument: usize, bytes: usize },
    Malformed(String),
}

/// Reads any bytes as requests and as replies.
///
/// # Panics
/// If the pieces make a difference, if a decoder exceeds its limits, or if what was
/// written cannot be read again.
pub fn resp(bytes: &[u8]) {
    let mut input = Feed::new(bytes);
    let narrow = input.byte() % 2 == 1;
    let cut = Cut::Drawn(u64::from(input.byte()));
    let stream = input.rest();
    requests(stream, if narrow { NARROW } else { RequestLimits::default() }, cut);
    replies(stream, if narrow { NARROW_REPLIES } else { ReplyLimits::default() }, cut);
}

fn requests(stream: &[u8], limits: RequestLimits, cut: Cut) {
    let whole = requests_in(stream, limits, Cut::Whole);
    for cut in [Cut::Bytes, cut] {
        assert_eq!(whole, requests_in(stream, limits, cut), "requests in pieces: {cut:?}");
    }
    for read in &whole.0 {
        let Read::Request(arguments) = read else { continue };
        assert!((1..=limits.arguments_max).contains(&arguments.len()));
        assert!(arguments.iter().all(|argument| argument.len() <= limits.bulk_bytes_max));
        let borrowed: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let mut written = Vec::new();
        put_command(&mut written, &borrowed);
        let back = requests_in(&written, RequestLimits::default(), Cut::Whole);
        assert_eq!(back, (vec![read.clone()], 0), "a command comes back as it was");
    }
}

/// Returns everything that is read from the stream, and the number of bytes that are left.
fn requests_in(stream: &[u8], limits: RequestLimits, cut: Cut) -> (Vec<Read>, usize) {
    let mut decoder = RequestDecoder::new(limits);
    let mut seen = Vec::new();
    // The bytes of a command that is too large are dropped early or late, depending on the pieces.
    let mut is_skipping = false;
    let rest = feed(stream, cut, |buffer| {
        let mut room = [&[][..]; 8];
        let plain = decoder.plain_request(buffer, &mut room);
        let plain = plain.map(|(words, length)| (words.to_vec(), length));
        let found = match decoder.decode(buffer) {
            Ok(found) => found,
            Err(malformed) => {
                let again = decoder.decode(buffer);
                assert_eq!(again, Err(malformed), "asked again, it says the same again");
                seen.push(Read::Malformed(malformed.to_string()));
                is_skipping = true;
                return ControlFlow::Break(());
            }
        };
        if let Some((words, length)) = plain {
            assert_eq!(found, Decoded::Request { length }, "the short way leads to the same");
            assert_eq!(decoder.arguments(buffer).iter().collect::<Vec<_>>(), words);
        }
        is_skipping = matches!(found, Decoded::Skip { .. }) || is_skipping;
        let length = match found {
            Decoded::Incomplete => {
                assert!(buffer.len() < limits.buffer_bytes_max(), "a full buffer is enough");
                return ControlFlow::Continue(Step::Wait(0));
            }
            Decoded::Skip { length } => length,
            Decoded::Request { length } => {
                let arguments = decoder.arguments(buffer);
                assert_eq!(arguments.len(), arguments.iter().count());
                seen.push(Read::Request(arguments.iter().map(<[u8]>::to_vec).collect()));
                length
            }
            Decoded::Empty { length } => {
                seen.push(Read::Empty);
                length
            }
            Decoded::TooLarge { length, argument, bytes } => {
                seen.push(Read::TooLarge { argument, bytes });
                is_skipping = false;
                length
            }
        };
        ControlFlow::Continue(Step::Drop(length))
    });
    (seen, if is_skipping { 0 } else { rest.len() })
}

fn replies(stream: &[u8], limits: ReplyLimits, cut: Cut) {
    let (whole, end) = replies_in(stream, limits, Cut::Whole);
    let told = format!("{whole:?}");
    for cut in [Cut::Bytes, cut] {
        let (pieces, pieces_end) = replies_in(stream, limits, cut);
        // Compared as text, since two doubles that are NaN differ.
        assert_eq!(told, format!("{pieces:?}"), "replies in pieces: {cut:?}");
        assert_eq!(end, pieces_end, "the end of replies in pieces: {cut:?}");
    }
    for value in &whole {
        assert!(count(value) <= limits.values_max, "there are no more values than are allowed");
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut written = Vec::new();
            let expected = write(value, &mut Writer::new(&mut written, protocol));
            let (back, end) = replies_in(&written, ReplyLimits::default(), Cut::Whole);
            assert_eq!(format!("{back:?}"), format!("{:?}", [expected]), "{protocol:?}");
            assert_eq!(end, None, "nothing is left of what was written");
        }
    }
}

/// Returns every value in the stream, and what ended it before its end.
fn replies_in(
    stream: &[u8],
    limits: ReplyLimits,
    cut: Cut,
) -> (Vec<Value>, Option<MalformedReply>) {
    let mut decoder = ReplyDecoder::new(limits);
    let mut seen = Vec::new();
    let mut end = None;
    feed(stream, cut, |buffer| match decoder.decode(buffer) {
        Ok(DecodedReply::Incomplete { length }) => ControlFlow::Continue(Step::Wait(length)),
        Ok(DecodedReply::Whole { value, length }) => {
            assert!(decoder.is_between_values());
            seen.push(value);
            ControlFlow::Continue(Step::Drop(length))
        }
        Err(malformed) => {
            end = Some(malformed);
            ControlFlow::Break(())
        }
    });
    (seen, end)
}

/// Returns the number of values in this one, including itself.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) | Value::Set(values) | Value::Push(values) => {
            values.iter().map(count).sum()
        }
        Value::Map(pairs) => pairs.iter().map(|(key, value)| count(key) + count(value)).sum(),
        _ => 0,
    }
}

/// Writes a value as closely as the writer can, and returns what a client should then read.
fn write(value: &Value, writer: &mut Writer<'_>) -> Value {
    let resp3 = writer.protocol() == Protocol::Resp3;
    let plain = |text: &str| text.replace(|char: char| char.is_ascii_control(), " ");
    match value {
        Value::Simple(text) | Value::BigNumber(text) => {
            writer.simple(text);
            Value::Simple(plain(text))
        }
        Value::Error(text) => {
            writer.error("ERR", text);
            Value::Error(format!("ERR {}", plain(text)))
        }
        Value::Integer(number) => {
            writer.integer(*number);
            Value::Integer(*number)
        }
        Value::Bulk(bytes) => {
            writer.bulk(bytes);
            Value::Bulk(bytes.clone())
        }
        Value::Boolean(truth) => {
            writer.boolean(*truth);
            if resp3 { Value::Boolean(*truth) } else { Value::Integer(i64::from(*truth)) }
        }
        Value::Double(number) => {
            writer.bulk_number(number.to_bits());
            Value::Bulk(number.to_bits().to_string().into_bytes())
        }
        Value::Verbatim { text, .. } => {
            let text = String::from_utf8_lossy(text);
            writer.verbatim(&text);
            let text = text.into_owned().into_bytes();
            if resp3 { Value::Verbatim { format: *b"txt", text } } else { Value::Bulk(text) }
        }
        Value::Array(values) | Value::Set(values) => {
            writer.array(values.len());
            Value::Array(values.iter().map(|value| write(value, writer)).collect())
        }
        Value::Push(values) => {
            writer.push(values.len());
            let values = values.iter().map(|value| write(value, writer)).collect();
            if resp3 { Value::Push(values) } else { Value::Array(values) }
        }
        Value::Map(pairs) => {
            writer.map(pairs.len());
            let pairs: Vec<(Value, Value)> = pairs
                .iter()
                .map(|(key, value)| (write(key, writer), write(value, writer)))
                .collect();
            if resp3 {
                Value::Map(pairs)
            } else {
                Value::Array(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect())
            }
        }
        _ => {
            writer.null();
            Value::Null
        }
    }
}
