//! What a run has counted and measured.

use std::collections::BTreeMap;

use crate::latency::Latency;
use crate::plan::Step;

/// How many different refusals are told apart; the rest is counted together.
const REFUSALS_MAX: usize = 32;

/// The figures of one sort of request.
#[derive(Clone, Debug, Default)]
pub struct StepFigures {
    /// How many were answered as they should be.
    pub done: u64,
    /// How many of these in the time that the run was to take.
    pub done_in_time: u64,
    /// From sending, or from the moment that the schedule says, to the answer.
    pub latency: Latency,
}

/// The figures of a run.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// How long the run went on, in nanoseconds: to its last answer, or to the end of its time.
    pub elapsed_ns: u64,
    /// How many requests were done in that time.
    pub requests_in_time: u64,
    /// How many cycles were finished in that time.
    pub jobs_in_time: u64,
    /// How many requests were done in all, also those that ended cycles after the time was up.
    pub requests: u64,
    /// How many cycles were finished in all.
    pub jobs: u64,
    /// How often there was nothing to take.
    pub empty: u64,
    /// How many requests the server refused, by the first word of its answer.
    pub refusals: BTreeMap<String, u64>,
    /// By the number of the sort of request; those that were never sent too.
    steps: [StepFigures; Step::ALL.len()],
    /// Of whole cycles.
    pub job_latency: Latency,
}

impl Figures {
    /// The figures of one sort of request.
    #[must_use]
    pub fn step(&self, step: Step) -> &StepFigures {
        &self.steps[step as usize]
    }

    /// How many requests the server refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refusals.values().sum()
    }

    /// A request was done.
    pub(crate) fn count(&mut self, step: Step, ns: u64) {
        self.requests += 1;
        let figures = &mut self.steps[step as usize];
        figures.done += 1;
        figures.latency.record(ns);
    }

    /// A request was refused, with this sentence.
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

    /// The time that the run was to take is over, or the run is.
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
