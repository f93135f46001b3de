//! `pinpriq completions`: what a shell needs to complete the command line.

use clap::CommandFactory as _;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::{Exit, Failure};
use crate::output::print_text;

/// Prints the completions.
pub(crate) fn completions(arguments: &CompletionsArgs) -> Result<Exit, Failure> {
    // Made in memory first, since the generator does not survive a reader that has gone.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "pinpriq", &mut script);
    print_text(&script)?;
    Ok(Exit::Done)
}
