//! Whether the wall clock of a node is right, as far as the other nodes can tell.
//!
//! Who owns a shard does not depend on wall clocks, but when its leases end does. So a node whose
//! clock is far off claims nothing. What the clocks say comes from the caller.

/// How far a clock may be off, in milliseconds.
pub const OFF_MS_MAX: u64 = 5_000;

/// Returns how far the own clock is off the median of all, the own one included, in milliseconds.
/// `ahead_ms` says how far each other clock is ahead of the own one.
///
/// Of an even number of clocks, two are in the middle. What lies between them is not off. So with
/// two nodes nobody is off: nobody can tell which one is wrong. Costs O(n log n).
#[must_use]
pub fn off_by(ahead_ms: &[i64]) -> u64 {
    let mut all: Vec<i64> = ahead_ms.iter().copied().chain([0]).collect();
    all.sort_unstable();
    let (low, high) = (all[(all.len() - 1) / 2], all[all.len() / 2]);
    let nearest = 0.clamp(low, high);
    nearest.unsigned_abs()
}

/// Whether a node with this clock must claim nothing.
#[must_use]
pub fn is_off(ahead_ms: &[i64]) -> bool {
    off_by(ahead_ms) > OFF_MS_MAX && !planted!(WrongClockClaims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_clock_of_three_is_off_and_the_others_are_not() {
        assert_eq!(off_by(&[60_000, 60_010]), 60_000, "the own one is behind");
        assert_eq!(off_by(&[-60_000, 10]), 0, "another one is behind");
        assert_eq!(off_by(&[i64::MIN, i64::MIN]), i64::MIN.unsigned_abs());
    }

    #[test]
    fn of_two_clocks_nobody_knows_which_is_wrong() {
        assert_eq!(off_by(&[]), 0);
        assert_eq!(off_by(&[60_000]), 0);
        assert_eq!(off_by(&[-60_000]), 0);
        assert_eq!(off_by(&[-60_000, -60_000, 0]), 0, "two against two");
        assert_eq!(off_by(&[-60_000, -60_000, -50_000]), 50_000);
    }

    #[test]
    fn five_seconds_are_not_off_yet() {
        assert!(!is_off(&[5_000, 5_000]));
        assert!(is_off(&[5_001, 5_001]));
        assert!(is_off(&[-5_001, -5_001]));
    }
}
