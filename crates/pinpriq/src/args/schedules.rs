//! The arguments of the commands on schedules, over RESP.
//!
//! Which cron expressions and time zones there are is not known here: the server checks them.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::queues::ListArgs;
use super::schedule_texts as texts;
use super::tasks::ClientArgs;
use super::values::{OnMissed, OrNone, Overlap, number_in, time_above_0, time_from};

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
pub(crate) struct SetArgs {
    /// The name of the schedule, any bytes
    pub(crate) name: OsString,

    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// The payload of each task; read from stdin if it is left out or `-`
    pub(crate) payload: Option<OsString>,

    #[command(flatten)]
    pub(crate) when: WhenArgs,

    /// A moment that is a slot, in Unix milliseconds [default: --every from now]
    #[arg(long, value_name = "UNIX-MS", conflicts_with = "cron")]
    #[arg(value_parser = number_in::<u64>(0..=u64::MAX), allow_negative_numbers = true)]
    pub(crate) at: Option<u64>,

    /// The IANA time zone of --cron, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "NAME", conflicts_with = "every")]
    pub(crate) zone: Option<OsString>,

    /// The key: tasks of a queue with the same key form a group
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<OsString>,

    /// The lower, the more urgent; a task with none leaves only with its group [default: 0]
    #[arg(long, value_name = "N|none", allow_negative_numbers = true)]
    pub(crate) priority: Option<OrNone<i64>>,

    /// How long each task lives unless it is taken [default: the queue's]
    #[arg(long, value_name = "TIME", value_parser = time_above_0)]
    #[arg(allow_hyphen_values = true, visible_alias = "ttl")]
    pub(crate) ttl_ms: Option<u64>,

    /// How long a lease of each task lasts [default: the queue's]
    #[arg(long, value_name = "TIME", value_parser = time_above_0)]
    #[arg(allow_hyphen_values = true, visible_alias = "ttr")]
    pub(crate) ttr_ms: Option<u64>,

    /// Which slots are made up that passed while the server was down [default: one]
    #[arg(long, value_name = "WORD", value_enum, ignore_case = true)]
    pub(crate) missed: Option<OnMissed>,

    /// What happens while the task of the last slot is unfinished [default: allow]
    #[arg(long, value_name = "WORD", value_enum, ignore_case = true)]
    pub(crate) overlap: Option<Overlap>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// When a schedule is due: one of both.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct WhenArgs {
    /// The time from one slot to the next, at least 100 ms
    #[arg(long, value_name = "TIME", value_parser = time_from(100))]
    #[arg(allow_hyphen_values = true)]
    pub(crate) every: Option<u64>,

    /// A cron expression: minute, hour, day of month, month, day of week
    #[arg(long, value_name = "TEXT")]
    pub(crate) cron: Option<OsString>,
}
