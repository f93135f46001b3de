//! Who uses the server: users, how they sign in, and what a connection knows of its user.
//!
//! [`roster`] has the users and reads them again when their file changes, [`signing`] checks
//! passwords and tokens, [`pass`] is what a connection carries, [`sessions`] has the browsers that
//! have signed in, [`usage`] counts what users use up, [`charges`] counts their tasks in one shard,
//! and [`audit`] writes down what they do. What they may do is decided by
//! `pinpriq_proto::rights`, and asked by the desk of each client and by the handlers of HTTP.

pub(crate) mod audit;
pub(crate) mod charges;
pub(crate) mod pass;
pub(crate) mod roster;
pub(crate) mod sessions;
pub(crate) mod signing;
pub(crate) mod usage;
