//! The command line: one definition, from which the parser, the help, the manual pages and the
//! completions are made.
//!
//! What the arguments mean is the business of the commands in `cmd/`. The settings of the server
//! are in `settings.rs`, since the configuration file has them too. The longer texts of the help
//! are in `args/texts.rs`. The commands that speak to a server are in files of their own under
//! `args/`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::settings::Settings;

use self::asked::Asked;
use self::bench::BenchArgs;
use self::carrying::{ExportArgs, ImportArgs};
use self::cluster::ClusterCommand;
use self::fanout::{ListenArgs, PublishArgs};
use self::queues::StatusArgs;
use self::tasks::{ClientArgs, PutArgs, TakeArgs};
use self::top::TopArgs;
use self::users::UserCommand;
use self::values::number_in;
use self::wire::WireCommand;

pub(crate) mod asked;
pub(crate) mod bench;
pub(crate) mod carrying;
mod carrying_texts;
pub(crate) mod cluster;
mod cluster_texts;
pub(crate) mod encryption;
pub(crate) mod fanout;
mod fanout_texts;
mod given;
pub(crate) mod more;
mod queue_settings;
mod queue_texts;
pub(crate) mod queues;
mod task_texts;
pub(crate) mod tasks;
mod texts;
pub(crate) mod top;
pub(crate) mod users;
mod users_texts;
mod values;
pub(crate) mod wire;
mod wire_texts;
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
    /// The other commands of the server.
    #[command(flatten)]
    Asked(Asked),
    /// Ask a server whether it answers
    #[command(long_about = queue_texts::PING, after_help = queue_texts::AFTER_PING)]
    Ping(ClientArgs),
    /// Print a table of the queues, with how fast tasks come and go
    #[command(long_about = queue_texts::STATUS, after_help = queue_texts::AFTER_STATUS)]
    Status(StatusArgs),
    /// Show the state of a server in a terminal: queues, rates, tasks
    #[command(long_about = queue_texts::TOP, after_help = queue_texts::AFTER_TOP)]
    Top(TopArgs),
    /// Write a queue, or all, as lines of JSON that `import` brings into another server
    #[command(long_about = carrying_texts::EXPORT, after_help = carrying_texts::AFTER_EXPORT)]
    Export(ExportArgs),
    /// Bring what `export` has written into a server, or move the jobs of a beanstalkd
    #[command(long_about = carrying_texts::IMPORT, after_help = carrying_texts::AFTER_IMPORT)]
    Import(ImportArgs),
    /// Publish a task to all members of a topic, and print how many took it
    #[command(long_about = fanout_texts::PUBLISH, after_help = fanout_texts::AFTER_PUBLISH)]
    Publish(PublishArgs),
    /// Join a topic, and print what is published or run a command for it
    #[command(long_about = fanout_texts::LISTEN, after_help = fanout_texts::AFTER_LISTEN)]
    Listen(ListenArgs),
    /// Push, pop and subscribe over the pinpriq protocol
    #[command(subcommand, long_about = wire_texts::WIRE)]
    Wire(WireCommand),
    /// Look at a cluster of several machines, change it, fill it, and copy it
    #[command(subcommand, long_about = cluster_texts::CLUSTER)]
    Cluster(ClusterCommand),
    /// Say who may do what: change the file of users
    #[command(subcommand, long_about = users_texts::USER)]
    User(UserCommand),
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
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) settings: Settings,
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
    #[arg(long, value_name = "N", value_parser = number_in::<u8>(1..=64))]
    #[arg(allow_negative_numbers = true)]
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
