//! A shard whose time stands at a moment, since that is only looked at.
//!
//! The engine gets the same moment for ever. So no lease, delay, TTL, slot or membership ends. The
//! store and the connections go by the clock. What is refused is up to the desks.

use pinpriq_proto::time::Timestamp;
use pinpriq_store::durable::Durable;

use super::Shard;
use crate::config::Look;

impl Shard {
    /// Lets time stand at a moment, which must not be before what the engine knows. Must be called
    /// before anything is carried out.
    pub(crate) fn stand_at(&self, look: Look) {
        drop(self.look.set(look));
    }

    /// The moment at which time stands, if it does.
    #[inline]
    pub(crate) fn look(&self) -> Option<&Look> {
        self.look.get()
    }

    /// Returns the current moment for the store, whose work goes on while time stands.
    pub(super) fn store_time(&self) -> Timestamp {
        self.moment.get().unwrap_or_else(|| self.clock.now())
    }

    /// Returns when the timer must go off. While time stands, nothing of the engine is ever due.
    pub(super) fn due(&self, durable: &Durable) -> Option<Timestamp> {
        if self.look().is_some() { durable.poll_drive() } else { durable.poll_timeout() }
    }
}
