//! Deliberate bugs: one of them can be planted in the product, to check that the tests object.
//!
//! The product asks `planted!(Name)` where a bug would be. The macro is `false`, unless the build
//! has `--cfg planted`; only such a build uses this crate. The environment variable
//! `PINPRIQ_PLANTED` chooses the bug. It is read once when the program runs, or fixed if it was set
//! when this crate was built. This crate contains no bugs and runs no tests: `cargo xtask planted`
//! does that.

#[macro_use]
mod bugs;
mod list;

use std::sync::OnceLock;

pub use list::Bug;

/// The name of the environment variable that chooses the bug.
pub const VARIABLE: &str = "PINPRIQ_PLANTED";

/// The value of the variable when this crate was built.
const AT_BUILD: Option<&str> = option_env!("PINPRIQ_PLANTED");

/// The tests of a crate that ought to object to a bug: those whose names begin with the word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Suite {
    /// The tests of `pinpriq-engine`.
    Engine(&'static str),
    /// The tests of `pinpriq-proto`.
    Wire(&'static str),
    /// The tests of `pinpriq-store`.
    Store(&'static str),
    /// The tests of `pinpriq-ledger`.
    Ledger(&'static str),
    /// The tests of `pinpriq-cluster`.
    Cluster(&'static str),
    /// The tests of `pinpriq-etcd`, which need etcd.
    Etcd(&'static str),
    /// The tests of `pinpriq-postgres`, which need PostgreSQL.
    Postgres(&'static str),
    /// The tests of `pinpriq-server`.
    Server(&'static str),
    /// The tests within the source of `pinpriq-store`.
    InStore(&'static str),
    /// The tests within the source of `pinpriq-ledger`.
    InLedger(&'static str),
    /// The tests within the source of `pinpriq-server`.
    InServer(&'static str),
    /// The simulator, with the seeds from 0 to [`SEEDS`].
    Simulator,
    /// The simulator of clusters, with the seeds from 0 to [`CLUSTER_SEEDS`].
    ClusterSimulator,
}

/// How many seeds the simulator tries with each bug. It stops at the first that objects. The bug
/// that is hardest to find shows in one of some 350. Keep this margin: other seeds find the bugs
/// when the simulator changes.
pub const SEEDS: u64 = 1_200;

impl Suite {
    /// Whether it tries many seeds until one objects.
    #[must_use]
    pub const fn is_simulator(self) -> bool {
        matches!(self, Self::Simulator | Self::ClusterSimulator)
    }
}

/// How many seeds the simulator of clusters tries with each bug. It stops at the first that
/// objects, which was one of the first ten for each bug that names it. A seed takes half a second
/// without optimisation.
pub const CLUSTER_SEEDS: u64 = 40;

/// Whether this bug is planted.
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        $crate::is_planted($crate::Bug::$bug)
    };
}

/// Whether this bug is planted. Ask with [`planted!`].
///
/// # Panics
/// If the variable names no bug.
#[must_use]
pub fn is_planted(bug: Bug) -> bool {
    static CHOSEN: OnceLock<Option<Bug>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let word = AT_BUILD.map(str::to_owned).or_else(|| std::env::var(VARIABLE).ok());
        match choose(word.as_deref()) {
            Ok(chosen) => chosen,
            Err(sentence) => panic!("{sentence}"),
        }
    });
    *chosen == Some(bug)
}

/// Returns the bug that a word chooses, or `None` without a word or with an empty one. The error
/// for an unknown word is a sentence that lists the known ones.
pub fn choose(word: Option<&str>) -> Result<Option<Bug>, String> {
    let Some(word) = word.filter(|word| !word.is_empty()) else { return Ok(None) };
    let known = Bug::named(word);
    if known.is_none() {
        let words: Vec<&str> = Bug::ALL.iter().map(|bug| bug.word()).collect();
        return Err(format!("{VARIABLE} names no bug: {word:?} is none of {}", words.join(", ")));
    }
    Ok(known)
}

impl std::fmt::Display for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Engine(word) => write!(f, "engine {word}"),
            Self::Wire(word) => write!(f, "wire {word}"),
            Self::Store(word) => write!(f, "store {word}"),
            Self::Ledger(word) => write!(f, "ledger {word}"),
            Self::Cluster(word) => write!(f, "cluster {word}"),
            Self::Etcd(word) => write!(f, "etcd {word}"),
            Self::Postgres(word) => write!(f, "postgres {word}"),
            Self::Server(word) => write!(f, "server {word}"),
            Self::InStore(word) => write!(f, "in store {word}"),
            Self::InLedger(word) => write!(f, "in ledger {word}"),
            Self::InServer(word) => write!(f, "in server {word}"),
            Self::Simulator => f.write_str("simulator"),
            Self::ClusterSimulator => f.write_str("simulator of clusters"),
        }
    }
}
