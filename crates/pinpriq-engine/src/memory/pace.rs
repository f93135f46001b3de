//! How many tasks a queue has handed out of late, and how long others take at that pace.
//!
//! The last minute is counted in windows of five seconds. The one that is not over does not count.

use pinpriq_proto::looking::Eta;
use pinpriq_proto::time::{Span, Timestamp};

/// The number of windows that count, and how long each is.
const WINDOWS: usize = 12;
const WINDOW_MS: u64 = 5_000;

/// See the start of this file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    /// When the window ends that is not over.
    ends_at: Timestamp,
    current: u32,
    /// The windows before, the latest first.
    past: [u32; WINDOWS],
}

impl Pace {
    /// Counts a task that is handed out now.
    #[inline]
    pub(crate) fn note(&mut self, now: Timestamp) {
        if now >= self.ends_at {
            self.begin_window(now);
        }
        self.current = self.current.saturating_add(1);
    }

    #[inline(never)]
    fn begin_window(&mut self, now: Timestamp) {
        let (number, last) = (now.ms() / WINDOW_MS, self.ends_at.ms() / WINDOW_MS);
        let begun = usize::try_from(number + 1 - last).unwrap_or(usize::MAX).min(WINDOWS + 1);
        for current in [self.current].into_iter().chain([0; WINDOWS]).take(begun) {
            self.past.rotate_right(1);
            self.past[0] = current;
        }
        self.current = 0;
        self.ends_at = Timestamp::from_ms(number.saturating_add(1).saturating_mul(WINDOW_MS));
    }

    /// How long it takes until this many tasks are handed out, if the last minute tells. Windows
    /// before the first one with a task do not count.
    pub(crate) fn eta(&self, tasks: u64, now: Timestamp) -> Option<Eta> {
        let mut pace = self.clone();
        if now >= pace.ends_at {
            pace.begin_window(now);
        }
        let counted = pace.past.iter().rposition(|tasks| *tasks > 0)?;
        let past = &pace.past[..=counted];
        let in_window = |tasks_each: u64| {
            (tasks_each > 0).then(|| Span::from_ms(tasks * WINDOW_MS / tasks_each))
        };
        let sum: u64 = past.iter().copied().map(u64::from).sum();
        let most = past.iter().copied().max().map_or(0, u64::from);
        let least = past.iter().copied().min().map_or(0, u64::from);
        Some(Eta {
            mean: Span::from_ms(tasks * WINDOW_MS * past.len() as u64 / sum),
            low: in_window(most)?,
            high: in_window(least),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    fn spans(pace: &Pace, tasks: u64, now: u64) -> Option<(u64, u64, Option<u64>)> {
        let eta = pace.eta(tasks, at(now))?;
        Some((eta.mean.ms(), eta.low.ms(), eta.high.map(Span::ms)))
    }

    #[test]
    fn the_last_minute_tells() {
        let mut pace = Pace::default();
        assert_eq!(spans(&pace, 1, 1_000_000), None);
        for (window, tasks) in [(200, 10), (201, 20), (202, 5)] {
            for _ in 0..tasks {
                pace.note(at(window * 5_000 + 7));
            }
        }
        assert_eq!(spans(&pace, 6, 202 * 5_000 + 4_999), Some((2_000, 1_500, Some(3_000))));
        assert_eq!(spans(&pace, 7, 203 * 5_000), Some((3_000, 1_750, Some(7_000))));
        assert_eq!(spans(&pace, 7, 204 * 5_000), Some((4_000, 1_750, None)));
        // The first window is over a minute old.
        assert_eq!(spans(&pace, 5, 213 * 5_000), Some((12_000, 1_250, None)));
        assert_eq!(spans(&pace, 5, 214 * 5_000), Some((60_000, 5_000, None)));
        assert_eq!(spans(&pace, 5, 215 * 5_000), None);
        assert_eq!(spans(&pace, 5, u64::MAX), None);
    }
}
