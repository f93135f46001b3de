//! Moving tasks by their id, whoever asks.

use pinpriq_engine::command::{Amendment, Assign, QueueName, Transfer, Update};
use pinpriq_engine::reply::{RefusalKind, Reply};
use pinpriq_engine::settings::AfterAck;
use pinpriq_engine::task::{ClientId, State, StateKind};
use pinpriq_engine::time::Span;

use super::room::reason_bytes;
use super::{Answer, Exit, Model, fits, id_fits, is_in};

impl Model {
    /// To R or W, with what changes along with it; or to X if the TTL is over by then.
    pub(super) fn bring_back(
        &mut self,
        at: usize,
        delay: Span,
        amendment: &Amendment<'_>,
    ) -> Option<StateKind> {
        self.amend(at, amendment);
        if self.is_over(at) {
            self.leave(at, Exit::Expired);
            return None;
        }
        let ready_at = self.now.after(delay);
        let state = if delay.is_zero() { State::Ready } else { State::Waiting { ready_at } };
        let kind = state.kind();
        self.shift(at, state);
        Some(kind)
    }

    fn amend(&mut self, at: usize, amendment: &Amendment<'_>) {
        let now = self.now;
        if let Some(payload) = amendment.payload {
            self.give_payload(at, payload);
        }
        let task = &mut self.tasks[at];
        if let Assign::To(priority) = amendment.priority {
            task.priority = priority;
        }
        if let Assign::To(ttl) = amendment.ttl {
            task.expires_at = ttl.map(|ttl| now.after(ttl));
        }
    }

    /// The task of a transfer, whose arguments make sense.
    fn transferred(&self, transfer: &Transfer<'_>) -> Result<usize, RefusalKind> {
        id_fits(transfer.id)?;
        self.amendment_fits(transfer.delay, &transfer.amendment)?;
        let home = self.home(transfer.queue)?;
        self.find(&home, transfer.id).ok_or(RefusalKind::NotFound)
    }

    fn finish_transfer(&mut self, at: usize, transfer: &Transfer<'_>) -> Answer {
        self.may_return(at, &transfer.amendment)?;
        let state = self.bring_back(at, transfer.delay, &transfer.amendment);
        Ok(Some(Reply::State(state)))
    }

    pub(super) fn dig(&mut self, transfer: &Transfer<'_>) -> Answer {
        let at = self.transferred(transfer)?;
        match self.tasks[at].state.kind() {
            StateKind::Buried => self.finish_transfer(at, transfer),
            StateKind::Taken => Err(RefusalKind::Taken),
            _ => Err(RefusalKind::WrongState),
        }
    }

    pub(super) fn snatch(&mut self, transfer: &Transfer<'_>) -> Answer {
        let at = self.transferred(transfer)?;
        match self.tasks[at].state.kind() {
            StateKind::Taken => self.finish_transfer(at, transfer),
            _ => Err(RefusalKind::NotTaken),
        }
    }

    pub(super) fn restart_task(&mut self, transfer: &Transfer<'_>) -> Answer {
        let at = self.transferred(transfer)?;
        match self.tasks[at].state.kind() {
            StateKind::Ready => Ok(Some(Reply::State(Some(StateKind::Ready)))),
            StateKind::Taken => Err(RefusalKind::Taken),
            StateKind::Buried => Err(RefusalKind::WrongState),
            _ => {
                self.may_return(at, &transfer.amendment)?;
                self.tasks[at].attempts = 0;
                self.finish_transfer(at, transfer)
            }
        }
    }

    pub(super) fn plow(
        &mut self,
        queue: QueueName<'_>,
        count: Option<u64>,
        delay: Span,
        ttl: Option<Span>,
    ) -> Answer {
        let amendment = Amendment {
            ttl: ttl.map_or(Assign::Keep, |ttl| Assign::To(Some(ttl))),
            ..Amendment::default()
        };
        self.amendment_fits(delay, &amendment)?;
        fits(count != Some(0))?;
        let home = self.home(queue)?;
        let mut buried: Vec<(u64, u64)> = self
            .tasks
            .iter()
            .filter(|task| is_in(task, &home) && task.state.kind() == StateKind::Buried)
            .map(|task| (task.seq, task.number))
            .collect();
        buried.sort_unstable();
        buried.truncate(count.map_or(usize::MAX, |count| usize::try_from(count).unwrap()));
        for (_, number) in &buried {
            let at = self.at(*number).expect("a buried task is there");
            self.bring_back(at, delay, &amendment);
        }
        Ok(Some(Reply::Count(buried.len() as u64)))
    }

    pub(super) fn kill(&mut self, queue: QueueName<'_>, ids: &[&[u8]]) -> Answer {
        ids.iter().try_for_each(|id| id_fits(id))?;
        let home = self.home(queue)?;
        let mut killed = 0;
        for id in ids {
            if let Some(at) = self.find(&home, id) {
                self.leave(at, Exit::Killed);
                killed += 1;
            }
        }
        Ok(Some(Reply::Count(killed)))
    }

    pub(super) fn switch(&mut self, transfer: &Transfer<'_>, to: StateKind) -> Answer {
        use StateKind::{Buried, Done, Ready, Taken, Waiting, Zombie};
        id_fits(transfer.id)?;
        let has_delay = !transfer.delay.is_zero();
        let has_ttl = transfer.amendment.ttl != Assign::Keep;
        fits(to != Taken)?;
        fits(!(has_delay && matches!(to, Ready | Buried | Done)))?;
        fits(!(has_ttl && matches!(to, Buried | Zombie | Done)))?;
        fits(has_delay || to != Waiting)?;
        self.amendment_fits(transfer.delay, &transfer.amendment)?;
        let home = self.home(transfer.queue)?;
        let stay = match self.settings(&home).after_ack {
            _ if has_delay => Some(transfer.delay),
            AfterAck::Zombie(stay) => Some(stay),
            AfterAck::Delete | AfterAck::Keep => None,
        };
        fits(to != Zombie || stay.is_some())?;
        let at = self.transferred(transfer)?;
        if self.tasks[at].state.kind() == Taken {
            return Err(RefusalKind::Taken);
        }
        let state = match to {
            Ready | Waiting => return self.finish_transfer(at, transfer),
            Buried => State::Buried { reason: [].into() },
            Zombie => State::Zombie { purge_at: self.now.after(stay.unwrap_or_default()) },
            _ => State::Done,
        };
        self.may_grow(at, transfer.amendment.payload, 0)?;
        self.amend(at, &transfer.amendment);
        self.shift(at, state);
        Ok(Some(Reply::State(Some(to))))
    }

    pub(super) fn update(&mut self, client: ClientId, update: &Update<'_>) -> Answer {
        id_fits(update.id)?;
        self.amendment_fits(Span::ZERO, &update.amendment)?;
        let home = self.home(update.queue)?;
        let at = self.find(&home, update.id).ok_or(RefusalKind::NotFound)?;
        if update.receipt.is_some() && self.tasks[at].receipt() != update.receipt {
            return Err(RefusalKind::Stale);
        }
        if let State::Taken(lease) = &self.tasks[at].state
            && update.receipt.is_none()
            && lease.holder != Some(client)
        {
            return Err(RefusalKind::NotOwner);
        }
        let reason = usize::try_from(reason_bytes(&self.tasks[at])).unwrap();
        self.may_grow(at, update.amendment.payload, reason)?;
        self.amend(at, &update.amendment);
        Ok(Some(Reply::Done))
    }
}
