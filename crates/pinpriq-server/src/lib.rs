//! The server: sockets, the clock, the doors, and the shard that joins them.

pub mod config;
