//! Numbers that look random and are the same for the same seed.

/// A generator of the splitmix family: good enough for choices, and small.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number less than `bound`.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// True once in `count` times.
    pub(super) const fn once_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// One of several.
    pub(super) fn pick<T: Copy>(&mut self, several: &[T]) -> T {
        let index = self.below(several.len() as u64);
        several[usize::try_from(index).unwrap()]
    }
}
