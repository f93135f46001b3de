//! The last 15 minutes of figures, one sample a second.

use std::collections::VecDeque;

use pinpriq_proto::time::Timestamp;

use super::rates::Rates;

/// How many samples are kept.
pub(crate) const SAMPLES_MAX: usize = 900;

/// The figures of a second.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) at: Timestamp,
    pub(crate) rates: Rates,
    /// Tasks in each state.
    pub(crate) counts: [u64; 6],
    /// The age of the oldest ready task, if it is known and there is one.
    pub(crate) oldest_ready_ms: Option<u64>,
    /// How many of the ready tasks are in queues for dead letters, as far as they are shown.
    pub(crate) dead_letters: u64,
    /// The mean time of a write to the journal and its sync, if there was one.
    pub(crate) commit_ms: Option<f64>,
    /// The mean time for which the tasks that were taken had been ready, of one queue.
    pub(crate) waited_ms: Option<f64>,
}

/// The latest samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(VecDeque<Sample>);

impl History {
    /// Adds a sample, which may displace the oldest one.
    pub(crate) fn add(&mut self, sample: Sample) {
        if self.0.len() == SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    /// The samples, the oldest first.
    pub(crate) fn samples(&self) -> impl DoubleEndedIterator<Item = &Sample> + Clone {
        self.0.iter()
    }
}
