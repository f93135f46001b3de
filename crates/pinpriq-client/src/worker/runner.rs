//! Takes tasks, runs functions for them, and settles them.

use std::any::Any;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::ahead::{self, Ending};
use super::held::Held;
use super::policy::Policy;
use super::{Failure, Happening, Outcome, Returned, Worker};
use crate::attempts::jittered;
use crate::clock::{now, pause};
use crate::error::Error;
use crate::job::Job;
use crate::name::Name;
use crate::queue::{Release, Source, take};
use crate::spans::Attempt;
use crate::task::State;

/// The code with which the server refuses to renew the lease of a task that was cancelled.
pub(super) const CANCELLED: &str = "CANCELLED";
/// How long one take may wait. A worker that is to stop notices it after that.
const WAIT: Duration = Duration::from_secs(1);
/// The first and the longest pause after an error.
pub(super) const PAUSE_FIRST: Duration = Duration::from_millis(100);
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The most tasks that one take asks for.
const COUNT_MAX: u32 = 100;
/// How often at most a job tells how far it has come.
const TELL: Duration = Duration::from_secs(1);
/// How long a member of a topic lives without a sign of life.
const MEMBER_LEASE: Duration = Duration::from_mins(1);

/// What the functions that run share with the loop.
pub(super) struct Crew {
    pub(super) worker: Arc<Worker>,
    pub(super) held: Held,
}

/// What a function that runs occupies until it has ended.
pub(super) enum Place {
    /// A permit to run it.
    Slot(Option<OwnedSemaphorePermit>),
    /// A place among the jobs that are taken ahead.
    Ahead(Ending),
}

/// Ends a function when it is dropped.
struct EndWithMe(AbortHandle);

impl Drop for EndWithMe {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) async fn run(
    worker: Arc<Worker>,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let (sender, stopped) = watch::channel(false);
    let crew = Arc::new(Crew { worker, held: Held::default() });
    let mut work = pin!(Loop::new(Arc::clone(&crew), stopped).run());
    let mut stop = pin!(stop);
    tokio::select! {
        ended = &mut work => return ended,
        () = &mut stop => {}
    }
    // Who listens to it is the loop, which goes on until it has seen it.
    _ = sender.send(true);
    work.await
}

/// The loop that takes tasks.
pub(super) struct Loop {
    pub(super) crew: Arc<Crew>,
    pub(super) stopped: watch::Receiver<bool>,
    pub(super) sources: Vec<Source>,
    turn: usize,
    slots: Arc<Semaphore>,
    pub(super) running: JoinSet<()>,
}

impl Loop {
    fn new(crew: Arc<Crew>, stopped: watch::Receiver<bool>) -> Self {
        let mut sources: Vec<Source> = Vec::new();
        for (name, member) in &crew.worker.sources {
            match sources.iter_mut().find(|source| source.member == *member) {
                Some(source) => source.names.push(name.clone()),
                None => {
                    sources.push(Source { names: vec![name.clone()], member: member.clone() });
                }
            }
        }
        let slots = Arc::new(Semaphore::new(crew.worker.concurrency as usize));
        Self { crew, stopped, sources, turn: 0, slots, running: JoinSet::new() }
    }

    async fn run(mut self) -> Result<(), Error> {
        let sources: Vec<String> =
            self.crew.worker.sources.iter().map(|(name, _)| format!("{name:?}")).collect();
        let sources = sources.join(", ");
        tracing::info!("working on {sources}, {} at a time", self.crew.worker.concurrency);
        let keeping = tokio::spawn(keep(Arc::clone(&self.crew)));
        let _keeping = EndWithMe(keeping.abort_handle());
        if self.crew.worker.prefetch > 0 {
            ahead::work(&mut self).await?;
        } else {
            self.work().await?;
        }
        tracing::info!("stopping work on {sources}");
        let running = &mut self.running;
        let all = async { while running.join_next().await.is_some() {} };
        if tokio::time::timeout(self.crew.worker.grace, all).await.is_err() {
            tracing::warn!("jobs still run after {:?}: given back", self.crew.worker.grace);
            self.running.shutdown().await;
            for job in self.crew.held.take_all() {
                self.crew.give_back(&job).await;
            }
        }
        Ok(())
    }

    /// Takes tasks and starts functions, until it is to stop.
    async fn work(&mut self) -> Result<(), Error> {
        let mut first = true;
        let mut span = PAUSE_FIRST;
        let mut permits = Vec::new();
        while self.slot(&mut permits).await {
            match self.take(permits.len()).await {
                Ok(jobs) => {
                    (first, span) = (false, PAUSE_FIRST);
                    for job in jobs {
                        self.start(job, permits.pop()).await;
                    }
                }
                Err(error @ Error::Refused(_)) if first => return Err(error),
                Err(error) => {
                    tracing::warn!("next try in {span:?}: {error}");
                    let mut stopped = self.stopped.clone();
                    tokio::select! {
                        _ = stopped.wait_for(|stopped| *stopped) => {}
                        () = pause(jittered(span)) => {}
                    }
                    span = (span * 2).min(PAUSE_MAX);
                }
            }
            while self.running.try_join_next().is_some() {}
        }
        Ok(())
    }

    /// Waits until a function can be run, and gathers the permits for those that can. Returns false
    /// when it is time to stop.
    async fn slot(&mut self, permits: &mut Vec<OwnedSemaphorePermit>) -> bool {
        if permits.is_empty() {
            tokio::select! {
                biased;
                _ = self.stopped.wait_for(|stopped| *stopped) => return false,
                permit = Arc::clone(&self.slots).acquire_owned() => permits.extend(permit),
            }
        }
        while permits.len() < COUNT_MAX as usize
            && let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned()
        {
            permits.push(permit);
        }
        !*self.stopped.borrow()
    }

    /// Takes up to this many tasks of the next source.
    async fn take(&mut self, count: usize) -> Result<Vec<Job>, Error> {
        self.turn = self.turn.wrapping_add(1);
        let count_of_sources = self.sources.len().max(1);
        let Some(source) = self.sources.get(self.turn % count_of_sources) else {
            return Ok(Vec::new());
        };
        let mut source = source.clone();
        // None of the queues always comes first.
        let by = self.turn % source.names.len().max(1);
        source.names.rotate_left(by);
        let worker = &self.crew.worker;
        let count = u32::try_from(count).unwrap_or(COUNT_MAX);
        let wait = WAIT / u32::try_from(count_of_sources).unwrap_or(u32::MAX);
        match take(&worker.client, &source, count, wait, worker.ttr).await {
            Err(error)
                if (error.is("CROSSSHARD") || error.is("CROSSSLOT")) && source.names.len() > 1 =>
            {
                self.part(source.member.as_ref());
                Ok(Vec::new())
            }
            // The member has ended, and what was in its lanes is gone; or it has not joined yet.
            Err(error) if error.is("NOTFOUND") && source.member.is_some() => {
                join(worker).await?;
                Ok(Vec::new())
            }
            taken => taken,
        }
    }

    /// Takes from each queue of this source by itself from now on: they live in different shards.
    fn part(&mut self, member: Option<&Name>) {
        let parts = |source: Source| {
            let is_meant = source.member.as_ref() == member;
            let Source { names, member } = source;
            if !is_meant {
                return vec![Source { names, member }];
            }
            let single = |name| Source { names: vec![name], member: member.clone() };
            names.into_iter().map(single).collect()
        };
        self.sources = std::mem::take(&mut self.sources).into_iter().flat_map(parts).collect();
    }

    /// Runs the function for a job.
    async fn start(&mut self, job: Job, permit: Option<OwnedSemaphorePermit>) {
        if *self.stopped.borrow() {
            self.crew.give_back(&job).await;
            return;
        }
        self.crew.held.hold(&job);
        self.running.spawn(Arc::clone(&self.crew).attend(job, Place::Slot(permit)));
    }
}

impl Crew {
    /// Runs the function for a job, and settles the job.
    pub(super) async fn attend(self: Arc<Self>, job: Job, place: Place) {
        let (started, span) = (now(), Attempt::begin(&job));
        let outcome = if let Some(reason) = self.given_up_before(&job).await {
            Err(Failure::bury(reason))
        } else {
            self.worker.tell(&job, Happening::Started);
            self.call(&job, &span).await
        };
        let took = now() - started;
        if job.cancelled().is_some() {
            span.note_cancelled();
        }
        match outcome {
            Ok(Returned(returned)) => {
                if let Some(result) = returned {
                    job.note_returned(result);
                }
                let is_due = !job.is_settled() && self.held.note_ending(&job);
                // The next job need not wait for the reply about this one.
                let is_left = match place {
                    Place::Ahead(ending) if is_due => ending.acknowledge(&job),
                    Place::Ahead(_) => false,
                    Place::Slot(permit) => {
                        drop(permit);
                        false
                    }
                };
                if is_due && !is_left {
                    self.acknowledge(&job).await;
                }
                if !is_left {
                    self.held.let_go(&job);
                }
                self.worker.tell(&job, Happening::Done { took });
            }
            Err(failure) => {
                drop(place);
                let state = self.settle(&job, &failure).await;
                if let Some(reason) = failure.reason().filter(|_| job.cancelled().is_none()) {
                    span.fail(reason, state);
                }
                self.held.let_go(&job);
                let happening = Happening::Failed { took, failure: &failure, state };
                self.worker.tell(&job, happening);
            }
        }
    }

    /// Calls the function. A panic is a failure.
    async fn call(&self, job: &Job, span: &Attempt) -> Outcome<Returned> {
        let source = (job.queue.clone(), job.member.clone());
        let Some(function) = self.worker.functions.get(&source) else {
            // A queue of an older configuration of this worker cannot be taken from.
            return Err(Failure::GiveBack { delay: None });
        };
        // Within the new task, so that a panic before there is a future is caught as well.
        let (function, own) = (Arc::clone(function), job.clone());
        let running = tokio::spawn(span.run(async move { function(own).await }));
        let _end = EndWithMe(running.abort_handle());
        match running.await {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => {
                    Err(Failure::retry(format!("panicked: {}", panic_message(panic.as_ref()))))
                }
                Err(_) => Err(Failure::GiveBack { delay: None }),
            },
        }
    }

    pub(super) async fn acknowledge(&self, job: &Job) {
        match job.ack_returned().await {
            Ok(()) => {}
            Err(error) if error.is("STALE") => {
                tracing::info!("the lease of {} had ended before it was acknowledged", job.id);
            }
            Err(error) => {
                tracing::warn!("{} was not acknowledged, so it comes again: {error}", job.id);
            }
        }
    }

    /// Returns why a job is not to be run once more: it has failed too often, for example by ending
    /// the process each time, and its queue does not give it up.
    async fn given_up_before(&self, job: &Job) -> Option<String> {
        let (failures, most) = (job.failures, Worker::FAILURES_MAX);
        if failures < most || !self.policy(job).await?.gives_up(failures) {
            return None;
        }
        let last =
            job.reason.as_ref().map_or_else(String::new, |it| format!("; the last time: {it}"));
        Some(format!("failed {failures} times, while {most} are allowed: not run again{last}"))
    }

    /// Asks what the queue of a job says about failures. A queue that shows no settings says
    /// nothing. Returns none if the server does not answer; then the queue decides.
    async fn policy(&self, job: &Job) -> Option<Policy> {
        match job.queue().settings().await {
            Ok(settings) => Some(Policy::of(&settings).with(job)),
            Err(Error::Refused(_)) => Some(Policy::default().with(job)),
            Err(_) => None,
        }
    }

    /// Does what a function wants for a job that it has not done.
    async fn settle(&self, job: &Job, failure: &Failure) -> Option<State> {
        if job.is_settled() || !self.held.note_ending(job) {
            return None;
        }
        let settled = match failure {
            // It is no failure, whatever the function says.
            _ if job.cancelled().is_some() => {
                let state = job.release(Release::default()).await;
                state.map(|state| (state, "cancelled".to_owned()))
            }
            Failure::Retry { reason, delay } => self.fail(job, reason, *delay).await,
            Failure::Bury { reason } => {
                let buried = job.bury(reason).await;
                buried.map(|()| (State::Buried, format!("{reason}: buried")))
            }
            Failure::GiveBack { delay } => {
                let how = Release { delay: *delay, ..Release::default() };
                job.release(how).await.map(|state| (state, "given back".to_owned()))
            }
        };
        let (id, queue, attempts) = (&job.id, job.queue().name(), job.attempts);
        match settled {
            Ok((state, told)) => {
                tracing::warn!("task {id:?} of {queue:?}, attempt {attempts}: {told}");
                Some(state)
            }
            Err(error) => {
                tracing::warn!("{id} was not settled, so its lease runs out: {error}");
                None
            }
        }
    }

    /// Says that a job has failed, or gives it up if its queue never does. Returns its state, and
    /// what happened in words.
    async fn fail(
        &self,
        job: &Job,
        reason: &str,
        delay: Option<Duration>,
    ) -> Result<(State, String), Error> {
        let failures = job.failures.saturating_add(1);
        let policy = self.policy(job).await;
        if policy.is_some_and(|policy| policy.gives_up(failures)) {
            job.bury(reason).await?;
            return Ok((State::Buried, format!("{reason}: buried")));
        }
        let delay = delay.or_else(|| policy?.delay(failures));
        let state = job.fail(reason, delay).await?;
        let next = match (state, delay) {
            (State::Buried, _) => "buried".to_owned(),
            (State::Gone, _) => "it has left the queue".to_owned(),
            (State::Waiting, None) => "comes back after the back-off of its queue".to_owned(),
            (_, delay) => format!("comes back in {:?}", delay.unwrap_or_default()),
        };
        Ok((state, format!("{reason}: {next}")))
    }

    /// Notes that the task of a job was cancelled.
    pub(super) fn note_cancelled(&self, job: &Job, reason: &str) {
        if job.note_cancelled(reason) {
            tracing::info!("the task {} of {} was cancelled: {reason}", job.id, job.queue);
            self.worker.tell(job, Happening::Cancelled);
        }
    }

    /// Gives a job back because the worker stops.
    async fn give_back(&self, job: &Job) {
        match job.release(Release::default()).await {
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("{} was not given back, so its lease runs out: {error}", job.id);
            }
        }
        self.worker.tell(job, Happening::Released);
    }
}

/// Renews the leases, and gives the signs of life of members, for as long as it is polled.
async fn keep(crew: Arc<Crew>) {
    let worker = &crew.worker;
    // One member may have lanes in several topics.
    let members: BTreeSet<&Name> =
        worker.sources.iter().filter_map(|(_, member)| member.as_ref()).collect();
    let span = if members.is_empty() { worker.ttr } else { worker.ttr.min(MEMBER_LEASE) } / 3;
    let mut renewed_at = now();
    loop {
        pause(span.saturating_sub(renewed_at.elapsed()).min(TELL)).await;
        let is_due = renewed_at.elapsed() >= span;
        for (job, refused) in crew.held.renew(&worker.client, is_due).await {
            if refused.code == CANCELLED {
                crew.note_cancelled(&job, &refused.message);
                continue;
            }
            tracing::warn!("the lease of {} of {} was lost", job.id, job.queue);
            worker.tell(&job, Happening::Lost);
        }
        if !is_due {
            continue;
        }
        renewed_at = now();
        for member in &members {
            // If it has ended, the next take joins again.
            if let Err(error) = worker.client.beat(*member, Some(MEMBER_LEASE)).await {
                tracing::warn!("no sign of life of {member}: {error}");
            }
        }
    }
}

/// Joins all topics as the members that the worker is.
pub(super) async fn join(worker: &Worker) -> Result<(), Error> {
    for (topic, member) in &worker.sources {
        if let Some(member) = member {
            worker.client.topic(topic).join(member, Some(MEMBER_LEASE)).await?;
        }
    }
    Ok(())
}

/// What a panic says.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}
