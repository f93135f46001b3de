//! Sets of numbers that mostly come in runs.
//!
//! What is in them costs as much memory as there are runs, however long these are: an object can
//! state any run.

use std::collections::BTreeMap;

/// A set of numbers: the first of each run with the last.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Spans(BTreeMap<u64, u64>);

impl Spans {
    /// Adds the numbers from `first` to `last`.
    pub(crate) fn insert(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        let (mut first, mut last) = (first, last);
        // Runs that overlap this one or touch it become a part of it.
        while let Some((&other, &end)) = self.0.range(..=last.saturating_add(1)).next_back() {
            if end.saturating_add(1) < first {
                break;
            }
            self.0.remove(&other);
            (first, last) = (first.min(other), last.max(end));
        }
        self.0.insert(first, last);
    }

    /// Whether a number is there.
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.0.range(..=number).next_back().is_some_and(|(_, last)| *last >= number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Spans;

    #[test]
    fn a_run_takes_in_what_it_touches() {
        let mut spans = Spans::default();
        for (first, last) in [(10, 12), (1, 2), (14, 14), (u64::MAX, u64::MAX), (9, 3)] {
            spans.insert(first, last);
        }
        assert_eq!(spans.0.len(), 4);
        spans.insert(3, 13);
        assert_eq!(spans.0.into_iter().collect::<Vec<_>>(), [(1, 14), (u64::MAX, u64::MAX)]);
    }

    #[test]
    fn a_set_of_runs_is_a_set_of_numbers() {
        let (mut spans, mut plain, mut seed) = (Spans::default(), BTreeSet::new(), 7_u64);
        for _ in 0..300 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (first, more) = ((seed >> 33) % 500, (seed >> 50) % 9);
            spans.insert(first, first + more);
            plain.extend(first..=first + more);
            assert!((0..520).all(|number| spans.contains(number) == plain.contains(&number)));
        }
    }
}
