//! The journal: a log of batches, cut into segment files in one directory.
//!
//! `docs/journal.md` describes every byte. The front half ([`Journal`], `running`) is on the thread
//! of its shard and never waits for the disk: it encodes, decides where each batch goes, and keeps
//! the books (`ledger`). The back half (`writer`, `chores`) does what it is told, inline or on two
//! threads of its own (`lane`). `reader` reads a log back, [`check()`] looks at one without
//! touching it, [`salvage()`] rescues what can be read of a damaged one, and `fresh` writes down
//! what a fold holds.

mod check;
mod chores;
mod compact;
mod fetch;
mod fresh;
mod front;
mod lane;
mod ledger;
mod open;
mod pending;
mod reader;
mod room;
mod rotation;
mod running;
mod salvage;
mod segment;
mod spare;
mod survey;
mod writer;

pub(crate) use fresh::{Contents, lock, write};
pub(crate) use reader::take_inventory;

pub use check::{Report, check};
pub use front::{Journal, JournalOptions, Level};
pub use lane::{Runner, Wake};
pub use salvage::{SalvageReport, salvage};
pub use segment::FORMAT_VERSION;
pub use survey::{Damage, LsnRange, SegmentReport};
