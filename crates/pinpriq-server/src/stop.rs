//! A request that a server stops in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A request that a server stops: it accepts nothing more, sends its replies, makes everything
/// durable, and ends. Clones share the request, on any thread.
#[derive(Clone, Default)]
pub struct Stop {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// A separate flag, for code that is too busy to wait for anything.
    asked_for: Arc<AtomicBool>,
    bell: Notify,
}

impl Stop {
    /// Requests the stop. Doing so again changes nothing.
    pub fn ask(&self) {
        self.inner.asked_for.store(true, Ordering::Release);
        self.inner.bell.notify_waiters();
    }

    /// Whether the stop was requested.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        self.inner.asked_for.load(Ordering::Acquire)
    }

    /// Returns the flag of the request, for code that only checks now and then. Code that sets it
    /// must also call [`Stop::ask`], or no task is woken.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        self.inner.asked_for.clone()
    }

    /// Waits until the stop is requested.
    pub async fn asked_for(&self) {
        loop {
            let rung = self.inner.bell.notified();
            if self.is_asked_for() {
                return;
            }
            rung.await;
        }
    }
}
