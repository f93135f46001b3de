//! Fenced logs and a registry on etcd, 3.4 and later.
//!
//! [`Etcd`] is a cluster, [`EtcdRemote`] the log of one shard on it, and [`EtcdRegistry`] what the
//! nodes know of each other. In a log, each change is one transaction
//! that compares the fence of the log, so that etcd itself refuses what comes from an earlier
//! tenure. The records of the registry hang on leases. Nothing is watched. Who should own a log is
//! decided elsewhere.
//!
//! All keys of a log begin with `pinpriq/NAME/s/SHARD/`, where SHARD has 4 digits. Numbers are
//! decimal, but the writer is hexadecimal.
//!
//! | key | value |
//! |---|---|
//! | `fence` | `TERM:WRITER`, or `TERM:WRITER:BAR` once a bar was raised; WRITER has 32 digits |
//! | `head` | the last entry |
//! | `first` | the first entry that is kept |
//! | `e/SEQ` | an entry, whose number has 20 digits |
//!
//! The keys of the registry are `pinpriq/NAME/meta`, and those under `node/`, `own/` and `drain/`
//! beside it. `docs/internals/ledger.md` describes them.
//!
//! etcd keeps former values of its keys until they are compacted: [`Etcd::compact`]. When etcd has
//! reached its own quota, it refuses trims too, so [`EtcdOptions::bytes_max`] should be lower.
//! Otherwise the quota counts where it is known, and [`EtcdRegistry::upkeep`] has an etcd that has
//! reached it take changes again.
//!
//! Connections are encrypted, and the client signs in with a user and a password, if
//! [`EtcdOptions`] says so.

mod client;
mod keys;
mod messages;
mod options;
mod registry;
mod remote;
mod room;
mod sign_in;
mod transaction;
mod trouble;

pub use client::Etcd;
pub use options::{EtcdError, EtcdOptions};
pub use registry::{COMPACT_EVERY, EtcdRegistry};
pub use remote::EtcdRemote;
pub use room::RoomNotice;
pub use sign_in::EtcdUser;
