//! What the holder of a lease does: acknowledge, release, bury, touch.

use pinpriq_engine::command::{Ack, Amendment, Held, HeldBy, QueueName, Release};
use pinpriq_engine::limits::NAME_BYTES_MAX;
use pinpriq_engine::reply::{Refusal, RefusalKind, Reply};
use pinpriq_engine::settings::AfterAck;
use pinpriq_engine::task::{ClientId, Receipt, State};
use pinpriq_engine::time::{Span, Timestamp};

use super::{Answer, Exit, Model, fits, home_of, id_fits, is_in};

impl Model {
    /// Where the task stands that a holder names, if it may. Its member shows that it lives.
    fn hold(&mut self, client: ClientId, held: Held<'_>) -> Result<usize, RefusalKind> {
        let home = self.home(held.queue)?;
        let at = match held.by {
            HeldBy::Receipt(receipt) => {
                // The receipt names the lane. A member that is named too must be its member.
                let is_meant = |at: &usize| {
                    let task = &self.tasks[*at];
                    *task.queue == *held.queue.name
                        && (held.queue.member.is_none() || is_in(task, &home))
                        && self.is_live(task)
                };
                let current = self.tasks.iter().position(|task| task.receipt() == Some(receipt));
                current.filter(is_meant).ok_or(RefusalKind::Stale)?
            }
            HeldBy::Id(id) => {
                let at = self.find(&home, id).ok_or(RefusalKind::NotFound)?;
                match &self.tasks[at].state {
                    State::Taken(lease) if lease.holder == Some(client) => at,
                    State::Taken(_) => return Err(RefusalKind::NotOwner),
                    _ => return Err(RefusalKind::NotTaken),
                }
            }
        };
        let home = home_of(&self.tasks[at]);
        self.note_life(&home);
        Ok(at)
    }

    pub(super) fn ack(&mut self, client: ClientId, ack: &Ack<'_>) -> Answer {
        held_fits(ack.held)?;
        self.span_fits(ack.zombie, false)?;
        self.payload_fits(ack.payload)?;
        let at = self.hold(client, ack.held)?;
        let after_ack = self.settings(&home_of(&self.tasks[at])).after_ack;
        if ack.zombie.is_some() && after_ack == AfterAck::Keep {
            return Err(RefusalKind::WrongState);
        }
        if ack.zombie.is_some() || after_ack != AfterAck::Delete {
            self.may_grow(at, ack.payload, 0)?;
        }
        if let Some(payload) = ack.payload {
            self.give_payload(at, payload);
        }
        self.finish(at, ack.zombie);
        Ok(Some(Reply::Done))
    }

    pub(super) fn ack_all(&mut self, queue: QueueName<'_>, receipts: &[Receipt]) -> Reply {
        let mut answers = Vec::new();
        for receipt in receipts {
            let held = Held { queue, by: HeldBy::Receipt(*receipt) };
            answers.push(match self.hold(ClientId(0), held) {
                Ok(at) => {
                    self.finish(at, None);
                    Ok(())
                }
                Err(kind) => Err(Refusal::new(kind, "")),
            });
        }
        Reply::Acks(answers)
    }

    /// Ends a task as its queue wants it.
    pub(super) fn finish(&mut self, at: usize, zombie: Option<Span>) {
        let setting = self.settings(&home_of(&self.tasks[at])).after_ack;
        match zombie.map_or(setting, AfterAck::Zombie) {
            AfterAck::Delete => self.leave(at, Exit::Acked),
            AfterAck::Keep => self.shift(at, State::Done),
            AfterAck::Zombie(stay) => {
                self.shift(at, State::Zombie { purge_at: self.now.after(stay) });
            }
        }
    }

    pub(super) fn release(&mut self, client: ClientId, release: &Release<'_>) -> Answer {
        held_fits(release.held)?;
        self.amendment_fits(release.delay, &release.amendment)?;
        let at = self.hold(client, release.held)?;
        self.may_return(at, &release.amendment)?;
        let number = self.tasks[at].number;
        if release.tail {
            self.last_number += 1;
        }
        let tail = self.last_number;
        let state = self.bring_back(at, release.delay, &release.amendment);
        if release.tail && state.is_some() {
            let at = self.at(number).expect("it was brought back");
            self.tasks[at].seq = tail;
        }
        Ok(Some(Reply::State(state)))
    }

    /// Releases what nobody was told of. No member shows by that that it lives.
    pub(super) fn give_back(&mut self, receipts: &[Receipt]) -> Reply {
        let mut count = 0;
        for receipt in receipts {
            let current = self.tasks.iter().position(|task| task.receipt() == Some(*receipt));
            let Some(at) = current.filter(|at| self.is_live(&self.tasks[*at])) else { continue };
            self.bring_back(at, Span::ZERO, &Amendment::default());
            count += 1;
        }
        Reply::Count(count)
    }

    pub(super) fn bury(
        &mut self,
        client: ClientId,
        held: Held<'_>,
        payload: Option<&[u8]>,
        reason: &[u8],
    ) -> Answer {
        held_fits(held)?;
        self.payload_fits(payload)?;
        fits(reason.len() <= NAME_BYTES_MAX)?;
        let at = self.hold(client, held)?;
        self.may_grow(at, payload, reason.len())?;
        if let Some(payload) = payload {
            self.give_payload(at, payload);
        }
        self.shift(at, State::Buried { reason: reason.into() });
        Ok(Some(Reply::Done))
    }

    pub(super) fn touch(&mut self, client: ClientId, held: Held<'_>, by: Option<Span>) -> Answer {
        held_fits(held)?;
        fits(by.is_none_or(|by| !by.is_zero()))?;
        if let HeldBy::Id(id) = held.by
            && let Some(at) = self.home(held.queue).ok().and_then(|home| self.find(&home, id))
            && !matches!(self.tasks[at].state, State::Taken(_))
        {
            return self.touch_untaken(at, by);
        }
        let at = self.hold(client, held)?;
        let now = self.now;
        let State::Taken(lease) = &mut self.tasks[at].state else { panic!("it is held") };
        if let Some(deadline) = lease.deadline {
            let moved = match (by, lease.ttr) {
                (Some(by), _) => later(deadline, by)?,
                (None, Some(ttr)) => now.after(ttr),
                (None, None) => deadline,
            };
            lease.deadline = Some(moved);
        }
        Ok(Some(Reply::Deadline(lease.deadline)))
    }

    fn touch_untaken(&mut self, at: usize, by: Option<Span>) -> Answer {
        if self.tasks[at].state != State::Ready {
            return Ok(Some(Reply::Deadline(None)));
        }
        let task = &mut self.tasks[at];
        let by = by.ok_or(RefusalKind::BadArgument)?;
        if let Some(expires_at) = task.expires_at {
            task.expires_at = Some(later(expires_at, by)?);
        }
        Ok(Some(Reply::Deadline(task.expires_at)))
    }
}

fn held_fits(held: Held<'_>) -> Result<(), RefusalKind> {
    match held.by {
        HeldBy::Id(id) => id_fits(id),
        HeldBy::Receipt(_) => Ok(()),
    }
}

fn later(at: Timestamp, by: Span) -> Result<Timestamp, RefusalKind> {
    fits(at.ms().saturating_add(by.ms()) <= Timestamp::MAX.ms())?;
    Ok(at.after(by))
}
