//! A clock that stands still until it is moved. The unit tests of the server and its benches have
//! it too.

#![allow(dead_code, reason = "each of them uses a part")]

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_server::clock::Clock;
use tokio::sync::Notify;

/// See the start of this file.
#[derive(Clone)]
pub(crate) struct ManualClock {
    inner: Rc<(Cell<Timestamp>, Notify)>,
    ahead_of_wall: Rc<Cell<i64>>,
}

impl ManualClock {
    /// Returns a clock that shows `start`, like its wall clock.
    pub(crate) fn at(start: Timestamp) -> Self {
        Self { inner: Rc::new((Cell::new(start), Notify::new())), ahead_of_wall: Rc::default() }
    }

    /// Sets the wall clock so that this clock is ahead of it by `ms` milliseconds, or behind if
    /// negative.
    pub(crate) fn set_ahead_of_wall(&self, ms: i64) {
        self.ahead_of_wall.set(ms);
    }

    /// Moves the clock forward.
    pub(crate) fn advance(&self, span: Span) {
        self.inner.0.set(self.inner.0.get().after(span));
        self.inner.1.notify_waiters();
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.inner.0.get()
    }

    fn ahead_of_wall(&self) -> i64 {
        self.ahead_of_wall.get()
    }

    fn until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async move {
            loop {
                let moved = self.inner.1.notified();
                if self.inner.0.get() >= at {
                    return;
                }
                moved.await;
            }
        })
    }
}
