//! Where the lines of the log wait for the reader of stderr.
//!
//! Every thread logs, those of shards too, and none may wait for a reader. So lines are handed to a
//! thread that writes them, and what a reader leaves no room for is dropped and counted. What is
//! logged and how it looks is decided elsewhere.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// How many bytes of lines may wait to be written, and how many lines.
const WAITING_BYTES_MAX: usize = 1 << 20;
const WAITING_LINES_MAX: usize = 1 << 13;

/// How many lines of the process were dropped.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Returns how many lines were dropped since the process began.
pub(crate) fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// The way to the thread that writes the log. Each write is taken for whole lines.
#[derive(Clone, Debug)]
pub struct Log {
    letters: SyncSender<Letter>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting_bytes: AtomicUsize,
    /// Lines that were dropped, and of which the log has not told yet.
    untold: AtomicU64,
}

#[derive(Debug)]
enum Letter {
    Lines(Vec<u8>),
    /// Answered when everything before it is written.
    Finish(SyncSender<()>),
}

impl Log {
    /// Starts a thread that writes to `out`, whose errors are ignored: a log without a reader must
    /// not bring the server down.
    pub fn to(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (letters, coming) = sync_channel(WAITING_LINES_MAX);
        let state = Arc::<State>::default();
        let known = Arc::clone(&state);
        let builder = thread::Builder::new().name("log".to_owned());
        builder.spawn(move || write_each(out, &coming, &known))?;
        Ok(Self { letters, state })
    }

    /// Hands lines over. Never waits: lines for which there is no room are dropped.
    pub fn hand_over(&self, lines: &[u8]) {
        let waiting = &self.state.waiting_bytes;
        let before = waiting.fetch_add(lines.len(), Ordering::Relaxed);
        let has_room = before + lines.len() <= WAITING_BYTES_MAX;
        if has_room && self.letters.try_send(Letter::Lines(lines.to_vec())).is_ok() {
            return;
        }
        waiting.fetch_sub(lines.len(), Ordering::Relaxed);
        self.state.untold.fetch_add(1, Ordering::Relaxed);
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until everything that was handed over is written, but not longer than this. Returns
    /// whether it is. Does not wait if as many lines as may wait do.
    #[must_use]
    pub fn finish(&self, at_most: Duration) -> bool {
        let (done, wait) = sync_channel(1);
        self.letters.try_send(Letter::Finish(done)).is_ok() && wait.recv_timeout(at_most).is_ok()
    }
}

impl Write for Log {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.hand_over(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_each(mut out: impl Write, coming: &Receiver<Letter>, state: &State) {
    while let Ok(letter) = coming.recv() {
        match letter {
            Letter::Lines(lines) => {
                let _ = out.write_all(&lines).and_then(|()| out.flush());
                let before = state.waiting_bytes.fetch_sub(lines.len(), Ordering::Relaxed);
                // The line that tells of it needs room too.
                if before - lines.len() <= WAITING_BYTES_MAX / 2 {
                    tell_dropped(state);
                }
            }
            Letter::Finish(done) => {
                // The wait may be over by now.
                let _ = done.send(());
            }
        }
    }
}

fn tell_dropped(state: &State) {
    let lines = state.untold.swap(0, Ordering::Relaxed);
    if lines > 0 {
        tracing::warn!(lines, "lines of the log were dropped: its reader was too slow");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;

    /// What a reader has read. It stops on request.
    #[derive(Clone, Default)]
    struct Reader(Arc<(Mutex<Read>, Condvar)>);

    #[derive(Default)]
    struct Read {
        stops: bool,
        bytes: Vec<u8>,
    }

    impl Reader {
        fn stop(&self, stops: bool) {
            self.0.0.lock().unwrap().stops = stops;
            self.0.1.notify_all();
        }

        fn read(&self) -> Vec<u8> {
            self.0.0.lock().unwrap().bytes.clone()
        }
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (state, goes_on) = &*self.0;
            let state = state.lock().unwrap();
            let mut state = goes_on.wait_while(state, |read| read.stops).unwrap();
            state.bytes.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn lines_are_written_in_order() {
        let reader = Reader::default();
        let log = Log::to(reader.clone()).unwrap();
        for line in ["one\n", "two\n", "three\n"] {
            log.hand_over(line.as_bytes());
        }
        assert!(log.finish(LONG));
        assert_eq!(reader.read(), b"one\ntwo\nthree\n");
    }

    #[test]
    fn a_stopped_reader_blocks_no_one_and_its_missed_lines_are_counted() {
        let reader = Reader::default();
        let log = Log::to(reader.clone()).unwrap();
        reader.stop(true);
        let (line, before) = ([b'x'; 1024], dropped());
        for _ in 0..10 * WAITING_BYTES_MAX / line.len() {
            log.hand_over(&line);
        }
        let missed = dropped() - before;
        assert!(!log.finish(Duration::ZERO), "the reader has stopped");
        reader.stop(false);
        assert!(log.finish(LONG));
        let read = reader.read().len();
        assert!(read <= WAITING_BYTES_MAX, "{read} bytes had waited");
        assert_eq!(missed, ((10 * WAITING_BYTES_MAX - read) / line.len()) as u64);
        log.hand_over(b"later\n");
        assert!(log.finish(LONG));
        assert!(reader.read().ends_with(b"later\n"), "it goes on");
    }
}
