//! Decimal numbers as RESP writes them: the lengths that open an element, and integers.
//!
//! Redis itself reads lengths strictly; it is many of the clients and proxies that do not. A number
//! that two readers understand differently is how a request hides inside another.

/// As many digits as any number up to `u64::MAX` has.
const DIGITS_MAX: usize = 20;

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

/// Appends a number in decimal.
#[inline]
pub(crate) fn put_unsigned(out: &mut Vec<u8>, number: u64) {
    if let Ok(small @ 0..=9) = u8::try_from(number) {
        out.push(b'0' | small);
        return;
    }
    let mut digits = [0; DIGITS_MAX];
    let mut left = number;
    let mut start = DIGITS_MAX;
    for slot in digits.iter_mut().rev() {
        *slot = b'0' | u8::try_from(left % 10).unwrap_or_default();
        start = start.saturating_sub(1);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
}

/// Appends a number in decimal, with a minus sign if it has one.
#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    put_unsigned(out, number.unsigned_abs());
}
