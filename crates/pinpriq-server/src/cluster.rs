//! Several machines that serve the same queues.
//!
//! Each process is a *node*. Its home has the connections of its clients. A shard that it owns has
//! a host, on a thread of its own, which comes and goes. The exchange connects them with the homes
//! and hosts of other nodes.

mod acceptance;
mod asking;
pub(crate) mod clocks;
pub(crate) mod config;
pub(crate) mod data;
pub(crate) mod exchange;
pub(crate) mod founding;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod rollback;
pub(crate) mod terms;
#[cfg(test)]
mod tests;
pub(crate) mod watermarks;
mod whole;

pub use self::acceptance::{NotAccepted, acceptance};
pub use self::asking::ask_registry;
pub use self::config::{ClusterConfig, ClusterEngine, LogEnds, Wake};
pub use self::data::{KnownCluster, NodeData};
pub use self::founding::{FORMAT, new_meta};
pub use self::whole::{WholeError, division_of_cluster, export, import};
pub use crate::letters::owners::{Administer, Administered};
