//! Keeps a warning that could come thousands of times a second to one line a second.
//!
//! [`Throttle`] decides and reads no clock. [`warn_throttled`] writes the line.

use std::cell::Cell;

use pinpriq_proto::time::{Span, Timestamp};

/// Logs a line as a warning, with the number of those that were suppressed before it, if a
/// [`Throttle`] has admitted it, and at debug otherwise.
macro_rules! warn_throttled {
    ($admitted:expr, $($line:tt)+) => {
        if let Some(suppressed) = $admitted {
            tracing::warn!(suppressed, $($line)+);
        } else {
            tracing::debug!($($line)+);
        }
    };
}

pub(crate) use warn_throttled;

/// The least time between two lines.
pub(crate) const PAUSE: Span = Span::from_ms(1_000);

/// Says whether a warning may be logged now, and counts those that may not.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// When a line was logged last.
    last: Cell<Option<Timestamp>>,
    /// How many have been suppressed since then.
    suppressed: Cell<u64>,
}

impl Throttle {
    /// Returns how many warnings were suppressed since the last that was logged, if one more may be
    /// logged at this moment. Otherwise counts it as suppressed.
    pub(crate) fn admit(&self, now: Timestamp) -> Option<u64> {
        let is_early = self.last.get().is_some_and(|last| now < last.after(PAUSE));
        if is_early {
            self.suppressed.set(self.suppressed.get() + 1);
            return None;
        }
        self.last.set(Some(now));
        Some(self.suppressed.take())
    }

    /// Like [`Throttle::admit`] for an event that may be no warning. Such events are not counted.
    pub(crate) fn admit_if(&self, is_warning: bool, now: Timestamp) -> Option<u64> {
        if is_warning { self.admit(now) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_admitted_once_a_second_with_the_number_of_those_in_between() {
        let throttle = Throttle::default();
        let admitted: Vec<_> = [5_000, 5_000, 5_001, 5_999, 6_000, 6_001, 7_000, 9_000, 9_999]
            .map(|ms| throttle.admit(Timestamp::from_ms(ms)))
            .into();
        let expected = [Some(0), None, None, None, Some(3), None, Some(1), Some(0), None];
        assert_eq!(admitted, expected);
    }

    #[test]
    fn what_is_no_warning_is_neither_admitted_nor_counted() {
        let (throttle, now) = (Throttle::default(), Timestamp::from_ms(1));
        assert_eq!(
            [false, true, false].map(|it| throttle.admit_if(it, now)),
            [None, Some(0), None]
        );
        assert_eq!(throttle.admit(now.after(PAUSE)), Some(0));
    }

    #[test]
    fn the_first_warning_is_admitted_at_any_moment() {
        assert_eq!(Throttle::default().admit(Timestamp::ZERO), Some(0));
    }
}
