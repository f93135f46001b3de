//! The ledger on a real cluster of etcd, which the tests start themselves.

mod cluster;
mod logs;
mod looking;
mod lost;
mod options;
mod proxy;
mod registry;
mod secure;
mod suites;
mod tls;
mod trouble;
