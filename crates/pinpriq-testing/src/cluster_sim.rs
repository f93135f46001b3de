//! The simulator of clusters: several nodes with their clients on one thread, with an engine, a
//! registry, a network and clocks that get into trouble, all from one seed.
//!
//! The nodes are those of the server. What clients saw is written down as a history, and its
//! checker judges it. [`run`] runs one seed.

mod clocks;
mod engine;
mod faults;
mod line;
mod network;
mod policies;
mod verdict;
mod visitor;
mod world;

pub use faults::{Faults, Kind};
pub use world::{Outcome, run};
