//! A shard of a cluster, which may get another owner: with notice or without.
//!
//! Of a single server's shard none of this is used.

use std::rc::Rc;

use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Span;
use pinpriq_store::StoreError;
use pinpriq_store::durable::Durable;
use tokio::sync::Notify;

use super::Shard;
use crate::clients::about::linked_guest;
use crate::facts::cluster::LogFacts;
use crate::session::Session;

/// After how many milliseconds a client looks again whether it has waited for long enough.
const LOOK_MS: u64 = 100;

impl Shard {
    /// Whether another process may own the shard without notice.
    pub(crate) const fn may_be_taken_over(&self) -> bool {
        self.may_be_taken_over
    }

    /// Returns how far the log has come, if another process may own it without notice.
    pub(crate) fn log_facts(&self, durable: &Durable) -> Option<LogFacts> {
        let (shard, is_suspended) = (self.own(), durable.is_suspended());
        durable.extent().map(|extent| LogFacts { shard, extent, is_suspended })
    }

    /// Whether nothing may be said at the moment, because another process may own the shard by now.
    /// When that is over, the bells of all clients ring.
    pub(crate) fn is_suspended(&self) -> bool {
        let is_over = self.state.borrow().durable.is_suspended();
        self.was_held_up.set(self.was_held_up.get() | is_over);
        is_over
    }

    /// Whether the engine under the cluster does not answer, so that nothing new may begin. When
    /// that is over, the bells of all clients ring.
    pub(crate) fn is_down(&self) -> bool {
        let is_down = self.state.borrow().durable.is_down();
        self.was_held_up.set(self.was_held_up.get() | is_down);
        is_down
    }

    /// Rings all bells if the shard was suspended, or its engine was down, and no longer is.
    pub(super) fn resume(&self) {
        if !self.was_held_up.get() {
            return;
        }
        let is_held_up = {
            let durable = &self.state.borrow().durable;
            durable.is_suspended() || durable.is_down()
        };
        if !is_held_up {
            self.was_held_up.set(false);
            self.ring_all();
        }
    }

    /// Notes that a client waits for an engine that does not answer, and may not wait forever.
    pub(crate) fn keep_waiting(&self) {
        self.kept_bell.notify_one();
    }

    /// The bell that rings when a client waits for an engine that does not answer.
    pub const fn kept_bell(&self) -> &Notify {
        &self.kept_bell
    }

    /// Rings all bells now and then while clients wait for an engine that does not answer. Never
    /// ends.
    pub(crate) async fn run_looks(&self) {
        loop {
            self.kept_bell.notified().await;
            self.clock.until(self.clock.now().after(Span::from_ms(LOOK_MS))).await;
            self.ring_all();
        }
    }

    /// Returns a number for a guest from another process.
    pub(crate) fn number_guest(&self) -> ClientId {
        let state = &mut *self.state.borrow_mut();
        state.last_client += 1;
        linked_guest(state.last_client)
    }

    /// Waits until the store has failed.
    pub(crate) async fn failed(&self) {
        while self.failure().is_none() {
            self.failed_bell.notified().await;
        }
    }

    /// Returns the failure of the store.
    pub fn store_failure(&self) -> Option<StoreError> {
        self.state.borrow().durable.failure().cloned()
    }

    /// Ends the blocked request of a client, if it has one, because the shard gets another owner.
    ///
    /// A request that has changed something is refused once the change is durable. Any other is
    /// not answered here: the next owner is asked.
    pub(crate) fn release_blocked(&self, client: ClientId, session: &Rc<Session>) {
        let Some(blocked) = session.unblock() else { return };
        let is_in_line = self.state.borrow().durable.engine().is_in_line(client, blocked.request);
        if blocked.has_changed && !is_in_line {
            session.block(blocked);
            self.stop_blocked(client, session);
        }
    }
}
