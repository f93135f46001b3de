//! The server: sockets, the clock, the doors, and the shard that joins them.
//!
//! [`run`] is all that a program needs. [`Server`] is the same in two steps, for those who want
//! to know the addresses first or bring a clock of their own.

pub mod clock;
pub mod config;
mod connection;
mod error;
mod front;
mod outbox;
mod server;
mod shard;
mod stop;

pub use error::ServeError;
pub use server::{Server, run};
pub use stop::Stop;
