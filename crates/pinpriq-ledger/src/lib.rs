//! Fenced logs: what makes the changes of a shard durable when several machines serve.
//!
//! [`ledger`] is the interface to an engine that keeps one fenced log for each shard. [`store`] is
//! the store of a shard on such a log: it puts batches into entries, and has old records written
//! again. [`entry`] is an entry byte by byte; `docs/ledger.md` is the reference. [`conformance`] is
//! the suite that every such engine passes. [`fake`] is one in memory, which gets into trouble on
//! request.
//!
//! Nothing here reads a clock or opens a socket.

#[cfg(planted)]
#[macro_use]
extern crate pinpriq_planted;

/// Whether a bug was planted. A build for use has none: see `docs/planted.md`.
#[cfg(not(planted))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

mod accounts;
mod batch;
pub mod conformance;
pub mod entry;
pub mod fake;
pub mod ledger;
mod pending;
mod reader;
mod running;
pub mod store;

pub use fake::{FakeEngine, FakeKnobs, FakeLedger};
pub use ledger::{
    Answer, Appended, Call, Ledger, Resolved, Seized, Seq, Status, Tenure, Term, Trimmed,
    Unreachable, Writer,
};
pub use store::{LedgerOptions, LedgerStore};
