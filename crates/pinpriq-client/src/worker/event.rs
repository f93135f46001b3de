//! What a worker tells about its jobs.

use std::time::Duration;

use super::Failure;
use crate::job::Job;
use crate::task::State;

/// Something that happened to a job.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The job.
    pub job: &'a Job,
    /// What happened.
    pub happening: Happening<'a>,
}

/// What can happen to a job.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Happening<'a> {
    /// Its function is about to be called.
    Started,
    /// Its function has returned `Ok` after this long.
    Done {
        /// How long it took.
        took: Duration,
    },
    /// Its function has returned an error or panicked.
    Failed {
        /// How long it took.
        took: Duration,
        /// What the function said.
        failure: &'a Failure,
        /// What became of the task, unless its lease had ended or the server was not reached.
        state: Option<State>,
    },
    /// The task was cancelled, and the token of the job too: see [`Job::cancellation`].
    Cancelled,
    /// Its lease has ended while its function runs: another worker may have the task.
    Lost,
    /// The server has called it back before its function was called, for a more urgent one.
    Recalled,
    /// It was given back because the worker stops.
    Released,
}
