//! Workers: functions that are run for the tasks of queues and lanes.

mod ahead;
mod event;
mod failure;
mod held;
mod policy;
mod runner;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::error::Error;
use crate::job::Job;
use crate::name::Name;

pub use event::{Event, Happening};
pub use failure::{Failure, Outcome, Returned};

/// Where a function gets its tasks: a queue, or a topic and a member.
type Source = (Name, Option<Name>);
type Running = Pin<Box<dyn Future<Output = Outcome<Returned>> + Send>>;
type Function = Arc<dyn Fn(Job) -> Running + Send + Sync>;
type Listener = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// Runs functions for the tasks of queues and of lanes.
///
/// - A job whose function returns `Ok` is acknowledged, unless the function has settled it itself.
///   Bytes or text that it returns are the result of the task: see [`Returned`]. What an error
///   means is in [`Failure`]; a panic is a failure too.
/// - A task of a queue that does not say how often it may fail is buried at the
///   [fifth](Self::FAILURES_MAX) failure. Where the queue does not say how long it waits, that is a
///   [second](Self::BACKOFF), and twice as long after each further failure. Each failure is logged
///   through `tracing`, with what happens next, and so are the start and the end of the worker.
/// - A lease is renewed at a third of its TTR while its function runs. If it is lost nevertheless,
///   [`Happening::Lost`] says so, and the job is not acknowledged.
/// - Tasks are taken when a function can be run for them, and not before, so that the most urgent
///   task is always next. With a [`prefetch`](Self::prefetch) the server sends them ahead, and
///   calls them back for more urgent ones.
/// - When it is to stop it takes nothing more, and waits for what runs for the time of
///   [`grace`](Self::grace). What runs longer is ended and given back.
/// - After an error of the connection it waits, longer each time up to 5 seconds, and goes on.
///
/// A task is done at least once, so what a function does should be safe to repeat.
#[derive(Clone)]
pub struct Worker {
    client: Client,
    functions: HashMap<Source, Function>,
    /// The keys of these, in the order in which they were added.
    sources: Vec<Source>,
    concurrency: u32,
    prefetch: u32,
    ttr: Duration,
    grace: Duration,
    listener: Option<Listener>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("sources", &self.sources).finish_non_exhaustive()
    }
}

impl Worker {
    /// How often a task may fail where its queue does not say so.
    pub const FAILURES_MAX: u64 = 5;

    /// How long a task waits after its first failure where its queue does not say so.
    pub const BACKOFF: Duration = Duration::from_secs(1);

    /// Returns a worker without functions. It runs up to 8 of them at a time, with leases of 60
    /// seconds.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            functions: HashMap::new(),
            sources: Vec::new(),
            concurrency: 8,
            prefetch: 0,
            ttr: Duration::from_mins(1),
            grace: Duration::from_secs(30),
            listener: None,
        }
    }

    /// Runs a function for the tasks of a queue.
    #[must_use]
    pub fn job<F, R, T>(self, queue: impl Into<Name>, function: F) -> Self
    where
        F: Fn(Job) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome<T>> + Send + 'static,
        T: Into<Returned>,
    {
        self.with((queue.into(), None), function)
    }

    /// Runs a function for what is published to a topic. The worker joins the topic as this member
    /// and gives its signs of life.
    #[must_use]
    pub fn lane<F, R, T>(self, topic: impl Into<Name>, member: impl Into<Name>, function: F) -> Self
    where
        F: Fn(Job) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome<T>> + Send + 'static,
        T: Into<Returned>,
    {
        self.with((topic.into(), Some(member.into())), function)
    }

    fn with<F, R, T>(mut self, source: Source, function: F) -> Self
    where
        F: Fn(Job) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome<T>> + Send + 'static,
        T: Into<Returned>,
    {
        let function: Function = Arc::new(move |job| {
            let running = function(job);
            Box::pin(async move { running.await.map(Into::into) })
        });
        if self.functions.insert(source.clone(), function).is_none() {
            self.sources.push(source);
        }
        self
    }

    /// Runs up to this many functions at a time. 0 counts as 1.
    #[must_use]
    pub const fn concurrency(mut self, functions: u32) -> Self {
        self.concurrency = if functions == 0 { 1 } else { functions };
        self
    }

    /// Holds up to this many jobs beyond those that run, so that the next one is there at once. Of
    /// a fair queue it is 1 at most. The default is 0.
    ///
    /// Until its function is called, the server may call a job back for a more urgent one. A job
    /// that is called back just as it begins may run twice: its function is dropped at its next
    /// `await`, and [`Happening::Lost`] says so.
    #[must_use]
    pub const fn prefetch(mut self, jobs: u32) -> Self {
        self.prefetch = jobs;
        self
    }

    /// Takes tasks under leases of this length. It is how long the task of a worker that has died
    /// stays taken.
    #[must_use]
    pub const fn ttr(mut self, ttr: Duration) -> Self {
        self.ttr = ttr;
        self
    }

    /// Waits this long for functions that run when the worker stops. The default is 30 seconds.
    #[must_use]
    pub const fn grace(mut self, span: Duration) -> Self {
        self.grace = span;
        self
    }

    /// Tells a function what happens to jobs, for tracing and figures. It must not block.
    #[must_use]
    pub fn on_event(mut self, listener: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Works until `stop` is ready; [`stop_signal`] is for programs that are services.
    ///
    /// Fails only if the server refuses the first take, for example because the user has no right
    /// to the queue. Needs a runtime with time and I/O enabled.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
        runner::run(Arc::new(self), stop).await
    }

    /// Tells the listener. If that panics, the job must still be settled and the others renewed.
    fn tell(&self, job: &Job, happening: Happening<'_>) {
        let Some(listener) = &self.listener else { return };
        let told = || listener(&Event { job, happening });
        if catch_unwind(AssertUnwindSafe(told)).is_err() {
            tracing::error!("the listener of the worker panicked about {}", job.id);
        }
    }
}

/// Is ready as soon as the process is asked to stop, with SIGTERM or SIGINT.
pub async fn stop_signal() {
    use tokio::signal::unix::{Signal, SignalKind, signal};

    async fn next(signal: io::Result<Signal>) {
        match signal {
            Ok(mut signal) => _ = signal.recv().await,
            // The system gives no notice of it, so that the signal ends the process.
            Err(_) => std::future::pending().await,
        }
    }
    tokio::select! {
        () = next(signal(SignalKind::terminate())) => {}
        () = next(signal(SignalKind::interrupt())) => {}
    }
}
