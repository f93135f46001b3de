//! Numbers that follow from a seed, and sizes that the environment may change.

/// A source of numbers.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Any number.
    pub(crate) fn draw(&mut self) -> u64 {
        // This is splitmix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        usize::try_from(self.draw() % sides as u64).unwrap()
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend(self.draw().to_be_bytes());
        }
        bytes.truncate(count);
        bytes
    }
}

/// A number from the environment.
pub(crate) fn size(variable: &str, usual: u32) -> u32 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}
