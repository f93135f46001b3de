//! Compares the wall clock of this node with those of the others, now and then. What follows from
//! that is decided in `pinpriq_cluster`.

use pinpriq_cluster::Ownership;
use pinpriq_cluster::clocks::{OFF_MS_MAX, is_off, off_by};

use super::exchange::Exchange;

/// See the start of this file.
pub(crate) struct ClockWatch {
    /// How often the nodes tell each other what their clocks say, in milliseconds.
    every_ms: u64,
    due: u64,
    off_ms: u64,
    said: Said,
}

/// What was logged last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    /// That the clocks agree, or nothing.
    InStep,
    /// That this one is wrong.
    Off,
    /// That the clocks of two nodes differ.
    Differ,
}

impl ClockWatch {
    /// Returns a watch for a session of this time to live.
    pub(crate) const fn new(session_ttl_ms: u64) -> Self {
        Self { every_ms: session_ttl_ms / 5, due: 0, off_ms: 0, said: Said::InStep }
    }

    /// Tells the other nodes what the clock says, and notes what theirs say, if that is due at the
    /// moment `now` of the steady clock.
    pub(crate) fn look(&mut self, now: u64, exchange: &Exchange, ownership: &mut Ownership) {
        if now < self.due {
            return;
        }
        self.due = now + self.every_ms;
        exchange.tell_clock();
        let clocks = exchange.clocks();
        ownership.note_clock(is_off(&clocks));
        self.say(&clocks);
    }

    /// How far the clock is off those of the others, in milliseconds.
    pub(crate) const fn off_ms(&self) -> u64 {
        self.off_ms
    }

    fn say(&mut self, clocks: &[i64]) {
        let off_ms = off_by(clocks);
        self.off_ms = off_ms;
        let differs = matches!(clocks, [ahead] if ahead.unsigned_abs() > OFF_MS_MAX);
        let now = match (off_ms > OFF_MS_MAX, differs) {
            (true, _) => Said::Off,
            (false, true) => Said::Differ,
            (false, false) => Said::InStep,
        };
        if now == self.said {
            return;
        }
        self.said = now;
        match now {
            Said::Off => tracing::warn!(
                off_ms,
                "the wall clock differs from those of the other nodes: this node claims no shards \
                 until it is right"
            ),
            Said::Differ => tracing::warn!(
                ahead_ms = clocks[0],
                "the wall clock of the other node differs: set the wrong one of both, or delays \
                 and leases may end at the wrong time"
            ),
            Said::InStep => tracing::info!("the wall clocks of the nodes agree again"),
        }
    }
}
