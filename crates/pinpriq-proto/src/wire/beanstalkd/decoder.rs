//! The server's side of a request: bytes in, one borrowed [`Request`] out.
//!
//! The decoder finds where lines and bodies end, and skips what is not wanted. Lines are read in
//! `line.rs`. The buffer belongs to the caller.

use super::answer::Fault;
use super::line::{self, Line, PutLine, Refused};
use super::request::Request;
use super::verb::Verb;

/// The longest line, in bytes and including its CR LF.
pub const LINE_BYTES_MAX: usize = 224;

/// The bytes of a line end, which also follows a body.
pub(super) const CRLF: &[u8] = b"\r\n";

/// What is at the front of a buffer. After everything but [`Decoded::Incomplete`], drop `length`
/// bytes from the front. It is at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoded<'a> {
    /// The bytes are the beginning of a request, but not all of it.
    Incomplete,
    /// The bytes belong to a line that is too long or to a job that is too big, and the rest of it
    /// has not arrived yet.
    Skip {
        /// The number of bytes of the buffer that are no longer needed.
        length: usize,
    },
    /// A whole request.
    Request {
        /// The request, borrowed from the buffer.
        request: Request<'a>,
        /// The number of bytes of the request in the buffer.
        length: usize,
    },
    /// The end of something that is no request. Answer it; the stream continues after it.
    Fault {
        /// What is wrong. It has the answer.
        fault: Fault,
        /// The command whose counter in `stats` beanstalkd nevertheless raises.
        counts_as: Option<Verb>,
        /// The number of bytes of the rest of it in the buffer.
        length: usize,
    },
}

/// Where the stream is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Between two requests, or within one whose bytes are all in the buffer.
    Start,
    /// Within a line that is too long.
    LongLine,
    /// Within a job that is too big. This many bytes are left of it and its CR LF, at least 1.
    BigJob { bytes_left: u64 },
}

/// Reads requests from a stream, one at a time.
///
/// The decoder stores no bytes, and allocates nothing.
#[derive(Clone, Debug)]
pub struct RequestDecoder {
    job_bytes_max: u32,
    phase: Phase,
    /// Whether the line of a put has arrived, and its body has not.
    lacks_body: bool,
}

impl RequestDecoder {
    /// Creates a decoder at the start of a request. The body of a job has at most `job_bytes_max`
    /// bytes.
    #[must_use]
    pub const fn new(job_bytes_max: u32) -> Self {
        Self { job_bytes_max, phase: Phase::Start, lacks_body: false }
    }

    /// The longest body of a job, in bytes.
    #[must_use]
    pub const fn job_bytes_max(&self) -> u32 {
        self.job_bytes_max
    }

    /// A full buffer of at least this many bytes is never merely incomplete.
    #[must_use]
    pub fn buffer_bytes_max(&self) -> usize {
        let body_bytes = usize::try_from(self.job_bytes_max).unwrap_or(usize::MAX);
        body_bytes.saturating_add(LINE_BYTES_MAX).saturating_add(CRLF.len())
    }

    /// Whether nothing is being skipped. If the buffer is empty too, the stream may end there.
    #[must_use]
    pub const fn is_between_requests(&self) -> bool {
        matches!(self.phase, Phase::Start)
    }

    /// Whether the line of a put has arrived, and its body has not: for beanstalkd the put counts
    /// from here on.
    #[must_use]
    pub const fn lacks_body(&self) -> bool {
        self.lacks_body
    }

    /// Whether the body of a job that is too big is being skipped.
    #[must_use]
    pub const fn is_within_big_job(&self) -> bool {
        matches!(self.phase, Phase::BigJob { .. })
    }

    /// Decodes the request at the front of `buffer`.
    ///
    /// After [`Decoded::Incomplete`], call again with the same bytes and more after them. After
    /// anything else, drop the bytes and call again. A call reads one line, of at most
    /// [`LINE_BYTES_MAX`] bytes, or finds the end of a longer one in bytes that no further call
    /// reads again. It does not read a body.
    #[inline]
    pub fn decode<'a>(&mut self, buffer: &'a [u8]) -> Decoded<'a> {
        match self.phase {
            Phase::Start => self.decode_line(buffer),
            Phase::LongLine => self.skip_line(buffer),
            Phase::BigJob { bytes_left } => self.skip_job(buffer, 0, bytes_left),
        }
    }

    #[inline]
    fn decode_line<'a>(&mut self, buffer: &'a [u8]) -> Decoded<'a> {
        let allowed = buffer.get(..LINE_BYTES_MAX).unwrap_or(buffer);
        let Some(end) = line_end(allowed) else {
            if buffer.len() < LINE_BYTES_MAX {
                return Decoded::Incomplete;
            }
            self.phase = Phase::LongLine;
            return self.skip_line(buffer);
        };
        let length = end.saturating_add(CRLF.len());
        let line = buffer.get(..end).unwrap_or_default();
        // beanstalkd looks no further than the first CR, and would not find the end of this line.
        if line.contains(&b'\r') {
            return Decoded::Fault { fault: Fault::BadFormat, counts_as: None, length };
        }
        match line::read(line) {
            Ok(Line::Request(request)) => Decoded::Request { request, length },
            Ok(Line::Put(put)) => self.decode_put(buffer, length, put),
            Err(Refused { fault, counts_as }) => Decoded::Fault { fault, counts_as, length },
        }
    }

    /// Reads a put, whose line has `line_bytes` bytes.
    #[inline]
    fn decode_put<'a>(&mut self, buffer: &'a [u8], line_bytes: usize, put: PutLine) -> Decoded<'a> {
        let PutLine { priority, delay_s, ttr_s, body_bytes, is_continued } = put;
        let fault = |fault, length| Decoded::Fault { fault, counts_as: Some(Verb::Put), length };
        if body_bytes > self.job_bytes_max {
            let bytes_left = u64::from(body_bytes).saturating_add(2);
            return self.skip_job(buffer, line_bytes, bytes_left);
        }
        if is_continued {
            // What follows is read as requests, even if it was meant as a body.
            return fault(Fault::BadFormat, line_bytes);
        }
        let body_bytes = usize::try_from(body_bytes).unwrap_or(usize::MAX);
        let after = buffer.get(line_bytes..).unwrap_or_default();
        let whole = after.split_at_checked(body_bytes);
        let whole =
            whole.and_then(|(body, after)| Some((body, after.split_at_checked(CRLF.len())?.0)));
        self.lacks_body = whole.is_none();
        let Some((body, end)) = whole else { return Decoded::Incomplete };
        let length = line_bytes.saturating_add(body_bytes).saturating_add(CRLF.len());
        if end != CRLF {
            return fault(Fault::ExpectedCrlf, length);
        }
        Decoded::Request { request: Request::Put { priority, delay_s, ttr_s, body }, length }
    }

    /// Skips the available part of a line that is too long.
    #[cold]
    fn skip_line<'a>(&mut self, buffer: &[u8]) -> Decoded<'a> {
        if let Some(end) = line_end(buffer) {
            self.phase = Phase::Start;
            let length = end.saturating_add(CRLF.len());
            return Decoded::Fault { fault: Fault::BadFormat, counts_as: None, length };
        }
        // The last byte may be half of the line end.
        let is_halved = buffer.last() == Some(&b'\r');
        skip(buffer.len().saturating_sub(usize::from(is_halved)))
    }

    /// Skips the available part of a job that is too big, after `before` bytes that are done.
    #[cold]
    fn skip_job<'a>(&mut self, buffer: &[u8], before: usize, bytes_left: u64) -> Decoded<'a> {
        let available = buffer.len().saturating_sub(before);
        let skipped = usize::try_from(bytes_left).unwrap_or(usize::MAX).min(available);
        let length = before.saturating_add(skipped);
        let bytes_left = bytes_left.saturating_sub(u64::try_from(skipped).unwrap_or(u64::MAX));
        if bytes_left > 0 {
            self.phase = Phase::BigJob { bytes_left };
            return skip(length);
        }
        self.phase = Phase::Start;
        Decoded::Fault { fault: Fault::JobTooBig, counts_as: Some(Verb::Put), length }
    }
}

/// Drops these bytes, if there are any.
const fn skip<'a>(length: usize) -> Decoded<'a> {
    if length == 0 { Decoded::Incomplete } else { Decoded::Skip { length } }
}

/// Returns where the first CR LF begins.
#[inline]
pub(super) fn line_end(bytes: &[u8]) -> Option<usize> {
    let mut from = 0_usize;
    loop {
        let rest = bytes.get(from..)?;
        let more = rest.iter().position(|byte| *byte == b'\n')?;
        let line_feed = from.saturating_add(more);
        let before = line_feed.checked_sub(1);
        if let Some(end) = before.filter(|before| bytes.get(*before) == Some(&b'\r')) {
            return Some(end);
        }
        from = line_feed.saturating_add(1);
    }
}
