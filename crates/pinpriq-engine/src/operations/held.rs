//! The commands of the holder of a lease: acknowledge, release, bury, touch.

use crate::engine::{Answered, Engine};
use crate::memory::packed::{Task, Unsaved};
use crate::memory::slots::Slot;
use crate::operations::arguments::{
    bad, check_id, check_positive, check_reason, check_text, later, quoted,
};
use crate::operations::find::{named, not_found};
use crate::operations::progress::check_checkpoint;
use crate::step::New;
use crate::transition::{Answer, By, Operation, Standing, answer};
use pinpriq_proto::command::{Ack, Amendment, Bury, Held, HeldBy, QueueName, Release, Touch};
use pinpriq_proto::limits::PROGRESS_BYTES_MAX;
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::settings::AfterAck;
use pinpriq_proto::task::{Burial, Bytes, ClientId, Lease, Receipt, State, StateKind};
use pinpriq_proto::time::{Span, Timestamp};

impl Engine {
    pub(crate) fn ack(&mut self, client: ClientId, ack: &Ack<'_>) -> Answered {
        check_held(ack.held)?;
        if let Some(stay) = ack.zombie {
            check_positive("the zombie's stay", Some(stay))?;
            self.moment("the zombie's stay", stay)?;
        }
        if let Some(payload) = ack.payload {
            self.check_payload(payload)?;
        }
        if let Some(result) = ack.result {
            self.check_payload(result)?;
        }
        let (slot, by) = self.hold(client, ack.held, Operation::Ack)?;
        self.check_spent(slot, ack.cost)?;
        let queue = &self.queues[self.tasks[slot].queue];
        if ack.zombie.is_some() && queue.settings.after_ack == AfterAck::Keep {
            return Err(Refusal::new(
                RefusalKind::WrongState,
                format!(
                    "the queue {} keeps its finished tasks for good, not as zombies",
                    quoted(&queue.name)
                ),
            ));
        }
        if ack.payload.is_some() || ack.result.is_some() {
            self.check_finish(slot, ack.zombie, (ack.payload, ack.result))?;
        }
        if let Some(payload) = ack.payload {
            self.set_payload(slot, payload);
        }
        self.note_spent(slot, ack.cost);
        if let Some(result) = ack.result {
            self.note_result(slot, ack.zombie, result);
        }
        self.finish(slot, Operation::Ack(by), ack.zombie);
        Ok(Some(Reply::Done))
    }

    pub(crate) fn ack_all(
        &mut self,
        client: ClientId,
        queue: QueueName<'_>,
        receipts: &[Receipt],
    ) -> Reply {
        let answers = receipts.iter().map(|receipt| {
            let held = Held { queue, by: HeldBy::Receipt(*receipt) };
            let (slot, by) = self.hold(client, held, Operation::Ack)?;
            self.finish(slot, Operation::Ack(by), None);
            Ok(())
        });
        Reply::Acks(answers.collect())
    }

    pub(crate) fn release(&mut self, client: ClientId, release: &Release<'_>) -> Answered {
        check_held(release.held)?;
        self.check_amendment(release.delay, &release.amendment)?;
        check_checkpoint(release.checkpoint)?;
        let (slot, by) = self.hold(client, release.held, Operation::Release)?;
        let Release { delay, ref amendment, tail, cost, checkpoint, .. } = *release;
        self.check_spent(slot, cost)?;
        if self.stop(slot, Operation::Release(by), cost) {
            return Ok(Some(Reply::State(None)));
        }
        self.check_return(slot, amendment, checkpoint)?;
        self.note_spent(slot, cost);
        self.note_progress(slot, None, checkpoint);
        Ok(Some(self.release_task((slot, by), delay, amendment, tail)))
    }

    /// Returns a task that its holder has named to the queue. There must be room for what changes.
    pub(crate) fn release_task(
        &mut self,
        (slot, by): (Slot, By),
        delay: Span,
        amendment: &Amendment<'_>,
        tail: bool,
    ) -> Reply {
        let tail = tail.then(|| self.tail(self.tasks[slot].queue));
        if self.queues[self.tasks[slot].queue].settings.release_fails {
            return Reply::State(self.fail_released((slot, by), delay, amendment, tail));
        }
        Reply::State(self.bring_back(slot, Operation::Release(by), delay, amendment, |task| {
            if let Some(tail) = tail {
                tail.receive(task);
            }
            task.count(|counts| &mut counts.releases);
            task.set_delay(delay);
        }))
    }

    /// Undoes takes whose reply or delivery could not be sent. The reply is the number of leases
    /// that ended.
    pub(crate) fn give_back(&mut self, receipts: &[Receipt]) -> Reply {
        let mut count = 0;
        for receipt in receipts {
            let current = self.live_by_now(receipt.number).filter(|slot| {
                self.tasks[*slot].lease().is_some_and(|lease| lease.grant == receipt.grant)
            });
            let Some(slot) = current else { continue };
            count += 1;
            if self.tasks[slot].lease().is_some_and(Lease::is_unstarted) {
                self.take_back(slot);
                continue;
            }
            let operation = Operation::Release(By::Receipt);
            let charged = self.charged(slot);
            self.refund(self.tasks[slot].queue, self.tasks[slot].cost());
            self.bring_back(slot, operation, Span::ZERO, &Amendment::default(), |_| {});
            self.uncharge_turn(charged);
        }
        Reply::Count(count)
    }

    pub(crate) fn bury(&mut self, client: ClientId, bury: &Bury<'_>) -> Answered {
        let Bury { held, payload, reason, cost } = *bury;
        check_held(held)?;
        if let Some(payload) = payload {
            self.check_payload(payload)?;
        }
        check_reason(reason)?;
        let (slot, by) = self.hold(client, held, Operation::Bury)?;
        self.check_spent(slot, cost)?;
        if self.stop(slot, Operation::Bury(by), cost) {
            return Ok(Some(Reply::Done));
        }
        self.check_growth(slot, payload, reason.map(<[u8]>::len))?;
        if let Some(payload) = payload {
            self.set_payload(slot, payload);
        }
        self.note_spent(slot, cost);
        let burial = self.issued.bury(self.now);
        self.shift(slot, Operation::Bury(by), Unsaved::Progress, |task| {
            task.set_reason(reason.map(Bytes::from));
            be_buried(task, burial)
        });
        Ok(Some(Reply::Done))
    }

    pub(crate) fn touch(&mut self, client: ClientId, touch: &Touch<'_>) -> Answered {
        let Touch { held, by, progress, checkpoint } = *touch;
        check_held(held)?;
        check_positive("the span to touch by", by)?;
        check_text("a progress", PROGRESS_BYTES_MAX, progress)?;
        check_checkpoint(checkpoint)?;
        let tells = progress.is_some() || checkpoint.is_some();
        let (slot, standing) = match held.by {
            HeldBy::Receipt(_) => {
                let (slot, _) = self.hold(client, held, Operation::Touch)?;
                (slot, Standing::TakenHere)
            }
            HeldBy::Id(id) => {
                let Some(slot) = self.find_task(held.queue, id)? else {
                    return Err(not_found(held.queue, id));
                };
                (slot, self.standing(slot, client))
            }
        };
        match answer(Operation::Touch(By::Id), standing) {
            Answer::Stays | Answer::Nothing if tells && standing != Standing::TakenHere => {
                Err(self.refuse_held(RefusalKind::NotTaken, held))
            }
            Answer::Stays => {
                // Any client may move the TTL of a ready task. Only the holder may move a lease.
                if standing == Standing::TakenHere {
                    self.note_life(self.tasks[slot].queue);
                }
                self.check_not_cancelled(slot)?;
                let progress_text = progress;
                self.check_change(slot, New { progress_text, checkpoint, ..New::NOTHING })?;
                let answer = self.move_deadline(slot, by)?;
                self.note_progress(slot, progress_text, checkpoint);
                Ok(answer)
            }
            Answer::Nothing => Ok(Some(Reply::Deadline(None))),
            Answer::Refused(kind) => Err(self.refuse_held(kind, held)),
            other => unreachable!("a touch is answered {other:?}"),
        }
    }

    /// Returns the task that a client names, if the client holds it.
    pub(crate) fn hold(
        &mut self,
        client: ClientId,
        held: Held<'_>,
        operation: fn(By) -> Operation,
    ) -> Result<(Slot, By), Refusal> {
        let (slot, by, standing) = match held.by {
            HeldBy::Receipt(receipt) => {
                // The receipt determines the lane. If the member is named too, it must exist.
                if held.queue.member.is_some() {
                    self.find_queue(held.queue)?;
                }
                let current = self.live_by_now(receipt.number).filter(|slot| {
                    let task = &self.tasks[*slot];
                    let granted = task.lease().is_some_and(|held| held.grant == receipt.grant);
                    let here = self.queues[task.queue].answers_to(held.queue);
                    granted && here
                });
                match current {
                    Some(slot) => (Some(slot), By::Receipt, self.standing(slot, client)),
                    None => (None, By::OldReceipt, Standing::Absent),
                }
            }
            HeldBy::Id(id) => {
                let slot = self.find_task(held.queue, id)?;
                let standing = slot.map_or(Standing::Absent, |slot| self.standing(slot, client));
                (slot, By::Id, standing)
            }
        };
        match (answer(operation(by), standing), slot) {
            (Answer::Refused(kind), _) => Err(self.refuse_held(kind, held)),
            (_, Some(slot)) => {
                self.note_life(self.tasks[slot].queue);
                Ok((slot, by))
            }
            (other, None) => unreachable!("an absent task is answered {other:?}"),
        }
    }

    /// Returns the standing of a task for this client.
    pub(crate) fn standing(&self, slot: Slot, client: ClientId) -> Standing {
        match self.tasks[slot].state() {
            State::Taken(lease) if lease.is_held_by(client) => Standing::TakenHere,
            State::Taken(_) => Standing::TakenElsewhere,
            other => Standing::Resting(other.kind()),
        }
    }

    /// Renews or moves the deadline of a lease, or moves the TTL of a ready task.
    pub(crate) fn move_deadline(&mut self, slot: Slot, by: Option<Span>) -> Answered {
        let task = &self.tasks[slot];
        let (current, ttr) = match task.state() {
            State::Taken(lease) => (lease.deadline, lease.ttr),
            _ if by.is_none() => {
                return Err(bad(format!(
                    "the task {} is ready: say by how much its TTL is to move",
                    task.id()
                )));
            }
            _ => (task.expires_at(), None),
        };
        let moved: Option<Timestamp> = match (current, by, ttr) {
            (None, ..) => None,
            (Some(current), Some(by), _) => Some(later("the span to touch by", current, by)?),
            (Some(_), None, Some(ttr)) => Some(self.now.after(ttr)),
            (current, None, None) => current,
        };
        if self.tasks[slot].lease().is_some_and(Lease::is_unstarted) {
            self.begin_lease(slot);
        }
        if moved.is_some() {
            self.amend(slot, Unsaved::Progress, |task| match task.lease_mut() {
                Some(lease) => lease.deadline = moved,
                None => task.set_expires_at(moved),
            });
        }
        Ok(Some(Reply::Deadline(moved)))
    }

    fn refuse_held(&self, kind: RefusalKind, held: Held<'_>) -> Refusal {
        let queue = named(held.queue);
        let sentence = match (held.by, kind) {
            (HeldBy::Receipt(receipt), _) => {
                let number = receipt.number;
                // A task in another queue does not concern this client.
                let here = self
                    .live(number)
                    .filter(|slot| self.queues[self.tasks[*slot].queue].answers_to(held.queue));
                let now = here.map(|slot| self.tasks[slot].kind());
                let now = now.map_or_else(
                    || "is not there any more".to_owned(),
                    |kind| match kind {
                        StateKind::Taken => "is under another lease".to_owned(),
                        other => format!("is in state {other}"),
                    },
                );
                format!("that lease in {queue} has ended: the task {now}")
            }
            (HeldBy::Id(id), RefusalKind::NotFound) => {
                return not_found(held.queue, id);
            }
            (HeldBy::Id(id), RefusalKind::NotOwner) => format!(
                "the task {} in {queue} is taken, and not held by this connection: show its \
                 receipt",
                quoted(id)
            ),
            (HeldBy::Id(id), _) => {
                format!("the task {} in {queue} is not taken", quoted(id))
            }
        };
        Refusal::new(kind, sentence)
    }
}

/// Counts that a task is buried, and returns its state.
pub(crate) fn be_buried(task: &mut Task, burial: Burial) -> State {
    task.count(|counts| &mut counts.buries);
    State::Buried(burial)
}

pub(crate) fn check_held(held: Held<'_>) -> Result<(), Refusal> {
    match held.by {
        HeldBy::Id(id) => check_id(id),
        HeldBy::Receipt(_) => Ok(()),
    }
}
