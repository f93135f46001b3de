//! What a function can say of a job that it has not done.

use std::error::Error;
use std::time::Duration;

/// What a function returns: `Ok` if the job is done, with what has come of the work if that is to
/// be told.
pub type Outcome<T = ()> = Result<T, Failure>;

/// What has come of the work on a job, as bytes. `()` and `None` say nothing.
///
/// Clients that wait for the task receive it, and a kept task has it. A job is acknowledged without
/// its result if that is larger than a payload may be, or if the server has no room for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Returned(pub(super) Option<Vec<u8>>);

impl From<()> for Returned {
    fn from((): ()) -> Self {
        Self(None)
    }
}

impl From<Vec<u8>> for Returned {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Some(bytes))
    }
}

impl From<String> for Returned {
    fn from(text: String) -> Self {
        Self(Some(text.into_bytes()))
    }
}

impl From<&str> for Returned {
    fn from(text: &str) -> Self {
        Self(Some(text.as_bytes().to_vec()))
    }
}

impl<T: Into<Self>> From<Option<T>> for Returned {
    fn from(result: Option<T>) -> Self {
        result.map_or(Self(None), Into::into)
    }
}

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
