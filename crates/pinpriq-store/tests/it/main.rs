//! Tests of the store: its suite, crashes and damage.

#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

mod closing;
mod compaction;
mod conformance;
mod counting;
mod crash;
mod damage;
mod driving;
mod fan_out;
mod fan_out_space;
mod faults;
mod full_disk;
mod golden_records;
mod keeping;
mod layouts;
mod ledger;
mod memory_limit;
mod mixed;
mod odd_entries;
mod opening;
mod places;
mod records;
mod rescue;
mod rescue_ids;
mod rescue_lanes;
mod reshard;
mod restore;
mod schedules;
mod sharded;
mod strategies;
mod takes;
mod tap;
mod threads;
mod timing;
mod versions;
mod walks;
mod windows;
