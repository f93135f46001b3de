//! What one answer with metrics is made from: a survey, and what only this page needs besides.

use std::sync::{Arc, Mutex, PoisonError};

use pinpriq_proto::stats::{Counters, Figures};

use crate::facts::Facts;
use crate::monitor::survey::{Details, Survey};

/// What an answer is made from.
#[derive(Debug, Default)]
pub(crate) struct Sight {
    pub(crate) survey: Arc<Survey>,
    pub(crate) details: Arc<Details>,
    /// All queues together that are not shown one by one, if there are some.
    pub(crate) others: Option<Figures>,
    /// The bytes that are free where the data directory is.
    pub(crate) disk_free: Option<u64>,
    /// Whether metrics of the server are shown, and not only those of queues.
    pub(crate) shows_server: bool,
}

impl Sight {
    /// Returns the facts about the server.
    pub(super) fn facts(&self) -> &Facts {
        &self.survey.facts
    }
}

/// The highest counters of all queues that are not shown, as they were told so far. Queues and
/// totals are not looked at in the same moment, so that a difference may fall behind for a while.
#[derive(Debug, Default)]
pub(crate) struct Highest(Mutex<Counters>);

impl Highest {
    /// Returns the figures with counters that are never lower than those told before.
    pub(crate) fn raised(&self, figures: &Figures) -> Figures {
        let mut figures = figures.clone();
        let mut highest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        figures.counters.join(&highest, |own, highest| *own = (*own).max(highest));
        *highest = figures.counters.clone();
        figures
    }
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::stats::Move;
    use pinpriq_proto::task::StateKind;

    use super::*;

    #[test]
    fn counters_never_fall_and_gauges_may() {
        let step = Move::new(None, Some(StateKind::Ready));
        let figures = |put: u64, ready: u64, moves: &[(Move, u64)]| Figures {
            counters: Counters {
                put,
                counts: [ready, 0, 0, 0, 0, 0],
                moves: moves.to_vec(),
                ..Counters::default()
            },
            ..Figures::default()
        };
        let highest = Highest::default();
        assert_eq!(highest.raised(&figures(5, 3, &[(step, 5)])).counters.put, 5);
        let after = highest.raised(&figures(4, 1, &[])).counters;
        assert_eq!((after.put, after.counts[0], after.moves), (5, 1, vec![(step, 5)]));
        assert_eq!(highest.raised(&figures(9, 1, &[(step, 2)])).counters.put, 9);
    }
}
