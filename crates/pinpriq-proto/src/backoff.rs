//! How long a task waits after a failure.
//!
//! The wait is computed from numbers that are kept with the task, so a replay gives the same. When
//! a task is tried again, and what a failure is, are decided in the operations.

use crate::time::Span;

/// Returns how long the task of this `seq` waits after its failure of this number, counted from 1:
/// `backoff`, doubled with each failure before, at most `most`, less a part of up to a quarter. The
/// part depends on `seq` and the number of failures, so that tasks that have failed together do not
/// come back together. At least 1 ms.
#[must_use]
pub fn wait_after(backoff: Span, most: Span, seq: u64, failures: u32) -> Span {
    let doubled = failures.saturating_sub(1);
    let factor = 1_u64.checked_shl(doubled).unwrap_or(u64::MAX);
    let full_ms = backoff.ms().saturating_mul(factor).min(most.ms());
    let drawn = mix(seq ^ u64::from(failures).rotate_left(32));
    // A fraction of a quarter, rounded down, so that the wait is rounded up.
    let less = (u128::from(full_ms) * u128::from(drawn)) >> 66;
    let less_ms = u64::try_from(less).unwrap_or(0);
    Span::from_ms((full_ms - less_ms).max(1))
}

/// Spreads the bits of a number over the whole range.
const fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Span = Span::from_ms(3_600_000);

    #[test]
    fn wait_doubles_less_up_to_a_quarter() {
        for (failures, full_ms) in [(1, 1_000), (2, 2_000), (3, 4_000), (12, 2_048_000)] {
            let waits = (1..200).map(|seq| wait_after(Span::from_ms(1_000), HOUR, seq, failures));
            let waits: Vec<u64> = waits.map(Span::ms).collect();
            let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            assert!(*least >= full_ms * 3 / 4 && *most <= full_ms, "{least} to {most}");
            assert!(most - least > full_ms / 5, "{least} to {most} are spread");
        }
    }

    #[test]
    fn wait_is_bounded() {
        for failures in [1, 13, 64, 65, u32::MAX] {
            let wait = wait_after(HOUR, HOUR, 7, failures).ms();
            assert!((2_700_000..=3_600_000).contains(&wait), "{wait}");
            assert_eq!(wait_after(Span::from_ms(1), Span::from_ms(1), 7, failures).ms(), 1);
            assert_ne!(wait_after(Span::MAX, Span::MAX, 7, failures), Span::ZERO);
        }
    }

    #[test]
    fn same_failure_gives_the_same_wait() {
        let wait = |seq, failures| wait_after(HOUR, HOUR, seq, failures);
        assert_eq!(wait(5, 2), wait(5, 2));
        assert_ne!(wait(5, 2), wait(6, 2));
        assert_ne!(wait(5, 2), wait(5, 3));
    }
}
