//! Moving tasks by id, for any client. What needs a lease is in `hold`.

use pinpriq_proto::command::{Amendment, Assign, QueueName, Transfer, Update};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::settings::AfterAck;
use pinpriq_proto::task::history::How;
use pinpriq_proto::task::{Burial, ClientId, Counts, State, StateKind, Trace, headers};
use pinpriq_proto::time::Span;

use super::room::New;
use super::turns::trace_of;
use super::{Answer, Exit, Model, fits, id_fits};

impl Model {
    /// Moves a task to R or W and applies the changes, or to X if the TTL is over by then. It may
    /// begin again, as if it had never been taken.
    pub(super) fn bring_back(
        &mut self,
        number: u64,
        delay: Span,
        amendment: &Amendment<'_>,
        begins_again: bool,
    ) -> Option<StateKind> {
        if self.leave_cancelled(number) {
            return None;
        }
        // A task whose TTL has passed leaves as it is, also for the queue for dead letters.
        if amendment.ttl == Assign::Keep && self.is_over(self.task(number)) {
            self.expire(number);
            return None;
        }
        self.amend(number, amendment);
        if begins_again {
            self.forget_failures(number);
            self.forget_checkpoint(number);
        }
        let ready_at = self.now.after(delay);
        let waiting = State::Waiting { ready_at: Some(ready_at) };
        let state = if delay.is_zero() { State::Ready } else { waiting };
        let kind = state.kind();
        if !delay.is_zero() {
            self.note_delay(number, delay);
        }
        self.shift(number, state);
        Some(kind)
    }

    pub(super) fn amend(&mut self, number: u64, amendment: &Amendment<'_>) {
        let now = self.now;
        if let Some(payload) = amendment.payload {
            self.give_payload(number, payload);
        }
        let task = self.task_mut(number);
        if let Assign::To(priority) = amendment.priority {
            task.progress.priority = priority;
        }
        if let Assign::To(ttl) = amendment.ttl {
            task.progress.expires_at = ttl.map(|ttl| now.after(ttl));
        }
        let due = super::time::due(task);
        self.note_due(due);
    }

    /// Returns the task of a transfer. Checks the arguments.
    fn transferred(&self, transfer: &Transfer<'_>) -> Result<u64, RefusalKind> {
        id_fits(transfer.id)?;
        self.amendment_fits(transfer.delay, &transfer.amendment)?;
        self.find(transfer.queue, transfer.id)?.ok_or(RefusalKind::NotFound)
    }

    /// Brings a task back as if it had never been taken.
    fn begin_again(&mut self, number: u64, transfer: &Transfer<'_>) -> Answer {
        self.may_return(number, &transfer.amendment)?;
        let state = self.bring_back(number, transfer.delay, &transfer.amendment, true);
        Ok(Some(Reply::State(state)))
    }

    pub(super) fn dig(&mut self, transfer: &Transfer<'_>) -> Answer {
        let number = self.transferred(transfer)?;
        match self.task(number).progress.state.kind() {
            StateKind::Buried => {
                self.may_return(number, &transfer.amendment)?;
                let state = self.bring_back(number, transfer.delay, &transfer.amendment, true);
                self.count_kick(number, state);
                Ok(Some(Reply::State(state)))
            }
            StateKind::Taken => Err(RefusalKind::Taken),
            _ => Err(RefusalKind::WrongState),
        }
    }

    pub(super) fn snatch(&mut self, transfer: &Transfer<'_>) -> Answer {
        let number = self.transferred(transfer)?;
        match self.task(number).progress.state.kind() {
            StateKind::Taken if self.leave_cancelled(number) => Ok(Some(Reply::State(None))),
            StateKind::Taken => {
                self.may_return(number, &transfer.amendment)?;
                self.note_put_off(number, transfer.delay);
                self.how = How::Snatched;
                let state = self.bring_back(number, transfer.delay, &transfer.amendment, false);
                Ok(Some(Reply::State(state)))
            }
            _ => Err(RefusalKind::NotTaken),
        }
    }

    pub(super) fn restart_task(&mut self, transfer: &Transfer<'_>) -> Answer {
        let number = self.transferred(transfer)?;
        match self.task(number).progress.state.kind() {
            StateKind::Ready => Ok(Some(Reply::State(Some(StateKind::Ready)))),
            StateKind::Taken => Err(RefusalKind::Taken),
            _ => {
                let state = self.begin_again(number, transfer)?;
                if state != Some(Reply::State(None)) {
                    let progress = &mut self.task_mut(number).progress;
                    progress.trace = Trace { counts: Counts::NONE, ..trace_of(progress) }.kept();
                }
                Ok(state)
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
        let place = self.place_of(queue)?;
        let Some(home) = self.homes.get(&place) else { return Ok(Some(Reply::Count(0))) };
        let tasks = home.tasks.values();
        let mut buried: Vec<(u64, u64)> = tasks
            .filter(|task| task.progress.state.kind() == StateKind::Buried)
            .map(|task| (task.progress.seq, task.number))
            .collect();
        buried.sort_unstable();
        let most = count.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        buried.truncate(most.unwrap_or(usize::MAX));
        for (_, number) in &buried {
            let state = self.bring_back(*number, delay, &amendment, true);
            self.count_kick(*number, state);
        }
        Ok(Some(Reply::Count(buried.len() as u64)))
    }

    pub(super) fn kill(&mut self, queue: QueueName<'_>, ids: &[&[u8]]) -> Answer {
        ids.iter().try_for_each(|id| id_fits(id))?;
        self.place_of(queue)?;
        let mut killed = 0;
        for id in ids {
            if let Some(number) = self.find(queue, id)? {
                self.leave(number, Exit::Killed);
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
        let stay = match to {
            Zombie if has_delay => Some(transfer.delay),
            Zombie => match self.settings(&self.place_of(transfer.queue)?).after_ack {
                AfterAck::Zombie(stay) => Some(stay),
                AfterAck::Delete | AfterAck::Keep => None,
            },
            _ => Some(Span::ZERO),
        };
        let stay = stay.ok_or(RefusalKind::BadArgument)?;
        let number = self.transferred(transfer)?;
        if self.task(number).progress.state.kind() == Taken {
            return Err(RefusalKind::Taken);
        }
        let state = match to {
            Ready | Waiting => return self.begin_again(number, transfer),
            Buried => State::Buried(Burial::UNKNOWN),
            Zombie => State::Zombie { purge_at: self.now.after(stay) },
            _ => State::Done,
        };
        self.may_grow(number, transfer.amendment.payload, None)?;
        self.amend(number, &transfer.amendment);
        if to == Buried {
            self.task_mut(number).progress.reason = None;
            self.count(number, |counts| &mut counts.buries);
        }
        let state = if to == Buried { State::Buried(self.draw_burial()) } else { state };
        self.shift(number, state);
        Ok(Some(Reply::State(Some(to))))
    }

    pub(super) fn update(&mut self, client: ClientId, update: &Update<'_>) -> Answer {
        id_fits(update.id)?;
        self.amendment_fits(Span::ZERO, &update.amendment)?;
        update.headers.map_or(Ok(()), headers::check).map_err(|refusal| refusal.kind)?;
        let number = self.find(update.queue, update.id)?.ok_or(RefusalKind::NotFound)?;
        let task = self.task(number);
        if update.receipt.is_some() && task.receipt() != update.receipt {
            return Err(RefusalKind::Stale);
        }
        if let State::Taken(lease) = &task.progress.state
            && update.receipt.is_none()
            && !lease.is_held_by(client)
        {
            return Err(RefusalKind::NotOwner);
        }
        let is_copy = self.kept.shares.contains_key(&number);
        let shared = self.task(number).payload.clone();
        let own = update.headers.filter(|_| is_copy).map(|_| &*shared);
        let amendment = Amendment { payload: update.amendment.payload.or(own), ..update.amendment };
        let (payload, headers) = (amendment.payload, update.headers);
        self.may_change(number, New { payload, headers, ..New::NOTHING })?;
        self.amend(number, &amendment);
        if let Some(headers) = update.headers {
            let task = self.task_mut(number);
            task.terms = task.terms.clone().with_headers(Some(headers.into()));
        }
        let place = self.places[&number].clone();
        self.settle(&place);
        Ok(Some(Reply::Done))
    }
}
