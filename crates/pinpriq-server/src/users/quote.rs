//! Values of a file in messages: short, on one line, and never a secret.
//!
//! It knows how secrets begin that this crate itself makes. A password as it was typed has no mark,
//! so messages never quote what stands where a password should.

use crate::users::token::{DIGEST_PREFIX, TOKEN_PREFIX};

/// The most characters of a value that a message shows.
const SHOWN_MAX: usize = 80;

/// What hashes of passwords have in them.
const HASH_MARK: &str = "$argon2";

/// Returns a value as a message shows it, in quotes.
pub(crate) fn quoted(value: &str) -> String {
    if [HASH_MARK, TOKEN_PREFIX, DIGEST_PREFIX].iter().any(|mark| value.contains(mark)) {
        return "(a secret that is not shown)".to_owned();
    }
    let mut shown: String = value.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect();
    if value.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn values_are_shown_on_one_line() {
        assert_eq!(quoted("put:a"), "\"put:a\"");
        assert_eq!(quoted("a\n\"\u{1b}"), "\"a\\n\\\"\\u{1b}\"");
        assert_eq!(quoted(&"x".repeat(81)), format!("\"{}…\"", "x".repeat(80)));
    }

    #[test]
    fn secrets_are_not_shown() {
        for secret in ["$argon2id$v=19$m=1", "pinpriq_AAAA", "put:sha256:00"] {
            assert_eq!(quoted(secret), "(a secret that is not shown)");
        }
    }
}
