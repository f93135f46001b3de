//! The process: its start and its end, its threads and listeners, and one shard on each thread.

pub(crate) mod access;
pub(crate) mod handshakes;
pub(crate) mod hosting;
pub(crate) mod http;
pub(crate) mod node;
pub(crate) mod opening;
pub(crate) mod place;
mod readiness;
pub(crate) mod server;
pub(crate) mod serving;
pub(crate) mod signals;
pub(crate) mod sockets;
mod threads;
