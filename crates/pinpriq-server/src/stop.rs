//! Asking a server to stop in order.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

/// The wish that a server stops: it accepts nothing more, sends what it has answered, makes
/// everything durable, and ends. Clones share the wish.
#[derive(Clone, Default)]
pub struct Stop {
    inner: Rc<Inner>,
}

#[derive(Default)]
struct Inner {
    asked_for: Cell<bool>,
    bell: Notify,
}

impl Stop {
    /// Asks for it. Asking again changes nothing.
    pub fn ask(&self) {
        self.inner.asked_for.set(true);
        self.inner.bell.notify_waiters();
    }

    /// Whether it was asked for.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        self.inner.asked_for.get()
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
