//! The work of fan-out: publishing to a topic, and being a member of it.
//!
//! Each member that joined a topic has a lane there: a queue of its own with a copy of every task
//! published since. The commands are those of [`pinpriq_proto::fanout`].

pub(crate) mod farewell;
pub(crate) mod members;
pub(crate) mod membership;
pub(crate) mod publications;
pub(crate) mod publish;
pub(crate) mod restore_lanes;
