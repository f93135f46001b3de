//! The simulator: a whole server, its disk, its clocks and its clients on one thread, from one
//! seed.
//!
//! The parts that run are those of the product: engine, journal, shard, outboxes and doors. The
//! disk ([`FaultyDisk`](crate::faulty_disk::FaultyDisk)), the clocks, the connections and the
//! clients are simulated. The oracle is a naive model ([`crate::model`]), which receives every
//! command that the engine receives, and a book of everything that the store was given. In some
//! runs the server has an archive too. There are no sockets or async runtime here, and no threads
//! but those of an archive: the tests of the server and of the program cover those.

mod archive;
mod ask;
mod book;
mod bugs;
mod calm;
mod chooser;
mod client;
mod clock;
mod expect;
mod faults;
mod jobs;
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
