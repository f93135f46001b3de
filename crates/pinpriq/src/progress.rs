//! The progress of long work, on stderr while it continues; nothing without a terminal.
//!
//! It is a line that is overwritten a few times a second, from the first second on.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::units::with_commas;

/// How often the line is written.
const PER_SECOND: usize = 4;

/// A count that is shown while it grows.
#[derive(Debug)]
pub(crate) struct Progress {
    count: Arc<AtomicU64>,
    /// How far it will grow; 0 as long as that is unknown.
    total: Arc<AtomicU64>,
    /// The thread that shows it, and what ends that.
    shown: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins at 0. Shown only if stderr is a terminal and stdout, with its lines, is not.
    pub(crate) fn new(what: &'static str) -> Self {
        Self::shown_if(io::stderr().is_terminal() && !io::stdout().is_terminal(), what)
    }

    /// The same for a command that prints nothing before its end: shown if stderr is a terminal.
    pub(crate) fn before_output(what: &'static str) -> Self {
        Self::shown_if(io::stderr().is_terminal(), what)
    }

    fn shown_if(watched: bool, what: &'static str) -> Self {
        let (count, total) = <(Arc<AtomicU64>, Arc<AtomicU64>)>::default();
        let shown = watched.then(|| {
            let (ended, end) = sync_channel(0);
            let (count, total) = (count.clone(), total.clone());
            let show = move || {
                let tick = Duration::from_secs(1) / u32::try_from(PER_SECOND).unwrap_or(1);
                let mut line = Line::new(what);
                while end.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                    line.show(count.load(Ordering::Relaxed), total.load(Ordering::Relaxed));
                }
                line.clear();
            };
            (ended, std::thread::spawn(show))
        });
        Self { count, total, shown }
    }

    /// Returns the count itself, for code that counts many at once.
    pub(crate) fn count(&self) -> &AtomicU64 {
        &self.count
    }

    /// Notes how far the work has come, and how far it has to go.
    pub(crate) fn note(&self, done: u64, total: u64) {
        self.count.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Counts one more.
    pub(crate) fn add_one(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((ended, thread)) = self.shown.take() {
            drop(ended);
            // Showing cannot fail in any way that matters here.
            let _ = thread.join();
        }
    }
}

/// The line.
struct Line {
    what: &'static str,
    /// The counts of the last second, the oldest first.
    last: [u64; PER_SECOND],
    ticks: usize,
}

impl Line {
    const fn new(what: &'static str) -> Self {
        Self { what, last: [0; PER_SECOND], ticks: 0 }
    }

    /// Writes the line, if the work has gone on for a second.
    fn show(&mut self, count: u64, total: u64) {
        if let Some(text) = self.text(count, total) {
            let mut stderr = io::stderr().lock();
            let _ = write!(stderr, "\r{text}\x1b[K").and_then(|()| stderr.flush());
        }
    }

    fn text(&mut self, count: u64, total: u64) -> Option<String> {
        self.last.rotate_left(1);
        let second_ago = self.last.last_mut().map_or(0, |slot| std::mem::replace(slot, count));
        self.ticks += 1;
        let (what, more) = (self.what, with_commas(count.saturating_sub(second_ago)));
        let of = if total == 0 { String::new() } else { format!(" of {}", with_commas(total)) };
        let count = with_commas(count);
        (self.ticks > PER_SECOND).then(|| format!("{count}{of} {what}, {more} in the last second"))
    }

    fn clear(&self) {
        if self.ticks > PER_SECOND {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn the_line_begins_after_a_second_and_tells_the_rate_of_the_last_one() {
        let mut line = Line::new("tasks");
        for count in [10, 20, 30, 40] {
            assert_eq!(line.text(count, 0), None);
        }
        assert_eq!(line.text(55, 0).unwrap(), "55 tasks, 45 in the last second");
        assert_eq!(line.text(60, 90).unwrap(), "60 of 90 tasks, 40 in the last second");
        let text = line.text(1_060, 9_000).unwrap();
        assert_eq!(text, "1,060 of 9,000 tasks, 1,030 in the last second");
    }
}
