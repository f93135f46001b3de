//! Histories: what the clients of a queue asked and which answers they received, and whether a
//! correct queue could have answered like that.
//!
//! A history is a file with a JSON object in each line, written by the clients and never by the
//! server. [`Recorder`] writes one, [`History::read`] reads one, and [`check`] objects to what no
//! correct server could have done. The format and each verdict are explained in
//! `docs/internals/history.md`.
//!
//! This crate does not talk to a server, read a clock or open a file. It knows the words of
//! requests, but nothing about how the server works. The checker never objects to a correct server:
//! anything in doubt, such as a request whose answer was lost, counts in the server's favour.

mod book;
mod checks;
mod cut;
mod digest;
mod lease;
mod reading;
mod record;
mod recorder;
mod report;
pub mod request;
mod routes;
mod shelf;
mod tolerance;

pub use checks::check;
pub use cut::{Between, cut};
pub use digest::digest;
pub use reading::{History, Unreadable, records};
pub use record::{Delivery, Event, Operation, Outcome, Record};
pub use recorder::Recorder;
pub use report::{Report, Tally, Verdict, Violation};
pub use tolerance::Tolerance;
