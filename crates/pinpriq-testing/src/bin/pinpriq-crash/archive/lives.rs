//! When servers lived, by the clock of the history, and moments of that by chance.

use pinpriq_testing::Dice;

/// How near to a kill or a start a moment is that is chosen because of it.
const NEAR_US: u64 = 30_000;

/// A server from the time that it was ready for load until it was killed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) from_us: u64,
    pub(crate) to_us: u64,
}

/// Servers on one directory, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Lives {
    /// Those that were killed, at least one.
    pub(crate) killed: Vec<Life>,
    /// When the last one was there, which had no load.
    pub(crate) last_us: u64,
}

impl Lives {
    /// Chooses a moment, and says of which kind. The kinds take turns.
    pub(crate) fn some_moment(&self, turn: u64, dice: &mut Dice) -> (&'static str, u64) {
        let place = dice.index(self.killed.len());
        let Life { from_us, to_us } = self.killed[place];
        let next_us = self.killed.get(place + 1).map_or(self.last_us, |next| next.from_us);
        match turn % 4 {
            0 => ("under load", from_us + dice.below(to_us.saturating_sub(from_us))),
            1 => ("before a kill", to_us.saturating_sub(dice.below(NEAR_US)).max(from_us)),
            2 => ("after a kill", to_us + dice.below(next_us.saturating_sub(to_us))),
            _ => ("after a start", (from_us + dice.below(NEAR_US)).min(to_us)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Life, Lives};
    use pinpriq_testing::Dice;

    #[test]
    fn each_kind_of_moment_is_where_it_says() {
        let second = Life { from_us: 400_000, to_us: 410_000 };
        let killed = vec![Life { from_us: 1_000, to_us: 300_000 }, second];
        let lives = Lives { killed, last_us: 500_000 };
        let mut dice = Dice::new(1);
        for turn in 0..400 {
            let (kind, at_us) = lives.some_moment(turn, &mut dice);
            let is_up = lives.killed.iter().any(|it| (it.from_us..=it.to_us).contains(&at_us));
            let is_down = (300_000..400_000).contains(&at_us) || at_us >= 410_000;
            assert!(if kind == "after a kill" { is_down } else { is_up }, "{kind}: {at_us}");
            assert!(at_us < lives.last_us);
        }
    }
}
