//! A histogram of values by size: a fixed number of counters, each four times as wide as the one
//! before.
//!
//! A histogram knows no unit, forgets the order of its values, and never allocates.

/// The number of counters. The last one is for values above all bounds.
const COUNTERS: usize = 14;

/// Counts values by size; see the module documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    counts: [u64; COUNTERS],
    sum: u64,
}

impl Histogram {
    /// Counts a value.
    pub const fn record(&mut self, value: u64) {
        self.record_times(value, 1);
    }

    /// Counts a value that occurs this number of times.
    pub const fn record_times(&mut self, value: u64, times: u64) {
        let bits = match value {
            0 => 0,
            value => u64::BITS - (value - 1).leading_zeros(),
        };
        let counter = bits.div_ceil(2) as usize;
        self.counts[if counter < COUNTERS { counter } else { COUNTERS - 1 }] += times;
        self.sum = self.sum.saturating_add(value.saturating_mul(times));
    }

    /// The number of values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all values.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// For each bound, the number of values that are not above it. The bounds are the powers of 4
    /// from 1 to 4¹²; in microseconds the last is some 17 s.
    pub fn up_to(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut count = 0;
        self.counts[..COUNTERS - 1].iter().zip(0..).map(move |(more, power)| {
            count += more;
            (4_u64.pow(power), count)
        })
    }

    /// Returns the histogram of the values of both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Histogram;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for value in values {
            histogram.record(*value);
        }
        histogram
    }

    #[test]
    fn a_value_counts_up_to_the_bounds_that_it_does_not_exceed() {
        for value in (0..=1_025).chain([4_194_304, 4_194_305, 16_777_216, 16_777_217, u64::MAX]) {
            let histogram = of(&[value]);
            assert_eq!((histogram.count(), histogram.sum()), (1, value));
            for (bound, count) in histogram.up_to() {
                assert_eq!(count, u64::from(value <= bound), "{value} up to {bound}");
            }
        }
    }

    #[test]
    fn two_histograms_together_are_that_of_all_values() {
        let both = of(&[1, 5, 5]).and(&of(&[0, 5, 100_000]));
        assert_eq!(both, of(&[0, 1, 5, 5, 5, 100_000]));
        assert_eq!(both.up_to().map(|(bound, _)| bound).last(), Some(1 << 24));
    }
}
