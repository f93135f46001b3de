//! What the holder of a lease does: acknowledge, release, bury, touch. How it got the lease is
//! described in `take`.

use pinpriq_proto::command::{Ack, Amendment, Bury, Held, HeldBy, QueueName, Release, Touch};
use pinpriq_proto::limits::{NAME_BYTES_MAX, PROGRESS_BYTES_MAX, REASON_BYTES_MAX};
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::settings::AfterAck;
use pinpriq_proto::task::history::How;
use pinpriq_proto::task::{ClientId, Receipt, State, reasons};
use pinpriq_proto::time::{Span, Timestamp};

use super::progress::checkpoint_fits;
use super::recall::{is_unstarted, start};
use super::room::New;
use super::{Answer, Model, fits, id_fits};

impl Model {
    /// Returns the task that a holder names, if the holder may use it. Counts as a sign of life of
    /// the member whose lane the task is in.
    pub(super) fn hold(&mut self, client: ClientId, held: Held<'_>) -> Result<u64, RefusalKind> {
        let number = match held.by {
            HeldBy::Receipt(receipt) => {
                fits(held.queue.name.len() <= NAME_BYTES_MAX)?;
                // The receipt identifies the lane. If the member is named too, it must exist.
                if held.queue.member.is_some() {
                    self.place_of(held.queue)?;
                }
                self.is_current(held.queue, receipt)
                    .then_some(receipt.number)
                    .ok_or(RefusalKind::Stale)?
            }
            HeldBy::Id(id) => {
                let number = self.find(held.queue, id)?.ok_or(RefusalKind::NotFound)?;
                match &self.task(number).progress.state {
                    State::Taken(lease) if lease.is_held_by(client) => number,
                    State::Taken(_) => return Err(RefusalKind::NotOwner),
                    _ => return Err(RefusalKind::NotTaken),
                }
            }
        };
        let place = self.places[&number].clone();
        self.note_life(&place);
        Ok(number)
    }

    /// Whether a receipt belongs to the current lease of a task in the place of this name.
    fn is_current(&self, queue: QueueName<'_>, receipt: Receipt) -> bool {
        let Some(place) = self.places.get(&receipt.number) else { return false };
        let home = &self.homes[place];
        let member = home.lane.as_ref().map(|lane| &*lane.name.member);
        let answers =
            *home.name == *queue.name && (queue.member.is_none() || queue.member == member);
        answers
            && self.is_live(receipt.number)
            && home.tasks[&receipt.number].receipt() == Some(receipt)
    }

    pub(super) fn ack(&mut self, client: ClientId, ack: &Ack<'_>) -> Answer {
        held_fits(ack.held)?;
        self.span_fits(ack.zombie, false)?;
        self.payload_fits(ack.payload)?;
        self.payload_fits(ack.result)?;
        let number = self.hold(client, ack.held)?;
        self.spent_fits(number, ack.cost)?;
        let after_ack = self.settings(&self.places[&number]).after_ack;
        if ack.zombie.is_some() && after_ack == AfterAck::Keep {
            return Err(RefusalKind::WrongState);
        }
        if ack.zombie.is_some() || after_ack != AfterAck::Delete {
            let Ack { payload, result, .. } = *ack;
            self.may_change(number, New { payload, result, ..New::NOTHING })?;
        }
        if let Some(payload) = ack.payload {
            self.give_payload(number, payload);
        }
        self.note_spent(number, ack.cost);
        self.note_result(number, ack.result);
        self.finish(number, ack.zombie);
        Ok(Some(Reply::Done))
    }

    pub(super) fn ack_all(&mut self, queue: QueueName<'_>, receipts: &[Receipt]) -> Reply {
        let mut answers = Vec::new();
        for receipt in receipts {
            let held = Held { queue, by: HeldBy::Receipt(*receipt) };
            answers.push(match self.hold(ClientId(0), held) {
                Ok(number) => {
                    self.finish(number, None);
                    Ok(())
                }
                Err(kind) => Err(Refusal::new(kind, "")),
            });
        }
        Reply::Acks(answers)
    }

    pub(super) fn release(&mut self, client: ClientId, release: &Release<'_>) -> Answer {
        held_fits(release.held)?;
        self.amendment_fits(release.delay, &release.amendment)?;
        checkpoint_fits(release.checkpoint)?;
        let number = self.hold(client, release.held)?;
        self.spent_fits(number, release.cost)?;
        if self.stop(number, release.cost) {
            return Ok(Some(Reply::State(None)));
        }
        self.may_return_with(number, &release.amendment, release.checkpoint)?;
        self.note_spent(number, release.cost);
        self.note_progress(number, None, release.checkpoint);
        self.how = How::Released;
        if release.tail {
            self.last_number += 1;
        }
        let tail = self.last_number;
        if self.settings(&self.places[&number]).release_fails {
            self.how = How::Failed;
            self.note_release(number, release.delay);
            self.amend(number, &release.amendment);
            if release.tail {
                self.send_to_tail(number, tail);
            }
            let delay = Some(release.delay).filter(|delay| *delay > Span::ZERO);
            let state = self.count_failure(number, self.now, Some(reasons::RELEASED), delay);
            return Ok(Some(Reply::State(state)));
        }
        if release.tail {
            self.send_to_tail(number, tail);
        }
        self.note_put_off(number, release.delay);
        let state = self.bring_back(number, release.delay, &release.amendment, false);
        if state.is_some() {
            self.note_release(number, release.delay);
        }
        Ok(Some(Reply::State(state)))
    }

    /// Releases leased tasks that never reached a client. This is not a sign of life of a member.
    pub(super) fn give_back(&mut self, receipts: &[Receipt]) -> Reply {
        let mut count = 0;
        for receipt in receipts {
            let number = receipt.number;
            let held = self.places.get(&number).map(|place| &self.homes[place].tasks[&number]);
            let is_held = held.is_some_and(|task| task.receipt() == Some(*receipt));
            if is_held && self.is_live(number) {
                count += 1;
                if is_unstarted(self.task(number)) {
                    self.take_back(number);
                    continue;
                }
                let task = self.task(number).clone();
                self.how = How::Released;
                self.bring_back(number, Span::ZERO, &Amendment::default(), false);
                self.refund(&task);
            }
        }
        Reply::Count(count)
    }

    pub(super) fn bury(&mut self, client: ClientId, bury: &Bury<'_>) -> Answer {
        let Bury { held, payload, reason, cost } = *bury;
        held_fits(held)?;
        self.payload_fits(payload)?;
        fits(reason.is_none_or(|reason| reason.len() <= REASON_BYTES_MAX))?;
        let number = self.hold(client, held)?;
        self.spent_fits(number, cost)?;
        if self.stop(number, cost) {
            return Ok(Some(Reply::Done));
        }
        self.may_grow(number, payload, reason.map(<[u8]>::len))?;
        self.note_spent(number, cost);
        if let Some(payload) = payload {
            self.give_payload(number, payload);
        }
        self.task_mut(number).progress.reason = reason.map(Into::into);
        self.how = How::Buried;
        self.set_aside(number);
        Ok(Some(Reply::Done))
    }

    pub(super) fn touch(&mut self, client: ClientId, touch: &Touch<'_>) -> Answer {
        let Touch { held, by, progress, checkpoint } = *touch;
        held_fits(held)?;
        fits(by.is_none_or(|by| !by.is_zero()))?;
        fits(progress.is_none_or(|text| text.len() <= PROGRESS_BYTES_MAX))?;
        checkpoint_fits(checkpoint)?;
        if let HeldBy::Id(id) = held.by
            && let Some(number) = self.find(held.queue, id)?
            && !matches!(self.task(number).progress.state, State::Taken(_))
        {
            if progress.is_some() || checkpoint.is_some() {
                return Err(RefusalKind::NotTaken);
            }
            return self.touch_untaken(number, by);
        }
        let number = self.hold(client, held)?;
        self.may_renew(number)?;
        let progress_text = progress;
        self.may_change(number, New { progress_text, checkpoint, ..New::NOTHING })?;
        let (now, was_unstarted) = (self.now, is_unstarted(self.task(number)));
        let State::Taken(lease) = &mut self.task_mut(number).progress.state else {
            unreachable!("task {number} is held")
        };
        if let Some(deadline) = lease.deadline {
            let moved = match (by, lease.ttr) {
                (Some(by), _) => later(deadline, by)?,
                (None, Some(ttr)) => now.after(ttr),
                (None, None) => deadline,
            };
            lease.deadline = Some(moved);
        }
        start(lease);
        let deadline = lease.deadline;
        self.note_due(deadline);
        if was_unstarted {
            self.begin_attempt(number);
        }
        self.note_progress(number, progress, checkpoint);
        Ok(Some(Reply::Deadline(deadline)))
    }

    fn touch_untaken(&mut self, number: u64, by: Option<Span>) -> Answer {
        if self.task(number).progress.state != State::Ready {
            return Ok(Some(Reply::Deadline(None)));
        }
        let by = by.ok_or(RefusalKind::BadArgument)?;
        let task = self.task_mut(number);
        if let Some(expires_at) = task.progress.expires_at {
            task.progress.expires_at = Some(later(expires_at, by)?);
        }
        Ok(Some(Reply::Deadline(task.progress.expires_at)))
    }
}

pub(super) fn held_fits(held: Held<'_>) -> Result<(), RefusalKind> {
    match held.by {
        HeldBy::Id(id) => id_fits(id),
        HeldBy::Receipt(_) => Ok(()),
    }
}

fn later(at: Timestamp, by: Span) -> Result<Timestamp, RefusalKind> {
    fits(at.ms().saturating_add(by.ms()) <= Timestamp::MAX.ms())?;
    Ok(at.after(by))
}
