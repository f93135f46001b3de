//! The client's side of what a server sends: bytes in, one owned [`Value`] out, in both versions of
//! the protocol.
//!
//! A value is collected as its bytes come in, so the caller can drop the bytes of a large reply
//! before its end has arrived.

use super::number::{self, Length};

/// How deep aggregates may be nested.
const DEPTH_MAX: usize = 32;
/// The longest line of a value, in bytes and without its CR LF.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The limits of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplyLimits {
    /// The most bytes of a reply on the wire.
    pub reply_bytes_max: usize,
    /// The most values in a reply, including nested values.
    pub values_max: usize,
}

impl Default for ReplyLimits {
    /// 512 MiB, 4,194,304 values.
    fn default() -> Self {
        Self { reply_bytes_max: 512 << 20, values_max: 4 << 20 }
    }
}

/// A reply or a push message, or a part of one.
///
/// Attributes are left out. Two NaN doubles are not equal.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Value {
    /// `+`: a short text without line ends. Bytes that are not UTF-8 are replaced by U+FFFD.
    Simple(String),
    /// `-` or `!`: a refusal that starts with its word. Bytes that are not UTF-8 are replaced by
    /// U+FFFD.
    Error(String),
    /// `:`
    Integer(i64),
    /// `$`: any bytes.
    Bulk(Vec<u8>),
    /// `_`, or the null bulk string or null array of RESP2.
    Null,
    /// `#`
    Boolean(bool),
    /// `,`
    Double(f64),
    /// `(`: an integer of any size, in decimal.
    BigNumber(String),
    /// `=`: text for people to read.
    Verbatim {
        /// Three letters: `txt` or `mkd`.
        format: [u8; 3],
        /// The text after the colon.
        text: Vec<u8>,
    },
    /// `*`
    Array(Vec<Self>),
    /// `%`, in the order in which the pairs were sent.
    Map(Vec<(Self, Self)>),
    /// `~`, in the order in which the elements were sent.
    Set(Vec<Self>),
    /// `>`: not a reply but a message that the server sends by itself. Its kind comes first.
    Push(Vec<Self>),
}

impl Value {
    /// Returns the bytes of a text of any kind, but not of an error.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Simple(text) | Self::BigNumber(text) => Some(text.as_bytes()),
            Self::Bulk(bytes) | Self::Verbatim { text: bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// Returns the elements of an array or a push message.
    #[must_use]
    pub fn elements(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) | Self::Push(elements) => Some(elements),
            _ => None,
        }
    }

    /// Returns the value with this name in a map, or in the array of names and values that RESP2
    /// uses instead.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Self> {
        let is_meant = |key: &Self| key.as_bytes() == Some(name.as_bytes());
        match self {
            Self::Map(pairs) => pairs.iter().find(|(key, _)| is_meant(key)).map(|(_, it)| it),
            Self::Array(flat) => {
                flat.as_chunks().0.iter().find_map(|[key, value]| is_meant(key).then_some(value))
            }
            _ => None,
        }
    }

    /// Returns the names and values of a map, or of the array of both that RESP2 uses instead.
    #[must_use]
    pub fn pairs(&self) -> Option<impl Iterator<Item = (&Self, &Self)>> {
        let (map, flat) = match self {
            Self::Map(pairs) => (&pairs[..], &[][..]),
            Self::Array(flat) if flat.len() % 2 == 0 => (&[][..], flat.as_chunks().0),
            _ => return None,
        };
        let of_map = map.iter().map(|(key, value)| (key, value));
        Some(of_map.chain(flat.iter().map(|[key, value]| (key, value))))
    }

    /// Returns an integer.
    #[must_use]
    pub const fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

/// What is at the front of a buffer. The caller drops `length` bytes from the front.
#[derive(Clone, PartialEq, Debug)]
pub enum DecodedReply {
    /// The bytes are the beginning of a valid value, but not all of it.
    Incomplete {
        /// The number of bytes of the buffer that are no longer needed. May be 0.
        length: usize,
    },
    /// The end of a value.
    Whole {
        /// The value.
        value: Value,
        /// The number of bytes of the rest of the value in the buffer.
        length: usize,
    },
}

/// The bytes are not the beginning of any value, or of one beyond the limits.
///
/// The stream cannot be read any further.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedReply {
    /// No value begins with this byte.
    #[error("no value begins with byte 0x{0:02X}")]
    UnknownType(u8),
    /// The length of a value with this first byte is not a strict decimal number.
    #[error("invalid length of a value with first byte '{}'", .0.escape_ascii())]
    InvalidLength(u8),
    /// The line of a value with this first byte is not such a value.
    #[error("invalid value with first byte '{}'", .0.escape_ascii())]
    InvalidLine(u8),
    /// CR LF is missing, or is in a wrong place.
    #[error("a line end is missing or out of place")]
    MissingLineEnd,
    /// A push message inside another value.
    #[error("a push message within another value")]
    MisplacedPush,
    /// More than 32 nested aggregates.
    #[error("more than {DEPTH_MAX} aggregates in each other")]
    TooDeep,
    /// More bytes or more values than [`ReplyLimits`] allow.
    #[error("a reply beyond the limits")]
    TooLarge,
}

/// Reads replies and push messages from a stream, one at a time.
///
/// Implements the section "RESP protocol description" of the specification, except for streamed
/// strings and aggregates, which no server sends.
#[derive(Clone, Debug)]
pub struct ReplyDecoder {
    limits: ReplyLimits,
    /// The aggregates that have begun, the outermost first.
    open: Vec<Aggregate>,
    /// The number of bytes of the line at the front of the buffer that are known to contain no line
    /// end.
    scanned: usize,
    /// The number of bytes that the current value may still have.
    bytes_left: usize,
    /// The number of values that it may still consist of.
    values_left: usize,
}

/// An aggregate whose elements have not all come yet.
#[derive(Clone, Debug)]
struct Aggregate {
    kind: Kind,
    /// At least 1.
    left: usize,
    elements: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Array,
    Map,
    Set,
    Push,
    Attribute,
}

/// What was read and what follows it, or `None` while bytes are missing.
type Found<'a, T> = Result<Option<(T, &'a [u8])>, MalformedReply>;

/// What one step of the decoder finds.
enum Piece {
    Value(Value),
    /// An aggregate of this many elements.
    Begin(Kind, usize),
}

impl ReplyDecoder {
    /// Creates a decoder at the start of a value. Allocates nothing.
    #[must_use]
    pub const fn new(limits: ReplyLimits) -> Self {
        Self {
            limits,
            open: Vec::new(),
            scanned: 0,
            bytes_left: limits.reply_bytes_max,
            values_left: limits.values_max,
        }
    }

    /// Decodes the value at the front of `buffer`, or the part of it that is there.
    ///
    /// Drop `length` bytes from the front, and call again when there are more. Over a whole stream
    /// this costs O(bytes), however they are divided, plus O(1) for each call. Allocates for
    /// elements that have arrived, never for those that are only declared.
    pub fn decode(&mut self, buffer: &[u8]) -> Result<DecodedReply, MalformedReply> {
        let mut rest = buffer;
        loop {
            let Some((piece, after)) = self.piece(rest)? else {
                let length = buffer.len().saturating_sub(rest.len());
                return Ok(DecodedReply::Incomplete { length });
            };
            let width = rest.len().saturating_sub(after.len());
            self.bytes_left = self.bytes_left.checked_sub(width).ok_or(MalformedReply::TooLarge)?;
            self.values_left = self.values_left.checked_sub(1).ok_or(MalformedReply::TooLarge)?;
            self.scanned = 0;
            rest = after;
            let value = match piece {
                Piece::Value(value) => self.add(value),
                Piece::Begin(kind, elements) => self.begin(kind, elements)?,
            };
            if let Some(value) = value {
                self.bytes_left = self.limits.reply_bytes_max;
                self.values_left = self.limits.values_max;
                let length = buffer.len().saturating_sub(rest.len());
                return Ok(DecodedReply::Whole { value, length });
            }
        }
    }

    /// Whether the stream is between two values. If the buffer is empty too, the stream may end
    /// there.
    #[must_use]
    pub const fn is_between_values(&self) -> bool {
        self.bytes_left == self.limits.reply_bytes_max
    }

    /// Begins an aggregate. Returns the whole value if nothing more is to come.
    fn begin(&mut self, kind: Kind, elements: usize) -> Result<Option<Value>, MalformedReply> {
        if kind == Kind::Push && !self.open.is_empty() {
            return Err(MalformedReply::MisplacedPush);
        }
        if elements > self.values_left {
            return Err(MalformedReply::TooLarge);
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(MalformedReply::TooDeep);
        }
        let aggregate = Aggregate { kind, left: elements, elements: Vec::new() };
        if elements == 0 {
            return Ok(aggregate.finish().and_then(|value| self.add(value)));
        }
        self.open.push(aggregate);
        Ok(None)
    }

    /// Adds a value to its aggregate. Returns the whole value if this was the last part.
    fn add(&mut self, mut value: Value) -> Option<Value> {
        while let Some(mut aggregate) = self.open.pop() {
            if aggregate.kind != Kind::Attribute {
                aggregate.elements.push(value);
            }
            aggregate.left = aggregate.left.saturating_sub(1);
            if aggregate.left > 0 {
                self.open.push(aggregate);
                return None;
            }
            value = aggregate.finish()?;
        }
        Some(value)
    }

    /// Reads one piece from the front of `buffer`, and returns what follows it.
    fn piece<'a>(&mut self, buffer: &'a [u8]) -> Found<'a, Piece> {
        let Some((kind, after)) = buffer.split_first() else { return Ok(None) };
        let aggregate = match kind {
            b'*' => Kind::Array,
            b'%' => Kind::Map,
            b'~' => Kind::Set,
            b'>' => Kind::Push,
            b'|' => Kind::Attribute,
            b'$' | b'!' | b'=' => return self.string(*kind, after),
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => {
                let Some((line, after)) = self.line(after)? else { return Ok(None) };
                let value = value_of(*kind, line).ok_or(MalformedReply::InvalidLine(*kind))?;
                return Ok(Some((Piece::Value(value), after)));
            }
            unknown => return Err(MalformedReply::UnknownType(*unknown)),
        };
        let nullable = aggregate == Kind::Array;
        let Some((length, after)) = length(*kind, after, nullable)? else { return Ok(None) };
        let Some(length) = length else { return Ok(Some((Piece::Value(Value::Null), after))) };
        let elements = match aggregate {
            Kind::Map | Kind::Attribute => length.saturating_mul(2),
            _ => length,
        };
        Ok(Some((Piece::Begin(aggregate, elements), after)))
    }

    /// Reads a string with a length.
    fn string<'a>(&self, kind: u8, after: &'a [u8]) -> Found<'a, Piece> {
        let Some((length, after)) = length(kind, after, kind == b'$')? else {
            return Ok(None);
        };
        let Some(length) = length else { return Ok(Some((Piece::Value(Value::Null), after))) };
        if length > self.bytes_left {
            return Err(MalformedReply::TooLarge);
        }
        let Some((bytes, after)) = after.split_at_checked(length) else { return Ok(None) };
        let after = match after {
            [b'\r', b'\n', after @ ..] => after,
            [] | [b'\r'] => return Ok(None),
            _ => return Err(MalformedReply::MissingLineEnd),
        };
        let value = match kind {
            b'!' => Value::Error(text_of(bytes)),
            b'=' => match bytes {
                [a, b, c, b':', text @ ..] => {
                    Value::Verbatim { format: [*a, *b, *c], text: text.to_vec() }
                }
                _ => return Err(MalformedReply::InvalidLine(kind)),
            },
            _ => Value::Bulk(bytes.to_vec()),
        };
        Ok(Some((Piece::Value(value), after)))
    }

    /// Reads a line, and records how far it has searched for its end.
    fn line<'a>(&mut self, after: &'a [u8]) -> Found<'a, &'a [u8]> {
        let rest = after.get(self.scanned..).unwrap_or_default();
        let more = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let end = self.scanned.saturating_add(more.unwrap_or(rest.len()));
        self.scanned = end;
        if end > LINE_BYTES_MAX {
            return Err(MalformedReply::TooLarge);
        }
        let Some((line, rest)) = after.split_at_checked(end) else { return Ok(None) };
        match rest {
            [b'\r', b'\n', after @ ..] => Ok(Some((line, after))),
            [] | [b'\r'] => Ok(None),
            _ => Err(MalformedReply::MissingLineEnd),
        }
    }
}

impl Default for ReplyDecoder {
    fn default() -> Self {
        Self::new(ReplyLimits::default())
    }
}

impl Aggregate {
    /// Returns the value, unless it is an attribute.
    fn finish(self) -> Option<Value> {
        Some(match self.kind {
            Kind::Attribute => return None,
            Kind::Array => Value::Array(self.elements),
            Kind::Set => Value::Set(self.elements),
            Kind::Push => Value::Push(self.elements),
            Kind::Map => {
                let mut elements = self.elements.into_iter();
                let mut pairs = Vec::new();
                while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
                    pairs.push((key, value));
                }
                Value::Map(pairs)
            }
        })
    }
}

/// Reads the length after the first byte. `None` is the null of RESP2.
fn length(kind: u8, after: &[u8], nullable: bool) -> Found<'_, Option<usize>> {
    const NULL: &[u8] = b"-1\r\n";
    if nullable {
        if let Some(rest) = after.strip_prefix(NULL) {
            return Ok(Some((None, rest)));
        }
        if NULL.starts_with(after) {
            return Ok(None);
        }
    }
    match number::length(after) {
        Length::Incomplete => Ok(None),
        Length::Malformed => Err(MalformedReply::InvalidLength(kind)),
        Length::Whole { value, width } => {
            let length = usize::try_from(value).map_err(|_| MalformedReply::TooLarge)?;
            Ok(Some((Some(length), after.get(width..).unwrap_or_default())))
        }
    }
}

/// Returns the value in a line.
fn value_of(kind: u8, line: &[u8]) -> Option<Value> {
    Some(match kind {
        b'+' => Value::Simple(text_of(line)),
        b'-' => Value::Error(text_of(line)),
        b':' => Value::Integer(str::from_utf8(line).ok()?.parse().ok()?),
        b',' => Value::Double(str::from_utf8(line).ok()?.parse().ok()?),
        b'(' => {
            let digits = line.strip_prefix(b"-").unwrap_or(line);
            let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            Value::BigNumber(is_number.then(|| text_of(line))?)
        }
        b'#' => match line {
            b"t" => Value::Boolean(true),
            b"f" => Value::Boolean(false),
            _ => return None,
        },
        b'_' if line.is_empty() => Value::Null,
        _ => return None,
    })
}

/// Converts bytes to text for people to read.
fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
