//! The server: sockets, the clock, the doors, and the shard that joins them.
//!
//! A program only needs [`run`]. [`Server`] is the same in two steps, for callers that need the
//! addresses first or bring their own clock. [`simulation`] is the same server without sockets and
//! without a runtime, for tests that decide what happens when.

mod access;
mod bell;
pub mod calendars;
mod clients;
pub mod clock;
pub mod cluster;
pub mod config;
mod dashboard;
mod doors;
mod error;
mod facts;
mod figures;
mod home;
mod host;
mod keepalive;
mod letters;
mod links;
mod log;
mod monitor;
pub mod plain;
mod process;
mod random;
mod runtime;
mod session;
mod sharding;
mod stamp;
mod stop;
mod throttle;
mod tls;
pub mod users;

pub use doors::http::api::page::http_table;
pub use doors::http::metrics::page::metrics_table;
pub use doors::resp::{check_record, command_tables, record_table, settings_table, task_table};
pub use error::ServeError;
pub use figures::page::{endings_table, info_table, stats_table};
pub use log::Log;
pub use pinpriq_proto::settings as queue_settings;
pub use process::node::run_node;
pub use process::server::{Server, run};
pub use process::simulation;
pub use stop::Stop;
