//! The one binary: a server, a client for the shell, and the tools for a data directory.
//!
//! This file only hands the arguments to the command that they name and turns its end into an exit
//! code. What can be given is in `args.rs` and `settings.rs`, what is done with it in `cmd/`.

mod args;
mod base64;
mod cmd;
mod config;
mod connection;
mod exit;
mod json;
mod logging;
mod output;
mod pipeline;
mod printer;
mod progress;
mod receiving;
mod resp;
mod settings;
mod words;

use std::process::ExitCode;

use clap::Parser as _;

/// Tasks are many small blocks that come and go across threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cmd::run(args::Cli::parse().command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::tell(&failure);
            failure.exit_code()
        }
    }
}
