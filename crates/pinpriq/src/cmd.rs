//! The commands, one file each.

mod check;
mod completions;
mod man;
mod pop;
mod push;
mod salvage;
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
        Command::Check(arguments) => check::check(&arguments),
        Command::Salvage(arguments) => salvage::salvage(&arguments),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Man(arguments) => man::man(&arguments),
    }
}
