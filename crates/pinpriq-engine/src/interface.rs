//! The commands and replies of the engine, and the changes that it reports to the store. This is
//! plain data: nothing here decides anything.

pub mod backoff;
pub mod change;
pub mod command;
pub mod export;
pub mod histogram;
pub mod limits;
pub mod looking;
pub mod names;
pub mod reply;
pub mod room;
pub mod schedule;
pub mod settings;
pub mod stats;
pub mod survey;
pub mod task;
pub mod time;
pub mod unique;
