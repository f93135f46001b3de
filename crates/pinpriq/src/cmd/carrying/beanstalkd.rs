//! `pinpriq import --from-beanstalkd`: moves the jobs of a running beanstalkd into a server.
//!
//! Jobs are moved in batches. For each batch, in this order:
//!
//! 1. The jobs are read, with their figures.
//! 2. They are put here. A reply means that a task is as durable as the server makes any.
//! 3. Those that have a reply are deleted there. All others stay, and are given back if they were
//!    reserved.
//! 4. A job that could not be deleted was taken by another worker, which is responsible for it from
//!    now on. Its task is removed here.
//!
//! So these hold at every moment, whatever crashes:
//!
//! - **Nothing is lost.** Each job is in beanstalkd until its task is durable here. A task is
//!   removed only after beanstalkd has said that another worker has the job, or has finished it.
//!   Without an answer, as when a connection breaks, the task stays.
//! - **One batch may be doubled.** Between the second step and the third, a batch is on both sides,
//!   and no other is. Another import puts its jobs a second time.
//! - **Jobs keep their states.** Only ready jobs are reserved, which hides them from workers of
//!   beanstalkd; if the import dies, beanstalkd makes them ready again, at the same place. A
//!   delayed or buried job would become ready too, so it is only looked at, and deleted by its
//!   number. It may become ready and be taken in between, which is the fourth step.
//! - **Jobs keep their order.** Reserving yields the order of ready jobs. Of buried ones beanstalkd
//!   shows only the first, so that they are moved one by one: any guess at the next ones could be
//!   wrong, and they would have been put already. For delayed jobs the order of the puts matters
//!   only once they are due, so the next numbers are tried as well. Nothing depends on how many of
//!   them are hits. A batch with few makes the next try shorter.
//!
//! A round moves at most what each tube had at its beginning, and rounds go on until one moves
//! nothing. Then what others have reserved is all that is left.

mod batch;
mod report;
mod source;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use self::batch::Job;
use self::report::Tally;
use self::source::{Found, JobFigures, Source, State};
use crate::args::carrying::ImportArgs;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::resp::Client;

/// The most rounds. Whatever then still comes, comes faster than it can be moved.
const ROUNDS_MAX: usize = 100;

/// One in this many numbers has to be a hit, or fewer of them are tried.
const MISSES_MAX: usize = 16;

/// The two sides, and what has come of it so far.
struct Moving<'a> {
    source: Source,
    client: Client,
    chosen: &'a [String],
    tally: Tally,
    progress: Progress,
    stop: Arc<AtomicBool>,
}

/// Moves all jobs, or counts what would be moved.
pub(super) fn import(arguments: &ImportArgs, address: &str) -> Result<Exit, Failure> {
    let endpoint = arguments.server.endpoint()?;
    let stop = stop_on_signals()?;
    let source = Source::open(address)?;
    let client = Client::open(&endpoint)?;
    let mut moving = Moving {
        source,
        client,
        chosen: &arguments.tubes,
        tally: Tally::default(),
        progress: Progress::before_output("jobs"),
        stop,
    };
    let outcome = if arguments.dry_run {
        moving.foresee()
    } else {
        let ran = moving.run();
        let looked = if moving.source.is_usable() { moving.look() } else { Ok(()) };
        ran.and(looked)
    };
    let Moving { tally, progress, .. } = moving;
    drop(progress);
    tally.tell(outcome, arguments)
}

/// Returns what becomes true when the process is asked to stop. Asked again, it ends at once.
fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        flag::register_conditional_default(signal, stop.clone())
            .and_then(|_| flag::register(signal, stop.clone()))
            .map_err(|error| Failure::on_the_way(format!("signals cannot be handled: {error}")))?;
    }
    Ok(stop)
}

impl Moving<'_> {
    /// Counts what is there, and changes nothing.
    fn foresee(&mut self) -> Result<(), Failure> {
        for tube in self.tubes()? {
            let figures = self.source.tube(&tube)?.unwrap_or_default();
            let row = self.tally.row(&tube, &figures);
            row.moved = figures.jobs;
            row.left = Some(figures.reserved);
            row.reserved = figures.reserved;
        }
        self.tally.is_counted = true;
        Ok(())
    }

    /// Moves until nothing is left that can be moved.
    fn run(&mut self) -> Result<(), Failure> {
        for _ in 0..ROUNDS_MAX {
            let before = self.tally.moved();
            for tube in self.tubes()? {
                self.empty(&tube)?;
            }
            if self.tally.moved() == before {
                break;
            }
        }
        Ok(())
    }

    /// Counts what is left.
    fn look(&mut self) -> Result<(), Failure> {
        for tube in self.tubes()? {
            let figures = self.source.tube(&tube)?.unwrap_or_default();
            let row = self.tally.row(&tube, &figures);
            row.left = Some(figures.jobs.iter().sum::<u64>() + figures.reserved);
            row.reserved = figures.reserved;
        }
        self.tally.is_counted = true;
        Ok(())
    }

    /// The tubes that are moved: the chosen ones, or those that are there and those that were.
    fn tubes(&mut self) -> Result<Vec<String>, Failure> {
        if !self.chosen.is_empty() {
            return Ok(self.chosen.to_vec());
        }
        let mut tubes = self.source.tubes()?;
        tubes.extend(self.tally.tubes());
        tubes.sort();
        tubes.dedup();
        Ok(tubes)
    }

    /// Moves what a tube has now.
    fn empty(&mut self, tube: &str) -> Result<(), Failure> {
        let figures = self.source.tube(tube)?.unwrap_or_default();
        self.tally.row(tube, &figures);
        let [ready, delayed, buried] = figures.jobs;
        if figures.jobs == [0; 3] {
            return Ok(());
        }
        self.source.enter(tube)?;
        self.move_ready(tube, ready)?;
        self.move_still(tube, State::Delayed, delayed)?;
        self.move_still(tube, State::Buried, buried)
    }

    /// Moves up to this many ready jobs, which are reserved meanwhile.
    fn move_ready(&mut self, tube: &str, mut left: u64) -> Result<(), Failure> {
        while left > 0 {
            self.heed_signals()?;
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(self.source.batch());
            let mut found = self.source.reserve(count)?;
            if found.is_empty() {
                found = self.source.reserve_paused(count)?;
            }
            if found.is_empty() {
                break;
            }
            left = left.saturating_sub(found.len() as u64);
            let told = self.source.jobs(found.iter().map(|job| job.id))?;
            let pairs = found.into_iter().zip(told);
            let jobs: Vec<Job> = pairs
                .filter_map(|(found, told)| Some(Job::new(State::Ready, found, &told?)))
                .collect();
            self.settle(tube, State::Ready, &jobs)?;
        }
        Ok(())
    }

    /// Moves up to this many delayed or buried jobs, which stay as they are until they are deleted.
    fn move_still(&mut self, tube: &str, state: State, mut left: u64) -> Result<(), Failure> {
        let reach_max = match state {
            State::Buried => 1,
            _ => self.source.batch(),
        };
        let mut reach = 1;
        while left > 0 {
            self.heed_signals()?;
            let Some(first) = self.source.next(state)? else { break };
            let jobs = self.behind(tube, state, first, reach.min(reach_max))?;
            reach = match jobs.len() * MISSES_MAX {
                enough if enough >= reach => reach_max.min(reach * 2),
                _ => reach.div_ceil(2),
            };
            // If the first one has just become ready, that counts too, so that this has an end.
            left = left.saturating_sub(jobs.len().max(1) as u64);
            self.settle(tube, state, &jobs)?;
        }
        Ok(())
    }

    /// The first job, and those of this tube and state that have the numbers behind it, as far as
    /// the reach goes.
    fn behind(
        &mut self,
        tube: &str,
        state: State,
        first: Found,
        reach: usize,
    ) -> Result<Vec<Job>, Failure> {
        let ids = first.id..first.id.saturating_add(reach as u64);
        let told = self.source.jobs(ids.clone())?;
        let is_hit = |told: &JobFigures| told.tube == tube && told.state == state.name();
        let told: BTreeMap<u64, JobFigures> =
            ids.zip(told).filter_map(|(id, told)| Some((id, told.filter(is_hit)?))).collect();
        let others: Vec<u64> = told.keys().copied().filter(|id| *id != first.id).collect();
        let mut found = vec![first];
        found.extend(self.source.look_at(&others)?);
        let jobs = found.into_iter().filter_map(|job| {
            let told = told.get(&job.id)?;
            Some(Job::new(state, job, told))
        });
        Ok(jobs.collect())
    }

    fn heed_signals(&self) -> Result<(), Failure> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Failure::on_the_way(
                "stopped by a signal: run the import again for the rest",
            ));
        }
        Ok(())
    }
}
