//! A load generator: many connections on one thread, each with many requests under way, and what
//! they measured.
//!
//! It shares its machine with the server more often than not, so it is built to cost little: one
//! thread waits for readiness, reads once, decodes in place, and answers with one write; nothing
//! is allocated for a request. What is said over a connection is the business of a [`Dialect`].
//! Two of them are here, for the two doors of pinpriq; those of other servers stay with the
//! programs that measure them.
//!
//! It prints nothing, reads no file, and knows no server's process.

mod clock;
mod connection;
mod dialect;
mod latency;
mod pinpriq;
mod plan;
pub mod reply;
mod resp;
mod run;
mod schedule;
mod tally;

pub use dialect::{Answer, Dialect, Outcome, Slot, TOKEN_BYTES_MAX, Token};
pub use latency::Latency;
pub use pinpriq::Pinpriq;
pub use plan::{Bound, Move, Pace, Plan, Step, payload};
pub use resp::Resp;
pub use run::{Trouble, run};
pub use tally::{Figures, StepFigures};
