//! How fast things happen, between two looks at counters.

use pinpriq_proto::stats::{Counters, Move};
use pinpriq_proto::task::StateKind;

/// Tasks for each second.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Rates {
    /// Tasks that came in.
    pub(crate) came: f64,
    /// Tasks that left for good.
    pub(crate) left: f64,
    /// How often tasks were taken or popped.
    pub(crate) taken: f64,
    /// How often tasks have failed.
    pub(crate) failed: f64,
}

impl Rates {
    /// Adds those of another queue.
    pub(crate) fn add(&mut self, other: Self) {
        self.came += other.came;
        self.left += other.left;
        self.taken += other.taken;
        self.failed += other.failed;
    }

    /// Returns the rates between two looks. Counters that have fallen, because their queue came to
    /// be anew or a shard has moved to another node, count as if they had not moved.
    pub(crate) fn between(before: &Counters, after: &Counters, passed_ms: u64) -> Self {
        let rate = |read: fn(&Counters) -> u64| per_second(read(before), read(after), passed_ms);
        Self {
            came: rate(|it| it.put),
            left: rate(Counters::left),
            taken: rate(taken),
            failed: rate(|it| it.failures),
        }
    }
}

/// Returns how much a counter has grown in each second.
pub(crate) fn per_second(before: u64, after: u64, passed_ms: u64) -> f64 {
    ratio(after.saturating_sub(before) * 1_000, passed_ms.max(1))
}

/// Returns the ratio of two numbers.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub(crate) fn ratio(of: u64, to: u64) -> f64 {
    of as f64 / to as f64
}

fn taken(counters: &Counters) -> u64 {
    let taken = Move::new(Some(StateKind::Ready), Some(StateKind::Taken));
    counters.moves.iter().find(|(step, _)| *step == taken).map_or(0, |(_, times)| *times)
}
