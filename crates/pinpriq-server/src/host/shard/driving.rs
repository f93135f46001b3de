//! What time and the store require of a shard: two tasks that never end, and their steps.
//!
//! The steps are of use alone where nothing waits, as in tests.

use pinpriq_proto::time::Timestamp;
use pinpriq_store::durable::Durable;
use tokio::sync::Notify;

use super::{Asked, Shard};

/// How often the thread looks at its sockets, and does what it finds there, before the store begins
/// the next write. The first time clients get the replies that the last write has allowed, and the
/// second time most of their next requests have arrived.
const GATHERING_PASSES: u32 = 2;

impl Shard {
    /// Does what is due whenever it is due. Never ends.
    pub(crate) async fn run_timer(&self) {
        loop {
            match self.arm_timer() {
                Some(at) => {
                    tokio::select! {
                        () = self.clock.until(at) => {}
                        () = self.timer_bell.notified() => continue,
                    }
                    self.fire_timer();
                    // Many deadlines fire in steps; other tasks run in between.
                    tokio::task::yield_now().await;
                }
                None => self.timer_bell.notified().await,
            }
        }
    }

    /// Sets the timer for what is due next, and returns when that is.
    pub fn arm_timer(&self) -> Option<Timestamp> {
        let state = &mut *self.state.borrow_mut();
        state.armed = self.due(&state.durable);
        state.armed
    }

    /// Does what is due.
    pub fn fire_timer(&self) {
        let now = self.now();
        {
            let state = &mut *self.state.borrow_mut();
            self.tell_witness(now, state, || Asked::Timeout);
            state.durable.handle_timeout(now);
            for batch in state.durable.take_given_up() {
                let batch = batch.escape_ascii();
                tracing::warn!(%batch, "a batch was given up: it was not done in time");
            }
        }
        self.turn();
    }

    /// Returns the bell that rings when the timer must be set again.
    pub const fn timer_bell(&self) -> &Notify {
        &self.timer_bell
    }

    /// Does what the store requires. Never ends.
    pub(crate) async fn run_store(&self) {
        loop {
            self.store_bell.notified().await;
            self.answer_cuts();
            self.turn();
            if self.inspect(Durable::is_gathering) {
                for _ in 0..GATHERING_PASSES {
                    tokio::task::yield_now().await;
                }
                self.end_gathering();
            }
        }
    }

    /// Tells those who copy the journal how far it is, if any have asked. Nothing is being carried
    /// out here, so everything up to now has happened.
    pub fn answer_cuts(&self) {
        let now = self.clock.now();
        // A failure is that of the turn that follows, too.
        let _ = self.state.borrow_mut().durable.answer_cuts(now);
    }

    /// Lets the store begin its next write, should that wait for more changes, and does what the
    /// store requires.
    pub fn end_gathering(&self) {
        self.state.borrow_mut().durable.end_gathering();
        self.turn();
    }
}
