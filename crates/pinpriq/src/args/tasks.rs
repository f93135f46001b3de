//! The arguments of `put` and `take`, and those that all commands over RESP have.

use std::ffi::OsString;

use clap::Args;

use super::encryption::EncryptionArgs;
use super::given::{self, Given};
use super::values::{count, time_above_0, wait};
use super::worker::WorkerArgs;
use crate::endpoint::{self, Endpoint};
use crate::exit::Failure;

/// Where the server is.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Host and port of the server's RESP door; of several, with commas between, the first that
    /// answers
    #[arg(long, env = "PINPRIQ_RESP_ADDRESS", hide_env_values = true, value_name = "ADDR")]
    #[arg(default_value = "127.0.0.1:7251")]
    pub(crate) address: String,

    #[command(flatten)]
    pub(crate) encryption: EncryptionArgs,
}

/// Where the server is, and how its answers are printed.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,

    /// Print one JSON object in each line
    #[arg(long)]
    pub(crate) json: bool,
}

impl ServerArgs {
    /// Returns where the server is.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Failure> {
        Endpoint::of(&self.address, &self.encryption, endpoint::RESP)
    }
}

impl ClientArgs {
    /// Returns where the server is.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Failure> {
        self.server.endpoint()
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
