//! Requests as values: the words to send, and whether they may be sent again.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pinpriq_proto::limits::REASON_BYTES_MAX;
use pinpriq_proto::wire::resp::{Value, Words};

use crate::error::Error;

/// Whether a request may be sent again when its reply was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repeat {
    /// It must not: it could be carried out twice.
    Never,
    /// It may: the result is the same.
    Safe,
    /// It may, and a refusal as `STALE` then means that the first one was carried out.
    StaleIsDone,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) words: Words,
    pub(crate) repeat: Repeat,
}

impl Request {
    pub(crate) const fn new(words: Words, repeat: Repeat) -> Self {
        Self { words, repeat }
    }

    /// Returns the number that a reply is.
    pub(crate) fn count(&self, reply: &Value) -> Result<u64, Error> {
        let count = reply.integer().and_then(|count| u64::try_from(count).ok());
        count.ok_or_else(|| self.unexpected(reply))
    }

    /// The error for a reply that such a request never gets.
    pub(crate) fn unexpected(&self, reply: &Value) -> Error {
        let command = self.words.as_slice().first().map_or(&[][..], Vec::as_slice);
        Error::Unexpected {
            command: String::from_utf8_lossy(command).into_owned(),
            reply: format!("{reply:?}").chars().take(80).collect(),
        }
    }
}

/// The headers of a task, by name.
pub(crate) type Headers = BTreeMap<String, Vec<u8>>;

/// What puts and publications say about their tasks alike.
#[derive(Clone, Default, Debug)]
pub(crate) struct Terms {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) share: Option<Vec<u8>>,
    pub(crate) cost: Option<u32>,
    pub(crate) headers: Headers,
    /// What is done when the task fails, each with its option. Publications have none.
    pub(crate) retries: BTreeMap<&'static str, String>,
}

/// What the options of many commands are added with.
pub(crate) trait WordsExt: Sized {
    /// Adds a span in milliseconds, if it was given. What is shorter than one is one, since 0 is
    /// something else to the server.
    fn span(self, option: &str, span: Option<Duration>) -> Self;

    /// Adds the terms of a task.
    fn terms(self, terms: &Terms) -> Self;
}

impl WordsExt for Words {
    fn span(self, option: &str, span: Option<Duration>) -> Self {
        self.option(option, span.map(millis))
    }

    fn terms(self, terms: &Terms) -> Self {
        let Terms { key, share, cost, headers, retries } = terms;
        let words = self.given("KEY", key.as_ref()).given("SHARE", share.as_ref());
        let words = words.option("COST", *cost);
        let words =
            retries.iter().fold(words, |words, (option, value)| words.option(option, Some(value)));
        if headers.is_empty() {
            return words;
        }
        let words = words.option("HEADERS", Some(headers.len()));
        headers.iter().fold(words, |words, (name, value)| words.bytes(name).bytes(value))
    }
}

/// Returns whole milliseconds, rounded up, so that only no time at all is 0.
pub(crate) fn millis(span: Duration) -> u64 {
    let millis = span.as_nanos().div_ceil(1_000_000);
    u64::try_from(millis).unwrap_or(u64::MAX)
}

/// Returns a moment in Unix milliseconds.
pub(crate) fn unix_ms(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).map_or(0, millis)
}

/// Returns a reason that fits into 1,024 bytes, cut between two letters if it is too long.
pub(crate) fn cut_reason(reason: &str) -> &str {
    cut(reason, REASON_BYTES_MAX)
}

/// Returns the first `most` bytes of a text, or fewer, so that no letter is cut in two.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Returns a unique key that no other put has: 128 random bits in 32 letters.
pub(crate) fn own_key() -> String {
    let mut bytes = [0; 16];
    // A machine without random numbers has no TLS and no keys of ours either.
    let filled = getrandom::fill(&mut bytes);
    assert!(filled.is_ok(), "the system has no random numbers");
    format!("{:032x}", u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_no_time_at_all_is_0() {
        for (nanos, expected) in [(0, 0), (1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2)] {
            assert_eq!(millis(Duration::from_nanos(nanos)), expected);
        }
        assert_eq!(millis(Duration::MAX), u64::MAX);
    }

    #[test]
    fn a_reason_is_cut_between_two_letters() {
        assert_eq!(cut_reason("short"), "short");
        let cut = cut_reason(&"é".repeat(600)).to_owned();
        assert_eq!(cut, "é".repeat(512));
        assert_eq!(cut_reason(&format!("a{}", "é".repeat(600))).len(), 1023);
    }

    #[test]
    fn own_keys_differ() {
        assert_ne!(own_key(), own_key());
        assert_eq!(own_key().len(), 32);
    }
}
