//! A load generator: many connections on one thread, each with many requests under way, and the
//! measurements.
//!
//! It usually shares its machine with the server, so it is built to cost little: one thread waits
//! for readiness, reads once, decodes in place, and answers with one write. It does not allocate
//! for a request. A [`Dialect`] decides what is sent over a connection. This crate has three of
//! them, for the doors of pinpriq; those of other servers are in the programs that measure them.
//!
//! It prints nothing, reads no file, and knows no server's process.

mod clock;
mod connection;
mod dialect;
mod http;
mod latency;
mod pinpriq;
mod plan;
pub mod reply;
mod resp;
mod run;
mod schedule;
mod tally;

pub use dialect::{Answer, Dialect, Outcome, Slot, TOKEN_BYTES_MAX, Token};
pub use http::Http;
pub use latency::Latency;
pub use pinpriq::Pinpriq;
pub use plan::{Bound, Move, Pace, Plan, Step, payload};
pub use resp::Resp;
pub use run::{Trouble, run};
pub use tally::{Figures, StepFigures};
