//! The RESP door from the outside.
//!
//! What commands answer stands in `testdata/resp/*.txt`, which `golden` plays. What does not fit
//! there, because it is about many connections or about bytes, has a module here.

mod blocking;
mod bounds;
mod client;
mod closing;
mod describing;
mod figures;
mod frames;
mod golden;
mod logging;
mod look;
mod members;
mod naming;
mod put_until;
mod restored;
mod script;
mod shards;
mod sharing;
mod turns;
mod users;
