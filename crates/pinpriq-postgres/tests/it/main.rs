//! Fenced logs on a real PostgreSQL, which each test starts for itself on the loopback interface.
//!
//! Without PostgreSQL on the machine the tests say so and pass, unless the environment variable
//! `PINPRIQ_ENGINES` is `required`.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]
#![expect(clippy::print_stdout, reason = "a test that was not run says so")]

#[path = "../../../pinpriq-tls/tests/it/authority.rs"]
mod authority;
mod engine;
mod errors;
mod logs;
mod looking;
mod registry;
mod tls;
mod trouble;
