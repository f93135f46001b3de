//! Rules: a right with a pattern, such as `put:orders.*`, or `admin` without one.
//!
//! What several rules allow together is in `rights.rs`.

use std::fmt;
use std::str::FromStr;

use crate::users::Right;
use crate::users::pattern::{Pattern, WrongPattern};
use crate::users::quote::quoted;

/// What a user may do, and where.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rule {
    right: Right,
    /// There is one for each right but that to run the server.
    pattern: Option<Pattern>,
}

/// Why a text is no rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongRule {
    /// There is no right of this word.
    #[error(
        "{} is no rule: write put, take, look or manage with a colon and a pattern, such as \
         put:orders.*, or admin",
        quoted(.0)
    )]
    Unknown(String),
    /// A right that is given on queues has no pattern.
    #[error("the rule {0} says on which queues with a pattern: write {0}:NAME, or {0}:* for all")]
    NoPattern(Right),
    /// The right to run the server has a pattern.
    #[error(
        "the rule {} has a pattern: admin is about the whole server, so write it alone",
        quoted(.0)
    )]
    AdminPattern(String),
    /// The pattern is none.
    #[error("the rule {} cannot be used: {why}", quoted(rule))]
    Pattern {
        /// The rule.
        rule: String,
        /// What is wrong with its pattern.
        why: WrongPattern,
    },
}

impl Rule {
    /// The rule that gives a right on some queues and topics. `None` for the right to run the
    /// server, which is not given on queues.
    #[must_use]
    pub fn on(right: Right, pattern: Pattern) -> Option<Self> {
        (right != Right::Admin).then_some(Self { right, pattern: Some(pattern) })
    }

    /// The rule that gives the right to run the server.
    #[must_use]
    pub const fn admin() -> Self {
        Self { right: Right::Admin, pattern: None }
    }

    /// The right that it gives.
    #[must_use]
    pub const fn right(&self) -> Right {
        self.right
    }

    /// Where it gives it, unless that is the server.
    #[must_use]
    pub const fn pattern(&self) -> Option<&Pattern> {
        self.pattern.as_ref()
    }
}

impl FromStr for Rule {
    type Err = WrongRule;

    fn from_str(text: &str) -> Result<Self, WrongRule> {
        let (word, pattern) = match text.split_once(':') {
            Some((word, pattern)) => (word, Some(pattern)),
            None => (text, None),
        };
        match (Right::of_word(word), pattern) {
            (None, _) => Err(WrongRule::Unknown(text.to_owned())),
            (Some(Right::Admin), None) => Ok(Self::admin()),
            (Some(Right::Admin), Some(_)) => Err(WrongRule::AdminPattern(text.to_owned())),
            (Some(right), None) => Err(WrongRule::NoPattern(right)),
            (Some(right), Some(pattern)) => match pattern.parse() {
                Ok(pattern) => Ok(Self { right, pattern: Some(pattern) }),
                Err(why) => Err(WrongRule::Pattern { rule: text.to_owned(), why }),
            },
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Some(pattern) => write!(f, "{}:{pattern}", self.right),
            None => write!(f, "{}", self.right),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rule;
    use crate::users::Right;
    use std::fmt::Write as _;

    #[test]
    fn rules_are_read_and_written() {
        for text in ["put:a", "take:a.*", "look:*", "manage:a:b%20c", "admin", "put:admin"] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        assert_eq!("put:%41".parse::<Rule>().unwrap().to_string(), "put:A");
    }

    #[test]
    fn admin_is_given_on_no_queue() {
        assert_eq!(Rule::on(Right::Admin, "*".parse().unwrap()), None);
        assert_eq!(Rule::on(Right::Put, "*".parse().unwrap()), "put:*".parse().ok());
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let mut all = String::new();
        let wrong =
            ["", "puts:a", "PUT:a", ":a", "*", "put", "put:", "put:a*b", "admin:*", " put:a"];
        for text in wrong {
            writeln!(all, "{}", text.parse::<Rule>().unwrap_err()).unwrap();
        }
        expect_test::expect_file!["../../testdata/users/wrong_rules.txt"].assert_eq(&all);
    }
}
