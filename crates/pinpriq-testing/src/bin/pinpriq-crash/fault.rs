//! Failures of the harness itself, as opposed to those of the server under test.
//!
//! There is no recovery from these: a run that cannot be carried out ends with the reason.

use std::error::Error;

/// Why the harness could not go on.
pub(crate) type Fault = Box<dyn Error + Send + Sync>;

/// The result of something in the harness that may fail.
pub(crate) type Fallible<T> = Result<T, Fault>;

/// What the server did and must not do, where a scenario comes across it among other failures.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Objection(pub(crate) String);

/// The result of a scenario.
pub(crate) enum Verdict {
    /// Nothing wrong was found. A sentence with the figures.
    Passed(String),
    /// The server did something that it must not do. A sentence with the figures and the seed.
    Failed(String),
    /// The machine does not allow the scenario, and why. This never counts as passed.
    NotRun(String),
}

impl Verdict {
    /// The end of a scenario, in which an objection is a failure of the server.
    pub(crate) fn unless_objected(ended: Fallible<Self>) -> Fallible<Self> {
        ended.or_else(|fault| {
            let Objection(what) = *fault.downcast::<Objection>()?;
            Ok(Self::Failed(what))
        })
    }

    /// A verdict with these figures: failed if there were any failures.
    pub(crate) fn of(figures: String, failures: &[String]) -> Self {
        if failures.is_empty() {
            Self::Passed(figures)
        } else {
            Self::Failed(format!("{figures}\n{}", failures.join("\n")))
        }
    }
}
