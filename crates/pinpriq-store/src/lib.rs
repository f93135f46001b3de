//! Durability: where the changes of the engine go, and how they come back.
//!
//! [`store`] is the seam: an ordered log of atomic batches. [`journal`] is the embedded store, a
//! log of segment files described byte by byte in `docs/journal.md`; [`memory`] keeps nothing.
//! [`conformance`] is the suite that every store has to pass. [`disk`] is the little that the
//! journal asks of a file system: [`real_disk`] is the real one, [`faulty_disk`] loses, tears and
//! refuses on request. [`codec`] turns changes into records and back, and [`fold`] says in the
//! plainest way what a sequence of changes means. [`durable`] joins a store and an engine.
//! [`histogram`] counts values by their size. [`shards`] says in which of several shards a queue
//! lives, [`layout`] which journals are in a data directory, and [`reshard`](mod@reshard) writes
//! one with another number of shards.
//!
//! Nothing here reads a clock, and nothing decides what a task may do: that is the engine's.

#[cfg(planted)]
#[macro_use]
extern crate pinpriq_planted;

/// Whether a bug was planted. In a build for use there is none: see `docs/planted.md`.
#[cfg(not(planted))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

pub mod codec;
pub mod conformance;
pub mod disk;
mod distribute;
pub mod durable;
pub mod faulty_disk;
pub mod fold;
pub mod histogram;
pub mod journal;
pub mod layout;
pub mod memory;
pub mod real_disk;
pub mod reshard;
pub mod shards;
pub mod store;

pub use disk::Disk;
pub use durable::Durable;
pub use faulty_disk::FaultyDisk;
pub use fold::Fold;
pub use histogram::Histogram;
pub use journal::{Journal, JournalOptions, Level, Runner, Stopwatch};
pub use memory::MemoryStore;
pub use real_disk::RealDisk;
pub use store::{
    Figures, Loaded, Position, Progress, ReadJob, Rewrite, Room, Store, StoreError, TaskCounts,
    Urgency, Volume,
};
