//! One shard: the engine, its store, and the clients and guests that ask them.

pub(crate) mod facts;
pub(crate) mod guest;
pub(crate) mod notices;
pub(crate) mod readers;
pub(crate) mod seat;
pub(crate) mod shard;
mod spread;
pub(crate) mod tally;
