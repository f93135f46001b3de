//! What a function can say of a job that it has not done.

use std::error::Error;
use std::time::Duration;

/// What a function returns: `Ok` if the job is done.
pub type Outcome = Result<(), Failure>;

/// Why a job is not done, and what shall become of it.
///
/// Any error becomes [`Failure::Retry`] with `?`, and its message the reason.
///
/// ```
/// use std::time::Duration;
/// use pinpriq_client::{Failure, Job, Outcome};
///
/// async fn call(job: Job) -> Outcome {
///     let number = job.text()?; // not UTF-8: fails
///     match number {
///         "unknown" => Err(Failure::bury("no such number")),
///         "busy" => Err(Failure::retry_after(Duration::from_secs(3600), "the line is busy")),
///         "later" => Err(Failure::GiveBack { delay: Some(Duration::from_secs(60)) }),
///         _ => Ok(()),
///     }
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// It has failed. The settings of the queue say how often it is tried again, and what becomes
    /// of it after that; where they say nothing, see [`Worker`](crate::Worker).
    Retry {
        /// Why, for people.
        reason: String,
        /// How long to wait before the next try. Without it the back-off of the queue applies.
        delay: Option<Duration>,
    },
    /// It can never be done: it is set aside.
    Bury {
        /// Why, for people.
        reason: String,
    },
    /// It is given back, which is no failure.
    GiveBack {
        /// How long to wait before it is ready again.
        delay: Option<Duration>,
    },
}

impl Failure {
    /// Returns a failure with this reason.
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::Retry { reason: reason.into(), delay: None }
    }

    /// Returns a failure with this reason, after which the next try waits for this long.
    pub fn retry_after(delay: Duration, reason: impl Into<String>) -> Self {
        Self::Retry { reason: reason.into(), delay: Some(delay) }
    }

    /// Returns why, unless the job is given back.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Self::Retry { reason, .. } | Self::Bury { reason } => Some(reason),
            Self::GiveBack { .. } => None,
        }
    }

    /// Returns the wish to set the job aside, for this reason.
    pub fn bury(reason: impl Into<String>) -> Self {
        Self::Bury { reason: reason.into() }
    }
}

/// The message of the error, with those of its causes.
impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut reason = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            reason.push_str(": ");
            reason.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::retry(reason)
    }
}
