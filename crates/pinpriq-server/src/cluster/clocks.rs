//! Compares the wall clock of this node with those of the others, now and then. What follows from
//! that is decided in `pinpriq_cluster`.

use pinpriq_cluster::Ownership;
use pinpriq_cluster::clocks::{OFF_MS_MAX, Trust, is_off};

use super::exchange::Exchange;

/// See the start of this file.
pub struct ClockWatch {
    /// How often the nodes tell each other what their clocks say, in milliseconds.
    every_ms: u64,
    /// How long a node that begins waits for what the clocks of the others say, in milliseconds.
    patience_ms: u64,
    due: u64,
    trust: Trust,
    /// Whether it is still unknown if the clock is right.
    is_unsure: bool,
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
    #[must_use]
    pub const fn new(session_ttl_ms: u64) -> Self {
        Self {
            every_ms: session_ttl_ms / 5,
            patience_ms: session_ttl_ms,
            due: 0,
            trust: Trust::NEW,
            is_unsure: true,
            off_ms: 0,
            said: Said::InStep,
        }
    }

    /// Tells the other nodes what the clock says, and notes what theirs say, if that is due at the
    /// moment `now` of the steady clock.
    pub fn look(&mut self, now: u64, exchange: &Exchange, ownership: &mut Ownership) {
        let is_due = now >= self.due;
        if !is_due && !self.is_unsure {
            return;
        }
        if is_due {
            self.due = now + self.every_ms;
            exchange.tell_clock();
        }
        let clocks = exchange.clocks();
        let own = ownership.node().instance;
        let others = ownership.view().nodes.iter().filter(|node| node.instance != own).count();
        self.is_unsure = self.trust.is_unsure((clocks.len(), others), now, self.patience_ms);
        self.off_ms = self.trust.judge(&clocks, exchange.wall_ms(), now);
        ownership.note_clock(is_off(self.off_ms) || self.is_unsure);
        self.say(&clocks);
    }

    /// How far the clock is off those of the others, in milliseconds.
    pub(crate) const fn off_ms(&self) -> u64 {
        self.off_ms
    }

    fn say(&mut self, clocks: &[i64]) {
        let off_ms = self.off_ms;
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
                 until it is right, also when the others are gone"
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
