//! What tests the product: a model of the engine, simulators, a checker of histories, and what must
//! hold for any bytes. The program `pinpriq-crash` kills real servers.
//!
//! `store` adds a faulty disk, and what every store and every fenced log is tested with; `cluster`
//! adds the same for registries, and `server` a server without sockets. `engines` knows what is
//! installed. Nothing here is part of the product.

// The engine's random tests, which `fuzz` includes, name this crate from outside.
extern crate self as pinpriq_testing;

/// The cases of a suite, which have the names of their functions.
#[cfg(feature = "store")]
macro_rules! named {
    ($($function:ident),* $(,)?) => {
        &[$(Case { name: stringify!($function), run: $function }),*]
    };
}

#[cfg(feature = "cluster-sim")]
pub mod cluster_sim;
mod dice;
pub mod engines;
#[cfg(feature = "store")]
pub mod faulty_disk;
#[cfg(feature = "fuzz")]
pub mod fuzz;
#[cfg(feature = "history")]
pub mod history;
#[cfg(feature = "store")]
pub mod ledgers;
#[cfg(feature = "model")]
pub mod model;
#[cfg(feature = "cluster")]
pub mod registries;
#[cfg(feature = "server")]
pub mod server;
pub mod shares;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(feature = "store")]
pub mod stores;
#[cfg(feature = "store")]
mod troubles;

pub use self::dice::Dice;

#[cfg(feature = "fuzz")]
use fuzz::commands::engine_tests::random;
