//! Tasks that were cancelled while they are taken, and how they end.

use pinpriq_proto::command::Cancel;
use pinpriq_proto::limits::REASON_BYTES_MAX;
use pinpriq_proto::reply::{Notice, Output, RefusalKind, Reply};
use pinpriq_proto::task::{Bytes, Cancelled, StateKind, Trace};

use super::recall::{is_unstarted, lease, lease_mut, start};
use super::turns::trace_of;
use super::{Answer, Exit, Model, fits, id_fits};

impl Model {
    pub(super) fn cancel(&mut self, cancel: &Cancel<'_>) -> Answer {
        id_fits(cancel.id)?;
        fits(cancel.reason.is_none_or(|reason| reason.len() <= REASON_BYTES_MAX))?;
        self.span_fits(cancel.grace, false)?;
        let number = self.find(cancel.queue, cancel.id)?.ok_or(RefusalKind::NotFound)?;
        let kind = self.task(number).progress.state.kind();
        match kind {
            StateKind::Taken => self.ask_to_stop(number, cancel)?,
            StateKind::Zombie | StateKind::Done => {}
            StateKind::Ready | StateKind::Waiting | StateKind::Buried => {
                self.leave(number, Exit::Cancelled);
                return Ok(Some(Reply::State(None)));
            }
        }
        Ok(Some(Reply::State(Some(kind))))
    }

    pub(super) fn ask_to_stop(
        &mut self,
        number: u64,
        cancel: &Cancel<'_>,
    ) -> Result<(), RefusalKind> {
        let former = self.task(number).progress.cancelled().cloned();
        let known = former.as_ref().map_or(0, |former| former.reason.len());
        let told = cancel.reason.map(Bytes::from);
        let reason = told.or_else(|| former.as_ref().map(|former| former.reason.clone()));
        let reason = reason.unwrap_or_default();
        if reason.len() > known {
            self.has_room((reason.len() - known) as u64)?;
        }
        let (now, place) = (self.now, self.places[&number].clone());
        if is_unstarted(self.task(number)) {
            if let Some(lease) = lease_mut(self.task_mut(number)) {
                start(lease);
                lease.deadline = lease.ttr.map_or(lease.deadline, |ttr| Some(now.after(ttr)));
            }
            self.begin_attempt(number);
        }
        let task = self.task_mut(number);
        let (id, receipt) = (task.id.clone(), task.receipt());
        let (Some(receipt), Some(lease)) = (receipt, lease_mut(task)) else {
            unreachable!("it is taken")
        };
        let is_for_pop = lease.is_held_for_pop();
        let deadline = former.as_ref().map_or(lease.deadline, |former| former.deadline);
        if let Some(grace) = cancel.grace.filter(|_| !is_for_pop) {
            let ends_at = now.after(grace);
            lease.deadline = Some(deadline.map_or(ends_at, |deadline| deadline.min(ends_at)));
            if let (None, Some(holder)) = (deadline, &mut lease.holder) {
                holder.is_tied = true;
            }
        }
        let (client, due) = (lease.client(), lease.deadline);
        let cancelled = Some(Cancelled { reason: reason.clone(), deadline });
        task.progress.trace = Trace { cancelled, ..trace_of(&task.progress) }.kept();
        self.note_due(due);
        self.settle(&place);
        if let Some(client) = client.filter(|_| former.is_none() && !is_for_pop) {
            let queue = self.homes[&place].name.clone();
            let notice = Notice { client, queue, id, receipt, cancelled: Some(reason) };
            self.outputs.push(Output::Notice(Box::new(notice)));
        }
        Ok(())
    }

    /// Ends a task that was cancelled, since its lease ends. Returns whether it was.
    pub(super) fn leave_cancelled(&mut self, number: u64) -> bool {
        let is_cancelled = self.task(number).progress.cancelled().is_some();
        if is_cancelled {
            self.leave(number, Exit::Cancelled);
        }
        is_cancelled
    }

    /// The same for a holder that says what the task did cost.
    pub(super) fn stop(&mut self, number: u64, cost: Option<u32>) -> bool {
        if self.task(number).progress.cancelled().is_some() {
            self.note_spent(number, cost);
        }
        self.leave_cancelled(number)
    }

    /// The lease of a task that was cancelled is not renewed.
    pub(super) fn may_renew(&self, number: u64) -> Result<(), RefusalKind> {
        let task = self.task(number);
        let is_cancelled = lease(task).is_some() && task.progress.cancelled().is_some();
        if is_cancelled { Err(RefusalKind::Cancelled) } else { Ok(()) }
    }
}
