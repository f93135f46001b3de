//! Numbers and texts as bytes, and back.
//!
//! A number has only one form, the shortest. This module knows nothing about the meaning of numbers
//! and texts, except for moments and durations, which are types of the engine.

use crate::time::{Span, Timestamp};

use crate::records::malformed::Malformed;

/// Appends a number: LEB128 in its shortest form, at most 10 bytes.
#[inline]
pub fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Appends a signed number: zigzag, then as [`put_number`].
#[inline]
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_number(out, (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned());
}

/// Appends a moment in milliseconds since the Unix epoch.
#[inline]
pub fn put_moment(out: &mut Vec<u8>, moment: Timestamp) {
    put_number(out, moment.ms());
}

/// Appends a duration in milliseconds.
#[inline]
pub fn put_span(out: &mut Vec<u8>, span: Span) {
    put_number(out, span.ms());
}

/// Appends a text: its length and its bytes.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it is part of every record")]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Returns how many bytes a text of this length takes at most.
#[inline]
#[must_use]
pub const fn text_bytes_max(length: usize) -> usize {
    // Each further byte of the length stands for 128 times as much.
    1 + length / 0x80 + length
}

/// Writes a text at the front of `room`, as [`put_bytes`] appends it. Returns the room behind it.
///
/// # Panics
/// If there is too little room: see [`text_bytes_max`].
#[inline]
pub fn write_bytes<'r>(room: &'r mut [u8], bytes: &[u8]) -> &'r mut [u8] {
    let (place, rest) = write_number(room, bytes.len() as u64).split_at_mut(bytes.len());
    place.copy_from_slice(bytes);
    rest
}

#[inline]
fn write_number(room: &mut [u8], value: u64) -> &mut [u8] {
    let Some((first, rest)) = room.split_first_mut() else { return &mut [] };
    *first = (value & 0x7f) as u8;
    if value < 0x80 {
        return rest;
    }
    *first |= 0x80;
    write_rest(rest, value >> 7)
}

/// Writes what few numbers have beyond their first byte.
#[inline(never)]
fn write_rest(room: &mut [u8], value: u64) -> &mut [u8] {
    write_number(room, value)
}

/// Takes one byte.
#[inline]
pub fn take_byte(input: &mut &[u8]) -> Result<u8, Malformed> {
    let (&byte, rest) = input.split_first().ok_or(Malformed::Short)?;
    *input = rest;
    Ok(byte)
}

/// Takes this many bytes.
#[inline]
pub fn take_array<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (array, rest) = input.split_first_chunk::<N>().ok_or(Malformed::Short)?;
    *input = rest;
    Ok(*array)
}

/// Takes a number. Refuses one that is not in its shortest form.
#[inline]
pub fn take_number(input: &mut &[u8]) -> Result<u64, Malformed> {
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
        // The tenth byte has room for one bit, and must not say that another byte follows.
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            // A last byte of 0 could have been left out.
            if byte == 0 && shift > 0 {
                break;
            }
            return Ok(value);
        }
    }
    Err(Malformed::OutOfRange("number"))
}

/// Takes a number of 32 bits.
#[inline]
pub fn take_small(input: &mut &[u8], field: &'static str) -> Result<u32, Malformed> {
    u32::try_from(take_number(input)?).map_err(|_| Malformed::OutOfRange(field))
}

/// Takes a signed number.
#[inline]
pub fn take_signed(input: &mut &[u8]) -> Result<i64, Malformed> {
    let value = take_number(input)?;
    Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}

/// Takes a moment. Refuses one after the end of the year 9999.
#[inline]
pub fn take_moment(input: &mut &[u8]) -> Result<Timestamp, Malformed> {
    let ms = take_number(input)?;
    if ms > Timestamp::MAX.ms() {
        return Err(Malformed::OutOfRange("moment"));
    }
    Ok(Timestamp::from_ms(ms))
}

/// Takes a duration.
#[inline]
pub fn take_span(input: &mut &[u8]) -> Result<Span, Malformed> {
    let ms = take_number(input)?;
    if ms > Span::MAX.ms() {
        return Err(Malformed::OutOfRange("span"));
    }
    Ok(Span::from_ms(ms))
}

/// Takes a text.
#[inline]
pub fn take_bytes<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let length = usize::try_from(take_number(input)?).map_err(|_| Malformed::Short)?;
    let (bytes, rest) = input.split_at_checked(length).ok_or(Malformed::Short)?;
    *input = rest;
    Ok(bytes)
}

/// Takes a value if there is one.
#[inline]
pub fn take_if<'a, T>(
    is_there: bool,
    input: &mut &'a [u8],
    take: impl FnOnce(&mut &'a [u8]) -> Result<T, Malformed>,
) -> Result<Option<T>, Malformed> {
    if is_there { take(input).map(Some) } else { Ok(None) }
}

/// Refuses bytes that are left over.
#[inline]
pub fn end(input: &[u8]) -> Result<(), Malformed> {
    if input.is_empty() { Ok(()) } else { Err(Malformed::Rest(input.len())) }
}

/// Appends a value that may be missing: the byte 0, or 1 and the value.
pub fn put_option<T>(out: &mut Vec<u8>, value: Option<T>, put: fn(&mut Vec<u8>, T)) {
    match value {
        None => out.push(0),
        Some(value) => {
            out.push(1);
            put(out, value);
        }
    }
}

/// Takes what [`put_option`] appends.
pub fn take_option<'a, T>(
    input: &mut &'a [u8],
    take: fn(&mut &'a [u8]) -> Result<T, Malformed>,
) -> Result<Option<T>, Malformed> {
    if take_flag(input, "presence")? { take(input).map(Some) } else { Ok(None) }
}

/// Takes a byte that is 0 or 1.
pub fn take_flag(input: &mut &[u8], field: &'static str) -> Result<bool, Malformed> {
    match take_byte(input)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed::OutOfRange(field)),
    }
}
