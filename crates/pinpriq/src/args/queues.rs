//! The arguments of `status`.

use std::ffi::OsString;

use clap::Args;

use super::tasks::ClientArgs;
use super::values::number_in;

/// The arguments of `status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Only queues whose names begin with this
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<OsString>,

    /// Show up to this many queues, in the order of their names
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = number_in::<u64>(1..=10_000))]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
