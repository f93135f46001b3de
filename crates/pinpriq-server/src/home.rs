//! Where connections live: their sockets, their doors, the desks that the doors talk to, and the
//! list of clients, and questions to all shards.

pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod contacts;
mod credits;
pub(crate) mod desk;
mod joins;
mod pace;
pub(crate) mod recovery;
pub(crate) mod redirects;
pub(crate) mod roll;
pub(crate) mod route;
pub(crate) mod survey;
pub(crate) mod visit;
