//! Names as the values of labels, which are text. Different names have different values.

use std::fmt::Write as _;

/// The value that stands for all queues that are not shown one by one.
pub(super) const OTHER: &str = "_other";

/// Returns a name as text: a backslash is doubled, and a byte that is no UTF-8 is `\xNN`. So is the
/// first byte of a name that would be mistaken for [`OTHER`].
pub(super) fn text_of(name: &[u8]) -> String {
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
