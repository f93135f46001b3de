//! The commands, one file each.

mod completions;
mod man;
mod pop;
mod push;
mod serve;
mod subscribe;

use crate::args::Command;
use crate::exit::{Exit, Failure};

/// Runs one command to its end.
pub(crate) fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Serve(arguments) => serve::serve(*arguments),
        Command::Push(arguments) => push::push(arguments),
        Command::Pop(arguments) => pop::pop(&arguments),
        Command::Subscribe(arguments) => subscribe::subscribe(&arguments),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Man(arguments) => man::man(&arguments),
    }
}
