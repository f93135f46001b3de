//! The tests of who serves what in a cluster, and of logs and registries on real engines, only
//! through the public interface. Tests of an engine that is not installed say so and pass, unless
//! `PINPRIQ_ENGINES` is `required`.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::print_stdout, reason = "a failed run says how to repeat it")]

#[path = "../../../pinpriq-tls/tests/it/authority.rs"]
mod authority;
mod clocks;
mod etcd;
mod fake;
mod ownership;
mod placement;
mod postgres;
mod remote;
mod walk;
