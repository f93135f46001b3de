//! Whole clusters: what is in all shards is carried into a cluster, or copied out of it.
//!
//! `import.rs` fills the logs of a cluster that does not exist yet, and `export.rs` reads the logs
//! of one that may be served meanwhile. `pinpriq-store` reads and writes data directories.

mod export;
mod import;
#[cfg(test)]
mod tests;

use std::time::Duration;

use pinpriq_cluster::{RegistryAnswer, RegistryCall, ShardNumber};
use pinpriq_store::StoreError;
use pinpriq_store::ledger::Unreachable;
use pinpriq_store::reshard::Division;

pub use self::export::export;
pub use self::import::import;
use super::asking::ask_registry;
use super::config::{ClusterEngine, LogEnds};
use crate::sharding::Sharding;

/// How long sessions of nodes live at least. A tool opens none.
const SESSION_TTL: Duration = Duration::from_secs(5);

/// How often something is tried that others change meanwhile, or that the engine does not answer.
const TRIES: u32 = 16;

/// Why a cluster could not be filled or copied. Each message says what an operator can do about it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WholeError {
    /// The engine has not answered.
    #[error("the engine does not answer: {why}")]
    Silent {
        /// What happened.
        why: String,
    },
    /// There is no cluster.
    #[error("there is no cluster")]
    Unfounded,
    /// Something is there where nothing may be.
    #[error(
        "the engine is not empty: {what}. An import needs a cluster that does not exist yet: give \
         --cluster another name or schema, or remove the old one"
    )]
    NotEmpty {
        /// What was found.
        what: String,
    },
    /// What is there is not what the nodes had confirmed.
    #[error("the cluster cannot be copied: {why}")]
    NotWhole {
        /// Why, and what to do.
        why: String,
    },
    /// Another import has taken the place of this one.
    #[error(
        "another import into this cluster has begun meanwhile, so this one was given up; if that \
         one does not end either, run one of them again"
    )]
    Superseded,
    /// The log of a shard could not be written or read.
    #[error("shard {shard}: {source}")]
    Log {
        /// The shard.
        shard: ShardNumber,
        /// Why.
        source: StoreError,
    },
}

impl WholeError {
    /// Returns the exit code of a process that ends with this error: 1 for something on the way, 3
    /// for a cluster that cannot be used.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Silent { .. } | Self::Superseded => 1,
            Self::Unfounded | Self::NotEmpty { .. } | Self::NotWhole { .. } => 3,
            Self::Log { source, .. } => match source {
                StoreError::BadEntry { .. } | StoreError::RolledBack { .. } => 3,
                _ => 1,
            },
        }
    }
}

/// How a cluster with this number of shards divides names: by the slots of Redis Cluster.
#[must_use]
pub const fn division_of_cluster(shards: u16) -> Division {
    Division {
        shards: shards as usize,
        shard_of: |name, shards| Sharding::Slotted(shards).shard_of(name),
        hint: "the logs in the engine are not those of this cluster",
    }
}

/// Asks the registry, and refuses silence.
fn ask(engine: &dyn ClusterEngine, call: RegistryCall) -> Result<RegistryAnswer, WholeError> {
    match ask_registry(engine, SESSION_TTL, call) {
        Some(RegistryAnswer::Unreachable(why)) => Err(WholeError::Silent { why }),
        Some(answer) => Ok(answer),
        None => Err(WholeError::Silent { why: "its thread has ended".to_owned() }),
    }
}

/// What the logs of the first shards have come to.
fn log_ends(
    engine: &dyn ClusterEngine,
    shards: ShardNumber,
) -> Result<Vec<Option<LogEnds>>, WholeError> {
    let ends = engine.log_ends(shards);
    ends.map_err(|Unreachable { why }| WholeError::Silent { why })
}

/// Says in which shard a store has failed.
fn about(shard: ShardNumber) -> impl FnOnce(StoreError) -> WholeError {
    move |source| match source {
        StoreError::NoAnswer { why } => WholeError::Silent { why },
        source => WholeError::Log { shard, source },
    }
}
