//! The options of commands.
//!
//! The table of commands says which command has which option. The functions that carry out commands
//! ask for the values by these constants.

use super::alphabet::letters;

pub(crate) const AT: Opt = with("AT", "unix-ms");
pub(crate) const BY: Opt = with("BY", "ms");
pub(crate) const COUNT: Opt = with("COUNT", "n");
pub(crate) const CURSOR: Opt = with("CURSOR", "cursor");
pub(crate) const DEADLINE: Opt = with("DEADLINE", "unix-ms");
pub(crate) const DELAY: Opt = with("DELAY", "ms");
/// Unlike the others it has two values, and may be given several times.
pub(crate) const DONE: Opt = with("DONE", "queue receipt");
pub(crate) const FOR: Opt = with("FOR", "ms");
pub(crate) const FROM: Opt = with("FROM", "MIN|MAX");
pub(crate) const GROUP: Opt = flag("GROUP");
pub(crate) const ID: Opt = with("ID", "id");
pub(crate) const KEY: Opt = with("KEY", "key");
pub(crate) const LEASE: Opt = with("LEASE", "ms");
pub(crate) const MEMBER: Opt = with("MEMBER", "member");
pub(crate) const ORDER: Opt = with("ORDER", "OLDEST|NEWEST");
pub(crate) const PAYLOAD: Opt = with("PAYLOAD", "payload");
pub(crate) const POP: Opt = flag("POP");
pub(crate) const PREFIX: Opt = with("PREFIX", "prefix");
pub(crate) const PRIORITY: Opt = with("PRIORITY", "n|NONE");
pub(crate) const REASON: Opt = with("REASON", "text");
pub(crate) const RECEIPT: Opt = with("RECEIPT", "receipt");
pub(crate) const ROOM: Opt = with("ROOM", "ms");
pub(crate) const STATE: Opt = with("STATE", "R|W|T|B|Z|D");
/// The state of a new task, of which only one can be asked for.
pub(crate) const STATE_BURIED: Opt = with("STATE", "B");
pub(crate) const TAIL: Opt = flag("TAIL");
pub(crate) const TTL: Opt = with("TTL", "ms");
pub(crate) const TTL_OR_NONE: Opt = with("TTL", "ms|NONE");
pub(crate) const TTR: Opt = with("TTR", "ms");
pub(crate) const WAIT: Opt = with("WAIT", "ms");
pub(crate) const WITHMETA: Opt = flag("WITHMETA");
pub(crate) const ZOMBIE: Opt = with("ZOMBIE", "ms");
pub(crate) const EVERY: Opt = with("EVERY", "ms");
pub(crate) const CRON: Opt = with("CRON", "text");
pub(crate) const ZONE: Opt = with("ZONE", "name");
pub(crate) const MISSED: Opt = with("MISSED", "one|all|none");
pub(crate) const OVERLAP: Opt = with("OVERLAP", "allow|skip");
pub(crate) const UNIQUE: Opt = with("UNIQUE", "key");
pub(crate) const WINDOW: Opt = with("WINDOW", "ms");
pub(crate) const ONDUP: Opt = with("ONDUP", "keep|reject|replace");

/// An option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Opt {
    /// The option word, in capitals.
    pub(crate) word: &'static str,
    /// The word as a number.
    pub(crate) letters: u64,
    /// A bit that few other options share.
    pub(crate) bit: u64,
    /// The name of its value, if it has one.
    pub(crate) value: Option<&'static str>,
}

/// An option with a value.
pub(crate) const fn with(word: &'static str, value: &'static str) -> Opt {
    Opt { value: Some(value), ..flag(word) }
}

/// An option without a value.
const fn flag(word: &'static str) -> Opt {
    assert!(word.len() <= 8, "its number does not tell an option from longer ones");
    let letters = letters(word.as_bytes());
    // The golden ratio times 2^64 spreads the numbers.
    let bit = 1 << (letters.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58);
    Opt { word, letters, bit, value: None }
}

/// Returns the option with this word, in any case.
#[inline]
pub(crate) fn find(options: &'static [Opt], word: &[u8]) -> Option<&'static Opt> {
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
