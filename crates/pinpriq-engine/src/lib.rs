//! The queue as a pure state machine.

pub mod change;
pub mod limits;
pub mod settings;
pub mod task;
pub mod time;
