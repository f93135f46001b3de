//! The command line: one definition, from which the parser, the help, the manual pages and the
//! completions are made.
//!
//! What the arguments mean is the business of the commands in `cmd/`. The settings of the server
//! are in `settings.rs`, since the configuration file has them too. The longer texts of the help
//! are in `args/texts.rs`. The commands that speak RESP are in files of their own under `args/`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::settings::{Framing, Settings};

use self::bench::BenchArgs;
use self::fanout::{BeatArgs, JoinArgs, LeaveArgs, ListenArgs, MembersArgs, PublishArgs};
use self::queues::{QueueCommand, StatsArgs};
use self::tasks::{
    AckArgs, AwaitArgs, BuryArgs, DigArgs, IdArgs, KillArgs, PeekArgs, PlowArgs, PutArgs,
    ReleaseArgs, SwitchArgs, TakeArgs, TouchArgs, TransferArgs, UpdateArgs,
};

pub(crate) mod bench;
pub(crate) mod fanout;
mod fanout_texts;
mod queue_settings;
mod queue_texts;
pub(crate) mod queues;
mod task_texts;
pub(crate) mod tasks;
mod texts;
mod values;
pub(crate) mod worker;

#[cfg(test)]
mod tests;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "pinpriq", version, about = texts::ABOUT, long_about = texts::LONG_ABOUT)]
#[command(after_help = texts::EXIT_CODES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server
    #[command(long_about = texts::SERVE, after_help = texts::AFTER_SERVE)]
    Serve(Box<ServeArgs>),
    /// Put a task into a queue, and print its id
    #[command(long_about = task_texts::PUT, after_help = task_texts::AFTER_PUT)]
    Put(PutArgs),
    /// Take tasks under a lease and print them, or run a command for each
    #[command(long_about = task_texts::TAKE, after_help = task_texts::AFTER_TAKE)]
    Take(TakeArgs),
    /// Finish taken tasks
    #[command(after_help = task_texts::AFTER_ACK)]
    Ack(AckArgs),
    /// Give taken tasks back
    #[command(long_about = task_texts::RELEASE, after_help = task_texts::AFTER_RELEASE)]
    Release(ReleaseArgs),
    /// Set taken tasks aside until somebody digs them up
    #[command(after_help = task_texts::AFTER_BURY)]
    Bury(BuryArgs),
    /// Renew leases
    #[command(long_about = task_texts::TOUCH, after_help = task_texts::AFTER_TOUCH)]
    Touch(TouchArgs),
    /// Print tasks of a queue without taking them
    #[command(long_about = task_texts::PEEK, after_help = task_texts::AFTER_PEEK)]
    Peek(PeekArgs),
    /// Print all that is known of a task
    #[command(after_help = task_texts::AFTER_GET)]
    Get(IdArgs),
    /// Wait until a task is finished
    #[command(long_about = task_texts::AWAIT, after_help = task_texts::AFTER_AWAIT)]
    Await(AwaitArgs),
    /// Bring a buried task back, and print the state that it is in then
    #[command(after_help = task_texts::AFTER_DIG)]
    Dig(DigArgs),
    /// Bring buried tasks back, the oldest first
    #[command(long_about = task_texts::PLOW, after_help = task_texts::AFTER_PLOW)]
    Plow(PlowArgs),
    /// Remove tasks whatever their state
    #[command(long_about = task_texts::KILL, after_help = task_texts::AFTER_KILL)]
    Kill(KillArgs),
    /// Turn a task that is not taken into another state, and print that
    #[command(after_help = task_texts::AFTER_SWITCH)]
    Switch(SwitchArgs),
    /// Take a task away from its holder, and print the state that it is in then
    #[command(after_help = task_texts::AFTER_SNATCH)]
    Snatch(TransferArgs),
    /// Bring a waiting or finished task back, and print the state that it is in then
    #[command(after_help = task_texts::AFTER_RESTART)]
    Restart(TransferArgs),
    /// Change the priority, payload or time to live of a task in place
    #[command(after_help = task_texts::AFTER_UPDATE)]
    Update(UpdateArgs),
    /// Make, set up, list, empty, remove and pause queues
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Print the figures of a queue, or of all queues together
    #[command(long_about = queue_texts::STATS, after_help = queue_texts::AFTER_STATS)]
    Stats(StatsArgs),
    /// Publish a task to all members of a topic, and print how many took it
    #[command(long_about = fanout_texts::PUBLISH, after_help = fanout_texts::AFTER_PUBLISH)]
    Publish(PublishArgs),
    /// Join a topic, and print what is published or run a command for it
    #[command(long_about = fanout_texts::LISTEN, after_help = fanout_texts::AFTER_LISTEN)]
    Listen(ListenArgs),
    /// Give a member a lane in a topic
    #[command(long_about = fanout_texts::JOIN, after_help = fanout_texts::AFTER_JOIN)]
    Join(JoinArgs),
    /// Give a sign of life of a member
    #[command(after_help = fanout_texts::AFTER_BEAT)]
    Beat(BeatArgs),
    /// End a lane of a member, or the member with all its lanes
    #[command(long_about = fanout_texts::LEAVE, after_help = fanout_texts::AFTER_LEAVE)]
    #[command(allow_missing_positional = true)]
    Leave(LeaveArgs),
    /// Print the members of a topic
    #[command(long_about = fanout_texts::MEMBERS, after_help = fanout_texts::AFTER_MEMBERS)]
    Members(MembersArgs),
    /// Push a packet to a queue, and wait until it is durable
    #[command(long_about = texts::PUSH, after_help = texts::AFTER_PUSH)]
    Push(PushArgs),
    /// Pop packets from a queue and print them
    #[command(long_about = texts::POP, after_help = texts::AFTER_POP)]
    Pop(PopArgs),
    /// Wait for packets and print them as they come
    #[command(long_about = texts::SUBSCRIBE, after_help = texts::AFTER_SUBSCRIBE)]
    Subscribe(SubscribeArgs),
    /// Tell what is in a data directory, and whether it is damaged
    #[command(long_about = texts::CHECK, after_help = texts::AFTER_CHECK)]
    Check(CheckArgs),
    /// Write all that can be read of a damaged data directory into a new one
    #[command(long_about = texts::SALVAGE, after_help = texts::AFTER_SALVAGE)]
    Salvage(SalvageArgs),
    /// Write a data directory into a new one with another number of shards
    #[command(long_about = texts::RESHARD, after_help = texts::AFTER_RESHARD)]
    Reshard(ReshardArgs),
    /// Load a server with requests, and tell how fast it was
    #[command(long_about = texts::BENCH, after_help = texts::AFTER_BENCH)]
    Bench(BenchArgs),
    /// Print the completions for a shell
    #[command(after_help = texts::AFTER_COMPLETIONS)]
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them
    #[command(after_help = texts::AFTER_MAN)]
    Man(ManArgs),
}

/// The arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// A TOML file with settings [default: none]
    #[arg(long, env = "PINPRIQ_CONFIG", hide_env_values = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) settings: Settings,
}

/// Where the server is.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Host and port of the server
    #[arg(long, env = "PINPRIQ_ADDRESS", hide_env_values = true, value_name = "ADDR")]
    #[arg(default_value = "127.0.0.1:7250")]
    pub(crate) address: String,
}

/// How packets are printed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PrintArgs {
    /// Print keys and payloads as hexadecimal digits
    #[arg(long)]
    pub(crate) hex: bool,

    /// Print the key and a tab before each payload
    #[arg(long)]
    pub(crate) with_key: bool,

    /// End each packet with a NUL byte instead of a line end
    #[arg(long, short = '0')]
    pub(crate) null: bool,
}

/// The arguments of `push`.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// The payload; read from stdin if it is left out or `-`
    pub(crate) payload: Option<OsString>,

    /// The key: packets of a queue with the same key leave together [default: the empty key]
    #[arg(long, value_name = "KEY", hide_default_value = true, default_value = "")]
    pub(crate) key: OsString,

    /// 1 is the most urgent, 255 the least, 0 is never selected
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) priority: u8,

    /// How long the packet may wait, in milliseconds, 1 to 65535
    #[arg(long, value_name = "MS", default_value_t = u16::MAX)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) ttl_ms: u16,

    /// Push the packet this many times
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// The arguments of `pop`.
#[derive(Debug, Args)]
pub(crate) struct PopArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// Pop up to this many times, and stop when the queue is empty
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) print: PrintArgs,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// The arguments of `subscribe`.
#[derive(Debug, Args)]
pub(crate) struct SubscribeArgs {
    /// The names of the queues, any bytes
    #[arg(required = true, value_name = "QUEUE")]
    pub(crate) queues: Vec<OsString>,

    /// End after this many deliveries; without it go on until the server closes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,

    /// How the server frames deliveries; must be what the server was told
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Framing::Counted)]
    pub(crate) framing: Framing,

    #[command(flatten)]
    pub(crate) print: PrintArgs,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// The arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The data directory
    pub(crate) dir: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `salvage`.
#[derive(Debug, Args)]
pub(crate) struct SalvageArgs {
    /// The damaged data directory
    pub(crate) dir: PathBuf,

    /// The new one, empty or not there yet
    pub(crate) new_dir: PathBuf,
}

/// The arguments of `reshard`.
#[derive(Debug, Args)]
pub(crate) struct ReshardArgs {
    /// The data directory, with any number of shards
    pub(crate) dir: PathBuf,

    /// The new one, empty or not there yet
    pub(crate) new_dir: PathBuf,

    /// How many shards the new one is to have, 1 to 64
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) shards: u8,
}

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that the completions are for
    pub(crate) shell: clap_complete::Shell,
}

/// The arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this directory, made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
