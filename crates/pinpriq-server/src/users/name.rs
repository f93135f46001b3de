//! Names of users and of their tokens.
//!
//! `anonymous` and `default` are names like others here. Who acts under them is the server's
//! business.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use crate::users::quote::quoted;

/// The longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The name of a user or of a token.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(Box<str>);

/// Why a text is no name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{} is no name: names have 1 to {NAME_BYTES_MAX} characters, each a letter from a to z or A to \
     Z, a digit, or one of _ . @ -",
    quoted(.0)
)]
pub struct WrongName(String);

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = WrongName;

    fn from_str(text: &str) -> Result<Self, WrongName> {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'@' | b'-');
        if (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain) {
            return Ok(Self(text.into()));
        }
        Err(WrongName(text.to_owned()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn plain_words_are_names() {
        let longest = "x".repeat(64);
        for text in ["a", "orders", "anonymous", "default", "A_b.c@d-9", ".", &longest] {
            assert_eq!(text.parse::<Name>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn other_words_are_refused_in_a_sentence() {
        let long = "x".repeat(65);
        for text in ["", "a b", "grün", "a:b", "a\n", "a/b", "*", &long] {
            let sentence = text.parse::<Name>().unwrap_err().to_string();
            assert!(sentence.contains("1 to 64 characters"), "{sentence}");
        }
        let sentence = "a b".parse::<Name>().unwrap_err().to_string();
        assert!(sentence.starts_with("\"a b\" is no name"), "{sentence}");
    }
}
