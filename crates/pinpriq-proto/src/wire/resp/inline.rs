//! Inline commands: splits a line that a person types into a terminal into words.
//!
//! Does the same as `sdssplitargs` of Redis, with one difference: a NUL byte is like any other
//! byte.

use super::request::{Malformed, Span};

/// Splits a line into its words.
///
/// Each word is at most as long as its written form, so `text` never grows by more than the length
/// of the line.
pub(crate) fn split(
    line: &[u8],
    words_max: usize,
    text: &mut Vec<u8>,
    spans: &mut Vec<Span>,
) -> Result<(), Malformed> {
    let mut rest = without_blanks(line);
    while !rest.is_empty() {
        if spans.len() >= words_max {
            return Err(Malformed::TooBigInline);
        }
        let start = text.len();
        rest = without_blanks(word(rest, text)?);
        spans.push(Span { start, length: text.len().saturating_sub(start) });
    }
    Ok(())
}

/// Whether the line opens a request of HTTP, or is a header of one.
///
/// A browser can be made to send such lines to any port, with commands in their body. Implements
/// the rule of Redis since 3.2.7, and one more: a line that ends in a version of HTTP is foreign
/// too, since `PUT /jobs HTTP/1.1` would otherwise be a command.
pub(crate) fn is_foreign(line: &[u8]) -> bool {
    let line = without_blanks(line);
    let first = line.split(|byte| is_blank(*byte)).next().unwrap_or_default();
    let last = line.split(|byte| is_blank(*byte)).rfind(|word| !word.is_empty());
    first.eq_ignore_ascii_case(b"POST")
        || first.eq_ignore_ascii_case(b"Host:")
        || last.is_some_and(|word| word.starts_with(b"HTTP/1."))
}

/// Returns the line without the blanks at its front.
fn without_blanks(mut line: &[u8]) -> &[u8] {
    while let [byte, after @ ..] = line
        && is_blank(*byte)
    {
        line = after;
    }
    line
}

/// Whether `isspace` of C accepts this byte.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r')
}

/// Appends the word at the front of `rest`, and returns what follows it.
fn word<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Malformed> {
    while let [byte, after @ ..] = rest {
        match byte {
            // Fewer bytes than separate words, as in Redis.
            b' ' | b'\n' | b'\r' | b'\t' => break,
            b'"' => return double_quoted(after, text),
            b'\'' => return single_quoted(after, text),
            byte => text.push(*byte),
        }
        rest = after;
    }
    Ok(rest)
}

/// Appends everything before the closing `"`, and returns what follows it.
fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Malformed> {
    loop {
        let (byte, after) = match rest {
            [] => return Err(Malformed::UnbalancedQuotes),
            [b'"', after @ ..] => return closed(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (nibble(*high).wrapping_shl(4) | nibble(*low), after)
            }
            [b'\\', escaped, after @ ..] => (unescaped(*escaped), after),
            [byte, after @ ..] => (*byte, after),
        };
        text.push(byte);
        rest = after;
    }
}

/// Appends everything before the closing `'`, and returns what follows it.
fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Malformed> {
    loop {
        let (byte, after) = match rest {
            [] => return Err(Malformed::UnbalancedQuotes),
            [b'\'', after @ ..] => return closed(after),
            [b'\\', b'\'', after @ ..] => (b'\'', after),
            [byte, after @ ..] => (*byte, after),
        };
        text.push(byte);
        rest = after;
    }
}

/// A closing quote ends its word, so a blank or the end of the line must follow.
fn closed(rest: &[u8]) -> Result<&[u8], Malformed> {
    match rest.first() {
        Some(byte) if !is_blank(*byte) => Err(Malformed::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

/// Returns the byte that a letter after a backslash stands for.
fn unescaped(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        itself => itself,
    }
}

/// The value of a hexadecimal digit.
fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit & 0x0F,
        letter => (letter & 0x0F).wrapping_add(9),
    }
}
