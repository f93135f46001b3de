//! Fenced logs on PostgreSQL, version 13 or later.
//!
//! [`Postgres::connect`] checks a server and creates the tables. [`Postgres::log`] is the log of
//! one shard, which a [`RemoteLedger`](pinpriq_remote::RemoteLedger) turns into a ledger.
//!
//! Each call that changes something is one statement, which commits by itself. An entry is in the
//! log when the server says that its commit succeeded, without a warning. PostgreSQL warns when it
//! gives up waiting for a synchronous standby: readers see such a commit, and a failover loses it.
//! So nothing is ever concluded from reading. What became of an entry is found out by a commit of
//! its own, which raises the *beat* of the shard. An append names the beat that its owner knows, so
//! a copy that is still on its way changes nothing after that. Nothing is ever cancelled.
//!
//! How durable a commit is depends on the server: see [`Report`]. A connection pooler in front of
//! it must keep a session for each connection. Connections are not encrypted yet: TLS is still to
//! come, and an address that requires it is refused. Which server is the primary is decided
//! elsewhere; of several hosts, the first one that accepts changes is used.

mod failure;
mod log;
mod options;
mod server;
mod session;
mod statements;

pub use log::PostgresLog;
pub use options::{ConnectError, PostgresOptions};
pub use server::{Postgres, Report};
