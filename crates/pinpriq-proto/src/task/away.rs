//! Payloads that were left in the store, and how to tell that one comes back as it was.

use crate::place::Place;

/// A payload that was left in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Away {
    /// The place of the task's record, which holds the payload.
    pub place: Place,
    /// The length of the payload in bytes.
    pub bytes: u32,
    /// Its [`payload_checksum`].
    pub checksum: u32,
}

/// Computes a checksum that detects when a worn disk returns something else than the payload that
/// was left in the store.
#[must_use]
pub fn payload_checksum(payload: &[u8]) -> u32 {
    // Takes eight bytes at a time. Each step is a bijection of the state before, so no single
    // change goes unnoticed before the last fold.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let mut hash = payload.len() as u64;
    let mut words = payload.chunks_exact(8);
    for word in words.by_ref() {
        let word = word.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = step(hash, word);
    }
    let rest = words.remainder().iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let hash = step(step(hash, rest), FACTOR);
    #[expect(clippy::cast_possible_truncation, reason = "both halves are folded into one")]
    let folded = (hash ^ (hash >> 32)) as u32;
    folded
}
