//! The arguments of `bench`.

use clap::{Args, ValueEnum};

use super::encryption::EncryptionArgs;
use super::values::{count, number_in};
use crate::units::bytes;

/// The largest payload that any server accepts.
const PAYLOAD_BYTES_MAX: u64 = 64 << 20;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Workload {
    /// Put tasks, which stay
    Put,
    /// Take and acknowledge tasks that were put before, until none is left
    Drain,
    /// Put, take and acknowledge: a cycle of the three is one job
    Mixed,
    /// Put and pop: a cycle of the two is one job
    Pop,
    /// Publish, then take and acknowledge each member's copy: all of that is one job
    FanOut,
}

/// Which protocol is spoken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Door {
    /// RESP, the protocol of Redis clients
    Resp,
    /// The pinpriq protocol, which has neither leases nor acknowledgements
    Pinpriq,
    /// HTTP/1.1
    Http,
}

/// The arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// What is measured
    #[arg(value_enum, default_value_t = Workload::Mixed)]
    pub(crate) workload: Workload,

    /// The name of the queue or topic; further ones have a number behind it
    #[arg(long, value_name = "NAME", default_value = "bench")]
    pub(crate) queue: String,

    /// How many connections
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = number_in::<u32>(1..=100_000))]
    #[arg(allow_negative_numbers = true)]
    pub(crate) connections: u32,

    /// How many requests are under way on each connection
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = number_in::<u32>(1..=65_536))]
    #[arg(allow_negative_numbers = true)]
    pub(crate) depth: u32,

    /// The size of each payload, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    #[arg(allow_hyphen_values = true, value_parser = payload_bytes)]
    pub(crate) size: u32,

    /// How many different priorities the tasks have
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = number_in::<u32>(1..=1_000_000))]
    #[arg(allow_negative_numbers = true)]
    pub(crate) priorities: u32,

    /// How many tasks are put first, which is not measured [default: 0, for drain 100000]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = number_in::<u64>(0..=u64::MAX), allow_negative_numbers = true)]
    pub(crate) backlog: Option<u64>,

    /// Over how many queues the tasks are spread
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = number_in::<u32>(1..=100_000))]
    #[arg(allow_negative_numbers = true)]
    pub(crate) queues: u32,

    /// Each connection keeps to one queue, rather than taking all in turns
    #[arg(long)]
    pub(crate) keep_queue: bool,

    /// Each slot acknowledges its task with its next take; for mixed only
    #[arg(long)]
    pub(crate) done: bool,

    /// How many members each topic has; for fan-out only [default: 10]
    #[arg(long, value_name = "N", value_parser = number_in::<u32>(1..=10_000))]
    #[arg(allow_negative_numbers = true)]
    pub(crate) members: Option<u32>,

    /// So many jobs begin each second, whatever the server does; without it, as many as it can do
    #[arg(long, value_name = "N", value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) rate: Option<u64>,

    /// How long to measure
    #[arg(long, value_name = "S", default_value_t = 10, conflicts_with = "count")]
    #[arg(value_parser = number_in::<u64>(1..=86_400))]
    #[arg(allow_negative_numbers = true)]
    pub(crate) seconds: u64,

    /// Measure so many jobs instead, however long they take
    #[arg(long, value_name = "N", value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: Option<u64>,

    /// Which protocol
    #[arg(long, value_enum, default_value_t = Door::Resp)]
    pub(crate) door: Door,

    /// What priorities and payloads depend on
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = number_in::<u64>(0..=u64::MAX), allow_negative_numbers = true)]
    pub(crate) seed: u64,

    /// Also tell what this process used, the server's: its CPU time and memory
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// Host and port of the server [default: that of the other commands for this protocol]
    #[arg(long, value_name = "ADDR")]
    pub(crate) address: Option<String>,

    #[command(flatten)]
    pub(crate) encryption: EncryptionArgs,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The size of a payload.
fn payload_bytes(text: &str) -> Result<u32, String> {
    let size = bytes(text)?;
    let within = u32::try_from(size).ok().filter(|_| size <= PAYLOAD_BYTES_MAX);
    within.ok_or_else(|| format!("`{text}` is more than 64MiB, the largest payload of all"))
}
