//! All that can be said to pinpriq and by it: commands, replies, refusals, the attributes of a
//! task, settings, the rights that a command needs, and their bytes.
//!
//! The modules at the top are plain data: nothing there decides anything. [`records`] are tasks as
//! bytes, shared by the journal and the letters. [`letters`] are commands and outputs as bytes,
//! between shards and nodes. [`wire`] has the protocols of clients. There is no I/O and no clock
//! here, and nothing knows what a queue does with a command.

// What is derived names this crate as others do.
extern crate self as pinpriq_proto;

#[macro_use]
mod worded;

mod assign;
pub mod backoff;
pub mod batches;
pub mod carried;
pub mod change;
pub mod choosing;
pub mod command;
pub mod details;
pub mod export;
pub mod facts;
pub mod fanout;
pub mod fields;
pub mod histogram;
pub mod letters;
pub mod limits;
pub mod looking;
pub mod named_limits;
pub mod names;
mod only_looks;
pub mod outcome;
pub mod pattern;
pub mod place;
pub mod records;
pub mod refusal;
pub mod reply;
pub mod request;
pub mod rights;
pub mod room;
pub mod schedule;
pub mod settings;
pub mod shares;
pub mod stats;
pub mod survey;
pub mod task;
pub mod time;
pub mod unique;
pub mod wire;
