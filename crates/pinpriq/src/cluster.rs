//! The engine under a cluster: what `--cluster` names, and the connection to it.

mod access;
pub(crate) mod engine;
pub(crate) mod url;
