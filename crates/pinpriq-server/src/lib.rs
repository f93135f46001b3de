//! The server: sockets, the clock, the doors, and the shard that joins them.
//!
//! [`run`] is all that a program needs. [`Server`] is the same in two steps, for those who want
//! to know the addresses first or bring a clock of their own.

mod clients;
pub mod clock;
pub mod config;
mod connection;
mod credits;
mod error;
mod front;
mod info;
mod outbox;
mod server;
mod shard;
mod stop;

pub use error::ServeError;
pub use front::resp::command_tables;
pub use server::{Server, run};
pub use stop::Stop;
