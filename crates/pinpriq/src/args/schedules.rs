//! The arguments of the commands on schedules, over RESP.
//!
//! Which cron expressions and time zones there are is not known here: the server checks them.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::given::{self, Given};
use super::queues::ListArgs;
use super::schedule_texts as texts;
use super::tasks::ClientArgs;

/// What can be done with a schedule.
#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// Put a task into a queue again and again, and print the next slot
    #[command(long_about = texts::SET, after_help = texts::AFTER_SET)]
    Set(Box<SetArgs>),
    /// Print what a schedule does and what it has done
    #[command(after_help = texts::AFTER_SHOW)]
    Show(NameArgs),
    /// Print the names of all schedules
    #[command(after_help = texts::AFTER_LIST)]
    List(ListArgs),
    /// Let slots pass without a task; this survives a restart of the server
    #[command(after_help = texts::AFTER_PAUSE)]
    Pause(NameArgs),
    /// End a pause
    #[command(after_help = texts::AFTER_RESUME)]
    Resume(NameArgs),
    /// Remove a schedule, and print 1, or 0 if there is none; its tasks stay
    #[command(after_help = texts::AFTER_DROP)]
    Drop(NameArgs),
    /// Put a task of a schedule now, also while it is paused, and print its id
    #[command(after_help = texts::AFTER_FIRE)]
    Fire(NameArgs),
}

/// A schedule, and nothing else.
#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The name of the schedule, any bytes
    pub(crate) name: OsString,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `schedule set`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("when").args(["EVERY", "CRON"]).required(true))]
pub(crate) struct SetArgs {
    /// The name of the schedule, any bytes
    pub(crate) name: OsString,

    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// The payload of each task; read from stdin if it is left out or `-`
    pub(crate) payload: Option<OsString>,

    #[command(flatten)]
    pub(crate) given: Given<given::ScheduleSet>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
