//! One shard: the engine, its store, the clients and guests that ask them, and the list of clients.

pub(crate) mod guest;
pub(crate) mod inquiries;
pub(crate) mod notices;
pub(crate) mod readers;
pub(crate) mod roll;
pub(crate) mod seat;
pub(crate) mod shard;
mod spread;
