//! The options of commands.
//!
//! The table of commands says which command has which option. The functions that carry out commands
//! ask for the values by these constants.

#![expect(missing_docs, reason = "a constant is named as its word")]

use super::alphabet::letters;

pub const AT: Opt = with("AT", "unix-ms");
pub const BY: Opt = with("BY", "ms");
pub const COUNT: Opt = with("COUNT", "n");
pub const CURSOR: Opt = with("CURSOR", "cursor");
pub const DEADLINE: Opt = with("DEADLINE", "unix-ms");
pub const DELAY: Opt = with("DELAY", "ms");
/// Unlike the others it has two values, and may be given several times.
pub const DONE: Opt = with("DONE", "queue receipt");
pub const FOR: Opt = with("FOR", "ms");
pub const FROM: Opt = with("FROM", "MIN|MAX");
pub const GROUP: Opt = flag("GROUP");
pub const ID: Opt = with("ID", "id");
pub const KEY: Opt = with("KEY", "key");
pub const LEASE: Opt = with("LEASE", "ms");
pub const MEMBER: Opt = with("MEMBER", "member");
pub const ORDER: Opt = with("ORDER", "OLDEST|NEWEST");
pub const PAYLOAD: Opt = with("PAYLOAD", "payload");
pub const POP: Opt = flag("POP");
pub const PREFIX: Opt = with("PREFIX", "prefix");
pub const PRIORITY: Opt = with("PRIORITY", "n|NONE");
pub const REASON: Opt = with("REASON", "text");
pub const RECEIPT: Opt = with("RECEIPT", "receipt");
pub const ROOM: Opt = with("ROOM", "ms");
pub const STATE: Opt = with("STATE", "R|W|T|B|Z|D");
/// The state of a new task, of which only one can be asked for.
pub const STATE_BURIED: Opt = with("STATE", "B");
pub const TAIL: Opt = flag("TAIL");
pub const TTL: Opt = with("TTL", "ms");
pub const TTL_OR_NONE: Opt = with("TTL", "ms|NONE");
pub const TTR: Opt = with("TTR", "ms");
pub const WAIT: Opt = with("WAIT", "ms");
pub const WITHMETA: Opt = flag("WITHMETA");
pub const ZOMBIE: Opt = with("ZOMBIE", "ms");
pub const EVERY: Opt = with("EVERY", "ms");
pub const CRON: Opt = with("CRON", "text");
pub const ZONE: Opt = with("ZONE", "name");
pub const MISSED: Opt = with("MISSED", "one|all|none");
pub const OVERLAP: Opt = with("OVERLAP", "allow|skip");
pub const UNIQUE: Opt = with("UNIQUE", "key");
pub const WINDOW: Opt = with("WINDOW", "ms");
pub const ONDUP: Opt = with("ONDUP", "keep|reject|replace");

/// An option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opt {
    /// The option word, in capitals.
    pub word: &'static str,
    /// The word as a number.
    pub letters: u64,
    /// A bit that few other options share.
    pub bit: u64,
    /// The name of its value, if it has one.
    pub value: Option<&'static str>,
}

/// An option with a value.
#[must_use]
pub const fn with(word: &'static str, value: &'static str) -> Opt {
    Opt { value: Some(value), ..flag(word) }
}

/// An option without a value.
#[must_use]
pub const fn flag(word: &'static str) -> Opt {
    assert!(word.len() <= 8, "its number does not tell an option from longer ones");
    let letters = letters(word.as_bytes());
    // The golden ratio times 2^64 spreads the numbers.
    let bit = 1 << (letters.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58);
    Opt { word, letters, bit, value: None }
}

/// Returns the option with this word, in any case.
#[inline]
#[must_use]
pub fn find(options: &'static [Opt], word: &[u8]) -> Option<&'static Opt> {
    let number = letters(word);
    options.iter().find(|option| option.letters == number && option.word.len() == word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_in_any_case_and_by_nothing_else() {
        static KNOWN: &[Opt] = &[BY, TTL, TTR, COUNT, DELAY, PREFIX, RECEIPT, PRIORITY, WITHMETA];
        for known in KNOWN {
            let (word, small) = (known.word.to_owned(), known.word.to_ascii_lowercase());
            let mixed = format!("{}{}", &word[..1], &small[1..]);
            for given in [&word, &small, &mixed] {
                assert_eq!(find(KNOWN, given.as_bytes()), Some(known), "{given}");
            }
            let first = char::from(word.as_bytes()[0] ^ 0x80).to_string();
            let others =
                ["\0", " ", "S"].map(|end| format!("{word}{end}")).into_iter().chain([first]);
            for other in others.chain([word[1..].to_owned(), word[..word.len() - 1].to_owned()]) {
                assert_eq!(find(KNOWN, other.as_bytes()), None, "{other:?}");
            }
        }
    }
}
