//! How names are divided among shards. It does not know where the shards are.

use pinpriq_cluster::slots::{shard_of_slot, slot_of};
use pinpriq_store::shards::shard_of;

/// How names are divided among a number of shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sharding {
    /// As a single server divides them.
    Hashed(usize),
    /// As a cluster divides them: by the slots of Redis Cluster.
    Slotted(usize),
}

impl Sharding {
    /// Returns the number of shards.
    pub(crate) const fn shards(self) -> usize {
        match self {
            Self::Hashed(shards) | Self::Slotted(shards) => shards,
        }
    }

    /// Returns the shard of the queue, topic or schedule of this name.
    pub(crate) fn shard_of(self, name: &[u8]) -> usize {
        match self {
            Self::Hashed(shards) => shard_of(name, shards),
            Self::Slotted(shards) => shard_of_slot(slot_of(name), shards),
        }
    }

    /// Returns what tells whether a name belongs to this shard.
    pub(crate) fn is_in(self, shard: usize) -> impl Fn(&[u8]) -> bool {
        move |name| self.shard_of(name) == shard
    }
}
