//! Decimal numbers in RESP: the lengths that open an element, and integers.
//!
//! Redis itself reads lengths strictly, but many clients and proxies do not. If two readers
//! understand a number differently, one request can hide inside another.

/// The number of digits of `u64::MAX`.
const DIGITS_MAX: usize = 20;

/// The digits of each number below a hundred.
const PAIRS: &[[u8; 2]] = b"\
      00010203040506070809101112131415161718192021222324252627282930313233343536373839\
      40414243444546474849505152535455565758596061626364656667686970717273747576777879\
      8081828384858687888990919293949596979899"
    .as_chunks::<2>()
    .0;

/// What is at the place of a length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Length {
    /// The beginning of a valid length and its line end, but not all of it.
    Incomplete,
    /// The length, and the number of bytes of its digits and its line end.
    Whole {
        /// The length that was declared.
        value: u64,
        /// The number of bytes, at most 22.
        width: usize,
    },
    /// Not a strict decimal number, or no CR LF after it.
    Malformed,
}

/// Reads digits and CR LF from the front of `bytes`: no sign, no space, no leading zero.
///
/// Reads at most 22 bytes. `Malformed` means that no further byte could make it valid.
#[inline]
pub(crate) fn length(bytes: &[u8]) -> Length {
    match usual_length(bytes) {
        Some((value, rest)) => {
            Length::Whole { value, width: bytes.len().saturating_sub(rest.len()) }
        }
        None => any_length(bytes),
    }
}

/// Reads a length of one, two or three digits, the usual case, and returns what follows it. Returns
/// `None` for other lengths, and for anything that is not a length.
#[inline]
fn usual_length(bytes: &[u8]) -> Option<(u64, &[u8])> {
    match bytes {
        [a @ b'0'..=b'9', b'\r', b'\n', rest @ ..] => Some((digit(*a), rest)),
        [a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', b'\n', rest @ ..] => {
            Some((append(digit(*a), *b), rest))
        }
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b'\r', b'\n', rest @ ..] => {
            Some((append(append(digit(*a), *b), *c), rest))
        }
        _ => None,
    }
}

/// Reads a type and a length that are complete, and returns the length and what follows it.
#[inline]
pub(crate) fn split_header(kind: u8, bytes: &[u8]) -> Option<(u64, &[u8])> {
    if let Some((header, rest)) = bytes.split_first_chunk() {
        // All four bytes at once: only the digit may differ from this header.
        let zero = u32::from_le_bytes([kind, b'0', b'\r', b'\n']);
        let digit = (u32::from_le_bytes(*header) ^ zero).rotate_right(8);
        if digit <= 9 {
            return Some((u64::from(digit), rest));
        }
    }
    split_header_of_hundreds(kind, bytes).or_else(|| split_other_header(kind, bytes))
}

/// Reads a type and a length of three digits, if at least two bytes follow. Most payloads have such
/// a length.
#[inline]
fn split_header_of_hundreds(kind: u8, bytes: &[u8]) -> Option<(u64, &[u8])> {
    /// The bits of each byte that show whether it is more than nine, once [`MORE_THAN_NINE`] is
    /// added: then the highest is set. A byte above 127 has it already.
    const HIGHEST: u32 = 0x0080_8080;
    const MORE_THAN_NINE: u32 = 0x0076_7676;
    let [front @ .., _, _] = bytes.first_chunk::<8>()?;
    let [first, a, b, c, carriage, line] = *front;
    let digits = u32::from_le_bytes([a, b, c, 0]) ^ u32::from_le_bytes(*b"000\0");
    let is_other = (digits.wrapping_add(MORE_THAN_NINE) | digits) & HIGHEST != 0;
    if first != kind || [carriage, line] != *b"\r\n" || is_other || a == b'0' {
        return None;
    }
    Some((append(append(digit(a), b), c), bytes.get(front.len()..)?))
}

/// Reads any other type and length. It is a function of its own so that the usual ones are read
/// where they are needed.
#[inline(never)]
fn split_other_header(kind: u8, bytes: &[u8]) -> Option<(u64, &[u8])> {
    split_header_of_tens(kind, bytes).or_else(|| split_long_header(kind, bytes))
}

/// Reads a type and a length of two digits. Many names, ids and values have such a length.
#[inline]
fn split_header_of_tens(kind: u8, bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&[first, a, b, carriage, line], rest) = bytes.split_first_chunk()?;
    let is_length = matches!(a, b'1'..=b'9') && b.is_ascii_digit();
    if first != kind || [carriage, line] != *b"\r\n" || !is_length {
        return None;
    }
    Some((append(digit(a), b), rest))
}

/// Reads a type and a length of more than one digit.
fn split_long_header(kind: u8, bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (_, after) = bytes.split_first().filter(|(first, _)| **first == kind)?;
    usual_length(after).or_else(|| match any_length(after) {
        Length::Whole { value, width } => Some((value, after.get(width..)?)),
        Length::Incomplete | Length::Malformed => None,
    })
}

/// Reads a length of any number of digits.
fn any_length(bytes: &[u8]) -> Length {
    let mut value = 0_u64;
    let mut rest = bytes;
    for digits in 0..=DIGITS_MAX {
        match *rest {
            [] | [b'\r'] if digits > 0 || rest.is_empty() => return Length::Incomplete,
            [b'\r', b'\n', ..] if digits > 0 => {
                return Length::Whole { value, width: digits.saturating_add(2) };
            }
            [b'0', ref after @ ..] if digits == 0 => {
                // Only the line end may follow.
                return match *after {
                    [] | [b'\r'] => Length::Incomplete,
                    [b'\r', b'\n', ..] => Length::Whole { value: 0, width: 3 },
                    _ => Length::Malformed,
                };
            }
            [byte @ b'0'..=b'9', ref after @ ..] => {
                let Some(more) =
                    value.checked_mul(10).and_then(|tens| tens.checked_add(digit(byte)))
                else {
                    return Length::Malformed;
                };
                value = more;
                rest = after;
            }
            _ => return Length::Malformed,
        }
    }
    Length::Malformed
}

/// Returns the value of an ASCII digit.
#[inline]
fn digit(byte: u8) -> u64 {
    u64::from(byte & 0x0F)
}

/// Appends one digit to the number. For numbers of few digits.
#[inline]
fn append(value: u64, byte: u8) -> u64 {
    value.saturating_mul(10).saturating_add(digit(byte))
}

/// Appends a type and a length, which open an element.
#[inline]
pub(crate) fn put_header(out: &mut Vec<u8>, kind: u8, length: u64) {
    match length {
        0..=9 => out.extend_from_slice(&[kind, low_digit(length), b'\r', b'\n']),
        _ => put_long_header(out, kind, length),
    }
}

/// Appends a type and a length of more than one digit.
fn put_long_header(out: &mut Vec<u8>, kind: u8, length: u64) {
    // Nearly every length has two or three digits.
    let (tens, ones) = (low_digit(length / 10 % 10), low_digit(length % 10));
    match length {
        0..=99 => out.extend_from_slice(&[kind, tens, ones, b'\r', b'\n']),
        100..=999 => {
            out.extend_from_slice(&[kind, low_digit(length / 100), tens, ones, b'\r', b'\n']);
        }
        _ => {
            out.push(kind);
            put_unsigned(out, length);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Returns the digit of a number below ten.
#[inline]
const fn low_digit(number: u64) -> u8 {
    let [low, ..] = number.to_le_bytes();
    b'0' | low
}

/// Appends a number in decimal.
#[inline]
pub(crate) fn put_unsigned(out: &mut Vec<u8>, number: u64) {
    let mut text = [0; DIGITS_MAX];
    let start = put_last(&mut text, number).len();
    out.extend_from_slice(text.get(start..).unwrap_or_default());
}

/// Appends a bulk string that contains a number in decimal.
#[inline]
pub(crate) fn put_bulk_number(out: &mut Vec<u8>, number: u64) {
    /// The length of a number, a header of two digits, and two line ends.
    const BYTES_MAX: usize = DIGITS_MAX + 3 + 2 + 2;
    /// A copy of a fixed length is faster than one of the right length, even if some of it is then
    /// taken back. So there is room behind the text.
    const COPIED: usize = 32;
    const { assert!(BYTES_MAX <= COPIED) };
    let mut text = [0; BYTES_MAX + COPIED];
    let Some(room) = text.first_chunk_mut::<BYTES_MAX>() else { return };
    let mut left = put_last(put_last_bytes(room, *b"\r\n"), number);
    let length = BYTES_MAX.saturating_sub(left.len()).saturating_sub(2);
    let [low, ..] = length.to_le_bytes();
    left = if length < 10 {
        put_last_bytes(left, [b'$', b'0' | low, b'\r', b'\n'])
    } else {
        let [tens, ones] = PAIRS.get(length).copied().unwrap_or_default();
        put_last_bytes(left, [b'$', tens, ones, b'\r', b'\n'])
    };
    let start = left.len();
    let end = out.len().saturating_add(BYTES_MAX.saturating_sub(start));
    if let Some(copied) = text.get(start..).and_then(<[u8]>::first_chunk::<COPIED>) {
        out.extend_from_slice(copied);
        out.truncate(end);
    }
}

/// Appends a bulk string of up to three numbers in decimal, with `separator` between them.
#[inline]
pub(crate) fn put_bulk_numbers<const COUNT: usize>(
    out: &mut Vec<u8>,
    numbers: &[u64; COUNT],
    separator: u8,
) {
    /// The length of three numbers, two separators, a header of two digits, and a line end.
    const BYTES_MAX: usize = 3 * DIGITS_MAX + 2 + 5 + 2;
    const { assert!(COUNT <= 3) };
    // Everything is written from its end, since digits come in that order, and the header contains
    // their number.
    let mut text = [0; BYTES_MAX];
    let mut room = put_last_bytes(&mut text, *b"\r\n");
    let end = room.len();
    for (index, number) in numbers.iter().enumerate().rev() {
        room = put_last(room, *number);
        if index > 0 {
            room = put_last_bytes(room, [separator]);
        }
    }
    let length = end.saturating_sub(room.len());
    room = put_last_bytes(room, *b"\r\n");
    room = put_last(room, u64::try_from(length).unwrap_or(u64::MAX));
    let start = put_last_bytes(room, *b"$").len();
    out.extend_from_slice(text.get(start..).unwrap_or_default());
}

/// Writes a number in decimal at the end of `room`, and returns the room before it.
#[inline]
fn put_last(mut room: &mut [u8], number: u64) -> &mut [u8] {
    let mut left = number;
    while left >= 10 {
        let [pair, ..] = (left % 100).to_le_bytes();
        room = put_last_bytes(room, PAIRS.get(usize::from(pair)).copied().unwrap_or_default());
        left /= 100;
        if left == 0 {
            return room;
        }
    }
    put_last_bytes(room, [low_digit(left)])
}

/// Writes bytes at the end of `room`, which must be large enough, and returns the room before them.
#[inline]
fn put_last_bytes<const COUNT: usize>(room: &mut [u8], bytes: [u8; COUNT]) -> &mut [u8] {
    let Some((before, last)) = room.split_last_chunk_mut() else { return &mut [] };
    *last = bytes;
    before
}

/// Appends a number in decimal, with a minus sign if it has one.
#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    put_unsigned(out, number.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_are_written_as_the_standard_library_does() {
        let powers = std::iter::successors(Some(1_u64), |power| power.checked_mul(10));
        let around = powers.flat_map(|power| [power - 1, power, power + 1, power.wrapping_mul(7)]);
        for number in around.chain([u64::MAX]) {
            let mut out = Vec::new();
            put_unsigned(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
            let length = out.len();
            out.clear();
            put_header(&mut out, b'$', number);
            assert_eq!(out, format!("${number}\r\n").as_bytes());
            put_bulk_number(&mut out, number);
            assert_eq!(out, format!("${number}\r\n${length}\r\n{number}\r\n").as_bytes());
        }
        for number in 0..=1_000 {
            let mut out = Vec::new();
            put_unsigned(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }

    #[test]
    fn headers_of_any_bytes_are_read_alike_on_the_short_way() {
        let rest = b"..".as_slice();
        for number in [0, 5, 9, 10, 47, 99, 100, 102, 389, 999, 1_000, 12_345] {
            let header = format!("${number}\r\n..");
            assert_eq!(split_header(b'$', header.as_bytes()), Some((number, rest)), "{header:?}");
            for (at, _) in header.bytes().enumerate().take(header.len() - 2) {
                for byte in 0..=u8::MAX {
                    let mut other = header.clone().into_bytes();
                    other[at] = byte;
                    let read = split_header(b'$', &other);
                    assert_eq!(read, split_long_header(b'$', &other), "{other:?}");
                }
            }
        }
    }
}
