//! Describes queues as tubes. Queues whose names no tube can have are left out.

use crate::engine::Engine;
use crate::memory::consumers::ConsumerId;
use crate::memory::lingering::InUse;
use crate::memory::slots::QueueSlot;
use crate::operations::within::Within;
use pinpriq_proto::limits::URGENT_BELOW;
use pinpriq_proto::reply::{Reply, TubeShown, TubesShown};
use pinpriq_proto::survey::IsInUse;

impl Engine {
    /// Keeps the figures of queues that can be tubes, as long as this says that a client uses
    /// them, although they do not exist.
    pub fn keep_figures_while(&mut self, is_in_use: IsInUse) {
        self.queues.in_use = InUse(Some(is_in_use));
    }

    /// Describes queues that can be tubes: one, also for a while after its end, or all that exist.
    /// Costs a step for each queue, for each chunk of its ready tasks and each consumer that waits
    /// for it, and for each blocked request.
    pub(crate) fn tubes(&self, queue: Option<&[u8]>, names: Option<&Within<'_>>) -> Reply {
        let slots = match queue {
            Some(name) => self.queues.find(name).into_iter().collect(),
            None => self.queues.slots(),
        };
        let is_known = |slot: QueueSlot| self.queues.known_counters(slot, self.now).is_some();
        let is_shown = |slot: &QueueSlot| {
            let it = &self.queues[*slot];
            it.is_tube
                && (it.exists() || (queue.is_some() && is_known(*slot)))
                && names.is_none_or(|names| names.matches(&it.name))
        };
        let shown = slots.into_iter().filter(is_shown).map(|slot| self.tube(slot));
        let (put, timeouts) = (self.tube_puts, self.tube_timeouts);
        let takers = self.consumers.takers.values();
        let reserves = takers
            .filter(|taker| taker.standing.reserve.is_some() && !taker.standing.is_echo)
            .count() as u64;
        Reply::Tubes(Box::new(TubesShown { tubes: shown.collect(), put, timeouts, reserves }))
    }

    fn tube(&self, slot: QueueSlot) -> TubeShown {
        let queue = &self.queues[slot];
        let is_reserve = |consumer: &&ConsumerId| match consumer {
            ConsumerId::Taker(taker) => self
                .consumers
                .takers
                .get(taker)
                .is_some_and(|taker| taker.standing.reserve.is_some()),
            ConsumerId::Subscriber(_) | ConsumerId::Recaller => false,
        };
        TubeShown {
            name: queue.name.clone(),
            exists: queue.exists(),
            came_at: queue.came.0,
            came_after: queue.came.1,
            counts: queue.counters.counts,
            urgent: queue.indexes.ready_below(URGENT_BELOW),
            put: queue.counters.put - queue.found,
            deletes: queue.deletes,
            reserves: queue.waiting.any.values().filter(is_reserve).count() as u64,
            paused: queue.paused,
            paused_for: queue.paused_for,
        }
    }
}
