//! The settings of a node of a cluster, and the engine under it. Plain data; connects to nothing.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pinpriq_cluster::{Registry, ShardNumber};
use pinpriq_store::ledger::{Ledger, Seq, Term, Unreachable, Writer};

use crate::letters::owners::Administer;

/// What wakes a loop when an engine has an answer.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// A distributed engine that keeps the logs and the registry of a cluster.
pub trait ClusterEngine: Send + Sync {
    /// Opens the log of a shard for a writer. `wake` is called with each answer. Never waits.
    fn ledger(&self, shard: ShardNumber, writer: Writer, wake: Wake) -> Box<dyn Ledger>;

    /// Returns what the logs of this many shards have come to, or none for a shard without a log.
    /// Blocks. Must not be called on a thread of an async runtime.
    fn log_ends(&self, shards: u16) -> Result<Vec<Option<LogEnds>>, Unreachable>;

    /// Opens the registry, for sessions of this time to live. `wake` is called with each answer.
    /// Never waits.
    fn registry(&self, session_ttl: Duration, wake: Wake) -> Box<dyn Registry>;
}

/// What a log has come to, as others than its owner read it. It may have changed since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogEnds {
    /// The tenure that has seized it last.
    pub term: Term,
    /// The first entry that is kept, or one above the head.
    pub first: Seq,
    /// The last entry, or 0 if there never was one.
    pub head: Seq,
}

/// The settings of a node of a cluster.
#[derive(Clone)]
pub struct ClusterConfig {
    /// The engine.
    pub engine: Arc<dyn ClusterEngine>,
    /// What asks the engine for operators.
    pub administer: Administer,
    /// The data directory of the node, if it has one: what it remembers of the cluster. It is made
    /// if it does not exist.
    pub data: Option<PathBuf>,
    /// The name of the node, which it keeps from run to run.
    pub node: String,
    /// The host under which other nodes and clients reach this one.
    pub announce: String,
    /// Where other nodes connect.
    pub link: SocketAddr,
    /// Under which host and port they reach it, if not under `announce` and the port of `link`.
    pub announce_link: Option<String>,
    /// After this time without a sign of life a node counts as dead. Whole seconds, at least 2.
    pub session_ttl: Duration,
    /// How many shards the cluster has, at least 1 and at most 1024. Without a number, any, and a
    /// cluster that this node makes gets 16. A node is refused by a cluster with another number.
    pub shards: Option<u16>,
}
