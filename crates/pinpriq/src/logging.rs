//! The log: where it goes, how much of it, and how it is written.
//!
//! Each event decides itself what it logs. The log goes to stderr only, so that stdout is free for
//! what a command prints.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::exit::Failure;
use crate::settings::{LogFormat, LogLevel};

/// What is logged, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Logging {
    /// How much.
    pub(crate) level: LogLevel,
    /// How it is written.
    pub(crate) format: LogFormat,
}

/// Starts logging for the whole process. May be called once.
pub(crate) fn start(logging: Logging) -> Result<(), Failure> {
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        // A log without a reader must not bring the server down, as a complaint about that on
        // stderr would.
        .log_internal_errors(false)
        .with_env_filter(filter(logging.level));
    let started = match logging.format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Failure::on_the_way(format!("logging does not start: {error}")))
}

/// What is logged at a level. rustls warns of what clients send, however often they do, so it is
/// heard only where details are wanted.
fn filter(level: LogLevel) -> EnvFilter {
    EnvFilter::new(match level {
        LogLevel::Error => "error,rustls=off",
        LogLevel::Warn => "warn,rustls=off",
        LogLevel::Info => "info,rustls=off",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    })
}
