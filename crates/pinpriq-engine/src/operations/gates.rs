//! Holds back the tasks of queues that limit how many are taken, and lets them go in time.
//!
//! The numbers are in `memory/gate.rs`. A queue without limits has no gate and costs nothing here.

use crate::engine::Engine;
use crate::memory::gate::{Gate, Seen};
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::arguments::check_cost_below;
use pinpriq_proto::reply::Refusal;
use pinpriq_proto::task::StateKind;
use pinpriq_proto::time::{Span, Timestamp};

impl Engine {
    /// Whether a queue may hand out another task now, if it has any.
    #[inline]
    pub(crate) fn is_open(&mut self, queue: QueueSlot) -> bool {
        let gate = self.queues[queue].gate.as_ref();
        !gate.is_some_and(|gate| gate.can_shut()) || self.gate_is_open(queue)
    }

    #[inline(never)]
    fn gate_is_open(&mut self, queue: QueueSlot) -> bool {
        self.note_opened(queue, false);
        let seen = self.seen(queue);
        self.queues[queue].gate.as_ref().is_none_or(|gate| gate.is_open(seen, self.now))
    }

    /// What the gate of a queue is asked about.
    pub(crate) fn seen(&self, queue: QueueSlot) -> Seen {
        let queue = &self.queues[queue];
        let taken = queue.counters.count(StateKind::Taken);
        match &queue.gate {
            Some(gate) if !gate.uses.are_none() => self.named_limits.seen(gate.uses, taken),
            _ => Seen::alone(taken),
        }
    }

    /// Notes that a queue holds back a task that a consumer wants.
    pub(crate) fn note_shut(&mut self, queue: QueueSlot) {
        if let Some(gate) = &mut self.queues[queue].gate {
            gate.shut_since.get_or_insert(self.now);
        }
    }

    /// Counts for how long a queue has held tasks back, if that is over. `is_freed` says that
    /// something has come back at this very moment.
    pub(crate) fn note_opened(&mut self, queue: QueueSlot, is_freed: bool) {
        let seen = self.seen(queue);
        let queue = &mut self.queues[queue];
        let gate = queue.gate.as_mut();
        if let Some(limited) = gate.and_then(|it| it.end_of_shut(seen, self.now, is_freed)) {
            queue.counters.times().limited_ms += limited.ms();
        }
    }

    /// For how long a queue has held back tasks that a consumer wanted, until now.
    pub(crate) fn limited(&self, queue: QueueSlot) -> Span {
        let seen = self.seen(queue);
        let queue = &self.queues[queue];
        let counted = queue.counters.times.as_ref().map_or(0, |times| times.limited_ms);
        let lasts = queue.gate.as_ref().and_then(|gate| gate.shut_until_now(seen, self.now));
        Span::from_ms(counted + lasts.unwrap_or(Span::ZERO).ms())
    }

    /// Pays for a task that a queue hands out, after it has waited so long. Returns whether the
    /// queue can be shut.
    #[inline]
    pub(crate) fn pay(&mut self, slot: Slot, queue: QueueSlot, waited: Span) -> bool {
        let owner = &mut self.queues[queue];
        owner.counters.times().waited.note(waited);
        owner.pace.get_or_insert_default().note(self.now);
        let Some(gate) = &owner.gate else { return false };
        let (can_shut, is_tallied) = (gate.can_shut(), owner.tallies.is_some());
        if can_shut {
            self.pay_rates(slot, queue);
        }
        self.charge_turn(slot);
        if is_tallied {
            self.tally(slot, |happened| happened.waited = Some(waited));
        }
        can_shut
    }

    /// Pays for a task that is handed out. A take by id does not wait for the rates, so they may be
    /// in debt afterwards.
    #[inline]
    pub(crate) fn pay_rates(&mut self, slot: Slot, queue: QueueSlot) {
        let Some(gate) = &mut self.queues[queue].gate else { return };
        let (cost, uses) = (self.tasks[slot].cost().into(), gate.uses);
        gate.pay(cost, self.now);
        for number in uses.numbers() {
            if let Some(bucket) = self.named_limits.bucket_mut(number, self.now) {
                bucket.pay(cost, self.now);
            }
        }
    }

    /// Returns the cost of a task that was handed out and did not arrive.
    pub(crate) fn refund(&mut self, queue: QueueSlot, cost: u32) {
        let Some(gate) = &mut self.queues[queue].gate else { return };
        let uses = gate.uses;
        gate.refund(cost.into(), self.now);
        for number in uses.numbers() {
            if let Some(bucket) = self.named_limits.bucket_mut(number, self.now) {
                bucket.refund(cost.into(), self.now);
                self.serve_starved(number);
            }
        }
        self.note_opened(queue, true);
        self.wake(queue);
    }

    /// Refuses what the holder of a task says that it did cost, if no put could say so.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "hardly any ack says a cost")]
    pub(crate) fn check_spent(&self, slot: Slot, cost: Option<u32>) -> Result<(), Refusal> {
        cost.map_or(Ok(()), |cost| self.check_spent_given(slot, cost))
    }

    #[cold]
    fn check_spent_given(&self, slot: Slot, cost: u32) -> Result<(), Refusal> {
        let most = self.queues[self.tasks[slot].queue].settings.cost_max;
        check_cost_below(most, cost)
    }

    /// Notes what a taken task did cost, if its holder says that. Its rates get the difference.
    #[inline]
    pub(crate) fn note_spent(&mut self, slot: Slot, cost: Option<u32>) {
        if let Some(cost) = cost {
            self.correct_cost(slot, cost);
        }
    }

    #[inline(never)]
    fn correct_cost(&mut self, slot: Slot, cost: u32) {
        let (queue, was) = (self.tasks[slot].queue, self.tasks[slot].cost());
        if self.queues[queue].gate.is_none() {
            return;
        }
        if self.undo.is_some() {
            self.note_queue(queue);
        }
        let Some(gate) = &mut self.queues[queue].gate else { return };
        let (uses, now) = (gate.uses, self.now);
        let (more, less) = (cost.saturating_sub(was).into(), was.saturating_sub(cost).into());
        gate.pay(more, now);
        gate.refund(less, now);
        for number in uses.numbers() {
            self.note_limit(number);
            if let Some(bucket) = self.named_limits.bucket_mut(number, now) {
                bucket.pay(more, now);
                bucket.refund(less, now);
                self.serve_starved(number);
            }
        }
        self.correct_turn(slot, cost);
        self.open_up(queue);
    }

    /// Counts how long a lease has lasted that has ended, if that is known, and lets consumers have
    /// other tasks of its queue.
    #[inline]
    pub(crate) fn end_hold(&mut self, slot: QueueSlot, taken_at: Option<Timestamp>) {
        let queue = &mut self.queues[slot];
        if let Some(taken_at) = taken_at {
            queue.counters.times().held.note(self.now.since(taken_at));
        }
        // What turns hold back goes on when they conclude.
        if queue.gate.as_ref().is_some_and(|gate| gate.can_shut()) {
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
        self.count_taken(queue);
        self.note_opened(queue, true);
        self.wake(queue);
    }

    /// Sees to it that consumers of a queue whose gate is shut are served when it has a token. What
    /// is called back needs none, but may be called back for what a key or share still holds back.
    pub(crate) fn await_token(&mut self, slot: QueueSlot) {
        let seen = self.seen(slot);
        let opening = self.opening_for_recall(slot);
        let Some(gate) = &self.queues[slot].gate else { return };
        let (token, uses) = (gate.opens_at(seen), gate.uses);
        let at = token.into_iter().chain(opening).min();
        if at != gate.armed {
            self.arm_gate(slot, at);
        }
        if !uses.are_none() {
            self.note_starved(slot);
        }
    }

    /// When a key or share opens, if something of the queue can be called back then.
    fn opening_for_recall(&self, slot: QueueSlot) -> Option<Timestamp> {
        self.queues[slot].waiting.unstarted.as_ref()?;
        self.next_opening(slot)
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
        self.settle_limited(slot);
        let queue = &self.queues[slot];
        let is_asked_for = queue.needs_gate();
        let uses = self.named_limits.used(queue.settings.uses.as_ref());
        let former = queue.gate.as_deref();
        let gate = Gate::of(&queue.settings, (uses, is_asked_for), former, self.now);
        if gate.is_none() && queue.gate.is_none() {
            return;
        }
        // Who waits for a token awaits it anew.
        self.arm_gate(slot, None);
        self.leave_limits(slot);
        self.queues[slot].gate = gate;
        self.join_limits(slot, uses);
        self.wake(slot);
    }

    /// Counts for how long a queue has held tasks back until now, since that may be over.
    pub(crate) fn settle_limited(&mut self, slot: QueueSlot) {
        let limited_ms = self.limited(slot).ms();
        let queue = &mut self.queues[slot];
        if limited_ms > 0 {
            queue.counters.times().limited_ms = limited_ms;
        }
        if let Some(gate) = &mut queue.gate {
            gate.shut_since = None;
        }
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
