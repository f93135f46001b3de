//! Slots at a fixed distance from each other. Every question is a division.

use super::{EVERY_MIN, MOMENT_MAX, Refusal};

/// See [`Calendar::every`](super::Calendar::every).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Every {
    every: u64,
    anchor: u64,
}

impl Every {
    pub(crate) fn new(every: u64, anchor: u64) -> Result<Self, Refusal> {
        if !(EVERY_MIN..=MOMENT_MAX).contains(&every) {
            Err(Refusal::Every(every))
        } else if anchor > MOMENT_MAX {
            Err(Refusal::Anchor(anchor))
        } else {
            Ok(Self { every, anchor })
        }
    }

    pub(crate) fn next_after(&self, moment: u64) -> Option<u64> {
        let slot = self.anchor.checked_add(self.count_to(moment).checked_mul(self.every)?)?;
        (slot <= MOMENT_MAX).then_some(slot)
    }

    pub(crate) fn count_between(&self, from: u64, to: u64) -> u64 {
        self.count_to(to.min(MOMENT_MAX)).saturating_sub(self.count_to(from))
    }

    pub(crate) fn latest_between(&self, from: u64, to: u64, most: usize) -> Vec<u64> {
        let end = self.count_to(to.min(MOMENT_MAX));
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let count = self.count_between(from, to).min(most);
        (end - count..end).map(|index| self.anchor + index * self.every).collect()
    }

    /// Returns how many slots there are up to a moment.
    const fn count_to(&self, moment: u64) -> u64 {
        match moment.checked_sub(self.anchor) {
            Some(since) => since / self.every + 1,
            None => 0,
        }
    }
}
