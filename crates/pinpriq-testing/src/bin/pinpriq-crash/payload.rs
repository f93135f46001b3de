//! Payloads: each is made from a number of its own, so that no two tasks of a run are alike.

use std::sync::atomic::{AtomicU64, Ordering};

use pinpriq_testing::Dice;

/// Most payloads are no longer than this.
const SHORT_BYTES: u64 = 300;
/// A few are as long as this.
const LONG_BYTES: u64 = 20_000;

/// Makes payloads.
#[derive(Default)]
pub(crate) struct Payloads(AtomicU64);

impl Payloads {
    /// Returns the next payload: its number, and bytes that follow from it.
    pub(crate) fn next(&self) -> Vec<u8> {
        let mut dice = Dice::new(self.0.fetch_add(1, Ordering::Relaxed));
        let bytes = if dice.chance(2) { LONG_BYTES } else { SHORT_BYTES };
        let length = usize::try_from(dice.below(bytes)).unwrap_or(0);
        self.sized(length)
    }

    /// Returns a payload of about this length, which is its number again and again.
    pub(crate) fn repetitive(&self, length: usize) -> Vec<u8> {
        self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes().repeat(length / 8)
    }

    /// Returns a payload of at least this length.
    pub(crate) fn sized(&self, length: usize) -> Vec<u8> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let mut payload = number.to_be_bytes().to_vec();
        payload.extend(Dice::new(number).bytes(length));
        payload
    }
}
