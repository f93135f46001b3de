//! The clocks of one machine: a steady one that may run a little fast or slow, and a wall clock
//! that is wrong and is set from time to time.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pinpriq_proto::time::Timestamp;
use pinpriq_server::clock::{Clock, TimeLine};

/// What the wall clock of a right machine says at the beginning.
const BEGINNING_MS: i64 = 1_800_000_000_000;

/// The clocks of one machine. Clones show the same time.
#[derive(Clone)]
pub(crate) struct Clocks {
    pub(crate) steady_ms: Arc<AtomicU64>,
    inner: Rc<Inner>,
}

struct Inner {
    /// How many milliseconds too many it counts in a million.
    fast_ppm: i64,
    /// How far the wall clock is off, in milliseconds.
    off_ms: Cell<i64>,
    true_ms: Cell<u64>,
}

impl Clocks {
    pub(crate) fn new(fast_ppm: i64, off_ms: i64) -> Self {
        let inner = Inner { fast_ppm, off_ms: Cell::new(off_ms), true_ms: Cell::new(0) };
        Self { steady_ms: Arc::default(), inner: Rc::new(inner) }
    }

    /// Sets the true time.
    pub(crate) fn set(&self, true_ms: u64) {
        self.inner.true_ms.set(true_ms);
        let drift = i64::try_from(true_ms).unwrap_or(i64::MAX) * self.inner.fast_ppm / 1_000_000;
        self.steady_ms.store(true_ms.saturating_add_signed(drift), Ordering::Relaxed);
    }

    /// Sets the wall clock, which is then off by this many milliseconds.
    pub(crate) fn set_wall(&self, off_ms: i64) {
        self.inner.off_ms.set(off_ms);
    }

    pub(crate) fn wall(&self) -> Timestamp {
        let wall = BEGINNING_MS.saturating_add_unsigned(self.inner.true_ms.get());
        let wall = wall + self.inner.off_ms.get();
        Timestamp::from_ms(u64::try_from(wall).unwrap_or_default())
    }

    /// A time line that starts at `start`.
    pub(crate) fn line(&self, start: Timestamp) -> Rc<dyn Clock> {
        let line = TimeLine::starting_at(start, self.steady(), self.wall_ns());
        Rc::new(Line { clocks: self.clone(), line })
    }

    fn steady(&self) -> Duration {
        Duration::from_millis(self.steady_ms.load(Ordering::Relaxed))
    }

    fn wall_ns(&self) -> u128 {
        u128::from(self.wall().ms()) * 1_000_000
    }
}

struct Line {
    clocks: Clocks,
    line: TimeLine,
}

impl Clock for Line {
    fn now(&self) -> Timestamp {
        let ns = self.line.read(self.clocks.steady(), || self.clocks.wall_ns());
        Timestamp::from_ms(u64::try_from(ns / 1_000_000).unwrap_or(u64::MAX))
    }

    fn ahead_of_wall(&self) -> i64 {
        self.line.ahead_of_wall(self.clocks.steady(), self.clocks.wall_ns())
    }

    fn until(&self, _: Timestamp) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        unreachable!("nothing waits in a simulation")
    }
}
