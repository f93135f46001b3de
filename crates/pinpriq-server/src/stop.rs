//! Asking a server to stop in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The wish that a server stops: it accepts nothing more, sends what it has answered, makes
/// everything durable, and ends. Clones share the wish, on whatever thread they are.
#[derive(Clone, Default)]
pub struct Stop {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// On its own, for those who are too busy to wait for anything.
    asked_for: Arc<AtomicBool>,
    bell: Notify,
}

impl Stop {
    /// Asks for it. Asking again changes nothing.
    pub fn ask(&self) {
        self.inner.asked_for.store(true, Ordering::Release);
        self.inner.bell.notify_waiters();
    }

    /// Whether it was asked for.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        self.inner.asked_for.load(Ordering::Acquire)
    }

    /// Whether it was asked for, for those who only look now and then. Whoever sets it has to call
    /// [`Stop::ask`] too, or nobody is woken.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        self.inner.asked_for.clone()
    }

    /// Waits until it is asked for.
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
