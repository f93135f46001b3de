//! Random numbers that follow from a seed, for tests and simulators.

/// A small generator (splitmix64). Equal seeds give equal numbers on every machine.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// A generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number, any of 2^64.
    pub const fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or 0 if that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        let rolled = self.roll();
        if bound == 0 { 0 } else { rolled % bound }
    }

    /// Whether something happens that happens in this many of a hundred cases.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
