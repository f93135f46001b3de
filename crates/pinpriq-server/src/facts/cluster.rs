//! What a node knows about its cluster and its own part in it, for `INFO`.

use pinpriq_cluster::Counters;
use pinpriq_store::Extent;

/// See the start of this file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ClusterFacts {
    /// The name of this node.
    pub(crate) node: String,
    /// How many nodes it knows of, with itself.
    pub(crate) nodes: u64,
    /// How many shards there are, how many of them it serves, and of how many it knows no owner.
    pub(crate) shards: u64,
    pub(crate) served: u64,
    pub(crate) ownerless: u64,
    /// The name of the owner of each shard, as far as it is known.
    pub(crate) owners: Vec<Option<String>>,
    /// The highest term of each shard that it has heard of, or 0.
    pub(crate) terms: Vec<u64>,
    /// How the logs fare that other nodes serve, as they have told last.
    pub(crate) logs: Vec<LogFacts>,
    /// How many requests it has asked of other nodes.
    pub(crate) forwarded: u64,
    pub(crate) report: Report,
}

/// How the log of a shard fares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LogFacts {
    pub(crate) shard: usize,
    pub(crate) extent: Extent,
    /// Whether the host says nothing at the moment, because its log does not answer.
    pub(crate) is_suspended: bool,
}

/// How a node fares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Report {
    /// What has happened to its session and its shards.
    pub(crate) counters: Counters,
    /// For how long the engine has owed an answer to the registry, in milliseconds.
    pub(crate) silent_ms: u64,
    /// How far its wall clock is off those of the others, in milliseconds.
    pub(crate) clock_off_ms: u64,
}
