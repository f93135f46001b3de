//! What each command does, one file for a group of commands, and what they share: checks of
//! arguments, finding queues and tasks, drawing ids. Fan-out has a folder of its own.

mod admin;
pub(crate) mod arguments;
mod bounds;
pub(crate) mod discard;
pub(crate) mod find;
mod held;
pub(crate) mod ids;
mod put;
pub(crate) mod room;
pub(crate) mod serve;
mod take;
mod transfer;
mod waits;
