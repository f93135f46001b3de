//! `pinpriq take --exec`: the simplest worker, and what it shares with `pinpriq listen`.
//!
//! Each job has its own thread and connection and does one thing at a time, in `job.rs`: take a
//! task, run the command, report the result to the server.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

use pinpriq_proto::wire::resp::Words;

use super::init;
use super::job::Job;
use super::membership::Membership;
use super::stop::{Stop, signals};
use super::worker_words;
use crate::args::tasks::TakeArgs;
use crate::args::worker::EffortArgs;
use crate::endpoint::Endpoint;
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::output::escaped;
use crate::resp::Client;

/// How long one take waits. A vanished server is noticed soon after that.
pub(super) const ROUND_MS: u64 = 30_000;

/// What all jobs of a worker share.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) work: Work<'a>,
    pub(super) take: Words,
    /// The same without a wait, for the take that comes with an acknowledgement.
    pub(super) take_at_once: Words,
    /// How long the server may wait for a task.
    pub(super) round: Duration,
    pub(super) ttr: Duration,
    pub(super) effort: EffortArgs,
    pub(super) once: bool,
    /// How many tasks may still be started, if there is a limit.
    pub(super) left: Option<AtomicU64>,
    /// The membership to keep alive meanwhile, if any.
    pub(super) membership: Option<Membership<'a>>,
}

/// What is done with a task.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work<'a> {
    /// This is run for it.
    Running(&'a OsStr),
    /// It is printed.
    Printing {
        /// With everything that is known about it.
        json: bool,
    },
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

/// Works until it is stopped, or until it has done what was requested.
pub(super) fn work(arguments: &TakeArgs, command: &OsStr) -> Result<Exit, Failure> {
    init::work_below_if_first()?;
    let worker = &arguments.worker;
    let round_ms = if worker.once { 0 } else { ROUND_MS };
    let plan = Plan {
        endpoint: &arguments.client.endpoint()?,
        work: Work::Running(command),
        take: worker_words(arguments, Some(round_ms)),
        take_at_once: worker_words(arguments, None),
        round: Duration::from_millis(round_ms),
        ttr: Duration::from_millis(arguments.ttr_ms),
        effort: worker.effort,
        once: worker.once,
        left: arguments.count.map(AtomicU64::new),
        membership: None,
    };
    let signals = signals()?;
    // A first connection that fails ends the worker: the address may be wrong.
    let mut first = Client::open(plan.endpoint)?;
    first.hear_of_cancels()?;
    // One that does some tasks and ends is a step of a script, which knows what it does.
    if !worker.once && arguments.count.is_none() {
        let queues: Vec<String> =
            arguments.queues.iter().map(|queue| escaped(queue.as_encoded_bytes())).collect();
        let jobs = worker.effort.jobs;
        let plural = if jobs == 1 { "" } else { "s" };
        tell(format!("working on {}, {jobs} command{plural} at a time", queues.join(", ")));
    }
    run(&plan, signals, first)
}

/// Runs the jobs, the first of them over the existing connection.
pub(super) fn run(plan: &Plan<'_>, mut signals: Signals, first: Client) -> Result<Exit, Failure> {
    let (stop, inboxes) = Stop::new(usize::from(plan.effort.jobs));
    let handle = signals.handle();
    let mut first = Some(first);
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || heed(&mut signals, plan, stop));
        let (ended, end) = sync_channel(0);
        if let Some(membership) = &plan.membership {
            scope.spawn(move || membership.beat_until(&end));
        }
        let jobs: Vec<_> = inboxes
            .into_iter()
            .map(|inbox| {
                let job = Job::new(plan, stop, inbox, first.take());
                scope.spawn(move || job.run())
            })
            .collect();
        let ends: Vec<_> = jobs.into_iter().map(ScopedJoinHandle::join).collect();
        drop(ended);
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

/// Stops the jobs on signals.
fn heed(signals: &mut Signals, plan: &Plan<'_>, stop: &Stop) {
    for signal in signals.forever() {
        let is_first = if signal == SIGHUP { stop.hang_up() } else { stop.signal() == 1 };
        // Reported after it is done, so that readers can rely on it.
        match (is_first, plan.work) {
            (true, Work::Running(_)) => {
                tell("stopping; a second signal kills the commands that are running");
            }
            (true, Work::Printing { .. }) => tell("stopping"),
            (false, Work::Running(_)) => {}
            // Only this ends a write that is not read.
            (false, Work::Printing { .. }) => {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    }
}
