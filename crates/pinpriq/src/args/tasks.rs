//! The arguments of the commands on tasks, over RESP.

use std::ffi::OsString;

use clap::Args;

use super::encryption::EncryptionArgs;
use super::values::{
    End, OnDuplicate, OrNone, Order, State, count, time_above_0, time_or_none, wait,
};
use super::worker::WorkerArgs;
use crate::endpoint::{self, Endpoint};
use crate::exit::Failure;
use crate::units::duration_ms;

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

/// Whose tasks are meant.
#[derive(Debug, Args)]
pub(crate) struct LaneArgs {
    /// The lane of this member of a topic; QUEUE names the topic then
    #[arg(long, value_name = "MEMBER")]
    pub(crate) member: Option<OsString>,
}

/// The arguments of `put`.
#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// The payload; read from stdin if it is left out or `-`
    pub(crate) payload: Option<OsString>,

    /// Put each line of stdin as a task, without its line end
    #[arg(long, conflicts_with_all = ["payload", "count", "id"])]
    pub(crate) lines: bool,

    /// The key: tasks of a queue with the same key form a group
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<OsString>,

    /// The lower, the more urgent; a task with none leaves only with its group [default: 0]
    #[arg(long, value_name = "N|none", allow_negative_numbers = true)]
    pub(crate) priority: Option<OrNone<i64>>,

    /// How long the task waits before it can be taken [default: 0]
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    #[arg(allow_hyphen_values = true, visible_alias = "delay")]
    pub(crate) delay_ms: Option<u64>,

    /// How long the task lives unless it is taken [default: the queue's]
    #[arg(long, value_name = "TIME", value_parser = time_above_0)]
    #[arg(allow_hyphen_values = true, visible_alias = "ttl")]
    pub(crate) ttl_ms: Option<u64>,

    /// How long a lease of the task lasts [default: the queue's]
    #[arg(long, value_name = "TIME", value_parser = time_above_0)]
    #[arg(allow_hyphen_values = true, visible_alias = "ttr")]
    pub(crate) ttr_ms: Option<u64>,

    /// The id, for a queue with `--ids given`
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<OsString>,

    /// Wait this long until the task is finished; -1 is without end
    #[arg(long, value_name = "TIME")]
    #[arg(value_parser = wait)]
    #[arg(allow_hyphen_values = true, visible_alias = "wait")]
    pub(crate) wait_ms: Option<i64>,

    /// Wait this long for room in a full queue
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) room: Option<u64>,

    /// Put the task as buried: it waits until it is dug up or kicked
    #[arg(long, conflicts_with_all = ["delay_ms", "wait_ms", "room", "unique"])]
    pub(crate) buried: bool,

    /// Why it is buried
    #[arg(long, value_name = "TEXT", requires = "buried")]
    pub(crate) reason: Option<OsString>,

    /// Put no second task with this key while the first is unfinished
    #[arg(long, value_name = "KEY", conflicts_with_all = ["lines", "count"])]
    pub(crate) unique: Option<OsString>,

    /// Count others as duplicates for this long, even if the first task is finished
    #[arg(long, value_name = "TIME", value_parser = time_above_0, requires = "unique")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) window: Option<u64>,

    /// What becomes of a duplicate [default: keep, the first task stays as it is]
    #[arg(long, value_name = "WORD", value_enum, requires = "unique")]
    pub(crate) on_dup: Option<OnDuplicate>,

    /// Put the task this many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Which of the tasks are meant.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SelectionArgs {
    /// From which end of the priorities [default: min]
    #[arg(long, value_name = "END", value_enum)]
    pub(crate) from: Option<End>,

    /// In which order within one priority [default: oldest, newest from the end max]
    #[arg(long, value_name = "ORDER", value_enum)]
    pub(crate) order: Option<Order>,
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
    pub(crate) selection: SelectionArgs,

    /// Take all tasks of a group together; --count counts groups
    #[arg(long)]
    pub(crate) group: bool,

    #[command(flatten)]
    pub(crate) lane: LaneArgs,

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

    /// Pop up to this many [default: 1]
    #[arg(long, value_name = "N", value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: Option<u64>,

    /// Wait this long for a task; -1 is without end [default: 0]
    #[arg(long, value_name = "TIME")]
    #[arg(value_parser = wait)]
    #[arg(allow_hyphen_values = true, visible_alias = "wait")]
    pub(crate) wait_ms: Option<i64>,

    #[command(flatten)]
    pub(crate) selection: SelectionArgs,

    /// Pop all tasks of a group together; --count counts groups
    #[arg(long)]
    pub(crate) group: bool,

    #[command(flatten)]
    pub(crate) lane: LaneArgs,

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
    pub(crate) lane: LaneArgs,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `ack`.
#[derive(Debug, Args)]
pub(crate) struct AckArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,

    /// A new payload, for a task that stays
    #[arg(long, value_name = "PAYLOAD")]
    pub(crate) payload: Option<OsString>,

    /// Keep the finished task this long [default: as the queue says]
    #[arg(long, value_name = "TIME", value_parser = time_above_0)]
    #[arg(allow_hyphen_values = true, visible_alias = "zombie")]
    pub(crate) zombie_ms: Option<u64>,
}

/// What a task can be given when it goes back to its queue.
#[derive(Debug, Args)]
pub(crate) struct BackArgs {
    /// How long the task waits before it can be taken [default: 0]
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    #[arg(allow_hyphen_values = true, visible_alias = "delay")]
    pub(crate) delay_ms: Option<u64>,

    /// A new time to live [default: the old one goes on]
    #[arg(long, value_name = "TIME", value_parser = time_above_0)]
    #[arg(allow_hyphen_values = true, visible_alias = "ttl")]
    pub(crate) ttl_ms: Option<u64>,
}

/// What a task can be given besides.
#[derive(Debug, Args)]
pub(crate) struct AmendmentArgs {
    /// A new priority, or none [default: it stays]
    #[arg(long, value_name = "N|none", allow_negative_numbers = true)]
    pub(crate) priority: Option<OrNone<i64>>,

    /// A new payload [default: it stays]
    #[arg(long, value_name = "PAYLOAD")]
    pub(crate) payload: Option<OsString>,
}

/// The arguments of `release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,

    #[command(flatten)]
    pub(crate) back: BackArgs,

    #[command(flatten)]
    pub(crate) amendment: AmendmentArgs,

    /// Put it behind all others of its priority [default: its old place]
    #[arg(long)]
    pub(crate) tail: bool,
}

/// The arguments of `bury`.
#[derive(Debug, Args)]
pub(crate) struct BuryArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,

    /// Why, for whoever looks at it later
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<OsString>,

    /// A new payload [default: it stays]
    #[arg(long, value_name = "PAYLOAD")]
    pub(crate) payload: Option<OsString>,
}

/// The arguments of `fail`.
#[derive(Debug, Args)]
pub(crate) struct FailArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,

    /// What went wrong, for whoever looks at it later
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<OsString>,

    /// How long the task waits before it can be taken [default: the queue's back-off]
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    #[arg(allow_hyphen_values = true, visible_alias = "delay")]
    pub(crate) delay_ms: Option<u64>,

    /// A new payload [default: it stays]
    #[arg(long, value_name = "PAYLOAD")]
    pub(crate) payload: Option<OsString>,
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
    pub(crate) lane: LaneArgs,

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

    /// Tasks in this state [default: ready]
    #[arg(long, value_name = "STATE", value_enum, ignore_case = true)]
    pub(crate) state: Option<State>,

    #[command(flatten)]
    pub(crate) selection: SelectionArgs,

    #[command(flatten)]
    pub(crate) lane: LaneArgs,

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
    pub(crate) lane: LaneArgs,

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
}

/// The arguments of `dig`.
#[derive(Debug, Args)]
pub(crate) struct DigArgs {
    #[command(flatten)]
    pub(crate) task: IdArgs,

    #[command(flatten)]
    pub(crate) back: BackArgs,

    #[command(flatten)]
    pub(crate) amendment: AmendmentArgs,
}

/// The arguments of `plow`.
#[derive(Debug, Args)]
pub(crate) struct PlowArgs {
    /// The name of the queue, any bytes
    pub(crate) queue: OsString,

    /// At most this many [default: all]
    #[arg(long, value_name = "N", value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) back: BackArgs,

    #[command(flatten)]
    pub(crate) lane: LaneArgs,

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

    /// At most this many, up to 10000 [default: 1000]
    #[arg(long, value_name = "N", value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: Option<u64>,

    /// Tasks in this state; none that is taken can be moved [default: ready]
    #[arg(long, value_name = "STATE", value_enum, ignore_case = true)]
    pub(crate) state: Option<State>,

    /// The lane of this member of a topic; FROM names the topic then
    #[arg(long, value_name = "MEMBER")]
    pub(crate) member: Option<OsString>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `redrive`.
#[derive(Debug, Args)]
pub(crate) struct RedriveArgs {
    /// The name of the queue with the dead letters, any bytes
    pub(crate) queue: OsString,

    /// At most this many, up to 10000 [default: 1000]
    #[arg(long, value_name = "N", value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) lane: LaneArgs,

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
    pub(crate) lane: LaneArgs,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The arguments of `switch`.
#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    #[command(flatten)]
    pub(crate) task: IdArgs,

    /// The new state
    #[arg(long, value_name = "STATE", value_enum, ignore_case = true)]
    pub(crate) to: State,

    #[command(flatten)]
    pub(crate) back: BackArgs,
}

/// The arguments of `snatch` and `restart`.
#[derive(Debug, Args)]
pub(crate) struct TransferArgs {
    #[command(flatten)]
    pub(crate) task: IdArgs,

    #[command(flatten)]
    pub(crate) back: BackArgs,
}

/// The arguments of `update`.
#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    pub(crate) task: IdArgs,

    #[command(flatten)]
    pub(crate) amendment: AmendmentArgs,

    /// A new time to live, or none [default: the old one goes on]
    #[arg(long, value_name = "TIME|none")]
    #[arg(value_parser = time_or_none, allow_hyphen_values = true, visible_alias = "ttl")]
    pub(crate) ttl_ms: Option<OrNone<u64>>,

    /// The receipt, needed for a task that is taken
    #[arg(long, value_name = "RECEIPT")]
    pub(crate) receipt: Option<OsString>,
}
