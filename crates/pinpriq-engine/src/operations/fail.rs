//! What becomes of a task that has failed: it is tried again, is buried, or becomes a dead letter.
//!
//! A lease that reaches its deadline, the end of a connection, and the holder itself make a task
//! fail. Why a lease has ended is decided by the callers.

use crate::engine::{Answered, Engine};
use crate::memory::packed::Unsaved;
use crate::memory::slots::Slot;
use crate::operations::ageing::Tail;
use crate::operations::arguments::check_reason;
use crate::operations::held::{be_buried, check_held};
use crate::operations::progress::check_checkpoint;
use crate::step::New;
use crate::transition::{By, Operation};
use pinpriq_proto::backoff::wait_after;
use pinpriq_proto::command::{Amendment, Fail};
use pinpriq_proto::reply::Reply;
use pinpriq_proto::stats::Exit;
use pinpriq_proto::task::{Bytes, ClientId, Origin, State, StateKind, reasons};
use pinpriq_proto::time::{Span, Timestamp};

/// One failure of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure<'a> {
    /// When it failed.
    at: Timestamp,
    reason: Option<&'a [u8]>,
    /// How long it waits, if the holder has said so.
    delay: Option<Span>,
}

impl<'a> Failure<'a> {
    /// A failure that the server has noticed.
    pub(crate) const fn at(at: Timestamp, reason: &'a [u8]) -> Self {
        Self { at, reason: Some(reason), delay: None }
    }
}

impl Engine {
    /// Ends a lease because its holder could not do the task.
    #[inline(never)]
    pub(crate) fn fail_held(&mut self, client: ClientId, fail: &Fail<'_>) -> Answered {
        check_held(fail.held)?;
        check_reason(fail.reason)?;
        if let Some(payload) = fail.payload {
            self.check_payload(payload)?;
        }
        check_checkpoint(fail.checkpoint)?;
        self.moment("the delay", fail.delay.unwrap_or(Span::ZERO))?;
        let (slot, by) = self.hold(client, fail.held, Operation::Fail)?;
        self.check_spent(slot, fail.cost)?;
        if self.stop(slot, Operation::Fail(by), fail.cost) {
            return Ok(Some(Reply::State(None)));
        }
        let Fail { payload, checkpoint, .. } = *fail;
        let reason = fail.reason.map(<[u8]>::len);
        self.check_change(slot, New { payload, reason, checkpoint, ..New::NOTHING })?;
        if let Some(payload) = fail.payload {
            self.set_payload(slot, payload);
        }
        self.note_progress(slot, None, checkpoint);
        self.note_spent(slot, fail.cost);
        let Fail { reason, delay, .. } = *fail;
        let failure = Failure { at: self.now, reason, delay };
        Ok(Some(Reply::State(self.fail(slot, Operation::Fail(by), failure))))
    }

    /// Ends a lease by a release, which is a failure in its queue. What changes with it, changes
    /// whatever becomes of the task. Without a delay the task waits for its back-off.
    #[inline(never)]
    pub(crate) fn fail_released(
        &mut self,
        (slot, by): (Slot, By),
        delay: Span,
        amendment: &Amendment<'_>,
        tail: Option<Tail>,
    ) -> Option<StateKind> {
        self.amend_held(slot, amendment, tail);
        self.tasks[slot].count(|counts| &mut counts.releases);
        self.tasks[slot].set_delay(delay);
        let delay = Some(delay).filter(|delay| !delay.is_zero());
        let failure = Failure { at: self.now, reason: Some(reasons::RELEASED), delay };
        self.fail(slot, Operation::Fail(by), failure)
    }

    /// Counts a failure of a taken task. Returns its new state, or `None` if it has left the queue.
    /// Costs O(log n).
    #[inline(never)]
    pub(crate) fn fail(
        &mut self,
        slot: Slot,
        operation: Operation,
        failure: Failure<'_>,
    ) -> Option<StateKind> {
        if self.leave_cancelled(slot, operation) {
            return None;
        }
        if self.undo.is_some() {
            self.note_task(slot);
        }
        let Failure { at, reason, delay } = failure;
        let queue = &mut self.queues[self.tasks[slot].queue];
        queue.counters.failures += 1;
        self.totals.failures += 1;
        if queue.is_followed() {
            self.tally(slot, |happened| happened.failed += 1);
        }
        let queue = &self.queues[self.tasks[slot].queue];
        let task = &self.tasks[slot];
        let failures = task.failures().saturating_add(1);
        let settings = &queue.settings;
        let own = task.retries();
        let attempts = own.attempts(settings.attempts);
        let is_exhausted = attempts.is_some_and(|most| u64::from(failures) >= most);
        if is_exhausted && let Some(dead_letters) = settings.dead_letter.clone() {
            self.tasks[slot].set_failures(failures);
            self.become_dead_letter(slot, (operation, Exit::Dead), &dead_letters, reason);
            return None;
        }
        if !is_exhausted && task.is_expired(self.now) {
            self.tasks[slot].set_failures(failures);
            self.leave_expired(slot, operation);
            return None;
        }
        let holds = settings.key_hold;
        let back_off = || {
            let backoff = own.backoff.or(settings.backoff)?;
            let most = own.backoff_max.unwrap_or(settings.backoff_max);
            Some(wait_after(backoff, most, task.seq(), failures))
        };
        let wait = delay.or_else(back_off);
        let ready_at = at.after(wait.unwrap_or(Span::ZERO));
        let burial = is_exhausted.then(|| self.issued.bury(self.now));
        let now = self.now;
        self.shift(slot, operation, Unsaved::Progress, |task| {
            task.set_failures(failures);
            task.set_held(holds && burial.is_none());
            task.set_reason(reason.map(Bytes::from));
            match burial {
                Some(burial) => be_buried(task, burial),
                None if ready_at > now => {
                    task.set_delay(ready_at.since(now));
                    State::Waiting { ready_at: Some(ready_at) }
                }
                None => State::Ready,
            }
        });
        Some(self.tasks[slot].kind())
    }

    /// Removes a task whose TTL has passed, or makes it a dead letter, as its queue says.
    #[inline(never)]
    pub(crate) fn leave_expired(&mut self, slot: Slot, operation: Operation) {
        let settings = &self.queues[self.tasks[slot].queue].settings;
        let dead_letters = settings.gets_expired();
        let Some(dead_letters) = dead_letters.cloned() else {
            return self.leave(slot, operation, Exit::Expired);
        };
        let how = (operation, Exit::Dead);
        self.become_dead_letter(slot, how, &dead_letters, Some(reasons::EXPIRED));
    }

    /// Moves a task to the queue for dead letters, which comes into being with its first one.
    #[inline(never)]
    pub(crate) fn become_dead_letter(
        &mut self,
        slot: Slot,
        (operation, exit): (Operation, Exit),
        queue: &[u8],
        reason: Option<&[u8]>,
    ) {
        let to = self.queues.find_or_make(queue);
        let (task, now) = (&self.tasks[slot], self.now);
        let origin = Origin {
            queue: self.queues[task.queue].name.clone(),
            id: task.id(),
            put_at: task.put_at(),
            attempts: task.attempts(),
            failures: task.failures(),
            at: now,
        };
        self.relocate(slot, (operation, exit), to, |task| {
            task.set_put_at(now);
            task.set_state(State::Ready);
            task.note_since(now);
            task.set_expires_at(None);
            task.set_attempts(0);
            task.set_failures(0);
            task.set_reason(reason.map(Bytes::from));
            task.forget_retries();
            task.set_result(None);
            task.set_origin(Some(Box::new(origin)));
        });
    }
}
