//! Requests and streams that the RESP tests share, and the functions that read a stream.

use pinpriq_proto::wire::resp::{
    Decoded, DecodedReply, Malformed, MalformedReply, ReplyDecoder, ReplyLimits, RequestDecoder,
    RequestLimits, Value,
};

/// Limits small enough to be reached.
pub(crate) const LIMITS: RequestLimits = RequestLimits {
    arguments_max: 8,
    bulk_bytes_max: 32,
    skipped_bytes_max: 200,
    request_bytes_max: 120,
    inline_bytes_max: 64,
};

/// What a server sees in a piece of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    Request(Vec<Vec<u8>>),
    Empty,
    TooLarge { argument: usize, bytes: usize },
    Malformed(Malformed),
}

/// A request with these words.
pub(crate) fn words(words: &[&[u8]]) -> Seen {
    Seen::Request(words.iter().map(|word| word.to_vec()).collect())
}

/// The number of arguments that the short way to a request has room for in these tests.
const PLAIN_ARGUMENTS_MAX: usize = 4;

/// Feeds `chunks` to the decoder like a server: unread bytes stay in front of the next chunk, and
/// an error ends everything. Returns what was seen, and how many bytes were left at the end. Checks
/// that the short way to a request gives the same result if it gives any.
pub(crate) fn seen_in<'a>(
    limits: RequestLimits,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Seen>, usize) {
    let mut decoder = RequestDecoder::new(limits);
    let mut buffer = Vec::new();
    let mut seen = Vec::new();
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        loop {
            let mut room = [&[][..]; PLAIN_ARGUMENTS_MAX];
            let is_first_look = decoder.is_between_requests();
            let plain = decoder.plain_request(&buffer, &mut room);
            let plain = plain.map(|(words, length)| (words.to_vec(), length));
            let found = decoder.decode(&buffer);
            if let Some((_, length)) = plain {
                assert_eq!(found, Ok(Decoded::Request { length }));
            }
            let length = match found {
                Ok(Decoded::Incomplete) => break,
                Ok(Decoded::Skip { length }) => {
                    assert!(length > 0, "progress was made");
                    length
                }
                Ok(Decoded::Request { length }) => {
                    let arguments = decoder.arguments(&buffer);
                    assert_eq!(arguments.len(), arguments.iter().count());
                    assert!(!arguments.is_empty());
                    assert_eq!(arguments.at(arguments.len()), None);
                    let is_plain = is_first_look
                        && buffer.starts_with(b"*")
                        && arguments.len() <= PLAIN_ARGUMENTS_MAX;
                    let words = is_plain.then(|| arguments.iter().collect());
                    assert_eq!(plain.map(|(words, _)| words), words);
                    seen.push(Seen::Request(arguments.iter().map(<[u8]>::to_vec).collect()));
                    length
                }
                Ok(Decoded::Empty { length }) => {
                    seen.push(Seen::Empty);
                    length
                }
                Ok(Decoded::TooLarge { length, argument, bytes }) => {
                    seen.push(Seen::TooLarge { argument, bytes });
                    length
                }
                Err(malformed) => {
                    assert_eq!(decoder.decode(&buffer), Err(malformed), "it stays that way");
                    seen.push(Seen::Malformed(malformed));
                    return (seen, 0);
                }
            };
            buffer.drain(..length);
        }
        assert!(buffer.len() < limits.buffer_bytes_max(), "a full buffer means progress");
    }
    (seen, buffer.len())
}

/// Returns the values in `chunks`, and how many bytes were left at the end, or the error.
pub(crate) fn values_in<'a>(
    limits: ReplyLimits,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Value>, Result<usize, MalformedReply>) {
    let mut decoder = ReplyDecoder::new(limits);
    let mut buffer = Vec::new();
    let mut values = Vec::new();
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        loop {
            match decoder.decode(&buffer) {
                Ok(DecodedReply::Incomplete { length }) => {
                    buffer.drain(..length);
                    break;
                }
                Ok(DecodedReply::Whole { value, length }) => {
                    values.push(value);
                    buffer.drain(..length);
                    assert!(decoder.is_between_values());
                }
                Err(malformed) => return (values, Err(malformed)),
            }
        }
    }
    (values, Ok(buffer.len()))
}
