//! Moves tasks by their id, for any client: dig, plow, kill, switch, snatch, restart, update.

use crate::engine::{Answered, Engine};
use crate::memory::packed::{Task, Unsaved};
use crate::memory::slots::Slot;
use crate::operations::ageing::Tail;
use crate::operations::arguments::{bad, check_count, check_id, quoted};
use crate::operations::find::{named, not_found};
use crate::step::New;
use crate::transition::{Answer, Operation, Standing, answer};
use pinpriq_proto::command::{Amendment, Assign, QueueName, Transfer, Update};
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::settings::AfterAck;
use pinpriq_proto::stats::Exit;
use pinpriq_proto::task::{Bytes, ClientId, Counts, State, StateKind, headers};
use pinpriq_proto::time::{Span, Timestamp};

impl Engine {
    pub(crate) fn dig(&mut self, client: ClientId, dig: &Transfer<'_>) -> Answered {
        self.transfer(client, dig, Operation::Dig, begin_again_kicked)
    }

    pub(crate) fn snatch(&mut self, client: ClientId, snatch: &Transfer<'_>) -> Answered {
        self.transfer(client, snatch, Operation::Snatch, |_| {})
    }

    pub(crate) fn restart(&mut self, client: ClientId, restart: &Transfer<'_>) -> Answered {
        self.transfer(client, restart, Operation::Restart, begin_anew)
    }

    /// Digs up the oldest buried tasks. The reply is their number. Costs O(log n) for each.
    pub(crate) fn plow(
        &mut self,
        queue: QueueName<'_>,
        count: Option<u64>,
        delay: Span,
        ttl: Option<Span>,
    ) -> Answered {
        let amendment = Amendment { ttl: new_ttl(ttl), ..Amendment::default() };
        self.check_amendment(delay, &amendment)?;
        count.map_or(Ok(()), check_count)?;
        let Some(queue) = self.find_queue(queue)? else { return Ok(Some(Reply::Count(0))) };
        let count = count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        let buried: Vec<Slot> =
            self.queues[queue].indexes.resting(StateKind::Buried).take(count).collect();
        let dug = buried.len() as u64;
        for slot in buried {
            self.bring_back(slot, Operation::Dig, delay, &amendment, begin_again_kicked);
        }
        Ok(Some(Reply::Count(dug)))
    }

    /// Removes tasks, also those that are held. The reply is their number.
    pub(crate) fn kill(
        &mut self,
        client: ClientId,
        queue: QueueName<'_>,
        ids: &[&[u8]],
    ) -> Answered {
        for id in ids {
            check_id(id)?;
        }
        self.find_queue(queue)?;
        let mut killed = 0;
        for id in ids {
            let Some(slot) = self.find_task(queue, id)? else { continue };
            let standing = self.standing(slot, client);
            assert!(matches!(answer(Operation::Kill, standing), Answer::Moves(_)), "kill kills");
            self.leave(slot, Operation::Kill, Exit::Killed);
            killed += 1;
        }
        Ok(Some(Reply::Count(killed)))
    }

    /// Moves a task that is not taken into any state but T.
    pub(crate) fn switch(
        &mut self,
        client: ClientId,
        switch: &Transfer<'_>,
        to: StateKind,
    ) -> Answered {
        check_id(switch.id)?;
        let has_ttl = switch.amendment.ttl != Assign::Keep;
        let has_delay = !switch.delay.is_zero();
        let misplaced = match to {
            StateKind::Taken => {
                return Err(bad("no task can be switched to T: take it".to_owned()));
            }
            StateKind::Ready | StateKind::Buried | StateKind::Done if has_delay => Some("a delay"),
            StateKind::Buried | StateKind::Zombie | StateKind::Done if has_ttl => Some("a TTL"),
            _ => None,
        };
        if let Some(misplaced) = misplaced {
            return Err(bad(format!("a switch to {to} takes no {}", &misplaced[2..])));
        }
        if to == StateKind::Waiting && !has_delay {
            return Err(bad("a switch to W needs a delay of at least 1 ms".to_owned()));
        }
        self.check_amendment(switch.delay, &switch.amendment)?;
        let stay = if to == StateKind::Zombie { self.stay(switch)? } else { Span::ZERO };
        let slot = self.find_for(client, switch.queue, switch.id, Operation::Switch)?;
        let Some(slot) = slot else { unreachable!("a switch always moves") };
        if matches!(to, StateKind::Ready | StateKind::Waiting) {
            self.check_return(slot, &switch.amendment, None)?;
            let delay = switch.delay;
            let amendment = &switch.amendment;
            let state = self.bring_back(slot, Operation::Switch, delay, amendment, begin_again);
            return Ok(Some(Reply::State(state)));
        }
        let (now, amendment) = (self.now, switch.amendment);
        self.check_growth(slot, amendment.payload, None)?;
        let state = match to {
            StateKind::Buried => State::Buried(self.issued.bury(self.now)),
            StateKind::Zombie => State::Zombie { purge_at: self.now.after(stay) },
            _ => State::Done,
        };
        self.amend_payload(slot, &amendment);
        self.shift(slot, Operation::Switch, Unsaved::Progress, |task| {
            apply_amendment(task, now, &amendment);
            if to == StateKind::Buried {
                task.set_reason(None);
                task.count(|counts| &mut counts.buries);
            }
            state
        });
        Ok(Some(Reply::State(Some(to))))
    }

    /// Changes priority, payload, TTL or headers of a task that stays in its state.
    pub(crate) fn update(&mut self, client: ClientId, update: &Update<'_>) -> Answered {
        check_id(update.id)?;
        let headers = update.headers;
        self.check_amendment(Span::ZERO, &update.amendment)?;
        headers.map_or(Ok(()), headers::check)?;
        let Some(slot) = self.find_task(update.queue, update.id)? else {
            return Err(not_found(update.queue, update.id));
        };
        let task = &self.tasks[slot];
        let mut standing = self.standing(slot, client);
        if let Some(receipt) = update.receipt {
            let is_current = task.lease().is_some_and(|held| held.grant == receipt.grant)
                && task.number() == receipt.number;
            if !is_current {
                return Err(Refusal::new(
                    RefusalKind::Stale,
                    format!(
                        "the receipt is not that of a current lease of the task {} in {}",
                        quoted(update.id),
                        named(update.queue)
                    ),
                ));
            }
            standing = Standing::TakenHere;
        }
        match answer(Operation::Update, standing) {
            Answer::Stays => {}
            Answer::Refused(kind) => {
                return Err(Refusal::new(
                    kind,
                    format!(
                        "the task {} in {} is taken, and not held by this connection: show its \
                         receipt",
                        quoted(update.id),
                        named(update.queue)
                    ),
                ));
            }
            other => unreachable!("an update is answered {other:?}"),
        }
        let now = self.now;
        let parted = headers.and_then(|_| self.shared_payload(slot));
        let payload = update.amendment.payload.or(parted.as_deref());
        let amendment = Amendment { payload, ..update.amendment };
        self.check_change(slot, New { payload, headers, ..New::NOTHING })?;
        self.amend_payload(slot, &amendment);
        let unsaved = if headers.is_some() { Unsaved::Whole } else { Unsaved::Progress };
        self.amend(slot, unsaved, |task| {
            apply_amendment(task, now, &amendment);
            if let Some(headers) = headers {
                task.set_terms(task.terms().with_headers(Some(headers.into())));
            }
        });
        Ok(Some(Reply::Done))
    }

    /// Moves a task to R, or with a delay to W. If its TTL has passed and no new one is given,
    /// moves it to X. Returns the new state.
    pub(crate) fn bring_back(
        &mut self,
        slot: Slot,
        operation: Operation,
        delay: Span,
        amendment: &Amendment<'_>,
        besides: impl FnOnce(&mut Task),
    ) -> Option<StateKind> {
        if self.leave_cancelled(slot, operation) {
            return None;
        }
        let now = self.now;
        let expires_at = expiry(&self.tasks[slot], now, amendment);
        if expires_at.is_some_and(|at| now >= at) {
            self.leave_expired(slot, operation);
            return None;
        }
        let state = if delay.is_zero() {
            State::Ready
        } else {
            State::Waiting { ready_at: Some(now.after(delay)) }
        };
        let kind = state.kind();
        let is_put_off = matches!(operation, Operation::Release(_) | Operation::Snatch);
        let holds = is_put_off
            && kind == StateKind::Waiting
            && self.queues[self.tasks[slot].queue].settings.key_hold;
        self.amend_payload(slot, amendment);
        self.shift(slot, operation, Unsaved::Progress, |task| {
            apply_amendment(task, now, amendment);
            if !delay.is_zero() {
                task.set_delay(delay);
            }
            besides(task);
            if holds {
                task.set_held(true);
            }
            state
        });
        Some(kind)
    }

    /// Refuses to bring a task back with a payload and a checkpoint for which there is no room. A
    /// task that was cancelled, or whose TTL has passed, gets no payload, since it is removed. As a
    /// dead letter it keeps its checkpoint.
    pub(crate) fn check_return(
        &self,
        slot: Slot,
        amendment: &Amendment<'_>,
        checkpoint: Option<&[u8]>,
    ) -> Result<(), Refusal> {
        let task = &self.tasks[slot];
        let expires_at = expiry(task, self.now, amendment);
        let leaves = task.cancelled().is_some() || expires_at.is_some_and(|at| self.now >= at);
        let payload = amendment.payload.filter(|_| !leaves);
        self.check_change(slot, New { payload, checkpoint, ..New::NOTHING })
    }

    /// Changes a task that stays taken, and its place if it gets another one.
    pub(crate) fn amend_held(&mut self, slot: Slot, amendment: &Amendment<'_>, tail: Option<Tail>) {
        let now = self.now;
        self.amend_payload(slot, amendment);
        self.amend(slot, Unsaved::Progress, |task| {
            apply_amendment(task, now, amendment);
            if let Some(tail) = tail {
                tail.receive(task);
            }
        });
    }

    /// The payload that a copy shares with others. One whose terms change must have its own.
    fn shared_payload(&self, slot: Slot) -> Option<Bytes> {
        let task = &self.tasks[slot];
        let (_, published) = self.publications.shared_by(task.number())?;
        task.shares().then(|| published.record.payload.clone())
    }

    fn amend_payload(&mut self, slot: Slot, amendment: &Amendment<'_>) {
        if let Some(payload) = amendment.payload {
            self.set_payload(slot, payload);
        }
    }

    fn transfer(
        &mut self,
        client: ClientId,
        transfer: &Transfer<'_>,
        operation: Operation,
        besides: impl FnOnce(&mut Task),
    ) -> Answered {
        check_id(transfer.id)?;
        self.check_amendment(transfer.delay, &transfer.amendment)?;
        let slot = self.find_for(client, transfer.queue, transfer.id, operation)?;
        let state = match slot {
            Some(slot) => {
                self.check_return(slot, &transfer.amendment, None)?;
                self.bring_back(slot, operation, transfer.delay, &transfer.amendment, besides)
            }
            None => Some(StateKind::Ready),
        };
        Ok(Some(Reply::State(state)))
    }

    /// Returns the task that an operation is to move, or `None` if the task is to stay as it is.
    fn find_for(
        &mut self,
        client: ClientId,
        queue: QueueName<'_>,
        id: &[u8],
        operation: Operation,
    ) -> Result<Option<Slot>, Refusal> {
        let slot = self.find_task(queue, id)?;
        let standing = slot.map_or(Standing::Absent, |slot| self.standing(slot, client));
        match answer(operation, standing) {
            Answer::Moves(_) => Ok(slot),
            Answer::Nothing => Ok(None),
            Answer::Refused(RefusalKind::NotFound) => Err(not_found(queue, id)),
            Answer::Refused(kind) => {
                let state = slot.map_or('X', |slot| self.tasks[slot].kind().letter());
                let advice = match kind {
                    RefusalKind::Taken => "is taken: snatch it, or wait for its lease to end",
                    RefusalKind::NotTaken => "is not taken",
                    _ => "is not buried",
                };
                Err(Refusal::new(
                    kind,
                    format!(
                        "the task {} in {} is in state {state}: it {advice}",
                        quoted(id),
                        named(queue)
                    ),
                ))
            }
            other => unreachable!("{operation:?} is answered {other:?}"),
        }
    }

    /// How long a zombie stays: for the given delay, or as long as the queue's setting says.
    fn stay(&mut self, switch: &Transfer<'_>) -> Result<Span, Refusal> {
        if !switch.delay.is_zero() {
            return Ok(switch.delay);
        }
        let queue = self.find_queue(switch.queue)?;
        match queue.map_or(AfterAck::Delete, |slot| self.queues[slot].settings.after_ack) {
            AfterAck::Zombie(stay) => Ok(stay),
            AfterAck::Delete | AfterAck::Keep => Err(bad(format!(
                "a switch to Z needs a delay, since {} sets no stay for zombies",
                named(switch.queue)
            ))),
        }
    }
}

/// Forgets how often a task was taken and has failed, and why, and how far the work has come: a
/// client has decided that it begins again.
fn begin_again(task: &mut Task) {
    forget_failures(task);
    task.set_checkpoint(None);
}

/// Forgets how often a task was taken and has failed, and why.
pub(crate) fn forget_failures(task: &mut Task) {
    task.set_attempts(0);
    task.set_failures(0);
    task.set_reason(None);
}

/// Like [`begin_again`], for a buried task, which is kicked by that.
fn begin_again_kicked(task: &mut Task) {
    begin_again(task);
    task.count(|counts| &mut counts.kicks);
}

/// Like [`begin_again`], for a task of which nothing counts now.
pub(crate) fn begin_anew(task: &mut Task) {
    begin_again(task);
    task.set_counts(Counts::NONE);
}

/// Converts a TTL that may be given to an amendment.
fn new_ttl(ttl: Option<Span>) -> Assign<Option<Span>> {
    ttl.map_or(Assign::Keep, |ttl| Assign::To(Some(ttl)))
}

/// When the TTL of an amended task passes.
fn expiry(task: &Task, now: Timestamp, amendment: &Amendment<'_>) -> Option<Timestamp> {
    match amendment.ttl {
        Assign::Keep => task.expires_at(),
        Assign::To(ttl) => ttl.map(|ttl| now.after(ttl)),
    }
}

/// Applies an amendment except for its payload.
fn apply_amendment(task: &mut Task, now: Timestamp, amendment: &Amendment<'_>) {
    task.set_expires_at(expiry(task, now, amendment));
    task.set_priority(amendment.priority.or(task.priority()));
}
