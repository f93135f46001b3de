//! The store against its suite, its crashes and its damage.

mod common;
mod compaction;
mod conformance;
mod crash;
mod damage;
mod faults;
mod opening;
mod records;
mod rescue;
