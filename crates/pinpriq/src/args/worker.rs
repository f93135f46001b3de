//! The arguments of the commands that run a command for each task.

use std::ffi::OsString;

use clap::Args;

use super::tasks::at_least_1;
use super::values::time_above_0;

/// The arguments of `take --exec`.
#[derive(Debug, Args)]
#[command(next_help_heading = "As a worker")]
pub(crate) struct WorkerArgs {
    /// Run this for each task, with sh -c and the payload on stdin
    #[arg(long, value_name = "CMD", conflicts_with_all = ["wait_ms", "group", "json"])]
    pub(crate) exec: Option<OsString>,

    #[command(flatten)]
    pub(crate) effort: EffortArgs,

    /// Stop when there is nothing to take
    #[arg(long, requires = "exec")]
    pub(crate) once: bool,
}

/// How hard a worker tries.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct EffortArgs {
    /// Bury a task that has failed after being taken this many times, or that is taken once more
    #[arg(long, value_name = "N", default_value_t = 5, requires = "exec")]
    #[arg(value_parser = at_least_1())]
    pub(crate) attempts_max: u64,

    /// How long a task waits after it failed first, in milliseconds; doubles each time
    #[arg(long, value_name = "MS", default_value_t = 1_000, requires = "exec")]
    pub(crate) backoff_ms: u64,

    /// End a command that takes longer than this, which counts as a failure [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = time_above_0, requires = "exec")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) timeout: Option<u64>,

    /// Run this many commands at a time
    #[arg(long, value_name = "N", default_value_t = 1, requires = "exec")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: u16,
}
