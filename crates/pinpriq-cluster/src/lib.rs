//! Which node serves which shard.
//!
//! [`registry`] is the interface to what the nodes know of each other. [`placement`] decides which
//! node ought to own which shard, and [`ownership`] is what one node does about it. [`slots`]
//! decides which shard a name belongs to.
//!
//! None of these reads a clock or opens a socket. Features add what does: `remote` asks an engine
//! over a network, `etcd` and `postgres` are logs and registry on each engine.

pub mod clocks;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod ownership;
pub mod placement;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod registry;
#[cfg(feature = "remote")]
pub mod remote;
pub mod slots;

pub use ownership::{Counters, HostEnd, Order, Ownership, OwnershipOptions, ShardState};
pub use placement::{Member, Placement};
pub use registry::{
    Addresses, Instance, Meta, NodeRecord, OwnRecord, OwnState, Registry, RegistryAnswer,
    RegistryCall, RolledBack, ShardNumber, View,
};
