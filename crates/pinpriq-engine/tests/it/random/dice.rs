//! The generator of the random tests. The fuzz target `commands` uses its own instead.

pub(super) use pinpriq_testing::Dice;
