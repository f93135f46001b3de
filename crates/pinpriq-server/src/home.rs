//! Where connections live: their sockets, their doors, the desks that the doors talk to, and
//! questions to all shards.

mod asking;
pub(crate) mod client;
pub(crate) mod connection;
mod credits;
pub(crate) mod desk;
pub(crate) mod door;
mod joins;
mod pace;
pub(crate) mod recovery;
pub(crate) mod route;
pub(crate) mod survey;
