//! The simulator: a whole server, its disk, its clocks and its clients on one thread, from one
//! seed.
//!
//! What runs is the product: engine, journal, shard, outboxes and doors. What is simulated is the
//! disk ([`pinpriq_store::FaultyDisk`]), the clocks, the connections and the clients. The oracle is
//! a naive model ([`pinpriq_model`]) that is asked whatever the engine is asked, and a book of
//! everything that the store was told. Sockets, threads and the async runtime are not here: they
//! are for the tests of the server and of the program.

mod ask;
mod book;
mod bugs;
mod calm;
mod chooser;
mod client;
mod clock;
mod expect;
mod faults;
mod kept;
mod knobs;
mod oracle;
mod packet;
mod run;
mod shrink;
mod spoilt_disk;
mod starts;
mod trail;
mod world;

pub use bugs::Bug;
pub use faults::{Counts, Kind};
pub use knobs::Knobs;
pub use run::{Failure, Outcome, Summary, replay, run, run_seeds};
pub use shrink::shrink;
pub use trail::Trail;
