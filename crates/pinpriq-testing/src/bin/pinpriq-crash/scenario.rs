//! The scenarios: each crashes or damages in one way, and reports what was left.

pub(crate) mod archive;
pub(crate) mod batches;
pub(crate) mod cluster;
pub(crate) mod damage;
pub(crate) mod errors;
pub(crate) mod full;
pub(crate) mod jobs;
pub(crate) mod kill;
pub(crate) mod peers;
pub(crate) mod policies;
pub(crate) mod power;
pub(crate) mod shares;
pub(crate) mod syscalls;
