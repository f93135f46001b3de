//! A long wait, cut into requests that each end early enough for a server that has gone to be
//! noticed.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::now;

/// A wait that has begun.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// When it ends, unless it is without a limit.
    until: Option<Instant>,
    slice: Duration,
}

impl Waiting {
    /// Begins a wait of this length, or one without a limit, in requests of at most `slice`.
    pub(crate) fn new(wait: Option<Duration>, slice: Duration) -> Self {
        Self { until: wait.map(|wait| now() + wait), slice }
    }

    /// Returns for how long the next request may wait.
    pub(crate) fn next(&self) -> Duration {
        let left = self.until.map(|until| until.saturating_duration_since(now()));
        left.unwrap_or(self.slice).min(self.slice)
    }

    /// Whether the whole wait is over.
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| now() >= until)
    }
}
