//! `pinpriq take --exec`: the simplest worker.
//!
//! Each job has a thread and a connection of its own and does one thing at a time, in `job.rs`:
//! take a task, run the command, tell the server what came of it.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::job::Job;
use super::stop::Stop;
use super::worker_words;
use crate::args::tasks::TakeArgs;
use crate::exit::{Exit, Failure};
use crate::output::tell;
use crate::resp::Client;
use crate::words::Words;

/// How long one take waits. A server that is gone is noticed not long after that.
const ROUND_MS: u64 = 30_000;

/// What all jobs of a worker work from.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) address: &'a str,
    pub(super) command: &'a OsStr,
    pub(super) take: Words,
    /// How long the server may take to answer that.
    pub(super) round: Duration,
    pub(super) ttr: Duration,
    pub(super) attempts_max: u64,
    pub(super) backoff_ms: u64,
    pub(super) once: bool,
    /// How many tasks are still to be begun, if there is a bound.
    left: Option<AtomicU64>,
}

impl Plan<'_> {
    /// Whether one more task is to be taken. Counts it as begun.
    pub(super) fn claim(&self) -> bool {
        let take_one = |left: u64| left.checked_sub(1);
        self.left.as_ref().is_none_or(|left| {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_ok()
        })
    }
}

/// Works until it is told to stop, or until it has done what it was asked to do.
pub(super) fn work(arguments: &TakeArgs, command: &OsStr) -> Result<Exit, Failure> {
    let worker = &arguments.worker;
    let round_ms = if worker.once { 0 } else { ROUND_MS };
    let plan = Plan {
        address: &arguments.client.address,
        command,
        take: worker_words(arguments, round_ms),
        round: Duration::from_millis(round_ms),
        ttr: Duration::from_millis(arguments.ttr_ms),
        attempts_max: worker.attempts_max,
        backoff_ms: worker.backoff_ms,
        once: worker.once,
        left: arguments.count.map(AtomicU64::new),
    };
    let (stop, inboxes) = Stop::new(usize::from(worker.jobs));
    let mut signals = Signals::new([SIGTERM, SIGINT])
        .map_err(|error| Failure::on_the_way(format!("signals cannot be handled: {error}")))?;
    let handle = signals.handle();
    // A first connection that fails ends the worker: the address may be wrong.
    let mut first = Some(Client::open(plan.address)?);
    thread::scope(|scope| {
        let (plan, stop) = (&plan, &stop);
        scope.spawn(move || {
            for _ in signals.forever() {
                // Told after it is done, so that whoever reads it can rely on it.
                if stop.signal() == 1 {
                    tell("stopping; a second signal kills the commands that are running");
                }
            }
        });
        let jobs: Vec<_> = inboxes
            .into_iter()
            .map(|inbox| {
                let job = Job::new(plan, stop, inbox, first.take());
                scope.spawn(move || job.run())
            })
            .collect();
        let ends: Vec<_> = jobs.into_iter().map(ScopedJoinHandle::join).collect();
        handle.close();
        let mut outcome = Ok(Exit::Done);
        for end in ends {
            match end {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => outcome = Err(failure),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outcome
    })
}
