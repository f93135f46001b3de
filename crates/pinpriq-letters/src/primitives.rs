//! Numbers and texts as bytes, and back.
//!
//! A number has one form only, the shortest. What numbers and texts mean is not known here, except
//! for moments and durations, which the engine makes of numbers.

use pinpriq_engine::time::{Span, Timestamp};

use crate::Malformed;

#[inline]
pub(crate) fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_number(out, (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned());
}

#[inline]
pub(crate) fn put_moment(out: &mut Vec<u8>, moment: Timestamp) {
    put_number(out, moment.ms());
}

#[inline]
pub(crate) fn put_span(out: &mut Vec<u8>, span: Span) {
    put_number(out, span.ms());
}

#[inline]
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends what is there, and nothing if nothing is. Whether it is there was told before.
#[inline]
pub(crate) fn put_if<T>(out: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    if let Some(value) = value {
        put(out, value);
    }
}

#[inline]
pub(crate) fn take_byte(input: &mut &[u8]) -> Result<u8, Malformed> {
    let (&byte, rest) = input.split_first().ok_or(Malformed::Short)?;
    *input = rest;
    Ok(byte)
}

#[inline]
pub(crate) fn take_array<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (array, rest) = input.split_first_chunk::<N>().ok_or(Malformed::Short)?;
    *input = rest;
    Ok(*array)
}

#[inline]
pub(crate) fn take_number(input: &mut &[u8]) -> Result<u64, Malformed> {
    match input.split_first() {
        Some((&byte, rest)) if byte < 0x80 => {
            *input = rest;
            Ok(u64::from(byte))
        }
        _ => take_long_number(input),
    }
}

fn take_long_number(input: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = take_byte(input)?;
        // The tenth byte has room for one bit, and must not announce an eleventh.
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            // A last byte without a bit could have been left out.
            if byte == 0 && shift > 0 {
                break;
            }
            return Ok(value);
        }
    }
    Err(Malformed::OutOfRange("number"))
}

#[inline]
pub(crate) fn take_small(input: &mut &[u8], field: &'static str) -> Result<u32, Malformed> {
    u32::try_from(take_number(input)?).map_err(|_| Malformed::OutOfRange(field))
}

#[inline]
pub(crate) fn take_signed(input: &mut &[u8]) -> Result<i64, Malformed> {
    let value = take_number(input)?;
    Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}

#[inline]
pub(crate) fn take_moment(input: &mut &[u8]) -> Result<Timestamp, Malformed> {
    let ms = take_number(input)?;
    if ms > Timestamp::MAX.ms() {
        return Err(Malformed::OutOfRange("moment"));
    }
    Ok(Timestamp::from_ms(ms))
}

#[inline]
pub(crate) fn take_span(input: &mut &[u8]) -> Result<Span, Malformed> {
    let ms = take_number(input)?;
    if ms > Span::MAX.ms() {
        return Err(Malformed::OutOfRange("span"));
    }
    Ok(Span::from_ms(ms))
}

#[inline]
pub(crate) fn take_bytes<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let length = usize::try_from(take_number(input)?).map_err(|_| Malformed::Short)?;
    let (bytes, rest) = input.split_at_checked(length).ok_or(Malformed::Short)?;
    *input = rest;
    Ok(bytes)
}

/// Takes what is there, if it was told that it is.
#[inline]
pub(crate) fn take_if<'a, T>(
    is_there: bool,
    input: &mut &'a [u8],
    take: impl FnOnce(&mut &'a [u8]) -> Result<T, Malformed>,
) -> Result<Option<T>, Malformed> {
    if is_there { take(input).map(Some) } else { Ok(None) }
}

/// Nothing may follow.
#[inline]
pub(crate) fn end(input: &[u8]) -> Result<(), Malformed> {
    if input.is_empty() { Ok(()) } else { Err(Malformed::Rest(input.len())) }
}
