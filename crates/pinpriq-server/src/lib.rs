//! The server: sockets, the clock, the doors, and the shard that joins them.
//!
//! A program only needs [`run`]. [`Server`] is the same in two steps, for callers that need the
//! addresses first or bring their own clock. [`parts`] has the pieces of a server, for those who
//! run them without sockets and without a runtime.

// What tests share names this crate as others do.
#[cfg(test)]
extern crate self as pinpriq_server;

mod access;
mod archiving;
mod bell;
pub mod calendars;
mod clients;
pub mod clock;
pub mod cluster;
pub mod config;
mod cuts;
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
#[cfg(test)]
#[path = "../tests/it/manual_clock.rs"]
mod manual_clock;
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

pub use doors::resp::check_record;
pub use error::ServeError;
pub use log::Log;
pub use pinpriq_proto::settings as queue_settings;
pub use process::node::run_node;
pub use process::server::{Server, run, run_and_tell};
pub use stop::Stop;

/// The pieces of a server, for those who run them without sockets, threads and a runtime. The
/// caller decides what happens when: it moves bytes, rings and hears bells, and sets the clock.
pub mod parts {
    pub use crate::archiving::keeping::{Kept, needs_of};
    pub use crate::bell::has_rung;
    pub use crate::clients::about::at_home;
    pub use crate::cluster::clocks::ClockWatch;
    pub use crate::cluster::exchange::{Carrier, Exchange, Tell};
    pub use crate::cluster::founding::try_to_found;
    pub use crate::cluster::memory::NodeMemory;
    pub use crate::cluster::rollback::{Elsewhere, Reporter};
    pub use crate::cluster::terms::{end_of, lowest_term_at, window_ms};
    pub use crate::cluster::watermarks::Watermarks;
    pub use crate::home::client::{Client, Step};
    pub use crate::host::guest::Guest;
    pub use crate::host::shard::{Asked, Shard, Witness};
    pub use crate::letters::letter::{Arrival, Home, HostNews, Known};
    pub use crate::links::network::End;
    pub use crate::process::place::{Brought, Common, Company, Place};
    pub use tokio::sync::Notify;
}
