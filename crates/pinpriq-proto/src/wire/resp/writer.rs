//! The pieces of replies, for both versions of the protocol, and commands.
//!
//! Types that RESP2 does not have are written as Redis writes them to clients of RESP2.

use std::fmt::{self, Write};

use super::number::{put_bulk_number, put_bulk_numbers, put_header, put_signed};

/// The start of a verbatim string that is plain text.
const VERBATIM_FORMAT: &[u8] = b"txt:";

/// The version of the protocol that a connection speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Protocol {
    /// Every connection starts with this version.
    #[default]
    Resp2,
    /// `HELLO 3` selects this version.
    Resp3,
}

/// Appends replies to a buffer, piece by piece.
///
/// An aggregate is opened with the number of its elements, and this many must follow. Costs one
/// copy of what is written. Allocates nothing except for the growth of the buffer. Implements the
/// section "RESP protocol description" of the specification.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
}

impl<'a> Writer<'a> {
    /// Creates a writer that appends to `out`.
    #[must_use]
    pub const fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    /// The number of bytes in the buffer, including those that were there before.
    #[must_use]
    pub const fn buffer_bytes(&self) -> usize {
        self.out.len()
    }

    /// The version that is written.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Writes a simple string, `+text`. Control characters are replaced by spaces.
    pub fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        OneLine(self.out).put(text);
        self.end_line();
    }

    /// Writes the simple string `OK`, the usual reply without a result.
    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// Writes an error, `-WORD sentence`. Control characters are replaced by spaces, so that no
    /// text of a client can end the line.
    pub fn error(&mut self, word: &str, sentence: impl fmt::Display) {
        self.out.push(b'-');
        // Writing into memory fails only if formatting the text fails. In that case the line ends
        // there.
        let _ = write!(OneLine(self.out), "{word} {sentence}");
        self.end_line();
    }

    /// Writes an integer.
    pub fn integer(&mut self, number: i64) {
        self.out.push(b':');
        put_signed(self.out, number);
        self.end_line();
    }

    /// Writes a bulk string: any bytes.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        put_bulk(self.out, bytes);
    }

    /// Writes a bulk string that contains a number in decimal.
    #[inline]
    pub fn bulk_number(&mut self, number: u64) {
        put_bulk_number(self.out, number);
    }

    /// Writes a bulk string with up to three numbers in decimal, with `separator` between them.
    #[inline]
    pub fn bulk_numbers<const COUNT: usize>(&mut self, numbers: &[u64; COUNT], separator: u8) {
        put_bulk_numbers(self.out, numbers, separator);
    }

    /// Writes a text for people to read. RESP2: a bulk string.
    pub fn verbatim(&mut self, text: &str) {
        if self.protocol == Protocol::Resp2 {
            return self.bulk(text.as_bytes());
        }
        self.header(b'=', length_of(text.len().saturating_add(VERBATIM_FORMAT.len())));
        self.out.extend_from_slice(VERBATIM_FORMAT);
        self.out.extend_from_slice(text.as_bytes());
        self.end_line();
    }

    /// Writes null in place of a string or a number. RESP2: the null bulk string.
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes null in place of an array. RESP2: the null array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes true or false. RESP2: the integer 1 or 0.
    pub fn boolean(&mut self, truth: bool) {
        self.out.extend_from_slice(match (self.protocol, truth) {
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp2, false) => b":0\r\n",
            (Protocol::Resp3, true) => b"#t\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
        });
    }

    /// Opens an array of this many elements.
    #[inline]
    pub fn array(&mut self, elements: usize) {
        self.header(b'*', length_of(elements));
    }

    /// Opens a map of this many pairs. RESP2: an array of twice as many elements.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(pairs.saturating_mul(2)),
            Protocol::Resp3 => self.header(b'%', length_of(pairs)),
        }
    }

    /// Opens a push message of this many elements, including its kind. RESP2: an array.
    pub fn push(&mut self, elements: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(elements),
            Protocol::Resp3 => self.header(b'>', length_of(elements)),
        }
    }

    /// Opens an attribute of this many pairs, which comes before the reply that it describes.
    /// Returns whether the protocol has attributes. RESP2 does not: nothing is written, and the
    /// pairs must be left out.
    #[must_use]
    pub fn attribute(&mut self, pairs: usize) -> bool {
        let has_attributes = self.protocol == Protocol::Resp3;
        if has_attributes {
            self.header(b'|', length_of(pairs));
        }
        has_attributes
    }

    /// Writes a type and a length.
    #[inline]
    fn header(&mut self, kind: u8, length: u64) {
        put_header(self.out, kind, length);
    }

    fn end_line(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Text without control characters.
struct OneLine<'a>(&'a mut Vec<u8>);

impl OneLine<'_> {
    fn put(&mut self, text: &str) {
        let plain = |byte: u8| if byte.is_ascii_control() { b' ' } else { byte };
        self.0.extend(text.bytes().map(plain));
    }
}

impl Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text);
        Ok(())
    }
}

/// Appends a command: an array of bulk strings.
///
/// A command needs at least one argument, its name, to get a reply. Implements the section "Sending
/// commands to a Redis server" of the specification.
pub fn put_command(out: &mut Vec<u8>, arguments: &[&[u8]]) {
    put_header(out, b'*', length_of(arguments.len()));
    for argument in arguments {
        put_bulk(out, argument);
    }
}

/// Appends one word of a command that is built from parts. The word itself is given in pieces.
#[inline]
pub fn put_word(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    put_header(out, b'$', length_of(pieces.iter().map(|piece| piece.len()).sum()));
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a bulk string.
#[inline]
fn put_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    put_header(out, b'$', length_of(bytes.len()));
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Converts a length to `u64`. No length in memory exceeds it.
fn length_of(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
