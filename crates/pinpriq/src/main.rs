//! The one binary: a server, a client for the shell, and the tools for a data directory.
//!
//! This file only hands the arguments to the command that they name and turns its end into an exit
//! code. What can be given is in `args.rs` and `settings.rs`, what is done with it in `cmd/`.

mod args;
mod cmd;
mod config;
mod connection;
mod exit;
mod json;
mod logging;
mod output;
mod settings;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cmd::run(args::Cli::parse().command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // Without stderr there is nobody left to tell, but the exit code still says it.
            let _ = writeln!(std::io::stderr(), "pinpriq: {failure}");
            failure.exit_code()
        }
    }
}
