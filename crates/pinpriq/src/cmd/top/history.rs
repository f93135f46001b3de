//! The last minute of a queue: its rates, and the line that shows how they went.
//!
//! It keeps cumulated counts at moments of the server, so a missed round makes no gap. It reads no
//! clock. Rates are whole numbers of tasks in a thousand seconds, since floats are not needed.

use std::collections::VecDeque;

use super::figures::Figures;

/// How far back the line goes.
pub(super) const SPAN_MS: i64 = 60_000;
/// The least time between two moments that are kept.
const STEP_MS: i64 = 1_000;

/// The heights of a column in a sparkline.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Tasks in a thousand seconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Rate(pub(super) i64);

/// The counts at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Point {
    ms: i64,
    put: i64,
    left: i64,
}

/// What is known of the last minute.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct History {
    /// In the order of time, at least [`STEP_MS`] apart, so there are 62 of them at most.
    points: VecDeque<Point>,
    /// The last two, however close they are.
    last: Option<(Option<Point>, Point)>,
}

impl History {
    /// Notes figures of this moment.
    pub(super) fn note(&mut self, ms: i64, figures: &Figures) {
        let point = Point { ms, put: figures.put, left: figures.left };
        if let Some((_, last)) = self.last {
            if point.put < last.put || point.left < last.left || point.ms < last.ms {
                // Another server, another queue of this name, or a clock that was set.
                *self = Self::default();
            } else if point.ms == last.ms {
                return;
            }
        }
        self.last = Some((self.last.map(|(_, last)| last), point));
        if self.points.back().is_none_or(|last| ms.saturating_sub(last.ms) >= STEP_MS) {
            self.points.push_back(point);
        }
        // One more stays than is within the span, so that the line reaches its left end.
        let horizon = ms.saturating_sub(SPAN_MS);
        while self.points.get(1).is_some_and(|second| second.ms <= horizon) {
            self.points.pop_front();
        }
    }

    /// What came in and what left between the last two moments. None before there are two.
    pub(super) fn rates(&self) -> Option<(Rate, Rate)> {
        let (Some(before), after) = self.last? else { return None };
        let rate = |from: i64, to: i64| rate(to - from, after.ms - before.ms);
        Some((rate(before.put, after.put), rate(before.left, after.left)))
    }

    /// The rates out of the last minute until `now_ms`, the oldest on the left.
    pub(super) fn columns(&self, now_ms: i64, columns: usize) -> Vec<Option<Rate>> {
        let parts = i64::try_from(columns).unwrap_or(1).max(1);
        let edge = |part: i64| now_ms - SPAN_MS + SPAN_MS * part / parts;
        (0..parts)
            .map(|part| {
                let (from, to) = (edge(part), edge(part + 1));
                let grown = self.left_at(to)?.saturating_sub(self.left_at(from)?);
                // The counts are thousandths here, and so is the rate.
                Some(Rate(grown.max(0).saturating_mul(1_000) / (to - from).max(1)))
            })
            .collect()
    }

    /// How many tasks had left until a moment, in thousandths. After the last moment that is known
    /// nothing is assumed to have left.
    fn left_at(&self, ms: i64) -> Option<i64> {
        let last = self.last.map(|(_, last)| last);
        let points = self.points.iter().copied().chain(last);
        let mut before: Option<Point> = None;
        for point in points {
            if point.ms >= ms {
                let Some(before) = before else {
                    return (point.ms == ms).then(|| point.left.saturating_mul(1_000));
                };
                let span = (point.ms - before.ms).max(1);
                let grown = i128::from(point.left - before.left) * 1_000;
                let part = grown * i128::from(ms - before.ms) / i128::from(span);
                let part = i64::try_from(part).unwrap_or(i64::MAX);
                return Some(before.left.saturating_mul(1_000).saturating_add(part));
            }
            before = Some(point);
        }
        before.map(|point| point.left.saturating_mul(1_000))
    }

    /// The line that shows [`History::columns`], as high as the highest of them.
    pub(super) fn line(&self, now_ms: i64, columns: usize) -> String {
        let rates = self.columns(now_ms, columns);
        let highest = rates.iter().flatten().max().map_or(0, |rate| rate.0).max(1);
        let height = |rate: &Option<Rate>| match rate {
            None => ' ',
            Some(Rate(rate)) => {
                let top = i128::try_from(HEIGHTS.len() - 1).unwrap_or_default();
                // Rounded up, so that the least that happens is seen.
                let part =
                    (i128::from(*rate) * top + i128::from(highest) - 1) / i128::from(highest);
                let place = usize::try_from(part).unwrap_or_default();
                HEIGHTS.get(place).copied().unwrap_or('█')
            }
        };
        rates.iter().map(height).collect()
    }
}

fn rate(count: i64, ms: i64) -> Rate {
    let rate = i128::from(count.max(0)) * 1_000_000 / i128::from(ms.max(1));
    Rate(i64::try_from(rate).unwrap_or(i64::MAX))
}

impl Rate {
    /// Whole tasks in a second, rounded.
    pub(super) const fn per_second(self) -> i64 {
        self.0.saturating_add(500) / 1_000
    }

    /// For people: with a decimal below 10.
    pub(super) fn shown(self) -> String {
        match self.0 {
            0 => "0".to_owned(),
            // A little is not nothing.
            1..50 => "<.1".to_owned(),
            low @ ..9_950 => format!("{}.{}", (low + 50) / 1_000, (low + 50) % 1_000 / 100),
            _ => short(self.per_second()),
        }
    }
}

/// A number in five columns at most, such as `99999`, `123k` or `4.5M`.
pub(super) fn short(number: i64) -> String {
    const UNITS: [(i64, &str); 6] = [
        (1_000, "k"),
        (1_000_000, "M"),
        (1_000_000_000, "G"),
        (1_000_000_000_000, "T"),
        (1_000_000_000_000_000, "P"),
        (1_000_000_000_000_000_000, "E"),
    ];
    if number < 100_000 {
        return number.to_string();
    }
    let found = UNITS.iter().rev().find(|(size, _)| number >= *size);
    let Some((size, unit)) = found else { return number.to_string() };
    match number / size {
        whole @ ..10 => format!("{whole}.{}{unit}", number % size / (size / 10)),
        whole => format!("{whole}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{History, Rate, short};
    use crate::cmd::top::figures::Figures;

    fn history(points: &[(i64, i64, i64)]) -> History {
        let mut history = History::default();
        for &(ms, put, left) in points {
            history.note(ms, &Figures { put, left, ..Figures::default() });
        }
        history
    }

    #[test]
    fn rates_are_between_the_last_two_moments() {
        assert_eq!(history(&[(0, 5, 5)]).rates(), None);
        let history = history(&[(0, 0, 0), (1_000, 500, 0), (3_000, 510, 1)]);
        assert_eq!(history.rates(), Some((Rate(5_000), Rate(500))));
    }

    #[test]
    fn counters_that_fall_begin_a_new_history() {
        let points = [(0, 100, 100), (1_000, 200, 200), (2_000, 3, 3), (3_000, 4, 3)];
        assert_eq!(history(&points[..3]).rates(), None);
        assert_eq!(history(&points).rates(), Some((Rate(1_000), Rate(0))));
        // So does one of them alone, and a clock that was set back.
        for last in [(1_000, 9, 10), (1_000, 10, 9), (-1, 10, 10)] {
            assert_eq!(history(&[(0, 10, 10), last]).rates(), None, "{last:?}");
        }
    }

    #[test]
    fn the_line_shows_a_minute_and_nothing_where_nothing_is_known() {
        // Ten a second from the 30th second to the 45th, and twenty a second after it.
        let history = history(&[(30_000, 0, 0), (45_000, 150, 150), (60_000, 450, 450)]);
        let expected = [None, None, Some(Rate(10_000)), Some(Rate(20_000))];
        assert_eq!(history.columns(60_000, 4), expected);
        assert_eq!(history.line(60_000, 4), "  ▅█");
        // A minute later nothing is left of it.
        assert_eq!(history.line(120_000, 4), "▁▁▁▁");
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let points: Vec<_> = (0..1_000).map(|round| (round * 100, round, round)).collect();
        let history = history(&points);
        assert!(history.points.len() <= 62, "{}", history.points.len());
        assert_eq!(history.rates(), Some((Rate(10_000), Rate(10_000))));
        assert!(history.columns(99_900, 60).iter().all(|rate| *rate == Some(Rate(10_000))));
    }

    #[test]
    fn numbers_fit_their_columns() {
        let rates = [(0, "0"), (40, "<.1"), (949, "0.9"), (9_949, "9.9"), (9_950, "10")];
        for (rate, expected) in rates {
            assert_eq!(Rate(rate).shown(), expected);
        }
        let numbers =
            [(99_999, "99999"), (100_000, "100k"), (1_250_000, "1.2M"), (i64::MAX, "9.2E")];
        for (number, expected) in numbers {
            assert_eq!(short(number), expected);
        }
    }
}
