//! The counts and measurements of a run.

use std::collections::BTreeMap;

use crate::latency::Latency;
use crate::plan::Step;

/// How many different refusals are counted separately. The rest is counted together.
const REFUSALS_MAX: usize = 32;

/// The figures of one sort of request.
#[derive(Clone, Debug, Default)]
pub struct StepFigures {
    /// The requests that were answered as they should be.
    pub done: u64,
    /// The number of these within the planned time of the run.
    pub done_in_time: u64,
    /// The time from sending, or from the scheduled moment, to the reply.
    pub latency: Latency,
}

/// The figures of a run.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// How long the run took, in nanoseconds: to its last reply, or to the end of its time.
    pub elapsed_ns: u64,
    /// The requests done in that time.
    pub requests_in_time: u64,
    /// The cycles finished in that time.
    pub jobs_in_time: u64,
    /// All requests done, including those that ended cycles after that time.
    pub requests: u64,
    /// All cycles finished.
    pub jobs: u64,
    /// How often there was nothing to take.
    pub empty: u64,
    /// The number of refused requests, by the first word of the reply.
    pub refusals: BTreeMap<String, u64>,
    /// The figures by the number of the step, including steps that were never sent.
    steps: [StepFigures; Step::ALL.len()],
    /// The latency of whole cycles.
    pub job_latency: Latency,
}

impl Figures {
    /// Returns the figures of one sort of request.
    #[must_use]
    pub fn step(&self, step: Step) -> &StepFigures {
        &self.steps[step as usize]
    }

    /// Returns the number of requests that the server refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refusals.values().sum()
    }

    /// Counts a request that was done.
    pub(crate) fn count(&mut self, step: Step, ns: u64) {
        self.requests += 1;
        let figures = &mut self.steps[step as usize];
        figures.done += 1;
        figures.latency.record(ns);
    }

    /// Counts a request that was refused with this sentence.
    pub(crate) fn count_refusal(&mut self, sentence: &[u8]) {
        let word = sentence.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let word = String::from_utf8_lossy(word);
        if let Some(count) = self.refusals.get_mut(word.as_ref()) {
            *count += 1;
        } else {
            let full = self.refusals.len() >= REFUSALS_MAX;
            let word = if full { "others".to_owned() } else { word.into_owned() };
            *self.refusals.entry(word).or_default() += 1;
        }
    }

    /// Notes that the planned time of the run is over, or the run is.
    pub(crate) fn time_is_up(&mut self, now_ns: u64) {
        self.elapsed_ns = now_ns;
        self.requests_in_time = self.requests;
        self.jobs_in_time = self.jobs;
        for figures in &mut self.steps {
            figures.done_in_time = figures.done;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Figures, REFUSALS_MAX};
    use crate::plan::Step;

    #[test]
    fn refusals_are_counted_by_their_first_word_and_never_without_bound() {
        let mut figures = Figures::default();
        figures.count_refusal(b"FULL the queue has no room");
        figures.count_refusal(b"FULL\r\n");
        figures.count_refusal(b"BUSY");
        assert_eq!((figures.refusals["FULL"], figures.refusals["BUSY"]), (2, 1));
        for word in 0..1_000 {
            figures.count_refusal(format!("W{word}").as_bytes());
        }
        assert!(figures.refusals.len() <= REFUSALS_MAX + 1);
        assert_eq!(figures.refused(), 1_003);
    }

    #[test]
    fn what_ends_after_the_time_counts_in_all_but_not_in_time() {
        let mut figures = Figures::default();
        figures.count(Step::Put, 5);
        figures.time_is_up(10);
        figures.count(Step::Ack, 5);
        figures.count(Step::Put, 5);
        assert_eq!((figures.requests_in_time, figures.requests), (1, 3));
        let put = figures.step(Step::Put);
        assert_eq!((put.done_in_time, put.done), (1, 2));
        assert_eq!(figures.step(Step::Ack).latency.count(), 1);
        assert_eq!(figures.step(Step::Pop).done, 0);
    }
}
