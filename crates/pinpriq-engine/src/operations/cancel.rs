//! Cancelling: a task that is not taken ends at once, and the holder of a taken one is asked to
//! stop.
//!
//! A cancelled task stays taken until its lease ends, and may still be acknowledged. Any other end
//! of the lease removes it from its queue, which is no failure. The code that ends leases asks here
//! first.

use crate::engine::{Answered, Engine};
use crate::memory::packed::Unsaved;
use crate::memory::slots::Slot;
use crate::operations::arguments::{check_id, check_positive, check_reason};
use crate::operations::find::not_found;
use crate::transition::{Answer, Operation, Standing, answer};
use pinpriq_proto::command::Cancel;
use pinpriq_proto::reply::{Notice, Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::stats::Exit;
use pinpriq_proto::task::{Bytes, Cancelled, ClientId, Lease, Receipt};
use pinpriq_proto::time::Timestamp;

/// The most bytes of a reason in a refusal.
const REASON_TOLD_MAX: usize = 200;

impl Engine {
    pub(crate) fn cancel(&mut self, client: ClientId, cancel: &Cancel<'_>) -> Answered {
        let Cancel { queue, id, reason, grace } = *cancel;
        check_id(id)?;
        check_reason(reason)?;
        check_positive("the grace", grace)?;
        let ends_at = grace.map(|grace| self.moment("the grace", grace)).transpose()?;
        let slot = self.find_task(queue, id)?;
        let standing = slot.map_or(Standing::Absent, |slot| self.standing(slot, client));
        let (answer, Some(slot)) = (answer(Operation::Cancel, standing), slot) else {
            return Err(not_found(queue, id));
        };
        match answer {
            Answer::Moves(_) => {
                self.leave(slot, Operation::Cancel, Exit::Cancelled);
                return Ok(Some(Reply::State(None)));
            }
            Answer::Stays => self.ask_to_stop(slot, reason, ends_at)?,
            Answer::Nothing => {}
            other => unreachable!("a cancel is answered {other:?}"),
        }
        Ok(Some(Reply::State(Some(self.tasks[slot].kind()))))
    }

    /// Asks the holder of a task to stop, once for each lease.
    pub(crate) fn ask_to_stop(
        &mut self,
        slot: Slot,
        reason: Option<&[u8]>,
        ends_at: Option<Timestamp>,
    ) -> Result<(), Refusal> {
        let task = &self.tasks[slot];
        let former = task.cancelled();
        let (is_first, former_bytes) = (former.is_none(), former.map_or(0, |it| it.reason.len()));
        let former_reason = || former.map_or_else(Bytes::default, |it| it.reason.clone());
        let reason = reason.map_or_else(former_reason, Bytes::from);
        if reason.len() > former_bytes {
            self.check_room((reason.len() - former_bytes) as u64)?;
        }
        if task.lease().is_some_and(Lease::is_unstarted) {
            // The store does not have this lease yet, and the task must no longer be called back.
            self.begin_lease(slot);
        }
        let task = &self.tasks[slot];
        let Some(lease) = task.lease() else { unreachable!("only a taken task stays") };
        let deadline = task.cancelled().map_or(lease.deadline, |former| former.deadline);
        // A pop over several engines ends in a moment, and its client has no receipt.
        let ends_at = ends_at.filter(|_| !lease.is_held_for_pop());
        let asked = lease.client().filter(|_| is_first && !lease.is_held_for_pop());
        let notice = asked.map(|client| Notice {
            client,
            queue: self.queues[task.queue].name.clone(),
            id: task.id(),
            receipt: Receipt { number: task.number(), grant: lease.grant },
            cancelled: Some(reason.clone()),
        });
        self.amend(slot, Unsaved::Progress, |task| {
            if let (Some(ends_at), Some(lease)) = (ends_at, task.lease_mut()) {
                lease.deadline = Some(deadline.map_or(ends_at, |deadline| deadline.min(ends_at)));
                if let (None, Some(holder)) = (deadline, &mut lease.holder) {
                    holder.is_tied = true;
                }
            }
            task.set_cancelled(Some(Cancelled { reason, deadline }));
        });
        self.outputs.extend(notice.map(|notice| Output::Notice(Box::new(notice))));
        Ok(())
    }

    /// Takes a task out of its queue whose lease ends, if it was cancelled. Returns whether it was.
    #[inline]
    pub(crate) fn leave_cancelled(&mut self, slot: Slot, operation: Operation) -> bool {
        let is_cancelled = self.tasks[slot].cancelled().is_some();
        if is_cancelled {
            self.leave(slot, operation, Exit::Cancelled);
        }
        is_cancelled
    }

    /// Like [`Self::leave_cancelled`], for a holder that says what the task did cost.
    #[inline]
    pub(crate) fn stop(&mut self, slot: Slot, operation: Operation, cost: Option<u32>) -> bool {
        if self.tasks[slot].cancelled().is_some() {
            self.note_spent(slot, cost);
        }
        self.leave_cancelled(slot, operation)
    }

    /// Refuses to renew the lease of a task that was cancelled.
    pub(crate) fn check_not_cancelled(&self, slot: Slot) -> Result<(), Refusal> {
        let Some(cancelled) = self.tasks[slot].cancelled() else { return Ok(()) };
        if cancelled.reason.is_empty() {
            return Err(Refusal::new(RefusalKind::Cancelled, "without a reason"));
        }
        let told = &cancelled.reason[..cancelled.reason.len().min(REASON_TOLD_MAX)];
        Err(Refusal::new(RefusalKind::Cancelled, told.escape_ascii().to_string()))
    }
}
