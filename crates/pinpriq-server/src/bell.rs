//! A bell that one task of a thread listens to, and that any other task of it may ring.
//!
//! It costs nothing while its listener is at work: the ring is only noted, and no task is woken. It
//! cannot be used from other threads, nor by more than one listener.

use std::cell::{Cell, RefCell};
use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

/// A bell for one listener.
#[derive(Default)]
pub(crate) struct Bell {
    rung: Cell<bool>,
    /// Whether the listener is waiting and must be woken.
    awaited: Cell<bool>,
    /// The waker of the listener, kept from one wait to the next.
    waker: RefCell<Option<Waker>>,
}

impl Bell {
    /// Rings the bell. A waiting listener is woken; any other will not wait the next time.
    pub(crate) fn ring(&self) {
        self.rung.set(true);
        if self.awaited.replace(false)
            && let Some(waker) = &*self.waker.borrow()
        {
            waker.wake_by_ref();
        }
    }

    /// Notes that the listener is at work and need not be woken.
    pub(crate) fn attend(&self) {
        self.awaited.set(false);
    }

    /// Silences the bell, before its listener checks everything that it may be rung for. Returns
    /// whether it had rung.
    pub(crate) fn hush(&self) -> bool {
        self.attend();
        self.rung.replace(false)
    }

    /// Waits until it has rung since it was last silenced.
    pub(crate) fn poll_rung(&self, context: &Context<'_>) -> Poll<()> {
        if self.rung.get() {
            return Poll::Ready(());
        }
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        self.awaited.set(true);
        Poll::Pending
    }
}

/// Whether a bell of several threads has rung since it was last listened to, for listeners that
/// never wait.
#[must_use]
pub fn has_rung(bell: &Notify) -> bool {
    pin!(bell.notified()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// Counts how often it was woken.
    #[derive(Default)]
    struct Listener(AtomicUsize);

    impl Wake for Listener {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn ringing_wakes_a_listener_once() {
        let (bell, listener) = (Bell::default(), Arc::new(Listener::default()));
        let waker = Waker::from(listener.clone());
        assert!(bell.poll_rung(&Context::from_waker(&waker)).is_pending());
        bell.ring();
        bell.ring();
        assert_eq!(listener.0.load(Ordering::Relaxed), 1);
        assert!(bell.poll_rung(&Context::from_waker(&waker)).is_ready());
    }

    #[test]
    fn ringing_is_noted_while_the_listener_is_at_work() {
        let (bell, listener) = (Bell::default(), Arc::new(Listener::default()));
        let waker = Waker::from(listener.clone());
        assert!(bell.poll_rung(&Context::from_waker(&waker)).is_pending());
        bell.attend();
        bell.ring();
        assert_eq!(listener.0.load(Ordering::Relaxed), 0);
        assert!(bell.poll_rung(&Context::from_waker(&waker)).is_ready());
    }

    #[test]
    fn hushing_forgets_what_was_rung() {
        let (bell, waker) = (Bell::default(), Waker::noop());
        bell.ring();
        assert!(bell.hush());
        assert!(bell.poll_rung(&Context::from_waker(waker)).is_pending());
    }

    #[test]
    fn the_latest_listener_is_woken() {
        let listeners = [Arc::new(Listener::default()), Arc::new(Listener::default())];
        let bell = Bell::default();
        for listener in &listeners {
            let waker = Waker::from(listener.clone());
            assert!(bell.poll_rung(&Context::from_waker(&waker)).is_pending());
        }
        bell.ring();
        assert_eq!(listeners.map(|listener| listener.0.load(Ordering::Relaxed)), [0, 1]);
    }
}
