//! Durability: stores the changes of the engine, and loads them again.
//!
//! [`store`] is the interface: an ordered log of atomic batches. [`journal`] is the embedded store,
//! a log of segment files described byte by byte in `docs/internals/journal.md`; [`memory`] keeps
//! nothing. [`disk`] is the small interface between the journal and a file system, [`real_disk`]
//! the real one. [`codec`] turns changes into records and back, and [`fold`] computes the state
//! that a sequence of changes leads to. [`durable`] joins a store and an engine. [`ledger`] is the
//! store of a shard whose changes are durable on several machines. [`histogram`] counts values by
//! their size. [`shards`] decides in which of several shards a queue lives, [`layout`] knows which
//! journals are in a data directory, [`reshard`](mod@reshard) writes one with another number of
//! shards, and [`restore`] one from segments that were copied elsewhere. [`sealed`] is how small
//! texts get a checksum.
//!
//! Nothing here reads a clock. What a task may do is decided by the engine.

pub mod codec;
pub mod disk;
mod distribute;
pub mod durable;
pub mod fold;
pub mod histogram;
pub mod journal;
pub mod layout;
pub mod ledger;
pub mod memory;
pub mod real_disk;
pub mod reshard;
pub mod restore;
pub mod sealed;
pub mod shards;
pub mod store;
pub mod takeover;

pub use disk::Disk;
pub use durable::Durable;
pub use fold::Fold;
pub use histogram::Histogram;
pub use journal::{Journal, JournalOptions, Level, Runner, Stopwatch};
pub use memory::MemoryStore;
pub use real_disk::RealDisk;
pub use store::{
    Extent, Figures, Loaded, Position, Progress, ReadJob, Reclaims, Rewrite, Room, Shortage, Store,
    StoreError, TaskCounts, Urgency, Volume,
};
