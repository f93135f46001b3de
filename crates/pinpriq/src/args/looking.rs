//! The arguments of the commands that look at whole queues, over RESP.

use std::ffi::OsString;

use clap::Args;

use super::given::{self, Given};
use super::tasks::ClientArgs;
use super::values::count;

/// The arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// The id of the task; without it the task that would be next
    pub(crate) id: Option<OsString>,

    #[command(flatten)]
    pub(crate) given: Given<given::Explain>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `scan`.
#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// Ask for this many at a time, up to 1000
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) page: u64,

    #[command(flatten)]
    pub(crate) given: Given<given::Scan>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `leases`.
#[derive(Debug, Args)]
pub(crate) struct LeasesArgs {
    /// The name of the queue; without it the leases are those of all queues
    pub(crate) queue: Option<OsString>,

    #[command(flatten)]
    pub(crate) given: Given<given::Leases>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
