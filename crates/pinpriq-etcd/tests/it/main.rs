//! The ledger on a real cluster of etcd, which the tests start themselves. Where etcd is not
//! installed they pass without having tested anything, unless `PINPRIQ_ENGINES=required` is set.

#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

#[path = "../../../pinpriq-tls/tests/it/authority.rs"]
mod authority;
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
