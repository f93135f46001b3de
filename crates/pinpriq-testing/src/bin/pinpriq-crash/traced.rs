//! One run under strace: a directory that a crash left behind, a start, the fixed workload, and
//! what is left after whatever strace did.
//!
//! The start and the workload are traced separately, so that the calls of each are counted from
//! one.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};

use pinpriq_testing::history::{Event, Report};

use crate::args::Wanted;
use crate::clock::wall_us;
use crate::drain::drain;
use crate::fault::Fallible;
use crate::ledger::Ledger;
use crate::payload::Payloads;
use crate::process::Process;
use crate::server::{Server, Started};
use crate::workload::{Played, QUEUES, Size, play};
use crate::{files, strace};

/// The requests made to the directory before the run.
const BEFORE: Size = Size { operations: 40, payload_bytes: 100 };
/// Large enough that the workload fills more than one segment.
const PAYLOAD_BYTES: usize = 400_000;

/// The number of runs at a time.
const AT_ONCE: usize = 2;

/// What is traced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Part {
    /// From the start of the program until it listens.
    Start,
    /// Everything after that.
    Work,
}

/// The outcome of a run.
pub(crate) struct Outcome {
    /// The calls that strace recorded.
    pub(crate) calls: Vec<strace::Call>,
    pub(crate) played: Played,
    /// When it began to listen, in microseconds of the wall clock.
    pub(crate) listening_us: u64,
    /// How the traced server ended.
    pub(crate) status: ExitStatus,
    pub(crate) report: Report,
    pub(crate) ledger: Ledger,
    /// The raw output of strace.
    pub(crate) log: PathBuf,
    /// The directory of the history. It is removed with this value.
    _scratch: tempfile::TempDir,
}

/// Runs the workload, with `flags` for strace in one part.
pub(crate) fn run(wanted: &Wanted, part: Part, flags: &[String]) -> Fallible<Outcome> {
    let scratch = files::scratch(&wanted.scratch)?;
    let data = scratch.path().join("data");
    let log = scratch.path().join("strace.log");
    let ledger = Ledger::new(scratch.path(), "history.jsonl", wanted.tolerance)?;
    let payloads = Payloads::default();
    prepare(wanted, &data, &ledger, &payloads)?;

    let mut all = strace::noting(&log.to_string_lossy());
    all.extend_from_slice(flags);
    let started = match part {
        Part::Start => wanted.program.start_traced(&all, &data)?,
        Part::Work => wanted.program.try_start(&data)?,
    };
    let listening_us = wall_us();
    let mut played = Played::default();
    let status = match started {
        Started::Ended(status, _) => status,
        Started::Listening(mut server) => {
            ledger.event(Event::ServerStarted)?;
            let size = Size { operations: wanted.operations, payload_bytes: PAYLOAD_BYTES };
            let tracer = match part {
                Part::Start => None,
                Part::Work => Some(attach(&server, &all)?),
            };
            played = play(server.address, &ledger, &payloads, size)?;
            let status = server.stop()?;
            if let Some(mut tracer) = tracer {
                tracer.wait()?;
            }
            status
        }
    };
    ledger.event(Event::ServerKilled)?;

    let mut server = wanted.program.start(&data)?;
    ledger.event(Event::ServerStarted)?;
    drain(&server, &ledger, &QUEUES)?;
    server.stop()?;
    let report = ledger.check()?;
    let calls = strace::calls(&String::from_utf8_lossy(&files::read(&log)?));
    Ok(Outcome { calls, played, listening_us, status, report, ledger, log, _scratch: scratch })
}

/// Leaves a directory in the state of a crash.
fn prepare(wanted: &Wanted, data: &Path, ledger: &Ledger, payloads: &Payloads) -> Fallible<()> {
    let mut server = wanted.program.start(data)?;
    ledger.event(Event::ServerStarted)?;
    play(server.address, ledger, payloads, BEFORE)?;
    ledger.event(Event::ServerKilled)?;
    server.kill()?;
    Ok(())
}

/// Makes strace trace a running server from now on.
fn attach(server: &Server, flags: &[String]) -> Fallible<Process> {
    let mut command = Command::new("strace");
    let tracer =
        Process::start(command.arg("-f").args(flags).args(["-p", &server.id().to_string()]))?;
    match tracer.line("attached")? {
        Some(_) => Ok(tracer),
        None => Err(format!("strace did not attach: {}", tracer.text()).into()),
    }
}

/// Tries all of these, [`AT_ONCE`] at a time.
pub(crate) fn try_all<T: Sync>(
    all: &[T],
    try_one: impl Fn(&T) -> Fallible<()> + Sync,
) -> Fallible<()> {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            try_one(one)?;
        }
        Fallible::Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().map_err(|_| "a run panicked")??;
        }
        Ok(())
    })
}
