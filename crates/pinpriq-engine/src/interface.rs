//! What is asked of the engine, what it answers, and what it reports to the store. Plain data:
//! nothing here decides anything.

pub mod change;
pub mod command;
pub mod limits;
pub mod reply;
pub mod room;
pub mod settings;
pub mod stats;
pub mod task;
pub mod time;
