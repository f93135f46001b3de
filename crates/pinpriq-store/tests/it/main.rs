//! The store against its suite, its crashes and its damage.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

mod compaction;
mod conformance;
mod crash;
mod damage;
mod driving;
mod faults;
mod opening;
mod records;
mod rescue;
mod threads;
