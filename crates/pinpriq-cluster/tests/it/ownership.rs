//! What one node asks and orders, step by step, over a registry that the test plays.

mod claims;
mod moves;
mod sessions;
mod stage;
