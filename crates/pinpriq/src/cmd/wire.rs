//! `pinpriq wire`: the commands that speak the pinpriq protocol.

use crate::args::wire::WireCommand;
use crate::exit::{Exit, Failure};

mod pop;
mod push;
mod subscribe;

/// Runs one of the commands.
pub(crate) fn wire(command: WireCommand) -> Result<Exit, Failure> {
    match command {
        WireCommand::Push(arguments) => push::push(arguments),
        WireCommand::Pop(arguments) => pop::pop(&arguments),
        WireCommand::Subscribe(arguments) => subscribe::subscribe(&arguments),
    }
}
