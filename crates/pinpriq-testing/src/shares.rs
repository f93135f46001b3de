//! What fair shares, and limits by key and share, promise: scenarios with tenants and workers.
//!
//! A scenario is data. [`run`] plays it against a [`Server`], which is a simulated one, where a
//! minute takes a moment, or a real one. It measures what was promised, with a bound for each
//! figure. `pinpriq-shares` prints the figures of the simulated server, and `pinpriq-crash shares`
//! those of a real one. [`takes`] tries nothing but limits, many times, and [`costs`]
//! measures what turns cost.

#[cfg(feature = "sim")]
pub mod costs;
mod figures;
mod scenarios;
#[cfg(feature = "server")]
mod simulated;
#[cfg(feature = "sim")]
pub mod takes;
mod world;

pub use self::figures::{Figure, table};
pub use self::scenarios::{SCENARIOS, Scenario};
#[cfg(feature = "server")]
pub use self::simulated::Simulated;
pub use self::world::{Server, run};

/// Why a scenario could not be played.
pub type Fault = String;
