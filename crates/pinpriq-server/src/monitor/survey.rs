//! A survey: the facts about the server and the figures of its queues, at about one moment.
//!
//! It shows a bounded number of queues and lanes one by one, and the others together. What a queue
//! had counted before it was shown stays with the others, and what one had counted that is gone
//! goes with it, so that the counters of the others never fall.

use std::collections::BTreeMap;

use pinpriq_proto::named_limits::LimitShown;
use pinpriq_proto::shares::ShareShown;
use pinpriq_proto::stats::{Counters, Figures};
use pinpriq_proto::survey::Surveyed;
use pinpriq_proto::task::{Bytes, StateKind};
use pinpriq_proto::time::Span;

use super::rates::Rates;
use crate::facts::Facts;

/// A survey.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// When it was made, by the steady clock.
    pub(crate) steady_ms: u64,
    pub(crate) facts: Facts,
    /// Connections of all doors.
    pub(crate) connections: usize,
    /// All queues and lanes together.
    pub(crate) totals: Figures,
    /// The queues and lanes that are shown. Empty if only totals were wanted.
    pub(crate) shown: BTreeMap<Surveyed, Shown>,
    /// Those that are not shown, together. `None` if all are shown.
    pub(crate) others: Option<Figures>,
    /// Whether the shown queues were asked for.
    pub(crate) is_whole: bool,
    /// The shown queues whose shares have metrics.
    pub(crate) metered: Vec<Bytes>,
}

/// What only metrics tell, besides a survey.
#[derive(Clone, Debug, Default)]
pub(crate) struct Details {
    /// Queues whose shares have metrics, with those of their shares that have most tasks.
    pub(crate) shares: Vec<(Bytes, Vec<ShareShown>)>,
    /// The limits that several queues use together.
    pub(crate) limits: Vec<LimitShown>,
}

/// A queue or lane that is shown.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) figures: Figures,
    /// Its rates since the survey before, if it was shown then.
    pub(crate) rates: Option<Rates>,
}

impl Survey {
    /// The age of the oldest ready task of all that are shown. Dead letters do not count: no client
    /// is expected to take them.
    pub(crate) fn oldest_ready(&self) -> Option<Span> {
        let shown = self.shown.values().map(|it| &it.figures);
        let is_awaited = |it: &&Figures| !it.holds_dead_letters;
        shown.filter(is_awaited).filter_map(|it| it.oldest_ready).max()
    }

    /// The ready tasks in the queues for dead letters, of all that are shown.
    pub(crate) fn dead_letters(&self) -> u64 {
        let shown = self.shown.values().map(|it| &it.figures);
        let letters = shown.filter(|it| it.holds_dead_letters);
        letters.map(|it| it.counters.count(StateKind::Ready)).sum()
    }

    /// Returns the rates of a queue that is shown.
    pub(crate) fn rates_of(&self, queue: &[u8]) -> Option<Rates> {
        let name = Surveyed { lane: None, queue: queue.into() };
        self.shown.get(&name)?.rates
    }
}

/// What is kept from one survey to the next about the counters of those that are not shown.
#[derive(Debug, Default)]
pub(crate) struct Others {
    /// The counters with which queues began to be shown.
    before: Counters,
    /// The counters of shown queues that are gone, as they were last seen.
    gone: Counters,
    /// Whether there was a survey already. The first one shows queues with all they have counted.
    has_begun: bool,
}

impl Others {
    /// Notes that a queue is shown from now on, which was not seen before.
    pub(crate) fn begin(&mut self, counters: &Counters) {
        if self.has_begun {
            self.before.add(counters);
        }
    }

    /// Notes that a queue that was shown has gone. These were its counters.
    pub(crate) fn end(&mut self, counters: &Counters) {
        self.gone.add(counters);
    }

    /// Returns the figures of those that are not shown, given all together and the sum of those
    /// that are shown.
    pub(crate) fn figures(&mut self, totals: &Figures, shown: &Figures) -> Figures {
        self.has_begun = true;
        let mut counters = totals.counters.clone();
        counters.add(&self.before);
        for other in [&shown.counters, &self.gone] {
            counters.join(other, |own, other| *own = own.saturating_sub(other));
        }
        // What is there now was never counted twice.
        for (at, count) in counters.counts.iter_mut().enumerate() {
            *count = totals.counters.counts[at].saturating_sub(shown.counters.counts[at]);
        }
        counters.bytes = totals.counters.bytes.saturating_sub(shown.counters.bytes);
        counters.times = None;
        Figures {
            counters,
            takers: totals.takers.saturating_sub(shown.takers),
            subscribers: totals.subscribers.saturating_sub(shown.subscribers),
            paused_queues: totals.paused_queues.saturating_sub(shown.paused_queues),
            queues: totals.queues.saturating_sub(shown.queues),
            ..Figures::default()
        }
    }
}
