//! The arguments of `pinpriq top`.

use std::ffi::OsString;

use clap::Args;

use super::tasks::ClientArgs;
use super::values::time_from;

/// The shortest time between two rounds of figures, in milliseconds.
const INTERVAL_MIN_MS: u64 = 100;

/// The arguments of `top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Ask for figures this often
    #[arg(long, value_name = "TIME", default_value = "1s")]
    #[arg(value_parser = time_from(INTERVAL_MIN_MS))]
    #[arg(allow_negative_numbers = true)]
    pub(crate) interval: u64,

    /// Only queues whose names begin with this
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<OsString>,

    /// Tell the shares of this queue too, those with the longest wait first
    #[arg(long, value_name = "QUEUE", requires = "json")]
    pub(crate) shares: Option<OsString>,

    /// Print one table, or one JSON object, and end
    #[arg(long)]
    pub(crate) once: bool,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
