//! The result of a task: its holder gives it with the acknowledgement, and clients that wait for
//! the task receive it.
//!
//! A kept task has its result until it comes back. The result of any other task is not stored.

use crate::engine::Engine;
use crate::memory::packed::Unsaved;
use crate::memory::slots::Slot;
use crate::step::New;
use pinpriq_proto::reply::Refusal;
use pinpriq_proto::settings::AfterAck;
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::Span;

impl Engine {
    /// Refuses an acknowledgement that says more than there is room for. Costs O(1).
    #[inline(never)]
    pub(super) fn check_finish(
        &self,
        slot: Slot,
        zombie: Option<Span>,
        (payload, result): (Option<&[u8]>, Option<&[u8]>),
    ) -> Result<(), Refusal> {
        if !self.is_kept(slot, zombie) {
            return Ok(());
        }
        self.check_change(slot, New { payload, result, ..New::NOTHING })
    }

    /// The bytes that the result of a task takes that is acknowledged.
    pub(super) fn growth_by_result(&self, slot: Slot, result: &[u8]) -> u64 {
        if self.is_kept(slot, None) { result.len() as u64 } else { 0 }
    }

    /// Notes what has come of the work on a task that is acknowledged in this step.
    #[inline(never)]
    pub(super) fn note_result(&mut self, slot: Slot, zombie: Option<Span>, result: &[u8]) {
        if self.is_kept(slot, zombie) || self.consumers.has_watchers() {
            let result = Bytes::from(result);
            self.amend(slot, Unsaved::Nothing, |task| task.set_result(Some(result)));
        }
    }

    fn is_kept(&self, slot: Slot, zombie: Option<Span>) -> bool {
        let queue = &self.queues[self.tasks[slot].queue];
        zombie.is_some() || queue.settings.after_ack != AfterAck::Delete
    }
}
