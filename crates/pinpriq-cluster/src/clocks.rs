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
/// two nodes neither is off: it is unknown which one is wrong. Costs O(n log n).
#[must_use]
pub fn off_by(ahead_ms: &[i64]) -> u64 {
    right_ahead(ahead_ms).unsigned_abs()
}

/// How far the right time is ahead of the own clock, as far as these clocks tell.
fn right_ahead(ahead_ms: &[i64]) -> i64 {
    let mut all: Vec<i64> = ahead_ms.iter().copied().chain([0]).collect();
    all.sort_unstable();
    let (low, high) = (all[(all.len() - 1) / 2], all[all.len() / 2]);
    0.clamp(low, high)
}

/// How many other clocks it takes to tell which one is wrong.
const OTHERS_MIN: usize = 2;

/// What a node knows of its own clock over time.
///
/// A clock that was found to be wrong stays wrong when those that have told so are gone: what the
/// right time is goes on by the steady clock, until the own clock shows it or others agree with it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Trust {
    /// While the own clock is wrong, how far the right time is ahead of the steady clock.
    right_ms: Option<i64>,
    /// When other nodes were seen first, by the steady clock.
    others_since: Option<u64>,
    /// Whether as many clocks were heard as it takes, or as there are.
    has_compared: bool,
}

impl Trust {
    /// A clock that nothing was heard of.
    pub const NEW: Self = Self { right_ms: None, others_since: None, has_compared: false };

    /// Takes what the other clocks say, and returns how far the own one is off, in milliseconds.
    /// `wall_ms` is what it shows at the moment `steady_ms` of a clock that is never set.
    pub fn judge(&mut self, ahead_ms: &[i64], wall_ms: u64, steady_ms: u64) -> u64 {
        let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        let own = signed(wall_ms).saturating_sub(signed(steady_ms));
        let ahead = match self.right_ms {
            Some(right) if ahead_ms.len() < OTHERS_MIN => right.saturating_sub(own),
            _ => right_ahead(ahead_ms),
        };
        let off_ms = ahead.unsigned_abs();
        self.right_ms = (off_ms > OFF_MS_MAX).then(|| own.saturating_add(ahead));
        off_ms
    }

    /// Whether a node that has begun just now cannot know yet whether its clock is right: it sees
    /// `others` nodes, and has heard the clocks of `heard` of them. For at most `patience_ms`.
    pub fn is_unsure(
        &mut self,
        (heard, others): (usize, usize),
        steady_ms: u64,
        patience_ms: u64,
    ) -> bool {
        if others == 0 {
            return false;
        }
        let since = *self.others_since.get_or_insert(steady_ms);
        self.has_compared |= heard.min(OTHERS_MIN) >= others.min(OTHERS_MIN);
        let is_patient = steady_ms < since.saturating_add(patience_ms);
        !self.has_compared && is_patient
    }
}

/// Whether a node whose clock is so far off must claim nothing.
#[must_use]
pub fn is_off(off_ms: u64) -> bool {
    off_ms > OFF_MS_MAX
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
    fn of_two_clocks_either_may_be_wrong() {
        assert_eq!(off_by(&[]), 0);
        assert_eq!(off_by(&[60_000]), 0);
        assert_eq!(off_by(&[-60_000]), 0);
        assert_eq!(off_by(&[-60_000, -60_000, 0]), 0, "two against two");
        assert_eq!(off_by(&[-60_000, -60_000, -50_000]), 50_000);
    }

    #[test]
    fn five_seconds_are_not_off_yet() {
        assert!(!is_off(off_by(&[5_000, 5_000])));
        assert!(is_off(off_by(&[5_001, 5_001])));
        assert!(is_off(off_by(&[-5_001, -5_001])));
    }
}
