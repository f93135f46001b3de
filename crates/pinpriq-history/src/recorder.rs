//! Writes a history, from several threads at once.
//!
//! It is told the time: the moment of an invocation must be read before the request is sent, that
//! of an answer after it has come, and only the caller can see to that.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::record::{Event, Operation, Outcome, Record};

/// A history that is being written.
#[derive(Debug)]
pub struct Recorder<W> {
    out: Mutex<W>,
    calls: AtomicU64,
    clients: AtomicU64,
}

impl<W: Write> Recorder<W> {
    /// A history without any line yet.
    pub const fn new(out: W) -> Self {
        Self { out: Mutex::new(out), calls: AtomicU64::new(0), clients: AtomicU64::new(0) }
    }

    /// A number for a new connection.
    pub fn client(&self) -> u64 {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes that a request is about to be sent, and answers its number.
    pub fn invoke(&self, at_us: u64, client: u64, operation: Operation) -> io::Result<u64> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.write(&Record::Invoked { at_us, client, call, operation })?;
        Ok(call)
    }

    /// Notes what came of a request.
    pub fn answer(&self, at_us: u64, call: u64, outcome: Outcome) -> io::Result<()> {
        self.write(&Record::Answered { at_us, call, outcome })
    }

    /// Notes that something happened.
    pub fn event(&self, at_us: u64, event: Event) -> io::Result<()> {
        self.write(&Record::Happened { at_us, event })
    }

    /// Ends the history, and answers where it went.
    pub fn finish(self) -> io::Result<W> {
        let mut out = self.out.into_inner().unwrap_or_else(PoisonError::into_inner);
        out.flush()?;
        Ok(out)
    }

    /// Writes out what is in buffers, and lends what it was written to.
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
