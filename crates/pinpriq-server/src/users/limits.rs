//! What a user may use up at once. A limit that is not set does not limit.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Arc;

use crate::users::quote::quoted;
use pinpriq_proto::limits::SHARE_BYTES_MAX;

/// The name of the limit that is no number: the share that all tasks have which the user puts.
pub const SHARE: &str = "share";

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
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    numbers: [Option<NonZeroU64>; Limit::ALL.len()],
    share: Option<Arc<str>>,
}

/// A limit that is set, or taken away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Assignment {
    /// One that is a number.
    Number(Limit, Option<NonZeroU64>),
    /// The share.
    Share(Option<Arc<str>>),
}

/// Why a text is no limit.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongLimit {
    /// There is no limit of this name.
    #[error("there is no limit {}: the limits are {}", quoted(.0), words())]
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
    /// The share is none.
    #[error(
        "{SHARE} is a text of 1 to {SHARE_BYTES_MAX} bytes other than none; it is {}",
        quoted(.0)
    )]
    Share(String),
}

impl Limit {
    /// Returns the limit of this name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.word() == word)
    }
}

impl FromStr for Assignment {
    type Err = WrongLimit;

    /// Reads `max_tasks=1000`, or `max_tasks=none`, which takes the limit away.
    fn from_str(text: &str) -> Result<Self, WrongLimit> {
        let (word, value) = text.split_once('=').unwrap_or((text, ""));
        let number = Limit::of_word(word);
        if number.is_none() && word != SHARE {
            return Err(WrongLimit::Unknown(word.to_owned()));
        }
        if value.is_empty() {
            return Err(WrongLimit::NoValue(text.to_owned()));
        }
        let is_none = value == "none";
        let Some(limit) = number else {
            return Ok(Self::Share(if is_none { None } else { Some(share_of(value)?) }));
        };
        if is_none {
            return Ok(Self::Number(limit, None));
        }
        let number = value.parse().ok().and_then(limit_of);
        let wrong = || WrongLimit::Value { limit, value: value.to_owned() };
        Ok(Self::Number(limit, Some(number.ok_or_else(wrong)?)))
    }
}

/// The names of all limits.
pub(crate) fn words() -> String {
    Limit::ALL.map(Limit::word).join(", ") + ", " + SHARE
}

/// Returns a text as a share, if it can be one.
pub(crate) fn share_of(text: &str) -> Result<Arc<str>, WrongLimit> {
    let is_right = (1..=SHARE_BYTES_MAX).contains(&text.len()) && text != "none";
    if is_right { Ok(text.into()) } else { Err(WrongLimit::Share(text.to_owned())) }
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
        self.share.is_none() && self.numbers.iter().all(Option::is_none)
    }

    /// The share that all tasks have which the user puts.
    #[must_use]
    pub fn share(&self) -> Option<&str> {
        self.share.as_deref()
    }

    /// The limit of something, if it is limited.
    #[must_use]
    pub const fn of(&self, limit: Limit) -> Option<NonZeroU64> {
        self.numbers[limit as usize]
    }

    /// Sets a limit, or takes it away.
    pub fn set(&mut self, assignment: Assignment) {
        match assignment {
            Assignment::Number(limit, value) => self.numbers[limit as usize] = value,
            Assignment::Share(share) => self.share = share,
        }
    }

    /// The limits that are set, in order, as [`Assignment`] reads them.
    pub fn each(&self) -> impl Iterator<Item = String> {
        let numbers = Limit::ALL.into_iter().filter_map(|limit| Some((limit, self.of(limit)?)));
        let numbers = numbers.map(|(limit, value)| format!("{limit}={value}"));
        numbers.chain(self.share().map(|share| format!("{SHARE}={share}")))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::num::NonZeroU64;

    use super::{Assignment, Limit, Limits};

    #[test]
    fn limits_are_set_and_taken_away() {
        let mut limits = Limits::default();
        assert!(limits.is_empty());
        let mut all = String::new();
        for (index, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!(Limit::of_word(limit.word()), Some(limit));
            limits.set(Assignment::Number(limit, NonZeroU64::new(index as u64 + 1)));
            write!(all, "{limit}={} ", index + 1).unwrap();
        }
        limits.set("share=a b".parse().unwrap());
        assert_eq!(limits.each().collect::<Vec<_>>().join(" "), all + "share=a b");
        limits.set("max_tasks=none".parse().unwrap());
        assert_eq!((limits.of(Limit::Tasks), limits.each().count()), (None, 4));
        limits = Limits::default();
        limits.set("share=a".parse().unwrap());
        assert!(!limits.is_empty());
        limits.set("share=none".parse().unwrap());
        assert!(limits.is_empty());
    }

    #[test]
    fn assignments_are_read() {
        let five = NonZeroU64::new(5);
        assert_eq!("max_tasks=5".parse(), Ok(Assignment::Number(Limit::Tasks, five)));
        assert_eq!("max_tasks=none".parse(), Ok(Assignment::Number(Limit::Tasks, None)));
        assert_eq!("share=a=b".parse(), Ok(Assignment::Share(Some("a=b".into()))));
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
            "share=",
            &format!("share={}", "s".repeat(256)),
        ] {
            writeln!(all, "{}", text.parse::<Assignment>().unwrap_err()).unwrap();
        }
        expect_test::expect_file!["../../testdata/users/wrong_limits.txt"].assert_eq(&all);
    }
}
