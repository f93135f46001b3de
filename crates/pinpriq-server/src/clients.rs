//! What is said about a client in any shard: who it is, how its door treats it, which refusals it
//! gets, why its connection ends, and what it was handed and never received.

pub(crate) mod about;
pub(crate) mod contacts;
pub(crate) mod ending;
pub(crate) mod unsent;
