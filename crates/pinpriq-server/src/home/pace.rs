//! How many requests of which command a client makes, and how long they take.
//!
//! Requests that arrived together are noted together: the clock is read once when the first of them
//! is carried out, and once when their answers are encoded for the socket. So a request takes the
//! time from the one to the other. What waits for tasks is counted and has no time. Nothing here
//! knows what the commands mean.

use std::collections::VecDeque;
use std::time::Duration;

use crate::config::DoorName;
use crate::facts::tally::Tally;

/// The pace of one client.
#[derive(Default)]
pub(crate) struct Pace {
    /// The latest of the requests that arrived together.
    latest: Run,
    /// Those before them.
    before: Vec<Run>,
    /// When the first of them was carried out.
    began: Duration,
    /// What has not been answered yet.
    under_way: VecDeque<UnderWay>,
}

/// Requests for the same command, one after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    command: usize,
    count: u64,
}

/// No request. No command has this place.
impl Default for Run {
    fn default() -> Self {
        Self { command: usize::MAX, count: 0 }
    }
}

/// Requests that are answered once this many answers have left the outbox.
struct UnderWay {
    run: Run,
    began: Duration,
    answers: u64,
}

impl Pace {
    /// Notes a request for the command at this place of the table.
    #[inline]
    pub(crate) fn note(&mut self, command: usize, now: impl FnOnce() -> Duration) {
        if self.latest.command == command {
            self.latest.count += 1;
        } else {
            self.begin_run(command, now);
        }
    }

    #[inline(never)]
    fn begin_run(&mut self, command: usize, now: impl FnOnce() -> Duration) {
        let before = std::mem::replace(&mut self.latest, Run { command, count: 1 });
        if before == Run::default() {
            self.began = now();
        } else {
            self.before.push(before);
        }
    }

    /// Returns the place in the table of the command that was noted last, unless there is none
    /// among those that have arrived together.
    pub(crate) const fn noted(&self) -> usize {
        self.latest.command
    }

    /// Notes that the last request was not carried out after all: it comes again.
    pub(crate) fn take_back(&mut self) {
        self.latest.count = self.latest.count.saturating_sub(1);
    }

    /// Counts the requests that arrived together. They are answered when `answers` answers have
    /// left the outbox. The last one has no time if it `waits`.
    #[inline]
    pub(crate) fn end_batch(
        &mut self,
        (tally, door): (&Tally, DoorName),
        answers: u64,
        waits: bool,
    ) {
        let mut latest = std::mem::take(&mut self.latest);
        if latest == Run::default() {
            return;
        }
        let began = self.began;
        for run in self.before.drain(..) {
            tally.ask(door, run.command, run.count);
            self.under_way.push_back(UnderWay { run, began, answers });
        }
        tally.ask(door, latest.command, latest.count);
        latest.count = latest.count.saturating_sub(u64::from(waits));
        self.under_way.push_back(UnderWay { run: latest, began, answers });
    }

    /// Notes how many answers have left the outbox.
    #[inline]
    pub(crate) fn answered(&mut self, left: u64, tally: &Tally, now: impl FnOnce() -> Duration) {
        if self.under_way.front().is_some_and(|first| first.answers <= left) {
            self.count_times(left, tally, now());
        }
    }

    #[inline(never)]
    fn count_times(&mut self, left: u64, tally: &Tally, now: Duration) {
        while let Some(done) = self.under_way.pop_front_if(|first| first.answers <= left) {
            if done.run.count > 0 {
                tally.took(done.run.command, done.run.count, now.saturating_sub(done.began));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUT: usize = 0;
    const TAKE: usize = 1;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The number of requests for a command, those with a time, and their time in all, in ms.
    fn figures(tally: &Tally, command: usize) -> (u64, u64, u64) {
        let asked = tally.counts().commands.get(command).cloned().unwrap_or_default();
        (asked.requests.iter().sum(), asked.took_us.count(), asked.took_us.sum() / 1_000)
    }

    #[test]
    fn requests_take_until_the_answers_of_their_batch_have_left() {
        let (tally, mut pace) = (Tally::default(), Pace::default());
        pace.note(PUT, || at(10));
        pace.note(PUT, || at(11));
        pace.note(TAKE, || at(12));
        pace.end_batch((&tally, DoorName::Resp), 3, false);
        pace.note(TAKE, || at(15));
        pace.end_batch((&tally, DoorName::Resp), 4, false);
        pace.answered(2, &tally, || at(20));
        assert_eq!(figures(&tally, PUT), (2, 0, 0));
        pace.answered(3, &tally, || at(30));
        assert_eq!(figures(&tally, PUT), (2, 2, 40));
        assert_eq!(figures(&tally, TAKE), (2, 1, 20));
        pace.answered(4, &tally, || at(40));
        assert_eq!(figures(&tally, TAKE), (2, 2, 45));
    }

    #[test]
    fn what_waits_is_counted_and_has_no_time() {
        let (tally, mut pace) = (Tally::default(), Pace::default());
        pace.note(TAKE, || at(0));
        pace.note(TAKE, || at(0));
        pace.end_batch((&tally, DoorName::Resp), 1, true);
        pace.answered(2, &tally, || at(8));
        assert_eq!(figures(&tally, TAKE), (2, 1, 8));
    }

    #[test]
    fn what_comes_again_counts_once() {
        let (tally, mut pace) = (Tally::default(), Pace::default());
        pace.note(PUT, || at(0));
        pace.take_back();
        pace.end_batch((&tally, DoorName::Pinpriq), 0, false);
        pace.note(PUT, || at(5));
        pace.end_batch((&tally, DoorName::Pinpriq), 1, false);
        pace.answered(1, &tally, || at(6));
        assert_eq!(figures(&tally, PUT), (1, 1, 1));
    }
}
