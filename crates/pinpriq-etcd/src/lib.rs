//! Fenced logs on etcd, 3.4 and later.
//!
//! [`Etcd`] is a cluster, [`EtcdRemote`] the log of one shard on it. Each change is one transaction
//! that compares the fence of the log, so that etcd itself refuses what comes from an earlier
//! tenure. Nothing is watched, and no lease is taken: who should own a log is decided elsewhere.
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
//! etcd keeps former values of its keys until they are compacted: [`Etcd::compact`]. When etcd has
//! reached its own quota, it refuses trims too, so [`EtcdOptions::bytes_max`] must be lower.
//!
//! Connections are not encrypted and nobody signs in yet: TLS and passwords are to come.

mod client;
#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    unnameable_types,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::use_self,
    clippy::allow_attributes_without_reason,
    reason = "it is generated"
)]
mod generated;
mod keys;
mod options;
mod reading;
mod remote;
mod transaction;

pub use client::Etcd;
pub use options::{EtcdError, EtcdOptions};
pub use remote::EtcdRemote;
