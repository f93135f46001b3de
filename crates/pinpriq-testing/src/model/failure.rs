//! What becomes of a task that has failed, or whose TTL has passed.

use pinpriq_proto::backoff::wait_after;
use pinpriq_proto::command::Fail;
use pinpriq_proto::limits::REASON_BYTES_MAX;
use pinpriq_proto::reply::Reply;
use pinpriq_proto::task::history::How;
use pinpriq_proto::task::{Bytes, ClientId, Origin, Retries, State, StateKind, reasons};
use pinpriq_proto::time::{Span, Timestamp};

use super::hold::held_fits;
use super::progress::checkpoint_fits;
use super::room::New;
use super::{Answer, Exit, Model, Place, fits};

impl Model {
    pub(super) fn fail(&mut self, client: ClientId, fail: &Fail<'_>) -> Answer {
        held_fits(fail.held)?;
        fits(fail.reason.is_none_or(|reason| reason.len() <= REASON_BYTES_MAX))?;
        self.payload_fits(fail.payload)?;
        checkpoint_fits(fail.checkpoint)?;
        self.span_fits(fail.delay, true)?;
        let number = self.hold(client, fail.held)?;
        self.spent_fits(number, fail.cost)?;
        if self.stop(number, fail.cost) {
            return Ok(Some(Reply::State(None)));
        }
        let Fail { payload, checkpoint, .. } = *fail;
        let reason = fail.reason.map(<[u8]>::len);
        self.may_change(number, New { payload, reason, checkpoint, ..New::NOTHING })?;
        self.note_progress(number, None, checkpoint);
        self.note_spent(number, fail.cost);
        if let Some(payload) = fail.payload {
            self.give_payload(number, payload);
        }
        self.how = How::Failed;
        let state = self.count_failure(number, self.now, fail.reason, fail.delay);
        Ok(Some(Reply::State(state)))
    }

    /// Ends a lease as a failure of this moment. Returns the new state.
    pub(super) fn count_failure(
        &mut self,
        number: u64,
        at: Timestamp,
        reason: Option<&[u8]>,
        delay: Option<Span>,
    ) -> Option<StateKind> {
        if self.leave_cancelled(number) {
            return None;
        }
        let place = self.places[&number].clone();
        self.home(&place).tally.failures += 1;
        self.note_share(number, |happened| happened.failed += 1);
        self.totals.failures += 1;
        let settings = self.settings(&place);
        let task = self.task_mut(number);
        task.progress.failures = task.progress.failures.saturating_add(1);
        let (failures, seq) = (task.progress.failures, task.progress.seq);
        let is_over = self.is_over(self.task(number));
        self.set_held(number, settings.key_hold);
        let own = self.task(number).terms.retries();
        if own.attempts(settings.attempts).is_some_and(|most| u64::from(failures) >= most) {
            if let Some(queue) = settings.dead_letter {
                self.die(number, Exit::Dead, &queue, reason);
                return None;
            }
            self.task_mut(number).progress.reason = reason.map(Bytes::from);
            self.set_aside(number);
            return Some(StateKind::Buried);
        }
        if is_over {
            self.expire(number);
            return None;
        }
        let longest = own.backoff_max.unwrap_or(settings.backoff_max);
        let wait = match (delay, own.backoff.or(settings.backoff)) {
            (Some(delay), _) => delay,
            (None, Some(backoff)) => wait_after(backoff, longest, seq, failures),
            (None, None) => Span::ZERO,
        };
        let ready_at = at.after(wait);
        self.task_mut(number).progress.reason = reason.map(Bytes::from);
        let waiting = State::Waiting { ready_at: Some(ready_at) };
        let state = if ready_at > self.now { waiting } else { State::Ready };
        if ready_at > self.now {
            self.note_delay(number, ready_at.since(self.now));
        }
        let kind = state.kind();
        self.shift(number, state);
        Some(kind)
    }

    /// Ends a task whose TTL has passed.
    pub(super) fn expire(&mut self, number: u64) {
        match self.settings(&self.places[&number]).gets_expired() {
            Some(queue) => self.die(number, Exit::Dead, queue, Some(reasons::EXPIRED)),
            None => self.leave(number, Exit::Expired),
        }
    }

    /// Makes a dead letter of a task.
    pub(super) fn die(&mut self, number: u64, exit: Exit, queue: &[u8], reason: Option<&[u8]>) {
        let now = self.now;
        self.relocate(number, exit, &Place::Queue(queue.into()), |task| {
            let origin = Origin {
                queue: task.queue.clone(),
                id: task.id.clone(),
                put_at: task.put_at,
                attempts: task.progress.attempts,
                failures: task.progress.failures,
                at: now,
            };
            task.set_origin(Some(origin));
            task.put_at = now;
            task.terms = task.terms.clone().with_retries(Retries::OF_QUEUE);
            task.progress.expires_at = None;
            task.progress.attempts = 0;
            task.progress.failures = 0;
            task.progress.reason = reason.map(Bytes::from);
            task.progress.state = State::Ready;
        });
    }

    /// Forgets how often and why a task has failed, and how often it was taken.
    pub(super) fn forget_failures(&mut self, number: u64) {
        let progress = &mut self.task_mut(number).progress;
        (progress.attempts, progress.failures, progress.reason) = (0, 0, None);
        self.set_held(number, false);
    }
}
