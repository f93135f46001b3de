//! Latencies, and their correction for what a stalled client could not measure.
//!
//! In a closed loop a slot that waits sends nothing. A stall of a second is then one bad
//! measurement instead of the many that users would have made meanwhile. The correction adds these:
//! for each latency that is longer than the usual time between two requests, also those that the
//! missing requests would have had. In an open loop nothing is missing, and nothing is corrected.

use hdrhistogram::Histogram;

/// The range of latencies: up to an hour, in nanoseconds, with three significant digits.
const LATENCY_MAX_NS: u64 = 3_600 * 1_000_000_000;

/// Latencies in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latency {
    histogram: Histogram<u64>,
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

impl Latency {
    /// No latencies yet.
    #[must_use]
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3);
        #[expect(clippy::expect_used, reason = "the bounds are constants that the crate accepts")]
        Self { histogram: histogram.expect("the bounds are in order") }
    }

    /// Adds a latency.
    pub(crate) fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.max(1));
    }

    /// Returns the number of latencies.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the latency that this share of them does not exceed, or 0 if there are none.
    #[must_use]
    pub fn at_quantile_ns(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile)
    }

    /// Returns the longest latency.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.histogram.max()
    }

    /// Adds the missing latencies if a request was to be sent every `expected_ns`.
    #[must_use]
    pub fn corrected(&self, expected_ns: u64) -> Self {
        Self { histogram: self.histogram.clone_correct(expected_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::Latency;

    #[test]
    fn a_stall_counts_for_the_requests_that_it_held_up() {
        let mut latency = Latency::new();
        for _ in 0..99 {
            latency.record(1_000);
        }
        latency.record(100_000);
        assert_eq!(latency.count(), 100);
        assert!(latency.at_quantile_ns(0.99) < 1_010);
        // These stand for the 99 requests that were not sent: 99, 98, … 1 microseconds.
        let corrected = latency.corrected(1_000);
        assert_eq!(corrected.count(), 199);
        assert!((95_000..100_000).contains(&corrected.at_quantile_ns(0.99)));
        assert_eq!(corrected.max_ns(), latency.max_ns());
    }

    #[test]
    fn without_stalls_there_is_nothing_to_correct() {
        let mut latency = Latency::new();
        for ns in 1..=1_000 {
            latency.record(ns);
        }
        assert_eq!(latency.corrected(1_000).count(), 1_000);
    }

    #[test]
    fn nothing_measured_is_nothing() {
        let latency = Latency::new();
        assert_eq!((latency.count(), latency.max_ns(), latency.at_quantile_ns(0.5)), (0, 0, 0));
    }
}
