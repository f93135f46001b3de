//! Runs one job at a time, on the caller's thread or on one of its own.
//!
//! The same worker runs either way, so the simulator and the server run the same code. A lane never
//! holds more than one job, so nothing in it can pile up. `wake` is called after each job on a
//! thread, and the result waits to be taken. Which job is due is not decided here.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{Builder, JoinHandle};

use crate::store::StoreError;

/// Called by the threads of a journal after each finished job. Then it is time for
/// [`Store::drive`](crate::store::Store::drive).
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Where the journal waits for the disk.
#[derive(Clone)]
pub enum Runner {
    /// On the caller's thread: for simulators, tests and programs that embed the queue. Jobs are
    /// done before the call that starts them returns.
    Inline,
    /// On the caller's thread too, but as late as on other threads: for simulators of slow disks. A
    /// job is done once the gate is open, and its result is available at the next
    /// [`Store::drive`](crate::store::Store::drive) or when it is waited for.
    Gated {
        /// Whether the disk answers now.
        open: Arc<AtomicBool>,
    },
    /// On two threads of the journal's own, one for commits and one for everything else.
    Thread {
        /// Called after each finished job, on one of those threads.
        wake: Wake,
    },
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inline => "Inline",
            Self::Gated { .. } => "Gated",
            Self::Thread { .. } => "Thread",
        })
    }
}

/// Something that does jobs. Failures are part of its results.
pub(crate) trait Worker: Send + 'static {
    type Job: Send;
    type Done: Send;

    fn run(&mut self, job: Self::Job) -> Self::Done;
}

/// A worker and the way to reach it.
pub(crate) struct Lane<W: Worker> {
    name: &'static str,
    busy: bool,
    way: Way<W>,
}

enum Way<W: Worker> {
    Inline {
        worker: W,
        done: Option<W::Done>,
    },
    Gated {
        worker: W,
        job: Option<W::Job>,
        open: Arc<AtomicBool>,
    },
    Thread {
        jobs: Option<SyncSender<W::Job>>,
        done: Receiver<W::Done>,
        thread: Option<JoinHandle<()>>,
    },
}

impl<W: Worker> Lane<W> {
    pub(crate) fn start(
        name: &'static str,
        mut worker: W,
        runner: &Runner,
    ) -> Result<Self, StoreError> {
        let way = match runner {
            Runner::Inline => Way::Inline { worker, done: None },
            Runner::Gated { open } => Way::Gated { worker, job: None, open: Arc::clone(open) },
            Runner::Thread { wake } => {
                let wake = Arc::clone(wake);
                let (jobs, todo) = sync_channel::<W::Job>(1);
                let (finished, done) = sync_channel(1);
                let work = move || {
                    while let Ok(job) = todo.recv() {
                        if finished.send(worker.run(job)).is_err() {
                            break;
                        }
                        wake();
                    }
                };
                let thread = Builder::new()
                    .name(name.to_owned())
                    .spawn(work)
                    .map_err(|error| StoreError::from_io("start a thread for", name, 0, error))?;
                Way::Thread { jobs: Some(jobs), done, thread: Some(thread) }
            }
        };
        Ok(Self { name, busy: false, way })
    }

    /// Whether a job was submitted whose result was not taken yet.
    pub(crate) const fn is_busy(&self) -> bool {
        self.busy
    }

    pub(crate) const fn is_inline(&self) -> bool {
        matches!(self.way, Way::Inline { .. })
    }

    /// Submits a job. The lane must not be busy.
    pub(crate) fn submit(&mut self, job: W::Job) -> Result<(), StoreError> {
        debug_assert!(!self.busy, "one job at a time");
        match &mut self.way {
            Way::Inline { worker, done } => *done = Some(worker.run(job)),
            Way::Gated { job: waiting, .. } => *waiting = Some(job),
            Way::Thread { jobs, .. } => {
                let sent = jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
                if !sent {
                    return Err(StoreError::ThreadEnded { thread: self.name });
                }
            }
        }
        self.busy = true;
        Ok(())
    }

    /// Returns the result of the job, if it has finished.
    pub(crate) fn take(&mut self) -> Result<Option<W::Done>, StoreError> {
        let result = match &mut self.way {
            Way::Inline { done, .. } => done.take(),
            Way::Gated { open, .. } if !open.load(Ordering::Relaxed) => None,
            Way::Gated { worker, job, .. } => job.take().map(|job| worker.run(job)),
            Way::Thread { done, .. } => match done.try_recv() {
                Ok(result) => Some(result),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => {
                    return Err(StoreError::ThreadEnded { thread: self.name });
                }
            },
        };
        self.busy &= result.is_none();
        Ok(result)
    }

    /// Waits for the job and returns its result, or none if there is no job.
    pub(crate) fn wait(&mut self) -> Result<Option<W::Done>, StoreError> {
        if !self.busy {
            return Ok(None);
        }
        let result = match &mut self.way {
            Way::Inline { done, .. } => done.take(),
            Way::Gated { worker, job, .. } => job.take().map(|job| worker.run(job)),
            Way::Thread { done, .. } => {
                let ended = |_| StoreError::ThreadEnded { thread: self.name };
                Some(done.recv().map_err(ended)?)
            }
        };
        self.busy = false;
        Ok(result)
    }
}

impl<W: Worker> Drop for Lane<W> {
    fn drop(&mut self) {
        if let Way::Thread { jobs, thread, .. } = &mut self.way {
            *jobs = None;
            // The lock on the directory is dropped after the lanes, so the last job must have
            // ended.
            if let Some(thread) = thread.take()
                && thread.join().is_err()
            {
                tracing::error!(thread = self.name, "a thread of the journal panicked");
            }
        }
    }
}
