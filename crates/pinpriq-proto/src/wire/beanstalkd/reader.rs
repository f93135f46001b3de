//! The client's side of an answer: bytes in, one borrowed [`Answer`] out.
//!
//! It knows which answers have more than a line, and nothing of which request they belong to. What
//! is in a document is not read.

use super::answer::JobWord;
use super::decoder::{CRLF, LINE_BYTES_MAX, line_end};
use super::line::digits;

/// One answer of a server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer<'a> {
    /// A line without its CR LF, such as `INSERTED 7`.
    Line(&'a [u8]),
    /// A job.
    Job {
        /// What it is an answer to.
        word: JobWord,
        /// The number of the job.
        id: u64,
        /// Any bytes.
        body: &'a [u8],
    },
    /// The lines of a document.
    Document(&'a [u8]),
}

/// What is at the front of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodedAnswer<'a> {
    /// The bytes are the beginning of an answer, but not all of it.
    Incomplete,
    /// A whole answer.
    Whole {
        /// The answer, borrowed from the buffer.
        answer: Answer<'a>,
        /// The number of bytes of the answer in the buffer.
        length: usize,
    },
}

/// The bytes are not the beginning of any answer, or of one beyond the limit.
///
/// The stream cannot be read any further.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedAnswer {
    /// A line has more than [`LINE_BYTES_MAX`] bytes.
    #[error("a line of more than {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// A line has control characters, or not the numbers that must follow its word.
    #[error("a line that is no answer of beanstalkd")]
    InvalidLine,
    /// No CR LF follows a body or a document.
    #[error("no line end after a job or a document")]
    MissingLineEnd,
    /// A body or a document is longer than was allowed.
    #[error("a job or a document beyond the limit")]
    TooLarge,
}

/// The first line of an answer.
enum Head<'a> {
    Line(&'a [u8]),
    Job { word: JobWord, id: u64, bytes: u64 },
    Document { bytes: u64 },
}

/// Decodes the answer at the front of `buffer`. A body or a document has at most `bytes_max` bytes.
///
/// After [`DecodedAnswer::Incomplete`], call again with the same bytes and more after them. Every
/// call reads the first line, and no body. Allocates nothing. Numbers must be written as a server
/// writes them, without leading zeros.
pub fn decode_answer(
    buffer: &[u8],
    bytes_max: usize,
) -> Result<DecodedAnswer<'_>, MalformedAnswer> {
    let allowed = buffer.get(..LINE_BYTES_MAX).unwrap_or(buffer);
    let Some(end) = line_end(allowed) else {
        return if buffer.len() < LINE_BYTES_MAX {
            Ok(DecodedAnswer::Incomplete)
        } else {
            Err(MalformedAnswer::LineTooLong)
        };
    };
    let line_bytes = end.saturating_add(CRLF.len());
    let (line, after) = (buffer.get(..end), buffer.get(line_bytes..));
    let head = head_of(line.unwrap_or_default()).ok_or(MalformedAnswer::InvalidLine)?;
    let bytes = match head {
        Head::Line(line) => {
            return Ok(DecodedAnswer::Whole { answer: Answer::Line(line), length: line_bytes });
        }
        Head::Job { bytes, .. } | Head::Document { bytes } => bytes,
    };
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= bytes_max);
    let bytes = bytes.ok_or(MalformedAnswer::TooLarge)?;
    let Some((body, after)) = after.unwrap_or_default().split_at_checked(bytes) else {
        return Ok(DecodedAnswer::Incomplete);
    };
    match after.split_at_checked(CRLF.len()) {
        None => return Ok(DecodedAnswer::Incomplete),
        Some((end, _)) if end != CRLF => return Err(MalformedAnswer::MissingLineEnd),
        Some(_) => {}
    }
    let answer = match head {
        Head::Job { word, id, .. } => Answer::Job { word, id, body },
        Head::Line(_) | Head::Document { .. } => Answer::Document(body),
    };
    let length = line_bytes.saturating_add(bytes).saturating_add(CRLF.len());
    Ok(DecodedAnswer::Whole { answer, length })
}

/// Reads the first line. Returns `None` if it is invalid.
fn head_of(line: &[u8]) -> Option<Head<'_>> {
    if line.iter().any(u8::is_ascii_control) {
        return None;
    }
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let job_word = match words.next()? {
        b"RESERVED" => JobWord::Reserved,
        b"FOUND" => JobWord::Found,
        b"OK" => {
            let bytes = number(words.next()?)?;
            return words.next().is_none().then_some(Head::Document { bytes });
        }
        _ => return Some(Head::Line(line)),
    };
    let (id, bytes) = (number(words.next()?)?, number(words.next()?)?);
    Some(Head::Job { word: job_word, id, bytes })
}

/// Reads a number that is all of a word.
fn number(word: &[u8]) -> Option<u64> {
    let is_canonical = word == b"0" || word.first() != Some(&b'0');
    let (number, rest) = digits(word)?;
    (is_canonical && rest.is_empty()).then_some(number)
}
