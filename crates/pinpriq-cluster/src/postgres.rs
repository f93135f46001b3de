//! Fenced logs and a registry on PostgreSQL, version 13 or later.
//!
//! [`Postgres::connect`] checks a server and creates the tables. [`Postgres::log`] is the log of
//! one shard, which a [`RemoteLedger`](crate::remote::RemoteLedger) turns into a ledger.
//! [`PostgresRegistry`] is what the nodes know of each other, in the same schema.
//!
//! Each call that changes something is one statement, which commits by itself. An entry is in the
//! log when the server says that its commit succeeded, without a warning. PostgreSQL warns when it
//! gives up waiting for a synchronous standby: readers see such a commit, and a failover loses it.
//! So nothing is ever concluded from reading. What became of an entry is found out by a commit of
//! its own, which raises the *beat* of the shard. An append names the beat that its owner knows, so
//! a copy that is still on its way changes nothing after that. Nothing is ever cancelled.
//!
//! How durable a commit is depends on the server: see [`Report`]. A connection pooler in front of
//! it must keep a session for each connection. Connections are encrypted if
//! [`PostgresOptions::encryption`] says so. Which server is the primary is decided elsewhere; of
//! several hosts, the first one that accepts changes is used.

mod beats;
mod failure;
mod lane;
mod log;
mod options;
mod registry;
mod registry_sql;
mod rows;
mod server;
mod session;
mod statements;
mod tls;

pub use log::PostgresLog;
pub use options::{ConnectError, Encryption, PostgresOptions};
pub use registry::{Clock, PostgresRegistry};
pub use server::{Postgres, Report};
