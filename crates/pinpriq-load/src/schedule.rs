//! When the jobs of an open loop are due: one after another, evenly spaced, whatever the server
//! does.
//!
//! The moments are counted from the first one, so rounding errors do not add up. A job that cannot
//! start in time keeps its moment, so its waiting counts as latency.

/// Nanoseconds in a second.
const SECOND_NS: u128 = 1_000_000_000;

/// Evenly spaced moments.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    per_second: u64,
    /// The number of jobs that have been started.
    started: u64,
}

impl Schedule {
    /// Begins at 0, with `per_second` jobs each second, at least one.
    pub(crate) fn new(per_second: u64) -> Self {
        Self { per_second: per_second.max(1), started: 0 }
    }

    /// Returns when the next job is due.
    pub(crate) fn next_ns(&self) -> u64 {
        let ns = u128::from(self.started) * SECOND_NS / u128::from(self.per_second);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Starts the next job if it is due, and returns when it was due.
    pub(crate) fn start(&mut self, now_ns: u64) -> Option<u64> {
        let due_ns = self.next_ns();
        (due_ns <= now_ns).then(|| {
            self.started += 1;
            due_ns
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn jobs_are_due_evenly_and_without_drift() {
        let mut schedule = Schedule::new(3);
        assert_eq!(schedule.start(0), Some(0));
        assert_eq!(schedule.start(333_333_332), None);
        assert_eq!(schedule.start(333_333_333), Some(333_333_333));
        assert_eq!(schedule.start(666_666_666), Some(666_666_666));
        assert_eq!(schedule.next_ns(), 1_000_000_000, "nothing is lost by rounding");
    }

    #[test]
    fn a_job_that_is_late_keeps_its_moment() {
        let mut schedule = Schedule::new(1_000);
        let late = std::iter::from_fn(|| schedule.start(2_500_000)).collect::<Vec<_>>();
        assert_eq!(late, [0, 1_000_000, 2_000_000]);
        assert_eq!(schedule.next_ns(), 3_000_000);
    }
}
