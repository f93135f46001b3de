//! Holds back the tasks of queues that limit how many are taken, and lets them go in time.
//!
//! The numbers are in `memory/gate.rs`. A queue without limits has no gate and costs nothing here.

use crate::engine::Engine;
use crate::memory::gate::Gate;
use crate::memory::slots::{QueueSlot, Slot};
use pinpriq_proto::task::StateKind;
use pinpriq_proto::time::{Span, Timestamp};

impl Engine {
    /// Whether a queue may hand out another task now, if it has any.
    #[inline]
    pub(crate) fn is_open(&mut self, queue: QueueSlot) -> bool {
        self.queues[queue].gate.is_none() || self.gate_is_open(queue)
    }

    #[inline(never)]
    fn gate_is_open(&mut self, queue: QueueSlot) -> bool {
        self.note_opened(queue, false);
        let now = self.now;
        let queue = &self.queues[queue];
        let taken = queue.counters.count(StateKind::Taken);
        queue.gate.as_ref().is_none_or(|gate| gate.is_open(taken, now))
    }

    /// Notes that a queue holds back a task that a consumer wants.
    pub(crate) fn note_shut(&mut self, queue: QueueSlot) {
        if let Some(gate) = &mut self.queues[queue].gate {
            gate.shut_since.get_or_insert(self.now);
        }
    }

    /// Counts for how long a queue has held tasks back, if that is over. `is_freed` says that
    /// something has come back at this very moment.
    fn note_opened(&mut self, queue: QueueSlot, is_freed: bool) {
        let queue = &mut self.queues[queue];
        let taken = queue.counters.count(StateKind::Taken);
        let gate = queue.gate.as_mut();
        if let Some(limited) = gate.and_then(|it| it.end_of_shut(taken, self.now, is_freed)) {
            queue.counters.times().limited_ms += limited.ms();
        }
    }

    /// For how long a queue has held back tasks that a consumer wanted, until now.
    pub(crate) fn limited(&self, queue: QueueSlot) -> Span {
        let queue = &self.queues[queue];
        let counted = queue.counters.times.as_ref().map_or(0, |times| times.limited_ms);
        let taken = queue.counters.count(StateKind::Taken);
        let lasts = queue.gate.as_ref().and_then(|gate| gate.shut_until_now(taken, self.now));
        Span::from_ms(counted + lasts.unwrap_or(Span::ZERO).ms())
    }

    /// Pays for a task that a queue hands out, after it has waited so long.
    #[inline]
    pub(crate) fn pay(&mut self, slot: Slot, queue: QueueSlot, waited: Span) {
        let queue = &mut self.queues[queue];
        queue.counters.times().waited.note(waited);
        if let Some(gate) = &mut queue.gate {
            gate.pay(self.tasks[slot].cost().into(), self.now);
            self.charge_turn(slot);
        }
    }

    /// Returns the cost of a task that was handed out and did not arrive.
    pub(crate) fn refund(&mut self, queue: QueueSlot, cost: u32) {
        if let Some(gate) = &mut self.queues[queue].gate {
            gate.refund(cost.into(), self.now);
            self.note_opened(queue, true);
            self.wake(queue);
        }
    }

    /// Counts how long a lease has lasted that has ended, if that is known, and lets consumers have
    /// other tasks of its queue.
    #[inline]
    pub(crate) fn end_hold(&mut self, slot: QueueSlot, taken_at: Option<Timestamp>) {
        let queue = &mut self.queues[slot];
        if let Some(taken_at) = taken_at {
            queue.counters.times().held.note(self.now.since(taken_at));
        }
        if queue.gate.is_some() {
            self.open_up(slot);
        }
    }

    /// Lets consumers have the tasks of a queue, if its limits allow that.
    #[inline]
    pub(crate) fn make_way(&mut self, queue: QueueSlot) {
        if self.queues[queue].gate.is_some() {
            self.open_up(queue);
        }
    }

    #[inline(never)]
    fn open_up(&mut self, queue: QueueSlot) {
        self.note_opened(queue, true);
        self.wake(queue);
    }

    /// Sees to it that consumers of a queue whose gate is shut are served when it has a token.
    pub(crate) fn await_token(&mut self, slot: QueueSlot) {
        let queue = &self.queues[slot];
        let taken = queue.counters.count(StateKind::Taken);
        let Some(gate) = &queue.gate else { return };
        let at = gate.opens_at(taken);
        if at != gate.armed {
            self.arm_gate(slot, at);
        }
    }

    /// Sees to it that consumers for whom a queue has no task are served when a key or share opens.
    pub(crate) fn await_opening(&mut self, slot: QueueSlot) {
        let at = self.next_opening(slot);
        if self.queues[slot].gate.as_ref().is_some_and(|gate| gate.armed != at) {
            self.arm_gate(slot, at);
        }
    }

    /// Notes that a queue has a token again.
    pub(crate) fn note_token(&mut self, queue: QueueSlot) {
        if let Some(gate) = &mut self.queues[queue].gate {
            gate.armed = None;
        }
        self.wake(queue);
    }

    /// Gives a queue the gate that its settings ask for.
    pub(crate) fn set_gate(&mut self, slot: QueueSlot) {
        let limited_ms = self.limited(slot).ms();
        if limited_ms > 0 {
            self.queues[slot].counters.times().limited_ms = limited_ms;
        }
        let queue = &self.queues[slot];
        let has_turns = queue.turns.is_some();
        let gate = Gate::of(&queue.settings, has_turns, queue.gate.as_deref(), self.now);
        if gate.is_none() && queue.gate.is_none() {
            return;
        }
        // Who waits for a token awaits it anew.
        self.arm_gate(slot, None);
        self.queues[slot].gate = gate;
        self.wake(slot);
    }

    /// Puts the next token of a queue into the index of deadlines, or takes it out.
    pub(crate) fn arm_gate(&mut self, slot: QueueSlot, at: Option<Timestamp>) {
        let Some(gate) = &mut self.queues[slot].gate else { return };
        if let Some(former) = std::mem::replace(&mut gate.armed, at) {
            self.deadlines.remove_queue(former, slot);
        }
        if let Some(at) = at {
            self.deadlines.insert_queue(at, slot);
        }
    }
}
