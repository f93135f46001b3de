//! The generator of the random tests. The fuzz target `commands` puts its own in this place.

pub(super) use pinpriq_dice::Dice;
