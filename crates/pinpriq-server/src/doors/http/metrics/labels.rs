//! Names as the values of labels, which are text. Different names have different values.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The value that stands for all queues that are not shown one by one.
pub(super) const OTHER: &str = "_other";

/// The longest name that is shown as a whole, in bytes. Each of the tens of lines about a queue has
/// its name.
const NAME_BYTES_MAX: usize = 256;

/// How many bytes of a longer name are told, before the digest that tells it from others.
const SHORT_BYTES: usize = 200;

/// How many bytes of the digest are told.
const DIGEST_BYTES: usize = 16;

/// Returns a name as text: a backslash is doubled, and a byte that is no UTF-8 is `\xNN`. So is the
/// first byte of a name that would be mistaken for [`OTHER`]. A long name ends with `\sha256:` and
/// the beginning of its digest.
pub(super) fn text_of(name: &[u8]) -> String {
    if name.len() > NAME_BYTES_MAX {
        let mut text = text_of(&name[..SHORT_BYTES]);
        text.push_str("\\sha256:");
        for byte in &Sha256::digest(name)[..DIGEST_BYTES] {
            let _ = write!(text, "{byte:02x}");
        }
        return text;
    }
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    if name == OTHER.as_bytes() {
        put_byte(&mut text, name[0]);
        rest = &name[1..];
    }
    for chunk in rest.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter == '\\' {
                text.push('\\');
            }
            text.push(letter);
        }
        chunk.invalid().iter().for_each(|byte| put_byte(&mut text, *byte));
    }
    text
}

fn put_byte(text: &mut String, byte: u8) {
    let _ = write!(text, "\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_still_told_apart() {
        let longest = vec![b'x'; NAME_BYTES_MAX];
        assert_eq!(text_of(&longest).len(), NAME_BYTES_MAX);
        let [one, other] = [vec![0xFF; 65_535], vec![0xFF; 65_534]].map(|name| text_of(&name));
        assert!(one != other && one.len() < 1_000, "{one}");
        assert!(one.contains("\\xff\\sha256:"), "{one}");
    }

    #[test]
    fn names_are_text_that_tells_them_apart() {
        let pairs: [(&[u8], &str); 7] = [
            (b"", ""),
            ("käse \"1\"\n".as_bytes(), "käse \"1\"\n"),
            (b"a\\b", "a\\\\b"),
            (b"\\xff", "\\\\xff"),
            (b"\xff", "\\xff"),
            (b"a\xe2\x82z", "a\\xe2\\x82z"),
            (b"_other", "\\x5fother"),
        ];
        for (name, text) in pairs {
            assert_eq!(text_of(name), text);
        }
    }
}
