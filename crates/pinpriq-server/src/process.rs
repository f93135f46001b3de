//! The process: its start and its end, its threads and listeners, and one shard on each thread.

mod opening;
pub(crate) mod server;
mod serving;
mod signals;
pub mod simulation;
mod sockets;
mod threads;
