//! RESP replies, read in place: nothing is copied, and no state is kept between two readings.
//!
//! `pinpriq-proto` has the decoder for clients, which reads replies of any shape and size into
//! owned values. Here every reply is small and its shape known, so its parts are borrowed one by
//! one, and an incomplete reply is read again from its start.

use crate::dialect::{Answer, Outcome};

/// One part of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part<'a> {
    /// `+`
    Simple(&'a [u8]),
    /// `-`
    Error(&'a [u8]),
    /// `:`
    Integer(i64),
    /// `$`
    Bulk(&'a [u8]),
    /// A bulk string or an array that is null.
    Null,
    /// `*`: this number of parts follow.
    Array(usize),
}

/// Why a part could not be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Missing {
    /// There are not enough bytes yet.
    Bytes,
    /// The bytes are not what was expected.
    Sense(String),
}

/// The parts at the front of some bytes.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    /// The parts of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { all: bytes, rest: bytes }
    }

    /// Returns how many bytes have been read.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.all.len() - self.rest.len()
    }

    /// Reads the next part.
    pub fn part(&mut self) -> Result<Part<'a>, Missing> {
        let (kind, after) = self.rest.split_first().ok_or(Missing::Bytes)?;
        let (line, after) = line(after)?;
        self.rest = after;
        Ok(match kind {
            b'+' => Part::Simple(line),
            b'-' => Part::Error(line),
            b':' => Part::Integer(number(line)?),
            b'$' | b'*' if line == b"-1" => Part::Null,
            b'*' => Part::Array(length(line)?),
            b'$' => {
                let (bytes, after) =
                    self.rest.split_at_checked(length(line)?).ok_or(Missing::Bytes)?;
                self.rest = match after {
                    [b'\r', b'\n', rest @ ..] => rest,
                    [] | [b'\r'] => return Err(Missing::Bytes),
                    _ => return Err(unexpected("a bulk string without its line end")),
                };
                Part::Bulk(bytes)
            }
            other => return Err(unexpected(&format!("a reply with '{}'", other.escape_ascii()))),
        })
    }

    /// Returns the answer that these parts form, after they have been read as far as possible.
    pub fn answer(&self, outcome: Result<Outcome<'a>, Missing>) -> Result<Answer<'a>, String> {
        match outcome {
            Ok(outcome) => Ok(Answer::Whole { outcome, length: self.length() }),
            Err(Missing::Bytes) => Ok(Answer::Incomplete),
            Err(Missing::Sense(sentence)) => Err(sentence),
        }
    }

    /// Reads a bulk string.
    pub fn bulk(&mut self) -> Result<&'a [u8], Missing> {
        match self.part()? {
            Part::Bulk(bytes) => Ok(bytes),
            other => Err(unexpected(&format!("{other:?} instead of a bulk string"))),
        }
    }
}

/// Returns the error for an answer that makes no sense.
#[must_use]
pub fn unexpected(what: &str) -> Missing {
    Missing::Sense(format!("unexpected answer: {what}"))
}

/// Returns the bytes before the first CR LF, and those after it.
fn line(bytes: &[u8]) -> Result<(&[u8], &[u8]), Missing> {
    let end = bytes.iter().position(|byte| *byte == b'\r').ok_or(Missing::Bytes)?;
    let (line, rest) = bytes.split_at_checked(end).ok_or(Missing::Bytes)?;
    match rest {
        [b'\r', b'\n', rest @ ..] => Ok((line, rest)),
        [b'\r'] => Err(Missing::Bytes),
        _ => Err(unexpected("a line end that is none")),
    }
}

fn length(line: &[u8]) -> Result<usize, Missing> {
    usize::try_from(number(line)?).map_err(|_| unexpected("a length below zero"))
}

fn number(line: &[u8]) -> Result<i64, Missing> {
    let (negative, digits) = match line {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(unexpected("a number that is none"));
    }
    let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Ok(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::{Missing, Part, Parts};

    #[test]
    fn parts_are_read_one_by_one() {
        let mut parts = Parts::new(b"*2\r\n$3\r\na\rb\r\n:-12\r\n+OK\r\n-ERR no\r\n$-1\r\n");
        let expected = [
            Part::Array(2),
            Part::Bulk(b"a\rb"),
            Part::Integer(-12),
            Part::Simple(b"OK"),
            Part::Error(b"ERR no"),
            Part::Null,
        ];
        for part in expected {
            assert_eq!(parts.part(), Ok(part));
        }
        assert_eq!(parts.length(), 38);
        assert_eq!(parts.part(), Err(Missing::Bytes));
    }

    #[test]
    fn every_beginning_is_incomplete() {
        for whole in [&b"$3\r\nabc\r\n"[..], b"+OK\r\n", b"*1\r\n", b":17\r\n"] {
            for end in 0..whole.len() {
                assert_eq!(Parts::new(&whole[..end]).part(), Err(Missing::Bytes), "{end}");
            }
            assert!(Parts::new(whole).part().is_ok());
        }
    }

    #[test]
    fn nonsense_is_told() {
        for bytes in [&b"x\r\n"[..], b"$x\r\n", b"$1\r\nabc", b":\r\n", b"+a\rb", b"*-2\r\n"] {
            assert!(matches!(Parts::new(bytes).part(), Err(Missing::Sense(_))), "{bytes:?}");
        }
    }
}
