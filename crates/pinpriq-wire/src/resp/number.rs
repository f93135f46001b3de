//! Decimal numbers as RESP writes them: the lengths that open an element, and integers.
//!
//! Redis itself reads lengths strictly; it is many of the clients and proxies that do not. A number
//! that two readers understand differently is how a request hides inside another.

/// As many digits as any number up to `u64::MAX` has.
const DIGITS_MAX: usize = 20;

/// The digits of each number below a hundred.
const PAIRS: &[[u8; 2]] = b"\
      00010203040506070809101112131415161718192021222324252627282930313233343536373839\
      40414243444546474849505152535455565758596061626364656667686970717273747576777879\
      8081828384858687888990919293949596979899"
    .as_chunks::<2>()
    .0;

/// What stands where a length should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Length {
    /// A proper beginning of a length and its line end, and no more than that.
    Incomplete,
    /// The length, and how many bytes its digits and its line end take up.
    Whole {
        /// The length that was declared.
        value: u64,
        /// At most 22.
        width: usize,
    },
    /// No strict decimal number, or no CR LF behind it.
    Malformed,
}

/// Reads digits and CR LF from the front of `bytes`: no sign, no space, no leading zero.
///
/// Looks at no more than 22 bytes. Malformed is what no further byte could make right.
#[inline]
pub(crate) fn length(bytes: &[u8]) -> Length {
    // Nearly every length has one, two or three digits.
    match *bytes {
        [a @ b'0'..=b'9', b'\r', b'\n', ..] => Length::Whole { value: digit(a), width: 3 },
        [a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Length::Whole { value: append(digit(a), b), width: 4 }
        }
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Length::Whole { value: append(append(digit(a), b), c), width: 5 }
        }
        _ => any_length(bytes),
    }
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

/// The value of an ASCII digit.
#[inline]
fn digit(byte: u8) -> u64 {
    u64::from(byte & 0x0F)
}

/// The number with one more digit behind it. For numbers of few digits.
#[inline]
fn append(value: u64, byte: u8) -> u64 {
    value.saturating_mul(10).saturating_add(digit(byte))
}

/// Appends a type and a length, which open an element.
#[inline]
pub(crate) fn put_header(out: &mut Vec<u8>, kind: u8, length: u64) {
    let low = |number: u64| {
        let [low, ..] = number.to_le_bytes();
        b'0' | low
    };
    // Nearly every length has one, two or three digits.
    match length {
        0..=9 => out.extend_from_slice(&[kind, low(length), b'\r', b'\n']),
        10..=99 => {
            let (tens, ones) = (low(length / 10), low(length % 10));
            out.extend_from_slice(&[kind, tens, ones, b'\r', b'\n']);
        }
        100..=999 => {
            let (hundreds, tens, ones) =
                (low(length / 100), low(length / 10 % 10), low(length % 10));
            out.extend_from_slice(&[kind, hundreds, tens, ones, b'\r', b'\n']);
        }
        _ => {
            out.push(kind);
            put_unsigned(out, length);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Appends a number in decimal.
#[inline]
pub(crate) fn put_unsigned(out: &mut Vec<u8>, number: u64) {
    let mut text = [0; DIGITS_MAX];
    let mut left = number;
    let mut start = DIGITS_MAX;
    for pair in text.as_chunks_mut::<2>().0.iter_mut().rev() {
        let [two, ..] = (left % 100).to_le_bytes();
        *pair = PAIRS.get(usize::from(two)).copied().unwrap_or_default();
        start = start.saturating_sub(2);
        left /= 100;
        if left == 0 {
            start = start.saturating_add(usize::from(two < 10));
            break;
        }
    }
    out.extend_from_slice(text.get(start..).unwrap_or_default());
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
            out.clear();
            put_header(&mut out, b'$', number);
            assert_eq!(out, format!("${number}\r\n").as_bytes());
        }
        for number in 0..=1_000 {
            let mut out = Vec::new();
            put_unsigned(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
