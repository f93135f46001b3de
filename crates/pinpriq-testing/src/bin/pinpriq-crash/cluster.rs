//! A cluster of the real program: three nodes, the engine under them, and what is between them.
//!
//! Everything runs on the loopback interface. The engine is etcd or PostgreSQL, which are not part
//! of this project and must be installed.

pub(crate) mod addresses;
pub(crate) mod batches;
pub(crate) mod board;
pub(crate) mod cut_off;
pub(crate) mod engine;
pub(crate) mod etcd;
pub(crate) mod failover;
pub(crate) mod http;
pub(crate) mod links;
pub(crate) mod load;
pub(crate) mod logs;
pub(crate) mod nodes;
pub(crate) mod postgres;
pub(crate) mod probe;
pub(crate) mod trouble;

/// The number of nodes.
pub(crate) const NODES: usize = 3;

/// The number of shards.
pub(crate) const SHARDS: u16 = 6;

/// How long a node may give no sign of life, in milliseconds.
pub(crate) const SESSION_MS: u64 = 2_000;

/// The name of the cluster.
pub(crate) const NAME: &str = "crash";
