//! Numbers that follow from a seed.

/// A source of numbers: splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Any number.
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `sides`; 0 if there are none.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.draw().checked_rem(sides).unwrap_or(0)
    }

    /// A place in a list of this length.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        let sides = u64::try_from(length).unwrap_or(u64::MAX);
        usize::try_from(self.roll(sides)).unwrap_or(0)
    }

    /// True so many times out of a hundred.
    pub(crate) fn percent(&mut self, times: u64) -> bool {
        self.roll(100) < times
    }

    /// Other dice that follow from these.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.draw())
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.draw().to_be_bytes());
        words.flatten().take(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn the_published_values_of_splitmix64_come_out() {
        let mut dice = Dice(1_234_567);
        assert_eq!(dice.draw(), 6_457_827_717_110_365_317);
        assert_eq!(dice.draw(), 3_203_168_211_198_807_973);
    }
}
