//! Tells a job that its command takes too long, and later that it does not end either.
//!
//! What is done about it is decided in `job.rs`.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::stop::Event;

/// A timer that runs beside a command.
#[derive(Debug)]
pub(super) struct Timer {
    /// Dropped to end it.
    ended: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Timer {
    /// Starts one: the first event comes after `limit`, the second one `grace` later.
    pub(super) fn start(limit: Duration, grace: Duration, events: SyncSender<Event>) -> Self {
        let (ended, end) = sync_channel(0);
        let thread = std::thread::spawn(move || {
            for (time, event) in [(limit, Event::TimedOut), (grace, Event::Overdue)] {
                let in_time = end.recv_timeout(time) != Err(RecvTimeoutError::Timeout);
                if in_time || events.send(event).is_err() {
                    return;
                }
            }
        });
        Self { ended, thread }
    }

    /// Ends it. No event comes after that.
    pub(super) fn end(self) {
        drop(self.ended);
        // The thread has nothing to say.
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    use super::Timer;
    use crate::cmd::take::stop::Event;

    #[test]
    fn the_limit_comes_first_and_then_the_end_of_the_grace_period() {
        let (events, told) = sync_channel(2);
        let timer = Timer::start(Duration::from_millis(1), Duration::from_millis(1), events);
        assert_eq!(told.recv(), Ok(Event::TimedOut));
        assert_eq!(told.recv(), Ok(Event::Overdue));
        timer.end();
        assert!(told.recv().is_err());
    }

    #[test]
    fn a_timer_that_was_ended_tells_nothing() {
        let (events, told) = sync_channel(2);
        let hour = Duration::from_hours(1);
        Timer::start(hour, hour, events).end();
        assert!(told.recv().is_err());
    }
}
