//! Writes a history, from several threads at once.
//!
//! The caller supplies the time: the moment of an invocation must be read before the request is
//! sent, and that of an answer after it has been received. Only the caller can ensure this.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::history::record::{Event, Operation, Outcome, Record};

/// A history that is being written.
#[derive(Debug)]
pub struct Recorder<W> {
    out: Mutex<W>,
    calls: AtomicU64,
    clients: AtomicU64,
}

impl<W: Write> Recorder<W> {
    /// Creates an empty history.
    pub const fn new(out: W) -> Self {
        Self { out: Mutex::new(out), calls: AtomicU64::new(0), clients: AtomicU64::new(0) }
    }

    /// Returns a number for a new connection.
    pub fn client(&self) -> u64 {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }

    /// Records that a request is about to be sent, and returns its number.
    pub fn invoke(&self, at_us: u64, client: u64, operation: Operation) -> io::Result<u64> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.write(&Record::Invoked { at_us, client, call, operation })?;
        Ok(call)
    }

    /// Records the outcome of a request.
    pub fn answer(&self, at_us: u64, call: u64, outcome: Outcome) -> io::Result<()> {
        self.write(&Record::Answered { at_us, call, outcome })
    }

    /// Records that something happened.
    pub fn event(&self, at_us: u64, event: Event) -> io::Result<()> {
        self.write(&Record::Happened { at_us, event })
    }

    /// Repeats a record of another history. Requests and connections after it have numbers of their
    /// own.
    pub fn repeat(&self, record: &Record) -> io::Result<()> {
        match record {
            Record::Invoked { client, call, .. } => {
                self.calls.fetch_max(call + 1, Ordering::Relaxed);
                self.clients.fetch_max(client + 1, Ordering::Relaxed);
            }
            Record::Happened { event: Event::ConnectionClosed { client }, .. } => {
                self.clients.fetch_max(client + 1, Ordering::Relaxed);
            }
            Record::Answered { .. } | Record::Happened { .. } => {}
        }
        self.write(record)
    }

    /// Ends the history, and returns its output.
    pub fn finish(self) -> io::Result<W> {
        let mut out = self.out.into_inner().unwrap_or_else(PoisonError::into_inner);
        out.flush()?;
        Ok(out)
    }

    /// Flushes the buffers, and calls `look` with the output.
    pub fn flushed<T>(&self, look: impl FnOnce(&W) -> T) -> io::Result<T> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.flush()?;
        Ok(look(&out))
    }

    fn write(&self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.out.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }
}
