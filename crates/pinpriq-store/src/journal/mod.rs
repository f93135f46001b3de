//! The journal: a log of batches, divided into segment files in one directory.
//!
//! `docs/internals/journal.md` describes every byte. The front half ([`Journal`], `running`) is on
//! the thread of its shard and never waits for the disk: it encodes, decides where each batch goes,
//! and keeps the books (`accounts`). The back half (`writer`, `chores`) carries out jobs, inline or
//! on two threads of its own (`lane`). `reader` reads a log back through a `window`, [`check()`]
//! inspects one without changing it, [`salvage()`] rescues what can be read of a damaged one, and
//! `fresh` writes the contents of a fold as a new journal. Through a [`Tap`] others copy a journal
//! while it runs; `cuts` is its end in the front half, `left_over` finds what an earlier start has
//! kept for them, `rest` lists what there is of one that does not run, and [`raw`] looks at what
//! was copied.

mod accounts;
mod check;
mod chores;
mod compact;
mod cuts;
mod expected;
mod fetch;
mod fresh;
mod front;
mod head;
mod lane;
mod left_over;
mod open;
mod options;
mod pending;
mod progress;
pub mod raw;
mod reader;
mod rest;
mod room;
mod rotation;
mod running;
mod salvage;
mod segment;
mod spare;
mod survey;
mod tap;
mod window;
mod writer;

pub(crate) use fresh::write;
pub(crate) use head::read_head;
pub(crate) use reader::{refuse_if_stopped, take_inventory};
pub(crate) use segment::COUNT_MAX;
pub(crate) use survey::shard_of_journal;
pub(crate) use writer::{remove_if_there, sync_dir};

pub use check::{Report, check, check_expected};
pub use expected::Expected;
pub use fresh::Contents;
pub use front::Journal;
pub use lane::{Runner, Wake};
pub use options::{JournalOptions, Level, Stopwatch, lock};
pub use progress::LoadProgress;
pub(crate) use salvage::Salvaged;
pub use salvage::{Misfit, SalvageReport, UnfitTask, salvage};
pub use segment::{FORMAT_VERSION, Identity, segment_name};
pub use survey::{Damage, LsnRange, SegmentReport};
pub use tap::{Asked, Keep, Purpose, SegmentEnd, ShardCut, Tap};
