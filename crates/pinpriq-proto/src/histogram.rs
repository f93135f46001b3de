//! How long things took, counted in buckets.

use crate::time::Span;

/// The longest time of each bucket but the last, which has no end, in milliseconds.
pub const BUCKETS_MS: [u64; 10] = [1, 5, 10, 50, 100, 500, 1_000, 5_000, 60_000, 3_600_000];

/// Times, counted in buckets. They are kept in memory only, so they begin with the server.
#[derive(Clone, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct TimeHistogram {
    /// All times together, in milliseconds.
    pub sum_ms: u64,
    /// How many times are in each bucket: longer than the bound before, and no longer than its own
    /// in [`BUCKETS_MS`].
    pub counts: [u64; BUCKETS_MS.len() + 1],
}

impl TimeHistogram {
    /// Counts a time. Costs a comparison for each bucket up to its own.
    #[inline]
    pub fn note(&mut self, time: Span) {
        let ms = time.ms();
        // Most tasks are taken at once and done at once.
        if ms <= BUCKETS_MS[0] {
            self.counts[0] += 1;
            self.sum_ms = self.sum_ms.saturating_add(ms);
        } else {
            self.note_long(ms);
        }
    }

    #[inline(never)]
    fn note_long(&mut self, ms: u64) {
        let bucket = BUCKETS_MS.iter().position(|most| ms <= *most).unwrap_or(BUCKETS_MS.len());
        self.counts[bucket] += 1;
        self.sum_ms = self.sum_ms.saturating_add(ms);
    }

    /// Adds the times of another one.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
    }

    /// How many times are no longer than the bound of each bucket, and last, how many there are.
    pub fn up_to(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let bounds = BUCKETS_MS.into_iter().map(Some).chain([None]);
        bounds.zip(self.counts).scan(0, |sum, (bound, count)| {
            *sum += count;
            Some((bound, *sum))
        })
    }

    /// The number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_that_reaches_it() {
        let mut histogram = TimeHistogram::default();
        for ms in [0, 1, 2, 5, 6, 3_600_000, 3_600_001, u64::MAX] {
            histogram.note(Span::from_ms(ms));
        }
        assert_eq!(histogram.counts, [2, 2, 1, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!((histogram.count(), histogram.sum_ms), (8, u64::MAX));
    }
}
