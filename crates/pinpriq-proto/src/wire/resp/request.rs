//! The server's side of a request: decodes bytes to a list of borrowed arguments.
//!
//! The decoder stores how far the request at the front of the buffer has been read, as positions
//! relative to that front. The buffer belongs to the caller.

use super::inline;
use super::number::{self, Length};

/// A list of arguments with more capacity than this is freed before the next request.
const ARGUMENTS_KEPT: usize = 256;
/// The text of an inline command is shrunk to this capacity, in bytes, before the next request.
const TEXT_KEPT: usize = 4096;
/// The bytes of an unfinished line with a length: the type, twenty digits, CR LF.
const LENGTH_LINE_BYTES: usize = 23;

/// The limits of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestLimits {
    /// The most arguments of a request, including its name. More are a protocol error.
    pub arguments_max: usize,
    /// The longest argument, in bytes. A longer one makes the command too large.
    pub bulk_bytes_max: usize,
    /// The most bytes of arguments of a command that is too large that are skipped. More are a
    /// protocol error.
    pub skipped_bytes_max: usize,
    /// The longest request, in bytes, including its framing. A longer one is too large.
    pub request_bytes_max: usize,
    /// The longest line of an inline command, in bytes and without its LF. A longer one is a
    /// protocol error.
    pub inline_bytes_max: usize,
}

impl RequestLimits {
    /// Limits for arguments of up to `bulk_bytes_max` bytes each: 16,384 arguments, 1 MiB more for
    /// the whole request, 64 MiB skipped, lines of 64 KiB.
    #[must_use]
    pub const fn for_bulks(bulk_bytes_max: usize) -> Self {
        Self {
            arguments_max: 16_384,
            bulk_bytes_max,
            skipped_bytes_max: 64 << 20,
            request_bytes_max: bulk_bytes_max.saturating_add(1 << 20),
            inline_bytes_max: 64 << 10,
        }
    }

    /// A full buffer of at least this many bytes never holds a merely incomplete request.
    #[must_use]
    pub const fn buffer_bytes_max(&self) -> usize {
        let longest = if self.request_bytes_max > self.inline_bytes_max {
            self.request_bytes_max
        } else {
            self.inline_bytes_max
        };
        longest.saturating_add(LENGTH_LINE_BYTES)
    }
}

impl Default for RequestLimits {
    /// Like [`RequestLimits::for_bulks`] with 1 MiB.
    fn default() -> Self {
        Self::for_bulks(1 << 20)
    }
}

/// What is at the front of a buffer. After everything but [`Decoded::Incomplete`], drop `length`
/// bytes from the front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// The bytes are the beginning of a valid request, but not all of it.
    Incomplete,
    /// The bytes belong to a command that is too large, and the rest of it has not arrived yet.
    Skip {
        /// The number of bytes of the buffer that are no longer needed, at least 1.
        length: usize,
    },
    /// A whole request, with at least one argument. See [`RequestDecoder::arguments`].
    Request {
        /// The number of bytes of the request in the buffer.
        length: usize,
    },
    /// A request without arguments: `*0`, `*-1`, a blank line. It gets no reply.
    Empty {
        /// The number of bytes of the request in the buffer.
        length: usize,
    },
    /// The end of a command that is too large. Refuse it; the stream continues after it.
    TooLarge {
        /// The number of bytes of the rest of the command in the buffer.
        length: usize,
        /// The argument that was too much, counted from 0.
        argument: usize,
        /// The length of that argument in bytes. If it is within the limit of an argument, the
        /// whole request became too long with it.
        bytes: usize,
    },
}

/// The bytes are not the beginning of any request.
///
/// The stream cannot be read any further. The text is what Redis writes after `-ERR Protocol error:
/// `, where Redis refuses the same. It is never longer than a line and contains no control
/// characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The number of arguments is not a strict decimal number, or is too large.
    #[error("invalid multibulk length")]
    InvalidMultibulkLength,
    /// The length of an argument is not a strict decimal number, or is beyond what is skipped.
    #[error("invalid bulk length")]
    InvalidBulkLength,
    /// An argument begins with this byte. Requests are arrays of bulk strings only.
    #[error("expected '$', got '{}'", shown(*.0))]
    ExpectedBulk(u8),
    /// No CR LF follows the bytes of an argument.
    #[error("expected CRLF after a bulk string")]
    MissingLineEnd,
    /// The quotes of an inline command do not close, or a closing quote is followed by other text.
    #[error("unbalanced quotes in request")]
    UnbalancedQuotes,
    /// The line of an inline command is too long, or has too many words.
    #[error("too big inline request")]
    TooBigInline,
    /// HTTP. Close the connection without a reply, since a reply could be taken for one of HTTP.
    #[error("a request of another protocol")]
    ForeignProtocol,
}

impl Malformed {
    /// Whether to write the text of the error before the connection is closed.
    #[must_use]
    pub const fn is_answered(self) -> bool {
        !matches!(self, Self::ForeignProtocol)
    }
}

/// Shows a byte as it is, if it has a shape.
fn shown(byte: u8) -> String {
    match byte {
        b' '..=b'~' => char::from(byte).to_string(),
        _ => byte.escape_ascii().to_string(),
    }
}

/// The position of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    /// From the front of the buffer, or of the text of an inline command.
    pub(crate) start: usize,
    /// In bytes.
    pub(crate) length: usize,
}

/// How far the request at the front of the buffer has been read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing has been read.
    Start,
    /// An inline line has been read up to the position.
    Line,
    /// Arguments have been read up to the position. The line with a length comes next.
    Header,
    /// The line with a length has been read too. This many bytes and CR LF come next.
    Body(usize),
}

/// The argument that made a command too large.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TooLarge {
    argument: usize,
    bytes: usize,
    /// The number of bytes that may still be skipped.
    budget: usize,
}

/// Reads requests from a stream, one at a time.
///
/// The decoder records how far it got, so bytes that arrive one at a time cost no more than bytes
/// that arrive together. It stores no bytes except the words of the last inline command. It keeps
/// its vectors, so it allocates nothing from one request to the next. Implements the section
/// "Sending commands to a Redis server" of the specification, and inline commands.
#[derive(Clone, Debug)]
pub struct RequestDecoder {
    limits: RequestLimits,
    phase: Phase,
    /// The number of bytes of the buffer that have been read.
    position: usize,
    /// The number of arguments that have not begun yet.
    left: usize,
    too_large: Option<TooLarge>,
    spans: Vec<Span>,
    /// Whether the spans are in `text` instead of the buffer.
    is_inline: bool,
    text: Vec<u8>,
}

impl RequestDecoder {
    /// Creates a decoder at the start of a request. Allocates nothing.
    #[must_use]
    pub const fn new(limits: RequestLimits) -> Self {
        Self {
            limits,
            phase: Phase::Start,
            position: 0,
            left: 0,
            too_large: None,
            spans: Vec::new(),
            is_inline: false,
            text: Vec::new(),
        }
    }

    /// The current limits.
    #[must_use]
    pub const fn limits(&self) -> &RequestLimits {
        &self.limits
    }

    /// Sets other limits, for the lines that have not been read yet. A client that has not
    /// authenticated yet may be allowed less.
    pub const fn set_limits(&mut self, limits: RequestLimits) {
        self.limits = limits;
    }

    /// Whether the stream is between two requests. If the buffer is empty too, the stream may end
    /// there.
    #[must_use]
    pub const fn is_between_requests(&self) -> bool {
        matches!(self.phase, Phase::Start)
    }

    /// Decodes the request at the front of `buffer`.
    ///
    /// After [`Decoded::Incomplete`], call again with the same bytes and more after them. After
    /// anything else, drop the bytes and call again. Over a whole stream this costs O(bytes),
    /// however they are divided, plus O(1) for each call. Allocates for arguments that have
    /// arrived, never for those that are only declared. After an error, close the connection.
    pub fn decode(&mut self, buffer: &[u8]) -> Result<Decoded, Malformed> {
        if self.phase == Phase::Start {
            match *buffer {
                [] => return Ok(Decoded::Incomplete),
                [b'*', ref after @ ..] => {
                    if let Some(early) = self.begin_array(after)? {
                        return Ok(early);
                    }
                }
                _ => {
                    self.forget_arguments();
                    self.phase = Phase::Line;
                }
            }
        }
        if self.phase == Phase::Line { self.decode_line(buffer) } else { self.decode_array(buffer) }
    }

    /// Whether the buffer goes on with a request that has begun as an array. Otherwise a request
    /// begins at its front.
    #[must_use]
    pub fn is_within_array(&self) -> bool {
        !matches!(self.phase, Phase::Start | Phase::Line)
    }

    /// Decodes the request at the front of `buffer` if it is of the usual form: a complete array
    /// that exceeds no limit and whose arguments fit into `room`. Returns its arguments, and its
    /// number of bytes in the buffer.
    ///
    /// Returns `None` for everything else. In that case call [`RequestDecoder::decode`], which
    /// reads any request. This is a shorter way to the same arguments, and does not change the
    /// decoder.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "every request passes here, with room of a known size"
    )]
    pub fn plain_request<'a, 'r>(
        &mut self,
        buffer: &'a [u8],
        room: &'r mut [&'a [u8]],
    ) -> Option<(&'r [&'a [u8]], usize)> {
        if self.phase != Phase::Start {
            return None;
        }
        self.forget_arguments();
        let allowed = self.allowed(buffer);
        let (count, mut rest) = number::split_header(b'*', allowed)?;
        let count = usize::try_from(count).ok()?;
        let words = room.get_mut(..count)?;
        if count == 0 || count > self.limits.arguments_max {
            return None;
        }
        for word in words.iter_mut() {
            (*word, rest) = split_bulk(rest, self.limits.bulk_bytes_max)?;
        }
        Some((words, allowed.len().saturating_sub(rest.len())))
    }

    /// Returns the arguments of the request that the last call of [`RequestDecoder::decode`] found.
    /// `buffer` must be the same.
    ///
    /// After any other outcome they have no meaning.
    #[must_use]
    #[inline]
    pub fn arguments<'a>(&'a self, buffer: &'a [u8]) -> Arguments<'a> {
        let bytes = if self.is_inline { self.text.as_slice() } else { buffer };
        Arguments { bytes, spans: &self.spans }
    }

    /// Reads the number of arguments that opens an array. Returns the outcome if there is no array
    /// to read.
    fn begin_array(&mut self, after: &[u8]) -> Result<Option<Decoded>, Malformed> {
        let (value, width) = match number::length(after) {
            Length::Incomplete => return Ok(Some(Decoded::Incomplete)),
            Length::Whole { value, width } => (value, width),
            Length::Malformed => {
                // A null array means the same as an empty one.
                const NULL: &[u8] = b"-1\r\n";
                if after.starts_with(NULL) {
                    return Ok(Some(Decoded::Empty { length: NULL.len().saturating_add(1) }));
                }
                if NULL.starts_with(after) {
                    return Ok(Some(Decoded::Incomplete));
                }
                return Err(Malformed::InvalidMultibulkLength);
            }
        };
        let length = width.saturating_add(1);
        match usize::try_from(value) {
            Ok(0) => Ok(Some(Decoded::Empty { length })),
            Ok(count) if count <= self.limits.arguments_max => {
                self.forget_arguments();
                self.left = count;
                self.position = length;
                self.phase = Phase::Header;
                Ok(None)
            }
            _ => Err(Malformed::InvalidMultibulkLength),
        }
    }

    /// Continues to read an array.
    fn decode_array(&mut self, buffer: &[u8]) -> Result<Decoded, Malformed> {
        if self.phase == Phase::Header && self.too_large.is_none() {
            self.take_whole_arguments(buffer);
        }
        loop {
            let length = match self.phase {
                Phase::Body(length) => length,
                _ if self.left == 0 => return Ok(self.finish_array()),
                _ => match self.decode_header(buffer)? {
                    Some(length) => length,
                    None => return Ok(self.wait()),
                },
            };
            if self.too_large.is_some() {
                if !self.skip_body(buffer, length)? {
                    return Ok(self.wait());
                }
                continue;
            }
            let end = self.position.saturating_add(length);
            match buffer.get(end..) {
                Some([b'\r', b'\n', ..]) => {
                    self.spans.push(Span { start: self.position, length });
                    self.position = end.saturating_add(2);
                    self.phase = Phase::Header;
                }
                None | Some([] | [b'\r']) => {
                    self.phase = Phase::Body(length);
                    return Ok(Decoded::Incomplete);
                }
                Some(_) => {
                    // Another call returns the same error.
                    self.phase = Phase::Body(length);
                    return Err(Malformed::MissingLineEnd);
                }
            }
        }
    }

    /// Takes the arguments that are complete and valid, up to the first one that is not. How to
    /// handle that one is not decided here.
    #[inline]
    fn take_whole_arguments(&mut self, buffer: &[u8]) {
        let allowed = self.allowed(buffer);
        let mut rest = allowed.get(self.position..).unwrap_or_default();
        while self.left > 0
            && let Some((argument, after)) = split_bulk(rest, self.limits.bulk_bytes_max)
        {
            let position = allowed.len().saturating_sub(after.len());
            let length = argument.len();
            let start = position.saturating_sub(length).saturating_sub(2);
            self.spans.push(Span { start, length });
            (self.position, self.left) = (position, self.left.saturating_sub(1));
            rest = after;
        }
    }

    /// Returns as much of the buffer as a request may have.
    #[inline]
    fn allowed<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        buffer.get(..self.limits.request_bytes_max).unwrap_or(buffer)
    }

    /// Reads the line with the length of an argument, if it is complete.
    #[inline]
    fn decode_header(&mut self, buffer: &[u8]) -> Result<Option<usize>, Malformed> {
        let (value, width) = match buffer.get(self.position..) {
            None | Some([]) => return Ok(None),
            Some([b'$', after @ ..]) => match number::length(after) {
                Length::Incomplete => return Ok(None),
                Length::Whole { value, width } => (value, width),
                Length::Malformed => return Err(Malformed::InvalidBulkLength),
            },
            Some([got, ..]) => return Err(Malformed::ExpectedBulk(*got)),
        };
        let Ok(length) = usize::try_from(value) else { return Err(Malformed::InvalidBulkLength) };
        let position = self.position.saturating_add(width).saturating_add(1);
        let end = position.saturating_add(length).saturating_add(2);
        if length > self.limits.bulk_bytes_max
            || end > self.limits.request_bytes_max
            || self.too_large.is_some()
        {
            self.refuse(length)?;
        }
        self.position = position;
        self.left = self.left.saturating_sub(1);
        Ok(Some(length))
    }

    /// Takes an argument of a command that is too large: the first one that is too much, or one
    /// after it.
    #[cold]
    fn refuse(&mut self, length: usize) -> Result<(), Malformed> {
        let too_large = self.too_large.unwrap_or(TooLarge {
            argument: self.spans.len(),
            bytes: length,
            budget: self.limits.skipped_bytes_max,
        });
        let Some(budget) = too_large.budget.checked_sub(length) else {
            return Err(Malformed::InvalidBulkLength);
        };
        self.too_large = Some(TooLarge { budget, ..too_large });
        Ok(())
    }

    /// Skips the available part of an argument of `length` bytes. Returns whether it was complete.
    fn skip_body(&mut self, buffer: &[u8], length: usize) -> Result<bool, Malformed> {
        let rest = buffer.get(self.position..).unwrap_or_default();
        let skipped = length.min(rest.len());
        self.position = self.position.saturating_add(skipped);
        self.phase = Phase::Body(length.saturating_sub(skipped));
        match rest.get(length..) {
            Some([b'\r', b'\n', ..]) => {
                self.position = self.position.saturating_add(2);
                self.phase = Phase::Header;
                Ok(true)
            }
            None | Some([] | [b'\r']) => Ok(false),
            Some(_) => Err(Malformed::MissingLineEnd),
        }
    }

    /// Waits for more bytes. The bytes of a command that is too large are no longer needed.
    fn wait(&mut self) -> Decoded {
        if self.too_large.is_none() || self.position == 0 {
            return Decoded::Incomplete;
        }
        let length = self.position;
        self.position = 0;
        Decoded::Skip { length }
    }

    /// Ends the array.
    fn finish_array(&mut self) -> Decoded {
        let length = self.position;
        self.phase = Phase::Start;
        self.position = 0;
        match self.too_large.take() {
            None => Decoded::Request { length },
            Some(TooLarge { argument, bytes, .. }) => Decoded::TooLarge { length, argument, bytes },
        }
    }

    /// Continues to read an inline command.
    fn decode_line(&mut self, buffer: &[u8]) -> Result<Decoded, Malformed> {
        let limit = self.limits.inline_bytes_max;
        let allowed = buffer.get(..=limit).unwrap_or(buffer);
        let rest = allowed.get(self.position..).unwrap_or_default();
        let Some(more) = rest.iter().position(|byte| *byte == b'\n') else {
            self.position = allowed.len();
            return if buffer.len() > limit {
                Err(Malformed::TooBigInline)
            } else {
                Ok(Decoded::Incomplete)
            };
        };
        let end = self.position.saturating_add(more);
        // A CR before the LF is a blank like any other.
        let line = buffer.get(..end).unwrap_or_default();
        if inline::is_foreign(line) {
            return Err(Malformed::ForeignProtocol);
        }
        self.is_inline = true;
        // Removes what a refused line has left, in case it is read again.
        self.text.clear();
        self.spans.clear();
        inline::split(line, self.limits.arguments_max, &mut self.text, &mut self.spans)?;
        self.phase = Phase::Start;
        self.position = 0;
        let length = end.saturating_add(1);
        let limit = self.limits.bulk_bytes_max;
        let longer = self.spans.iter().enumerate().find(|(_, span)| span.length > limit);
        Ok(match longer {
            Some((argument, span)) => Decoded::TooLarge { length, argument, bytes: span.length },
            None if self.spans.is_empty() => Decoded::Empty { length },
            None => Decoded::Request { length },
        })
    }

    /// Forgets the arguments of the last request, and frees memory that few requests need.
    #[inline]
    fn forget_arguments(&mut self) {
        self.spans.clear();
        if self.spans.capacity() > ARGUMENTS_KEPT {
            self.spans = Vec::new();
        }
        if self.is_inline {
            self.is_inline = false;
            self.text.clear();
            self.text.shrink_to(TEXT_KEPT);
        }
    }
}

/// Takes the bulk string at the front of `bytes`, if it is complete and has at most `longest`
/// bytes. Returns it and what follows it.
#[inline]
fn split_bulk(bytes: &[u8], longest: usize) -> Option<(&[u8], &[u8])> {
    let (length, body) = number::split_header(b'$', bytes)?;
    let (bulk, after) = body.split_at_checked(usize::try_from(length).ok()?)?;
    let (line_end, rest) = after.split_first_chunk()?;
    if bulk.len() > longest || line_end != b"\r\n" {
        return None;
    }
    Some((bulk, rest))
}

/// The arguments of a request, borrowed from the buffer.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Arguments<'a> {
    /// The number of arguments, including the name of the command.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no arguments. No request is like that.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the argument at `index`, counted from 0. The argument 0 is the name of the command.
    #[must_use]
    #[inline]
    pub fn at(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| slice(self.bytes, *span))
    }

    /// Iterates over all arguments in order.
    #[must_use]
    #[inline]
    pub fn iter(&self) -> ArgumentsIter<'a> {
        ArgumentsIter { bytes: self.bytes, spans: self.spans.iter() }
    }
}

impl<'a> IntoIterator for Arguments<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgumentsIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &Arguments<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgumentsIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// An iterator over [`Arguments`].
#[derive(Clone, Debug)]
pub struct ArgumentsIter<'a> {
    bytes: &'a [u8],
    spans: std::slice::Iter<'a, Span>,
}

impl<'a> Iterator for ArgumentsIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.spans.next().map(|span| slice(self.bytes, *span))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl DoubleEndedIterator for ArgumentsIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.spans.next_back().map(|span| slice(self.bytes, *span))
    }
}

impl ExactSizeIterator for ArgumentsIter<'_> {}

/// Returns the bytes of a span, or no bytes if the caller passed another buffer.
#[inline]
fn slice(bytes: &[u8], span: Span) -> &[u8] {
    bytes.get(span.start..span.start.saturating_add(span.length)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    //! Tests how much memory a decoder keeps, which its callers cannot see.

    use super::*;

    /// Returns an array of `count` arguments of one byte.
    fn array(count: usize) -> Vec<u8> {
        [format!("*{count}\r\n").into_bytes(), b"$1\r\na\r\n".repeat(count)].concat()
    }

    #[test]
    fn an_announced_number_takes_no_memory() {
        let mut decoder = RequestDecoder::new(RequestLimits::default());
        assert_eq!(decoder.decode(b"*16384\r\n$1048576\r\n"), Ok(Decoded::Incomplete));
        assert_eq!(decoder.spans.capacity(), 0);
        let refused = RequestDecoder::new(RequestLimits::default()).decode(b"*1000000\r\n");
        assert_eq!(refused, Err(Malformed::InvalidMultibulkLength));
    }

    #[test]
    fn memory_is_kept_if_it_is_little() {
        let mut decoder = RequestDecoder::new(RequestLimits::default());
        let (small, large) = (array(10), array(16_384));
        assert_eq!(decoder.decode(&small), Ok(Decoded::Request { length: small.len() }));
        let capacity = decoder.spans.capacity();
        assert_eq!(decoder.decode(&small), Ok(Decoded::Request { length: small.len() }));
        assert_eq!(decoder.spans.capacity(), capacity);
        assert_eq!(decoder.decode(&large), Ok(Decoded::Request { length: large.len() }));
        assert!(decoder.spans.capacity() >= 16_384);
        let mut decoders = [decoder.clone(), decoder];
        assert_eq!(decoders[0].decode(b"*1\r\n"), Ok(Decoded::Incomplete));
        assert_eq!(decoders[1].plain_request(&array(1), &mut [&[]]).map(|it| it.1), Some(11));
        assert!(decoders.iter().all(|decoder| decoder.spans.capacity() == 0));
    }

    #[test]
    fn no_byte_of_a_line_is_searched_twice() {
        let mut decoder = RequestDecoder::new(RequestLimits::default());
        assert_eq!(decoder.decode(b"PING"), Ok(Decoded::Incomplete));
        assert_eq!(decoder.position, 4);
    }

    #[test]
    fn words_of_a_line_are_forgotten() {
        let mut decoder = RequestDecoder::new(RequestLimits::default());
        let line = [b"ECHO ".to_vec(), vec![b'a'; 60_000], b"\n".to_vec()].concat();
        assert_eq!(decoder.decode(&line), Ok(Decoded::Request { length: line.len() }));
        assert!(decoder.text.capacity() >= 60_000);
        assert_eq!(decoder.decode(b"\n"), Ok(Decoded::Empty { length: 1 }));
        assert!(decoder.text.capacity() <= TEXT_KEPT);
    }
}
