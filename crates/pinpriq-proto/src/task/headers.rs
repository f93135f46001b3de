//! The headers of a task: short values by name that travel with its payload.
//!
//! They are kept, stored and sent as one run of bytes, name and value in turn, so that a task with
//! headers needs one allocation for them. No headers are no bytes. This module knows nothing about
//! what they say.

use crate::limits::{HEADER_BYTES_MAX, HEADER_NAME_BYTES_MAX, HEADERS_BYTES_MAX, HEADERS_MAX};
use crate::records::malformed::Malformed;
use crate::records::primitives::{put_bytes, take_bytes};
use crate::refusal::{Refusal, RefusalKind};

/// A name and its value.
pub type Header<'a> = (&'a [u8], &'a [u8]);

/// Returns headers as one run of bytes. Whether they are allowed is up to [`check`].
#[must_use]
pub fn encode<'a>(headers: impl IntoIterator<Item = Header<'a>, IntoIter: Clone>) -> Vec<u8> {
    /// What most lengths take.
    const LENGTHS: usize = 2;
    let headers = headers.into_iter();
    let pairs = headers.clone();
    let room = pairs.map(|(name, value)| LENGTHS + name.len() + value.len()).sum();
    let mut bytes = Vec::with_capacity(room);
    for (name, value) in headers {
        put_bytes(&mut bytes, name);
        put_bytes(&mut bytes, value);
    }
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
pub fn check(mut bytes: &[u8]) -> Result<(), Refusal> {
    let mut names: [&[u8]; HEADERS_MAX] = [&[]; HEADERS_MAX];
    let (mut count, mut total) = (0, 0);
    while !bytes.is_empty() {
        let Ok((name, value)) = take(&mut bytes) else {
            return bad("the headers are no names with values".to_owned());
        };
        if count == HEADERS_MAX {
            return bad(format!("a task has at most {HEADERS_MAX} headers"));
        }
        check_one(name, value)?;
        if names[..count].contains(&name) {
            return bad(format!("the header '{}' is given twice", name.escape_ascii()));
        }
        names[count] = name;
        count += 1;
        total += name.len() + value.len();
    }
    if total > HEADERS_BYTES_MAX {
        return large(format!(
            "names and values of headers have at most {HEADERS_BYTES_MAX} bytes together, and \
             these have {total}"
        ));
    }
    Ok(())
}

fn check_one(name: &[u8], value: &[u8]) -> Result<(), Refusal> {
    check_name(name)?;
    if value.len() > HEADER_BYTES_MAX {
        let (name, length) = (name.escape_ascii(), value.len());
        return large(format!(
            "a header has at most {HEADER_BYTES_MAX} bytes, and '{name}' has {length}"
        ));
    }
    Ok(())
}

/// Refuses what cannot be the name of a header.
pub fn check_name(name: &[u8]) -> Result<(), Refusal> {
    let length = name.len();
    if length == 0 || length > HEADER_NAME_BYTES_MAX {
        return bad(format!(
            "the name of a header has 1 to {HEADER_NAME_BYTES_MAX} bytes, and one has {length}"
        ));
    }
    if !name.iter().all(|byte| is_of_name(*byte)) {
        return bad(format!(
            "the name of a header is made of a-z, 0-9, '-', '_' and '.', and '{}' is not",
            name.escape_ascii()
        ));
    }
    Ok(())
}

#[cold]
fn bad(sentence: String) -> Result<(), Refusal> {
    Err(Refusal::new(RefusalKind::BadArgument, sentence))
}

#[cold]
fn large(sentence: String) -> Result<(), Refusal> {
    Err(Refusal::new(RefusalKind::TooLarge, sentence))
}

/// Whether a name may have this character.
const fn is_of_name(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.')
}

fn take<'a>(bytes: &mut &'a [u8]) -> Result<Header<'a>, Malformed> {
    Ok((take_bytes(bytes)?, take_bytes(bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn bytes_that_are_no_headers_are_refused() {
        for bytes in [&b"\x01"[..], b"\x01a", b"\x01a\x05v", b"\x01a\x01v\x01b"] {
            assert!(check_form(bytes).is_err(), "{bytes:?}");
            assert!(check(bytes).is_err(), "{bytes:?}");
        }
    }
}
