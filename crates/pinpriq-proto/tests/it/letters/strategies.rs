//! Strategies for any command and any output, including those that make no sense.
//!
//! Commands borrow their bytes. These are leaked, since a test ends soon.

mod carrying;
mod commands;
mod outputs;
mod parts;

pub(crate) use commands::{command, step};
pub(crate) use outputs::{output, reason, reply};
pub(crate) use parts::{
    amendment, deadline, delay, held_by, id, kind, mode, outcome, refusal_kind, sides, state,
    time_to_live, value, wait, when,
};
