//! The headers of a task: short values by name that travel with its payload.
//!
//! They are kept, stored and sent as one run of bytes, name and value in turn, so that a task with
//! headers needs one allocation for them. No headers are no bytes. This module knows nothing about
//! what they say.

use crate::limits::{HEADER_BYTES_MAX, HEADER_NAME_BYTES_MAX, HEADERS_BYTES_MAX, HEADERS_MAX};
use crate::records::malformed::Malformed;
use crate::records::primitives::{take_bytes, text_bytes_max, write_bytes};
use crate::refusal::{Refusal, RefusalKind};

/// A name and its value.
pub type Header<'a> = (&'a [u8], &'a [u8]);

/// Whether a name may have each of all characters.
static ARE_OF_NAMES: [bool; 256] = {
    const THESE: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789-_.";
    let (mut all, mut at) = ([false; 256], 0);
    while at < THESE.len() {
        all[THESE[at] as usize] = true;
        at += 1;
    }
    all
};

/// Returns headers as one run of bytes. Whether they are allowed is up to [`check`].
#[must_use]
#[expect(clippy::slow_vector_initialization, reason = "cleared memory takes longer to get")]
pub fn encode<'a>(headers: impl IntoIterator<Item = Header<'a>, IntoIter: Clone>) -> Vec<u8> {
    let headers = headers.into_iter();
    let pairs = headers.clone();
    let bytes_max =
        |(name, value): Header<'_>| text_bytes_max(name.len()) + text_bytes_max(value.len());
    let most = pairs.map(bytes_max).sum();
    let mut bytes = Vec::with_capacity(most);
    bytes.resize(most, 0);
    let mut room = bytes.as_mut_slice();
    for (name, value) in headers {
        room = write_bytes(write_bytes(room, name), value);
    }
    let left = room.len();
    bytes.truncate(most - left);
    bytes
}

/// Returns the headers in such a run of bytes, in the order in which they were given. After bytes
/// that are none, nothing follows.
pub fn decode(mut bytes: &[u8]) -> impl Iterator<Item = Header<'_>> {
    std::iter::from_fn(move || take(&mut bytes).ok())
}

/// Refuses bytes that are no headers: those of a record come from anywhere.
pub(crate) fn check_form(mut bytes: &[u8]) -> Result<(), Malformed> {
    while !bytes.is_empty() {
        take(&mut bytes)?;
    }
    Ok(())
}

/// Refuses headers that are too many or too large, and names with other characters than
/// `a-z 0-9 - _ .` or that are given twice. Costs O(n²) for at most [`HEADERS_MAX`] names.
pub fn check(bytes: &[u8]) -> Result<(), Refusal> {
    find_wrong(bytes).map_err(Wrong::refusal)
}

/// Refuses what cannot be the name of a header.
pub fn check_name(name: &[u8]) -> Result<(), Refusal> {
    find_wrong_in_name(name).map_err(Wrong::refusal)
}

/// What is wrong with headers.
enum Wrong<'a> {
    /// They are no names with values.
    Form,
    /// There are too many.
    Count,
    /// A name has this length.
    NameLength(usize),
    /// This name has another character.
    Name(&'a [u8]),
    /// The value of this name has this length.
    ValueLength(&'a [u8], usize),
    /// This name is given twice.
    Twice(&'a [u8]),
    /// Together they have this length.
    Length(usize),
}

fn find_wrong(bytes: &[u8]) -> Result<(), Wrong<'_>> {
    let (mut rest, mut count, mut total) = (bytes, 0, 0);
    // The marks of all names so far. Few others have the same.
    let mut marks = 0_u64;
    while !rest.is_empty() {
        let (name, value) = take(&mut rest).map_err(|_| Wrong::Form)?;
        if count == HEADERS_MAX {
            return Err(Wrong::Count);
        }
        find_wrong_in_name(name)?;
        if value.len() > HEADER_BYTES_MAX {
            return Err(Wrong::ValueLength(name, value.len()));
        }
        let mark = mark_of(name);
        if marks & mark != 0 && is_among(name, bytes, count) {
            return Err(Wrong::Twice(name));
        }
        marks |= mark;
        count += 1;
        total += name.len() + value.len();
    }
    if total > HEADERS_BYTES_MAX { Err(Wrong::Length(total)) } else { Ok(()) }
}

#[inline]
fn find_wrong_in_name(name: &[u8]) -> Result<(), Wrong<'_>> {
    let length = name.len();
    if length == 0 || length > HEADER_NAME_BYTES_MAX {
        return Err(Wrong::NameLength(length));
    }
    // Looking at all of them takes less time than stopping at the first.
    let are_all = name.iter().fold(true, |all, byte| all & ARE_OF_NAMES[usize::from(*byte)]);
    if are_all { Ok(()) } else { Err(Wrong::Name(name)) }
}

/// A bit that few other names share.
#[inline]
fn mark_of(name: &[u8]) -> u64 {
    let last = name.last().copied().unwrap_or_default();
    1 << ((name.len() + usize::from(last)) % 64)
}

/// Whether one of the first headers has this name.
#[inline(never)]
fn is_among(name: &[u8], bytes: &[u8], count: usize) -> bool {
    decode(bytes).take(count).any(|(known, _)| known == name)
}

impl Wrong<'_> {
    #[cold]
    #[inline(never)]
    fn refusal(self) -> Refusal {
        let sentence = match self {
            Self::Form => "the headers are no names with values".to_owned(),
            Self::Count => format!("a task has at most {HEADERS_MAX} headers"),
            Self::NameLength(length) => format!(
                "the name of a header has 1 to {HEADER_NAME_BYTES_MAX} bytes, and one has {length}"
            ),
            Self::Name(name) => format!(
                "the name of a header is made of a-z, 0-9, '-', '_' and '.', and '{}' is not",
                name.escape_ascii()
            ),
            Self::ValueLength(name, length) => format!(
                "a header has at most {HEADER_BYTES_MAX} bytes, and '{}' has {length}",
                name.escape_ascii()
            ),
            Self::Twice(name) => format!("the header '{}' is given twice", name.escape_ascii()),
            Self::Length(total) => format!(
                "names and values of headers have at most {HEADERS_BYTES_MAX} bytes together, and \
                 these have {total}"
            ),
        };
        let kind = match self {
            Self::ValueLength(..) | Self::Length(_) => RefusalKind::TooLarge,
            _ => RefusalKind::BadArgument,
        };
        Refusal::new(kind, sentence)
    }
}

#[inline]
fn take<'a>(bytes: &mut &'a [u8]) -> Result<Header<'a>, Malformed> {
    Ok((take_bytes(bytes)?, take_bytes(bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::primitives::put_bytes;

    fn refused(headers: &[(&str, usize)]) -> Option<String> {
        let values: Vec<_> =
            headers.iter().map(|(name, length)| (name.as_bytes(), vec![b'v'; *length])).collect();
        let bytes = encode(values.iter().map(|(name, value)| (*name, &**value)));
        check(&bytes).err().map(|refusal| refusal.to_string())
    }

    #[test]
    fn headers_come_back_in_their_order() {
        let headers: [Header<'_>; 3] = [(b"b", b""), (b"a", b"\0 \xff"), (b"c-_.9", b"x")];
        let bytes = encode(headers);
        assert_eq!(decode(&bytes).collect::<Vec<_>>(), headers);
        assert_eq!(check(&bytes), Ok(()));
        assert!(encode([]).is_empty());
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_with_its_value() {
        let many: Vec<String> = (0..=HEADERS_MAX).map(|index| format!("h{index}")).collect();
        let many: Vec<_> = many.iter().map(|name| (&**name, 1)).collect();
        assert_eq!(refused(&many[1..]), None);
        let long = "n".repeat(HEADER_NAME_BYTES_MAX + 1);
        assert_eq!(refused(&[(&long[1..], HEADER_BYTES_MAX)]), None);
        let whole = [("a", 1_023), ("b", 1_023), ("c", 1_023), ("d", 1_023)];
        assert_eq!(refused(&whole), None);
        let cases: &[(&[(&str, usize)], &str)] = &[
            (&many, "BADARG a task has at most 16 headers"),
            (&[("", 1)], "BADARG the name of a header has 1 to 64 bytes, and one has 0"),
            (&[(&long, 1)], "BADARG the name of a header has 1 to 64 bytes, and one has 65"),
            (
                &[("Up", 1)],
                "BADARG the name of a header is made of a-z, 0-9, '-', '_' and '.', and 'Up' is \
                 not",
            ),
            (&[("a", 1), ("b", 1), ("a", 2)], "BADARG the header 'a' is given twice"),
            (&[("a", 1_025)], "TOOLARGE a header has at most 1024 bytes, and 'a' has 1025"),
            (
                &[("a", 1_023), ("b", 1_023), ("c", 1_023), ("d", 1_024)],
                "TOOLARGE names and values of headers have at most 4096 bytes together, and these \
                 have 4097",
            ),
        ];
        for (headers, refusal) in cases {
            assert_eq!(refused(headers).as_deref(), Some(*refusal));
        }
    }

    #[test]
    fn long_texts_have_room_for_their_lengths() {
        for length in [0, 127, 128, 16_383, 16_384, 2_097_152] {
            let value = vec![b'v'; length];
            let headers: [Header<'_>; 2] = [(&value, b"a"), (b"b", &value)];
            let mut appended = Vec::new();
            for text in [&value[..], b"a", b"b", &value] {
                put_bytes(&mut appended, text);
            }
            assert!(encode(headers) == appended, "{length}");
        }
    }

    #[test]
    fn names_have_small_letters_digits_and_three_others() {
        for byte in 0..=u8::MAX {
            let is_allowed = matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
            for name in [&[byte][..], &[b'a', byte, b'a', b'a', b'a', b'a', b'a', b'a', b'a']] {
                assert_eq!(check_name(name).is_ok(), is_allowed, "{byte}");
            }
        }
    }

    #[test]
    fn each_name_is_told_from_all_others() {
        let letters = || b'a'..=b'z';
        for (a, b) in letters().flat_map(|a| letters().map(move |b| (a, b))) {
            let names = [vec![a, b], vec![b, a], vec![a, b, b], vec![b'_', b]];
            let others = names.iter().filter(|name| ***name != [a, b]);
            for other in others {
                let headers: [Header<'_>; 2] = [(&[a, b], b""), (other, b"")];
                assert_eq!(check(&encode(headers)), Ok(()));
                let thrice: [Header<'_>; 3] = [(other, b"1"), (&[a, b], b"2"), (other, b"3")];
                assert!(check(&encode(thrice)).is_err(), "{a} {b}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_headers_are_refused() {
        for bytes in [&b"\x01"[..], b"\x01a", b"\x01a\x05v", b"\x01a\x01v\x01b"] {
            assert!(check_form(bytes).is_err(), "{bytes:?}");
            assert!(check(bytes).is_err(), "{bytes:?}");
        }
    }
}
