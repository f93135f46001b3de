//! Numbers that follow from a seed: the same on every machine.
//!
//! They decide what is tried and in what order. Nothing that must not be foreseen is made of them.

/// A generator of numbers: splitmix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The generator of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, any of 2^64.
    pub const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or 0 if that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        let rolled = self.roll();
        if bound == 0 { 0 } else { rolled % bound }
    }

    /// A place in a list of this length, or 0 if it is empty.
    pub fn index(&mut self, length: usize) -> usize {
        let below = self.below(u64::try_from(length).unwrap_or(u64::MAX));
        usize::try_from(below).unwrap_or(0)
    }

    /// One of several.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<T: Copy>(&mut self, several: &[T]) -> T {
        several[self.index(several.len())]
    }

    /// True in this many of a hundred cases.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// True in one of this many cases.
    pub const fn once_in(&mut self, cases: u64) -> bool {
        self.below(cases) == 0
    }

    /// This many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.roll().to_be_bytes());
        words.flatten().take(count).collect()
    }

    /// Another generator, whose seed follows from this one.
    #[must_use]
    pub const fn fork(&mut self) -> Self {
        Self(self.roll())
    }
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn the_published_values_of_splitmix64_come_out() {
        let mut dice = Dice::new(1_234_567);
        assert_eq!(dice.roll(), 6_457_827_717_110_365_317);
        assert_eq!(dice.roll(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn bytes_are_as_many_as_asked_for_and_those_of_the_numbers() {
        let numbers = [Dice::new(7).roll().to_be_bytes(), Dice::new(7).fork().0.to_be_bytes()];
        assert_eq!(numbers[0], numbers[1]);
        assert_eq!(Dice::new(7).bytes(5), numbers[0][..5]);
        assert!(Dice::new(7).bytes(0).is_empty());
        assert_eq!(Dice::new(7).index(0), 0);
    }
}
