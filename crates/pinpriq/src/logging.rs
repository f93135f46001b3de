//! The log: where it goes, how much of it, and how it is written.
//!
//! Each event decides itself what it logs. The log goes to stderr only, so that stdout is free for
//! what a command prints. Nothing waits for its reader: see [`Log`].

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::time::Duration;

use pinpriq_server::Log;
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

/// How long the process waits at its end for the reader of the log.
const FINISH: Duration = Duration::from_secs(1);

/// The log of this process, once it was started.
static LOG: OnceLock<Log> = OnceLock::new();

/// Reports on stderr what does not end the command, or not yet. A server that has a log does not
/// wait for ever for its reader.
pub(crate) fn tell(sentence: impl Display) {
    let line = format!("pinpriq: {sentence}\n");
    if let Some(log) = LOG.get() {
        log.hand_over(line.as_bytes());
        finish();
    } else {
        // Without stderr nothing can be reported.
        let _ = io::stderr().write_all(line.as_bytes());
    }
}

/// Waits a moment until the log is read, if there is one.
pub(crate) fn finish() {
    if let Some(log) = LOG.get() {
        // What is not read by then is lost.
        let _ = log.finish(FINISH);
    }
}

/// Starts logging for the whole process. May be called once.
pub(crate) fn start(logging: Logging) -> Result<(), Failure> {
    let log = Log::to(io::stderr())
        .map_err(|error| Failure::on_the_way(format!("logging does not start: {error}")))?;
    let log = LOG.get_or_init(|| log);
    let builder = tracing_subscriber::fmt()
        .with_writer(|| log.clone())
        // A log without a reader must not bring the server down, as a complaint about that on
        // stderr would.
        .log_internal_errors(false)
        .with_env_filter(filter(logging.level));
    let started = match logging.format {
        LogFormat::Text => builder.with_ansi(io::stderr().is_terminal()).try_init(),
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
