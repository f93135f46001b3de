//! A step of a transaction. How it is carried out is up to the engine.

use super::Command;
use crate::rights::Need;

/// A step of a [`Command::Transaction`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
#[letter(most = crate::limits::TRANSACTION_STEPS_MAX)]
#[expect(clippy::large_enum_variant, reason = "nearly all steps are commands")]
pub enum Step<'a> {
    /// Carries out a command. If it is refused, nothing of the transaction has happened. Only the
    /// commands for which [`Command::is_step`] holds can be steps.
    #[letter(1)]
    Command(Command<'a>),
    /// Changes nothing, and is answered with [`Reply::Done`](crate::reply::Reply::Done).
    #[letter(2)]
    Nothing,
    /// Is refused with BADARG and this sentence: its arguments are no command.
    #[letter(3)]
    Bad(&'a str),
}

/// Tells what these steps need.
pub(super) fn each_need_of<'c>(steps: &'c [Step<'c>], tell: &mut dyn FnMut(Need<'c>)) {
    for step in steps {
        if let Step::Command(command) = step {
            command.each_need(tell);
        }
    }
}
