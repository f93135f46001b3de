//! The arguments of the commands on tasks, over RESP.

use std::ffi::OsString;

use clap::Args;

use super::encryption::EncryptionArgs;
use super::given::{self, Given, word_of};
use super::values::{count, time_above_0, wait};
use super::worker::WorkerArgs;
use crate::endpoint::{self, Endpoint};
use crate::exit::Failure;

/// Where the server is, and how its answers are printed.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// Host and port of the server's RESP door; of several, with commas between, the first that
    /// answers
    #[arg(long, env = "PINPRIQ_RESP_ADDRESS", hide_env_values = true, value_name = "ADDR")]
    #[arg(default_value = "127.0.0.1:7251")]
    pub(crate) address: String,

    #[command(flatten)]
    pub(crate) encryption: EncryptionArgs,

    /// Print one JSON object in each line
    #[arg(long)]
    pub(crate) json: bool,
}

impl ClientArgs {
    /// Returns where the server is.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Failure> {
        Endpoint::of(&self.address, &self.encryption, endpoint::RESP)
    }
}

/// The arguments of `put`.
#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// The payload; read from stdin if it is left out or `-`
    pub(crate) payload: Option<OsString>,

    /// Put each line of stdin as a task, without its line end
    #[arg(long, conflicts_with_all = ["payload", "count"])]
    pub(crate) lines: bool,

    /// Put the task as buried: it waits until it is dug up or kicked
    #[arg(long, conflicts_with_all = ["DELAY", "WAIT", "ROOM", "UNIQUE"])]
    pub(crate) buried: bool,

    /// Put the task this many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) given: Given<given::Put>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `take`.
#[derive(Debug, Args)]
pub(crate) struct TakeArgs {
    /// The names of the queues, any bytes, tried in this order
    #[arg(required = true, value_name = "QUEUE")]
    pub(crate) queues: Vec<OsString>,

    /// Take up to this many; with --exec stop after this many [default: 1, with --exec endless]
    #[arg(long, value_name = "N", value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: Option<u64>,

    /// Wait this long for a task; -1 is without end [default: 0]
    #[arg(long, value_name = "TIME")]
    #[arg(value_parser = wait)]
    #[arg(allow_hyphen_values = true, visible_alias = "wait")]
    pub(crate) wait_ms: Option<i64>,

    /// How long the lease lasts unless it is renewed
    #[arg(long, value_name = "TIME", default_value_t = 30_000, value_parser = time_above_0)]
    #[arg(allow_hyphen_values = true, visible_alias = "ttr")]
    pub(crate) ttr_ms: u64,

    #[command(flatten)]
    pub(crate) given: Given<given::Take>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,

    // The last, since its heading would cover all that follows.
    #[command(flatten)]
    pub(crate) worker: WorkerArgs,
}

/// The arguments of `pop`.
#[derive(Debug, Args)]
pub(crate) struct PopArgs {
    /// The names of the queues, any bytes, tried in this order
    #[arg(required = true, value_name = "QUEUE")]
    pub(crate) queues: Vec<OsString>,

    #[command(flatten)]
    pub(crate) given: Given<given::Pop>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The leases that a command is about.
#[derive(Debug, Args)]
pub(crate) struct HeldArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// The receipts that take printed
    #[arg(required = true, value_name = "RECEIPT")]
    pub(crate) receipts: Vec<OsString>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `ack`.
#[derive(Debug, Args)]
pub(crate) struct AckArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::Ack>,
}

/// The arguments of `release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::Release>,
}

/// The arguments of `bury`.
#[derive(Debug, Args)]
pub(crate) struct BuryArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::Bury>,
}

/// The arguments of `fail`.
#[derive(Debug, Args)]
pub(crate) struct FailArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::Fail>,
}

/// The arguments of `touch`.
#[derive(Debug, Args)]
pub(crate) struct TouchArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// The receipts that take printed
    #[arg(required_unless_present = "id", value_name = "RECEIPT")]
    pub(crate) receipts: Vec<OsString>,

    /// A task that is ready, by its id: moves its time to live, needs --by-ms
    #[arg(long, value_name = "ID", conflicts_with = "receipts", requires = "by_ms")]
    pub(crate) id: Option<OsString>,

    /// Move the deadline by this much [default: a whole lease from now]
    #[arg(long, value_name = "TIME", value_parser = time_above_0)]
    #[arg(allow_hyphen_values = true, visible_alias = "by")]
    pub(crate) by_ms: Option<u64>,

    #[command(flatten)]
    pub(crate) given: Given<given::Touch>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `peek`.
#[derive(Debug, Args)]
pub(crate) struct PeekArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// Print up to this many
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) given: Given<given::Peek>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// A task by its id.
#[derive(Debug, Args)]
pub(crate) struct IdArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// The id of the task
    pub(crate) id: OsString,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `await`.
#[derive(Debug, Args)]
pub(crate) struct AwaitArgs {
    #[command(flatten)]
    pub(crate) task: IdArgs,

    /// Wait this long; -1 is without end
    #[arg(long, value_name = "TIME", default_value_t = -1)]
    #[arg(value_parser = wait)]
    #[arg(allow_hyphen_values = true, visible_alias = "wait")]
    pub(crate) wait_ms: i64,

    #[command(flatten)]
    pub(crate) given: Given<given::Await>,
}

/// The arguments of `dig`.
#[derive(Debug, Args)]
pub(crate) struct DigArgs {
    #[command(flatten)]
    pub(crate) task: IdArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::Dig>,
}

/// The arguments of `plow`.
#[derive(Debug, Args)]
pub(crate) struct PlowArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    #[command(flatten)]
    pub(crate) given: Given<given::Plow>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `move`.
#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// The name of the queue that the tasks leave, any bytes
    pub(crate) from: OsString,

    /// The name of the queue that they enter, any bytes
    pub(crate) to: OsString,

    #[command(flatten)]
    pub(crate) given: Given<given::Move>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `redrive`.
#[derive(Debug, Args)]
pub(crate) struct RedriveArgs {
    /// The name of the queue with the dead letters, any bytes
    pub(crate) queue: OsString,

    #[command(flatten)]
    pub(crate) given: Given<given::Redrive>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `kill`.
#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// The ids of the tasks
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<OsString>,

    #[command(flatten)]
    pub(crate) given: Given<given::Kill>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `switch`.
#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    #[command(flatten)]
    pub(crate) task: IdArgs,

    /// The new state
    #[arg(long, value_name = "STATE", value_parser = word_of("R|W|T|B|Z|D"), ignore_case = true)]
    pub(crate) to: OsString,

    #[command(flatten)]
    pub(crate) given: Given<given::Switch>,
}

/// The arguments of `update`.
#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    pub(crate) task: IdArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::Update>,
}

/// The arguments of `get`.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) task: IdArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::Get>,
}

/// The arguments of `snatch`.
#[derive(Debug, Args)]
pub(crate) struct SnatchArgs {
    #[command(flatten)]
    pub(crate) task: IdArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::Snatch>,
}

/// The arguments of `restart`.
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    pub(crate) task: IdArgs,

    #[command(flatten)]
    pub(crate) given: Given<given::Restart>,
}
