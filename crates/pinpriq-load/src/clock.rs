//! The clock of the load generator: nanoseconds since a run began.
//!
//! This is the only reader of the machine's time besides the clock of the server, since this crate
//! measures time. It is read once for each batch of replies, never for each reply.

use std::time::Instant;

/// Counts from the moment it was created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
}

impl Clock {
    /// Starts to count.
    pub(crate) fn start() -> Self {
        Self { began: monotonic() }
    }

    /// Returns how many nanoseconds have passed.
    pub(crate) fn ns(&self) -> u64 {
        u64::try_from(monotonic().saturating_duration_since(self.began).as_nanos())
            .unwrap_or(u64::MAX)
    }
}

#[expect(clippy::disallowed_methods, reason = "the load generator measures time itself")]
fn monotonic() -> Instant {
    Instant::now()
}
