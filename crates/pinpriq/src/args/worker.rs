//! The arguments of the commands that run a command for each task.

use std::ffi::OsString;

use clap::Args;

use super::values::{count, number_in, time_above_0};
use crate::units::duration_ms;

/// The arguments of `take --exec`.
#[derive(Debug, Args)]
#[command(next_help_heading = "As a worker")]
pub(crate) struct WorkerArgs {
    /// Run this for each task, with sh -c and the payload on stdin
    #[arg(long, value_name = "CMD", conflicts_with_all = ["wait_ms", "GROUP", "json"])]
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
    /// Bury a task when it fails this many times [default: the queue's attempts, or 5]
    #[arg(long, value_name = "N", requires = "exec")]
    #[arg(value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) attempts_max: Option<u64>,

    /// How long a task waits after it failed first; doubles each time [default: the queue's
    /// back-off, or 1s]
    #[arg(long, value_name = "TIME", requires = "exec")]
    #[arg(value_parser = duration_ms, allow_hyphen_values = true, visible_alias = "backoff")]
    pub(crate) backoff_ms: Option<u64>,

    /// End a command that takes longer than this, which counts as a failure [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = time_above_0, requires = "exec")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) timeout: Option<u64>,

    /// Run this many commands at a time
    #[arg(long, value_name = "N", default_value_t = 1, requires = "exec")]
    #[arg(value_parser = number_in::<u16>(1..=1024))]
    #[arg(allow_negative_numbers = true)]
    pub(crate) jobs: u16,
}
