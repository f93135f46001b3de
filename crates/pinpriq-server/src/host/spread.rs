//! Hashes client numbers for maps. Nothing else should be hashed with this.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds the hashers of maps with clients as keys.
pub(crate) type Spread = BuildHasherDefault<Spreading>;

/// Hashes the numbers of clients. The shard assigns them in order, so clients cannot choose them,
/// and the hasher needs no secret.
#[derive(Default)]
pub(crate) struct Spreading(u64);

impl Hasher for Spreading {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio times 2^64 puts neighbours far apart, and no two numbers in one place.
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
