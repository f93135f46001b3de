//! Carries out the commands, with one file for each group of commands, and shared code: checks of
//! arguments, finding queues and tasks, drawing ids. Fan-out has its own folder.

mod admin;
pub(crate) mod arguments;
mod bounds;
mod capacity;
mod charging;
pub(crate) mod discard;
pub(crate) mod done;
mod explain;
mod export;
pub(crate) mod fail;
pub(crate) mod find;
pub(crate) mod gates;
mod held;
pub(crate) mod ids;
mod import;
mod kick;
mod leases;
mod line;
mod moving;
mod numbered;
mod put;
mod reserve;
pub(crate) mod room;
mod scan;
pub(crate) mod schedules;
pub(crate) mod serve;
mod share;
mod survey;
mod take;
mod transaction;
mod transfer;
mod tubes;
pub(crate) mod turns;
pub(crate) mod unique;
mod waits;
mod within;
