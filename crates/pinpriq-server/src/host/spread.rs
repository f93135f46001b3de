//! Where clients stand in a map, by their numbers. Nothing else should be hashed with this.

use std::hash::{BuildHasherDefault, Hasher};

/// Makes the places of clients in a map.
pub(crate) type Spread = BuildHasherDefault<Spreading>;

/// Spreads the numbers of clients. They are drawn in order by the shard itself, so that nobody can
/// choose them, and need no hasher that keeps anything secret.
#[derive(Default)]
pub(crate) struct Spreading(u64);

impl Hasher for Spreading {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio times 2^64: neighbours land far apart, and no two in one place.
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
