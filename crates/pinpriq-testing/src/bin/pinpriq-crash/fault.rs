//! Failures of the harness itself, as opposed to those of the server under test.
//!
//! There is no recovery from these: a run that cannot be carried out ends with the reason.

use std::error::Error;

/// Why the harness could not go on.
pub(crate) type Fault = Box<dyn Error + Send + Sync>;

/// The result of something in the harness that may fail.
pub(crate) type Fallible<T> = Result<T, Fault>;

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
    /// A verdict with these figures: failed if there were any failures.
    pub(crate) fn of(figures: String, failures: &[String]) -> Self {
        if failures.is_empty() {
            Self::Passed(figures)
        } else {
            Self::Failed(format!("{figures}\n{}", failures.join("\n")))
        }
    }
}
