//! The arguments of the commands on queues, over RESP.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::given::{self, Given};
use super::queue_settings::GivenSettings;
use super::queue_texts as texts;
use super::tasks::ClientArgs;
use super::values::{Side, number_in};

/// What can be done with a queue.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Make a queue that exists even when it is empty
    #[command(after_help = texts::AFTER_CREATE)]
    Create(SettingsArgs),
    /// Change settings of a queue; makes it if there is none
    #[command(after_help = texts::AFTER_SET)]
    Set(SetArgs),
    /// Print the settings of a queue
    #[command(after_help = texts::AFTER_SHOW)]
    Show(ShowArgs),
    /// Print the names of all queues
    #[command(after_help = texts::AFTER_LIST)]
    List(ListArgs),
    /// Remove all tasks of a queue, in whatever state; its settings stay
    #[command(long_about = texts::TRUNCATE, after_help = texts::AFTER_TRUNCATE)]
    Truncate(TruncateArgs),
    /// Remove a queue: all its tasks, in whatever state, and its settings
    #[command(long_about = texts::DROP, after_help = texts::AFTER_DROP)]
    Drop(NameArgs),
    /// Hold up puts, takes, or both; this survives a restart of the server
    #[command(after_help = texts::AFTER_PAUSE)]
    Pause(PauseArgs),
    /// End a pause
    #[command(after_help = texts::AFTER_RESUME)]
    Resume(ResumeArgs),
}

/// A queue, and nothing else.
#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `queue show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) name: NameArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::QueueShow>,
}

/// The arguments of `queue truncate`.
#[derive(Debug, Args)]
pub(crate) struct TruncateArgs {
    #[command(flatten)]
    pub(crate) name: NameArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::QueueTruncate>,
}

/// The arguments of `queue resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) sides: SideArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::QueueResume>,
}

/// The arguments of `queue set`.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::QueueSet>,
}

/// The arguments of `queue create`, and the better part of those of `queue set`.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    #[command(flatten)]
    pub(crate) given: GivenSettings,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `queue list` and `schedule list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only names that begin with this
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<OsString>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What `queue pause` and `queue resume` have in common.
#[derive(Debug, Args)]
pub(crate) struct SideArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// One side only; without it both
    #[arg(value_enum)]
    pub(crate) side: Option<Side>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `queue pause`.
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    pub(crate) sides: SideArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::QueuePause>,
}

/// The arguments of `ping`.
#[derive(Debug, Args)]
pub(crate) struct PingArgs {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

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

/// The arguments of `stats`.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// The name of the queue; without it the figures are those of all queues together
    pub(crate) queue: Option<OsString>,

    #[command(flatten)]
    pub(crate) given: Given<given::Stats>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
