//! What a user may use up at once. A limit that is not set does not limit.

use std::fmt;
use std::num::NonZeroU64;

use crate::users::quote::quoted;

/// The highest value of a limit: the highest number that a TOML file can have.
pub(crate) const LIMIT_MAX: u64 = i64::MAX as u64;

pinpriq_proto::worded! {
    /// Something that is limited.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Limit {
        /// Open connections.
        Connections => "max_connections",
        /// Bytes of requests that are under way.
        BytesInFlight => "max_bytes_in_flight",
        /// Tasks that the user has put and that are present.
        Tasks => "max_tasks",
        /// Requests in a second.
        RequestsPerSecond => "max_requests_per_second",
    }

    /// Its name in the file.
    fn word -> &'static str
}

/// The limits of a user.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits([Option<NonZeroU64>; Limit::ALL.len()]);

/// Why a text is no limit.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongLimit {
    /// There is no limit of this name.
    #[error("there is no limit {}: the limits are {}", quoted(.0), Limit::words())]
    Unknown(String),
    /// It has no value.
    #[error("{} has no value: write it as max_tasks=1000, or as max_tasks=none", quoted(.0))]
    NoValue(String),
    /// The value is none.
    #[error(
        "the limit {limit} is a whole number from 1 to {LIMIT_MAX}, or none; it is {}",
        quoted(.value)
    )]
    Value {
        /// What was to be limited.
        limit: Limit,
        /// The value.
        value: String,
    },
}

impl Limit {
    /// Returns the limit of this name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.word() == word)
    }

    /// Reads `max_tasks=1000`, or `max_tasks=none`, which takes the limit away.
    pub fn parse_assignment(text: &str) -> Result<(Self, Option<NonZeroU64>), WrongLimit> {
        let (word, value) = text.split_once('=').unwrap_or((text, ""));
        let limit = Self::of_word(word).ok_or_else(|| WrongLimit::Unknown(word.to_owned()))?;
        match value {
            "" => Err(WrongLimit::NoValue(text.to_owned())),
            "none" => Ok((limit, None)),
            value => {
                let number = value.parse().ok().and_then(limit_of);
                let wrong = || WrongLimit::Value { limit, value: value.to_owned() };
                Ok((limit, Some(number.ok_or_else(wrong)?)))
            }
        }
    }

    /// The names of all of them.
    pub(crate) fn words() -> String {
        Self::ALL.map(Self::word).join(", ")
    }
}

/// Returns a number as a limit, if it can be one.
pub(crate) fn limit_of(number: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(number).filter(|number| number.get() <= LIMIT_MAX)
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Limits {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The limit of something, if it is limited.
    #[must_use]
    pub const fn of(&self, limit: Limit) -> Option<NonZeroU64> {
        self.0[limit as usize]
    }

    /// Sets a limit, or takes it away.
    pub const fn set(&mut self, limit: Limit, value: Option<NonZeroU64>) {
        self.0[limit as usize] = value;
    }

    /// The limits that are set, in order.
    pub fn each(&self) -> impl Iterator<Item = (Limit, NonZeroU64)> {
        Limit::ALL.into_iter().filter_map(|limit| Some((limit, self.of(limit)?)))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::num::NonZeroU64;

    use super::{Limit, Limits};

    #[test]
    fn limits_are_set_and_taken_away() {
        let mut limits = Limits::default();
        assert_eq!(limits.each().count(), 0);
        for (index, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!(Limit::of_word(limit.word()), Some(limit));
            limits.set(limit, NonZeroU64::new(index as u64 + 1));
        }
        let all: Vec<u64> = limits.each().map(|(_, value)| value.get()).collect();
        assert_eq!(all, [1, 2, 3, 4]);
        limits.set(Limit::Tasks, None);
        assert_eq!((limits.of(Limit::Tasks), limits.each().count()), (None, 3));
    }

    #[test]
    fn assignments_are_read() {
        let five = NonZeroU64::new(5);
        assert_eq!(Limit::parse_assignment("max_tasks=5"), Ok((Limit::Tasks, five)));
        assert_eq!(Limit::parse_assignment("max_tasks=none"), Ok((Limit::Tasks, None)));
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let mut all = String::new();
        for text in [
            "max_task=5",
            "=5",
            "max_tasks",
            "max_tasks=",
            "max_tasks=0",
            "max_tasks=-1",
            "max_tasks=9223372036854775808",
            "max_connections=many",
        ] {
            writeln!(all, "{}", Limit::parse_assignment(text).unwrap_err()).unwrap();
        }
        expect_test::expect_file!["../../testdata/users/wrong_limits.txt"].assert_eq(&all);
    }
}
