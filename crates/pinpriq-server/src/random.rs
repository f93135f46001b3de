//! Numbers that cannot be guessed: salts of journals, seeds of tokens, names of nodes. They are no
//! keys.

use std::hash::{BuildHasher, RandomState};

/// Returns a number that cannot be guessed. The system seeds the hashers of the standard library.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0_u64)
}
