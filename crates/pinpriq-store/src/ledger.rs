//! Fenced logs: what makes the changes of a shard durable when several machines serve.
//!
//! [`interface`] is what an engine does that keeps one fenced log for each shard. [`store`] is the
//! store of a shard on such a log: it puts batches into entries, and has old records written again.
//! [`window`] says until when the owner of a log may answer, and [`watermark`] what it remembers of
//! a log to notice a roll-back, which a [`keeper`] keeps. [`entry`] is an entry byte by byte;
//! `docs/internals/ledger.md` is the reference. [`copying`] reads a whole log and fills one, for
//! tools.
//!
//! Nothing here reads a clock or opens a socket.

mod accounts;
mod batch;
pub mod copying;
pub mod entry;
pub mod interface;
pub mod keeper;
mod pending;
mod reader;
mod running;
pub mod store;
pub mod watermark;
pub mod window;

pub use interface::{
    Answer, Appended, Call, Ledger, Resolved, Seized, Seq, Status, Tenure, Term, Trimmed,
    Unreachable, Writer,
};
pub use keeper::Keeper;
pub use store::{LedgerOptions, LedgerStore};
pub use watermark::Watermark;
pub use window::Window;
