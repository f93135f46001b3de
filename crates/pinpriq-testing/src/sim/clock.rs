//! The simulated clocks: a monotonic one, and a wall clock that is set occasionally.
//!
//! The server uses its real time line, made from these two readings.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_server::clock::{Clock, TimeLine};

/// Both clocks of a machine. Clones show the same time.
#[derive(Clone)]
pub(crate) struct Clocks {
    inner: Rc<Inner>,
}

struct Inner {
    monotonic: Cell<Duration>,
    /// Nanoseconds since the Unix epoch.
    wall_ns: Cell<i128>,
}

impl Clocks {
    pub(crate) fn at(wall: Timestamp) -> Self {
        let wall_ns = Cell::new(i128::from(wall.ms()) * 1_000_000);
        Self { inner: Rc::new(Inner { monotonic: Cell::new(Duration::ZERO), wall_ns }) }
    }

    /// Advances both clocks.
    pub(crate) fn advance(&self, span: Span) {
        let passed = Duration::from_millis(span.ms());
        self.inner.monotonic.set(self.inner.monotonic.get() + passed);
        self.set_wall_by(i128::try_from(passed.as_nanos()).unwrap_or_default());
    }

    /// Sets the wall clock.
    pub(crate) fn set_wall_by(&self, ns: i128) {
        // Between 1973 and 2286, so that a start after a jump still has room on both sides.
        const FIRST_NS: i128 = 100_000_000_000_000_000;
        const LAST_NS: i128 = 10_000_000_000_000_000_000;
        self.inner.wall_ns.set((self.inner.wall_ns.get() + ns).clamp(FIRST_NS, LAST_NS));
    }

    pub(crate) fn wall(&self) -> Timestamp {
        let ms = self.inner.wall_ns.get() / 1_000_000;
        Timestamp::from_ms(u64::try_from(ms).unwrap_or_default())
    }

    fn wall_ns(&self) -> u128 {
        u128::try_from(self.inner.wall_ns.get()).unwrap_or_default()
    }

    /// The clock of a server that starts at `start`.
    pub(crate) fn server_clock(&self, start: Timestamp) -> ServerClock {
        let line = TimeLine::starting_at(start, self.inner.monotonic.get(), self.wall_ns());
        ServerClock { clocks: self.clone(), line }
    }
}

/// The time line of one server.
pub(crate) struct ServerClock {
    clocks: Clocks,
    line: TimeLine,
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        let monotonic = self.clocks.inner.monotonic.get();
        let ns = self.line.read(monotonic, || self.clocks.wall_ns());
        Timestamp::from_ms(u64::try_from(ns / 1_000_000).unwrap_or(u64::MAX))
    }

    fn ahead_of_wall(&self) -> i64 {
        self.line.ahead_of_wall(self.clocks.inner.monotonic.get(), self.clocks.wall_ns())
    }

    fn until(&self, _: Timestamp) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        unreachable!("nothing waits in a simulation: the world says what is due")
    }
}
