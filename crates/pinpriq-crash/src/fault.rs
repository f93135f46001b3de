//! What goes wrong in the harness itself, as opposed to in the server that it looks at.
//!
//! Nobody recovers from these: a run that cannot be carried out ends, and says why.

use std::error::Error;

/// Why the harness could not go on.
pub(crate) type Fault = Box<dyn Error + Send + Sync>;

/// What the harness does may fail.
pub(crate) type Fallible<T> = Result<T, Fault>;

/// What a scenario came to.
pub(crate) enum Verdict {
    /// Nothing to object to; a sentence with the figures.
    Passed(String),
    /// The server did what it must not; a sentence with the figures and the seed.
    Failed(String),
    /// The machine does not allow it, and why. Never to be counted as passed.
    NotRun(String),
}

impl Verdict {
    /// With these figures, and failures if there were any.
    pub(crate) fn of(figures: String, failures: &[String]) -> Self {
        if failures.is_empty() {
            Self::Passed(figures)
        } else {
            Self::Failed(format!("{figures}\n{}", failures.join("\n")))
        }
    }
}
