//! The doors: each translates between one protocol and the commands of the engine, and does
//! nothing else.

pub(crate) mod pinpriq;
pub(crate) mod resp;
