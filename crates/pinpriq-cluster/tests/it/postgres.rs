//! Fenced logs on a real PostgreSQL, which each test starts for itself on the loopback interface.

mod engine;
mod errors;
mod logs;
mod looking;
mod registry;
mod tls;
mod trouble;
