//! The rules for a server that takes a log over from one that has not ended in order.
//!
//! Clients had no server for a while, and the clock of the new owner is another one. So leases
//! go on for [`GRACE`] at least, and the time line leaps no further than time can have passed. That
//! a member gets its whole lease again, and that slots of schedules that have passed count as
//! missed, holds after any start: see `Engine::start`.

use pinpriq_proto::time::{Span, Timestamp};

/// How long a lease with a TTR lives at least after a take-over, unless its TTR is shorter.
pub const GRACE: Span = Span::from_ms(5_000);

/// How far a clock may be wrong. A node whose clock is further off takes nothing over.
pub const SKEW: Span = Span::from_ms(5_000);

/// The moment at which the time line of a log goes on after a take-over.
///
/// `log` is the moment of its last entry, and `wall` is what the wall clock of the new owner says.
/// It is the later one of both, but no later than `log`, the time `since` the last entry, and
/// [`SKEW`] together. `since` is measured without that wall clock, and rather too long than too
/// short: by the clocks of the engine and of other nodes. If it is not known, the wall clock is
/// believed.
#[must_use]
pub fn moment(log: Timestamp, wall: Timestamp, since: Option<Span>) -> Timestamp {
    let most = since.map_or(Timestamp::MAX, |since| log.after(since).after(SKEW));
    wall.min(most).max(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_line_goes_on_and_does_not_leap() {
        for (log, wall, since, expected) in [
            (10_000, 30_000, Some(20_000), 30_000),
            (10_000, 35_000, Some(20_000), 35_000),
            (10_000, 35_001, Some(20_000), 35_000),
            (10_000, 14_000, Some(0), 14_000),
            (10_000, 9_000_000_000, Some(0), 15_000),
            // The wall clock of the former owner was ahead.
            (10_000, 9_000, Some(20_000), 10_000),
            (10_000, 0, Some(0), 10_000),
            // Nothing was measured.
            (10_000, 9_000_000_000, None, 9_000_000_000),
            (10_000, 9_000, None, 10_000),
        ] {
            let found =
                moment(Timestamp::from_ms(log), Timestamp::from_ms(wall), since.map(Span::from_ms));
            assert_eq!(found.ms(), expected, "{log}, {wall}, {since:?}");
        }
        let most = moment(Timestamp::from_ms(1), Timestamp::MAX, Some(Span::MAX));
        assert_eq!(most, Timestamp::MAX);
    }
}
