//! How the clock of a history and those of servers compare, and where in the history a moment is.
//!
//! A server reads the wall clock when it starts, and then goes on by the same clock as the harness.
//! So the difference of the two is the same for as long as a server lives.

use std::net::SocketAddr;

use pinpriq_testing::history::Between;

use crate::archive::info::Info;
use crate::fault::Fallible;
use crate::ledger::Ledger;
use crate::wire;

const US_PER_MS: u64 = 1_000;

/// How often a server is asked for its time.
const ASKS: u32 = 8;

/// What is added to both bounds of a moment: a server draws its time towards the wall clock, by one
/// part in two thousand.
const SLACK_US: u64 = 2_000;

/// How far the clocks of servers are ahead of that of a history, at least and at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ahead {
    least_us: u64,
    most_us: u64,
}

impl Ahead {
    /// Asks a server for its time.
    pub(crate) fn of_server(address: SocketAddr, ledger: &Ledger) -> Fallible<Self> {
        let mut wire = wire::connect(address)?;
        let mut ahead = Self { least_us: 0, most_us: u64::MAX };
        for _ in 0..ASKS {
            let asked_us = ledger.us();
            let told_ms = Info::ask(&mut wire)?.number("server_time_ms")?;
            ahead = ahead.narrowed(Self::at_once(told_ms, asked_us, ledger.us()));
        }
        Ok(ahead)
    }

    /// A server has told this time between two moments.
    const fn at_once(told_ms: u64, asked_us: u64, heard_us: u64) -> Self {
        let from_us = told_ms * US_PER_MS;
        Self {
            least_us: from_us.saturating_sub(heard_us),
            most_us: (from_us + US_PER_MS).saturating_sub(asked_us),
        }
    }

    /// What is so if both are.
    fn narrowed(self, other: Self) -> Self {
        Self {
            least_us: self.least_us.max(other.least_us),
            most_us: self.most_us.min(other.most_us),
        }
    }

    /// What is so of two servers.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            least_us: self.least_us.min(other.least_us),
            most_us: self.most_us.max(other.most_us),
        }
    }

    /// How uncertain it is.
    pub(crate) const fn width_us(self) -> u64 {
        self.most_us.saturating_sub(self.least_us)
    }

    /// The time of a server at a moment of the history.
    pub(crate) const fn moment_ms(self, at_us: u64) -> u64 {
        (at_us + self.least_us) / US_PER_MS
    }

    /// When, in the history, this millisecond of a server was over.
    pub(crate) const fn between(self, at_ms: u64) -> Between {
        let over_us = (at_ms + 1) * US_PER_MS;
        Between {
            from_us: over_us.saturating_sub(self.most_us + SLACK_US),
            to_us: (over_us + SLACK_US).saturating_sub(self.least_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ahead, SLACK_US};

    #[test]
    fn what_was_told_within_a_moment_bounds_the_difference() {
        // The clock is ahead by 5,000,000 us.
        let first = Ahead::at_once(5_001, 900, 1_400);
        assert_eq!(first, Ahead { least_us: 4_999_600, most_us: 5_001_100 });
        let second = Ahead::at_once(5_002, 2_200, 2_900);
        let both = first.narrowed(second);
        assert_eq!(both, Ahead { least_us: 4_999_600, most_us: 5_000_800 });
        assert_eq!(both.width_us(), 1_200);
        assert_eq!(first.or(second), Ahead { least_us: 4_999_100, most_us: 5_001_100 });
    }

    #[test]
    fn a_moment_lasts_until_its_millisecond_is_over() {
        let ahead = Ahead { least_us: 4_999_600, most_us: 5_000_800 };
        assert_eq!(ahead.moment_ms(10_400), 5_010);
        let moment = ahead.between(5_010);
        assert_eq!(moment.from_us, 10_200 - SLACK_US);
        assert_eq!(moment.to_us, 11_400 + SLACK_US);
        // Before the history began.
        assert_eq!(ahead.between(4_000).to_us, 0);
    }
}
