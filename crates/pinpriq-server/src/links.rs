//! The way from this node to the other nodes of a cluster: frames that no other can write, and the
//! connections that they travel on.
//!
//! Nothing here knows which node serves which shard, or what a letter means.

pub(crate) mod frame;
pub(crate) mod network;
