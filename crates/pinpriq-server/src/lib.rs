//! The server: sockets, the clock, the doors, and the shard that joins them.
//!
//! [`run`] is all that a program needs. [`Server`] is the same in two steps, for those who want
//! to know the addresses first or bring a clock of their own. [`simulation`] is the same server
//! without sockets and without a runtime, for tests that decide what happens when.

#[cfg(planted)]
#[macro_use]
extern crate pinpriq_planted;

/// Whether a bug was planted. In a build for use there is none: see `docs/planted.md`.
#[cfg(not(planted))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

mod abroad;
mod bell;
mod clients;
pub mod clock;
pub mod config;
mod connection;
mod credits;
mod error;
mod exchange;
mod front;
mod host;
mod info;
mod mailbox;
mod opening;
mod outbox;
mod reading;
mod server;
mod serving;
mod shard;
pub mod simulation;
mod sockets;
mod spread;
mod stop;
mod talk;
mod threads;

pub use error::ServeError;
pub use front::resp::command_tables;
pub use server::{Server, run};
pub use stop::Stop;
