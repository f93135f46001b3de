//! The history of a run: written to a file while it runs, and checked on request.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use pinpriq_testing::history::{
    Event, History, Operation, Outcome, Record, Recorder, Report, Tolerance, check, records,
};

use crate::clock::Clock;
use crate::fault::Fallible;
use crate::files;

/// A history that is being written.
pub(crate) struct Ledger {
    recorder: Recorder<files::Output>,
    clock: Clock,
    path: PathBuf,
    tolerance: Tolerance,
}

impl Ledger {
    pub(crate) fn new(directory: &Path, name: &str, tolerance: Tolerance) -> Fallible<Self> {
        let path = directory.join(name);
        let recorder = Recorder::new(files::history(&path)?);
        Ok(Self { recorder, clock: Clock::starting(), path, tolerance })
    }

    /// A history in a file of its own that begins with these records, and goes on by the same
    /// clock.
    pub(crate) fn another(&self, name: &str, records: &[Record]) -> Fallible<Self> {
        let path = self.path.with_file_name(name);
        let recorder = Recorder::new(files::history(&path)?);
        for record in records {
            recorder.repeat(record)?;
        }
        Ok(Self { recorder, clock: self.clock, path, tolerance: self.tolerance })
    }

    /// The moment by its clock.
    pub(crate) fn us(&self) -> u64 {
        self.clock.us()
    }

    pub(crate) fn client(&self) -> u64 {
        self.recorder.client()
    }

    pub(crate) fn invoke(&self, client: u64, operation: Operation) -> Fallible<u64> {
        Ok(self.recorder.invoke(self.clock.us(), client, operation)?)
    }

    pub(crate) fn answer(&self, call: u64, outcome: Outcome) -> Fallible<()> {
        Ok(self.recorder.answer(self.clock.us(), call, outcome)?)
    }

    pub(crate) fn event(&self, event: Event) -> Fallible<()> {
        Ok(self.recorder.event(self.clock.us(), event)?)
    }

    /// What has been written until now, after so many records.
    pub(crate) fn records_after(&self, count: usize) -> Fallible<Vec<Record>> {
        self.recorder.flushed(|_| ())?;
        let mut reader = files::reader(&self.path)?;
        for _ in 0..count {
            reader.skip_until(b'\n')?;
        }
        Ok(records(reader)?)
    }

    /// Checks what has been written until now.
    pub(crate) fn check(&self) -> Fallible<Report> {
        self.recorder.flushed(|_| ())?;
        let history = History::read(files::reader(&self.path)?)?;
        Ok(check(&history, self.tolerance))
    }

    /// Keeps a copy for the investigation of a failure, and returns its path.
    pub(crate) fn keep(&self, name: &str) -> Fallible<PathBuf> {
        self.recorder.flushed(|_| ())?;
        files::keep(&self.path, name)
    }
}
