//! The way from one shard to the others.

pub(crate) mod letter;
pub(crate) mod mailbox;
