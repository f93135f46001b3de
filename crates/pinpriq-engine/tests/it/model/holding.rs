//! What the holder of a lease does: acknowledge, release, bury, touch.

use pinpriq_engine::command::{Ack, Held, HeldBy, Release};
use pinpriq_engine::limits::NAME_BYTES_MAX;
use pinpriq_engine::reply::{Refusal, RefusalKind, Reply};
use pinpriq_engine::settings::AfterAck;
use pinpriq_engine::task::{ClientId, Receipt, State};
use pinpriq_engine::time::{Span, Timestamp};

use super::{Answer, Exit, Model, fits, id_fits};

impl Model {
    /// Where the task stands that a holder names, if it may.
    fn hold(&self, client: ClientId, held: Held<'_>) -> Result<usize, RefusalKind> {
        match held.by {
            HeldBy::Receipt(receipt) => {
                let current = self.tasks.iter().position(|task| task.receipt() == Some(receipt));
                current.filter(|at| *self.tasks[*at].queue == *held.queue).ok_or(RefusalKind::Stale)
            }
            HeldBy::Id(id) => {
                let at = self.find(held.queue, id).ok_or(RefusalKind::NotFound)?;
                match &self.tasks[at].state {
                    State::Taken(lease) if lease.holder == Some(client) => Ok(at),
                    State::Taken(_) => Err(RefusalKind::NotOwner),
                    _ => Err(RefusalKind::NotTaken),
                }
            }
        }
    }

    pub(super) fn ack(&mut self, client: ClientId, ack: &Ack<'_>) -> Answer {
        held_fits(ack.held)?;
        self.span_fits(ack.zombie, false)?;
        self.payload_fits(ack.payload)?;
        let at = self.hold(client, ack.held)?;
        let after_ack = self.settings(&self.tasks[at].queue).after_ack;
        if ack.zombie.is_some() && after_ack == AfterAck::Keep {
            return Err(RefusalKind::WrongState);
        }
        if let Some(payload) = ack.payload {
            self.tasks[at].payload = payload.into();
        }
        self.finish(at, ack.zombie);
        Ok(Some(Reply::Done))
    }

    pub(super) fn ack_all(&mut self, queue: &[u8], receipts: &[Receipt]) -> Reply {
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
        let setting = self.settings(&self.tasks[at].queue).after_ack;
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
        if let Some(payload) = payload {
            self.tasks[at].payload = payload.into();
        }
        self.shift(at, State::Buried { reason: reason.into() });
        Ok(Some(Reply::Done))
    }

    pub(super) fn touch(&mut self, client: ClientId, held: Held<'_>, by: Option<Span>) -> Answer {
        held_fits(held)?;
        fits(by.is_none_or(|by| !by.is_zero()))?;
        if let HeldBy::Id(id) = held.by
            && let Some(at) = self.find(held.queue, id)
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
        let task = &mut self.tasks[at];
        if task.state != State::Ready {
            return Ok(Some(Reply::Deadline(None)));
        }
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
