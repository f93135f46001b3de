//! One shard: the engine and its store, and those who ask them.

pub(crate) mod facts;
pub(crate) mod guest;
pub(crate) mod readers;
pub(crate) mod seat;
pub(crate) mod shard;
mod spread;
pub(crate) mod tally;
