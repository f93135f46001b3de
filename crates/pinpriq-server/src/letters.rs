//! The way from one shard to the others, and who serves each.

pub(crate) mod letter;
pub(crate) mod mailbox;
pub(crate) mod owners;
