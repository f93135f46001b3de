//! All of the program except its `main` function and its allocator: a server, a client for the
//! shell, and the tools for a data directory.
//!
//! It is a library only so that a fuzz target can reach it, and promises nothing to others.
//! `args.rs` and `settings.rs` define the arguments, and `cmd/` carries them out.

mod args;
mod cluster;
mod cmd;
mod columns;
mod config;
mod connection;
mod endpoint;
mod environment;
mod exit;
mod http;
mod json;
mod logging;
mod machine;
mod moments;
mod output;
mod pipeline;
mod printer;
mod progress;
mod resp;
mod settings;
mod told;
mod units;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args as _, FromArgMatches as _, Parser as _};

/// Carries out the arguments of the process.
#[must_use]
pub fn run() -> ExitCode {
    match cmd::run(args::Cli::parse().command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            logging::tell(&failure);
            failure.exit_code()
        }
    }
}

/// Returns the configuration that `pinpriq serve` makes of these flags and of a configuration file
/// with this text, or the message that refuses them. Host names are not resolved: an address with
/// one is left out.
pub fn configuration(
    flags: impl IntoIterator<Item = OsString>,
    file: &str,
) -> Result<String, String> {
    let command = clap::Command::new("pinpriq serve").no_binary_name(true);
    let serve = args::ServeArgs::augment_args(command)
        .try_get_matches_from(flags)
        .and_then(|matches| args::ServeArgs::from_arg_matches(&matches))
        .map_err(|error| error.to_string())?;
    let plan = config::plan_of(serve.settings, file).map_err(|error| error.to_string())?;
    Ok(format!("{plan:?}"))
}
