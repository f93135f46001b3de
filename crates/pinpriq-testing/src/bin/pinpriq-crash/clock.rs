//! The clocks of the harness.
//!
//! The monotonic clock times histories. The wall clock is only compared with the times that strace
//! records.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant, SystemTime};

/// Counts microseconds from its creation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock of the harness")]
    pub(crate) fn starting() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn us(self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Microseconds of the wall clock since 1970.
#[expect(clippy::disallowed_methods, reason = "this is the clock of the harness")]
pub(crate) fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |it| u64::try_from(it.as_micros()).unwrap_or(u64::MAX))
}

/// Lets time pass while others work. Nothing is sent, so nothing is received.
pub(crate) fn let_pass(time: Duration) {
    let (_open, never) = sync_channel::<()>(0);
    // It can only time out.
    let _ = never.recv_timeout(time);
}
