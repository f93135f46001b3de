//! Patterns: which queues and topics a rule is about.
//!
//! A pattern is the name of one, or a prefix that ends in its only `*`. It is compared byte by
//! byte: case counts, and a dot is a byte like any other.

use std::fmt;
use std::str::FromStr;

use crate::users::quote::quoted;

/// The longest name or prefix, in bytes: that of the longest name of a queue.
pub const PATTERN_BYTES_MAX: usize = 65_535;

/// Names of queues and topics.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pattern {
    bytes: Vec<u8>,
    is_prefix: bool,
}

/// Why a text is no pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongPattern {
    /// There is nothing.
    #[error("the pattern is empty: name a queue, or write * for all of them")]
    Empty,
    /// There is a star before the end.
    #[error(
        "the pattern {} has a * before its end: a * stands only at the end, and a name with a * \
         in it is written with %2A",
        quoted(.0)
    )]
    Star(String),
    /// There is a percent sign without two digits.
    #[error(
        "the pattern {} has a % without two hexadecimal digits: write % itself as %25",
        quoted(.0)
    )]
    Percent(String),
    /// There is a character that cannot be seen.
    #[error(
        "the pattern {} has a space or a control character: write a space as %20, and other bytes \
         as % with two hexadecimal digits",
        quoted(.0)
    )]
    Unseen(String),
    /// It is longer than any name.
    #[error("the pattern {} is too long: names have at most {PATTERN_BYTES_MAX} bytes", quoted(.0))]
    Long(String),
}

impl Pattern {
    /// The pattern of exactly this name.
    #[must_use]
    pub fn name(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), is_prefix: false }
    }

    /// The pattern of all names that begin like this.
    #[must_use]
    pub fn prefix(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), is_prefix: true }
    }

    /// The name or the prefix.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it stands for all names that begin like this.
    #[must_use]
    pub const fn is_prefix(&self) -> bool {
        self.is_prefix
    }

    /// Whether a name is one of those that are meant.
    #[must_use]
    pub fn matches(&self, name: &[u8]) -> bool {
        if self.is_prefix { name.starts_with(&self.bytes) } else { name == self.bytes }
    }
}

impl FromStr for Pattern {
    type Err = WrongPattern;

    fn from_str(text: &str) -> Result<Self, WrongPattern> {
        if text.is_empty() {
            return Err(WrongPattern::Empty);
        }
        let (body, is_prefix) = match text.strip_suffix('*') {
            Some(body) => (body, true),
            None => (text, false),
        };
        if body.contains('*') {
            return Err(WrongPattern::Star(text.to_owned()));
        }
        if body.contains(|it: char| it.is_control() || it.is_whitespace()) {
            return Err(WrongPattern::Unseen(text.to_owned()));
        }
        let Some(bytes) = decoded(body.as_bytes()) else {
            return Err(WrongPattern::Percent(text.to_owned()));
        };
        if bytes.len() > PATTERN_BYTES_MAX {
            return Err(WrongPattern::Long(text.to_owned()));
        }
        Ok(Self { bytes, is_prefix })
    }
}

/// Returns the bytes, with a byte for each `%` and its two digits.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, after @ ..] = after else { return None };
        bytes.push(digit(*high)? << 4 | digit(*low)?);
        rest = after;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                let is_plain = match character {
                    '*' | '%' => false,
                    ascii if ascii.is_ascii() => ascii.is_ascii_graphic(),
                    other => other.is_alphanumeric(),
                };
                if is_plain {
                    write!(f, "{character}")?;
                } else {
                    let mut bytes = [0; 4];
                    write_encoded(f, character.encode_utf8(&mut bytes).as_bytes())?;
                }
            }
            write_encoded(f, chunk.invalid())?;
        }
        f.write_str(if self.is_prefix { "*" } else { "" })
    }
}

fn write_encoded(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "%{byte:02X}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::fmt::Write as _;

    use super::Pattern;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_is_only_itself() {
        let table = [("a", "a", true), ("a", "a.b", false), ("a", "A", false), ("a.b", "a", false)];
        for (text, name, expected) in table {
            assert_eq!(pattern(text).matches(name.as_bytes()), expected, "{text}, {name}");
        }
    }

    #[test]
    fn a_star_stands_for_any_end() {
        let table = [
            ("a*", "a", true),
            ("a*", "a.b", true),
            ("a*", "ab", true),
            ("a.*", "a", false),
            ("a.*", "a.", true),
            ("*", "", true),
            ("*", "anything", true),
            ("a*", "b", false),
        ];
        for (text, name, expected) in table {
            assert_eq!(pattern(text).matches(name.as_bytes()), expected, "{text}, {name}");
        }
    }

    #[test]
    fn any_byte_can_be_written() {
        let table: [(&str, &[u8], bool); 6] = [
            ("a%2A", b"a*", false),
            ("100%25", b"100%", false),
            ("a%20b", b"a b", false),
            ("%ff%00*", b"\xff\x00", true),
            ("grün:{x}/\"", "grün:{x}/\"".as_bytes(), false),
            ("%2a*", b"*", true),
        ];
        for (text, bytes, is_prefix) in table {
            assert_eq!(pattern(text), Pattern { bytes: bytes.to_vec(), is_prefix }, "{text}");
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let mut all = String::new();
        let long = "x".repeat(65_536);
        for text in ["", "a*b", "**", "a%", "a%2", "a%zz", "a%2*", "a b", "a\n", &long] {
            writeln!(all, "{}", text.parse::<Pattern>().unwrap_err()).unwrap();
        }
        expect_test::expect_file!["../../testdata/users/wrong_patterns.txt"].assert_eq(&all);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(bytes: Vec<u8>, is_prefix: bool) {
            prop_assume!(is_prefix || !bytes.is_empty());
            let made = Pattern { bytes, is_prefix };
            let text = made.to_string();
            prop_assert!(!text.contains(|it: char| it.is_whitespace() || it.is_control()));
            prop_assert_eq!(text.parse::<Pattern>(), Ok(made));
        }

        #[test]
        fn what_was_read_is_written_and_read_again(text in "[a%*2F ü.]{0,8}") {
            if let Ok(read) = text.parse::<Pattern>() {
                prop_assert_eq!(read.to_string().parse::<Pattern>(), Ok(read));
            }
        }
    }
}
