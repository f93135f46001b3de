//! The arguments of `publish` and `listen`.

use std::ffi::OsString;

use clap::Args;

use super::given::{self, Given};
use super::tasks::ClientArgs;
use super::values::{count, time_above_0, time_from};
use super::worker::EffortArgs;

/// The arguments of `publish`.
#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    /// The name of the topic, any bytes
    pub(crate) topic: OsString,

    /// The payload; read from stdin if it is left out or `-`
    pub(crate) payload: Option<OsString>,

    /// Publish each line of stdin, without its line end
    #[arg(long, conflicts_with_all = ["payload", "count"])]
    pub(crate) lines: bool,

    /// Publish this many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) given: Given<given::Publish>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `listen`.
#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// The name of the topic, any bytes
    pub(crate) topic: OsString,

    /// The name of the member, any bytes [default: one made of host name and process id]
    pub(crate) member: Option<OsString>,

    /// How long the member lives without a sign of life; one is given each third of it
    #[arg(long, value_name = "TIME", default_value_t = 60_000)]
    #[arg(value_parser = time_from(1_000))]
    #[arg(allow_hyphen_values = true, visible_alias = "lease")]
    pub(crate) lease_ms: u64,

    /// Stay a member at the end, so that the next run with this name finds what came meanwhile
    #[arg(long, requires = "member")]
    pub(crate) stay: bool,

    /// Stop after this many tasks [default: endless]
    #[arg(long, value_name = "N", value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,

    // The last, since its heading would cover all that follows.
    #[command(flatten)]
    pub(crate) worker: ListenerArgs,
}

/// The arguments of `listen --exec`.
#[derive(Debug, Args)]
#[command(next_help_heading = "As a worker")]
pub(crate) struct ListenerArgs {
    /// Run this for each task, with sh -c and the payload on stdin, instead of printing it
    #[arg(long, value_name = "CMD", conflicts_with = "json")]
    pub(crate) exec: Option<OsString>,

    /// How long the lease of a task lasts unless it is renewed
    #[arg(long, value_name = "TIME", default_value_t = 30_000, requires = "exec")]
    #[arg(value_parser = time_above_0)]
    #[arg(allow_hyphen_values = true, visible_alias = "ttr")]
    pub(crate) ttr_ms: u64,

    #[command(flatten)]
    pub(crate) effort: EffortArgs,
}
