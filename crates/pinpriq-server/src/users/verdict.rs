//! Whether a command is allowed.

use std::fmt;

use pinpriq_proto::command::Command;
use pinpriq_proto::rights::Need;

use crate::users::{Pattern, Right, Rights};

/// Whether a command is allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict<'c> {
    /// It is allowed.
    Allowed,
    /// It is allowed as far as it stays where this right is given. Only the engine can tell.
    Within(Right),
    /// It is not allowed.
    Denied(Lack<'c>),
}

/// A right that is not given. As a text it is the rule that would give it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lack<'c> {
    /// The right.
    pub right: Right,
    /// The queue or topic.
    pub name: &'c [u8],
}

impl fmt::Display for Lack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.right, Pattern::name(self.name))
    }
}

/// Compares what a command needs with what a user may do. Costs a few comparisons for each queue
/// that it names.
#[must_use]
pub fn judge<'c>(rights: &Rights, command: &Command<'c>) -> Verdict<'c> {
    let mut verdict = Verdict::Allowed;
    command.each_need(&mut |need| {
        let own = match need {
            Need::On(right, name) if !rights.allows(right, name) => {
                Verdict::Denied(Lack { right, name })
            }
            Need::Wherever(right) if !rights.allows_all(right) => Verdict::Within(right),
            Need::On(..) | Need::Wherever(_) => return,
        };
        // Name the first right that is missing.
        if !matches!(verdict, Verdict::Denied(_)) {
            verdict = own;
        }
    });
    verdict
}

#[cfg(test)]
mod tests;
