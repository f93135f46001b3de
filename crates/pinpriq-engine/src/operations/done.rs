//! Acknowledging tasks and taking others in one step.

use crate::engine::Engine;
use crate::memory::slots::Slot;
use crate::operations::arguments::bad;
use crate::operations::find::named;
use crate::operations::take::take_bytes;
use crate::transition::{By, Operation};
use pinpriq_proto::command::{Done, Held, HeldBy, Take};
use pinpriq_proto::limits::DONE_MAX;
use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::task::ClientId;

impl Engine {
    /// Acknowledges tasks before a take. Everything that can be refused, also of the take, is
    /// checked before anything is done. Costs what the acks would cost alone.
    #[inline(never)]
    pub(crate) fn finish_done(
        &mut self,
        client: ClientId,
        done: &[Done<'_>],
        take: &Take<'_>,
    ) -> Result<(), Refusal> {
        if done.len() > DONE_MAX {
            let given = done.len();
            return Err(bad(format!(
                "one take finishes at most {DONE_MAX} tasks, and not {given}"
            )));
        }
        self.check_take(take)?;
        self.find_lanes(take.queues, take.member)?;
        self.check_order(take.queues, take.member, take.selection)?;
        if take.wait.blocks() {
            self.check_waits(client, take_bytes(take.queues))?;
        }
        self.finish_all(client, done)
    }

    /// Acknowledges tasks, all or none.
    pub(crate) fn finish_all(
        &mut self,
        client: ClientId,
        done: &[Done<'_>],
    ) -> Result<(), Refusal> {
        let mut held: Vec<Slot> = Vec::with_capacity(done.len());
        let mut growth = 0;
        for Done { queue, receipt, result } in done {
            let lease = Held { queue: (*queue).into(), by: HeldBy::Receipt(*receipt) };
            let (slot, _) = self.hold(client, lease, Operation::Ack)?;
            if held.contains(&slot) {
                let (id, queue) = (self.tasks[slot].id(), named(lease.queue));
                let sentence = format!("the task {id} in {queue} is named twice");
                return Err(Refusal::new(RefusalKind::Stale, sentence));
            }
            if let Some(result) = result {
                self.check_payload(result)?;
                growth += self.growth_by_result(slot, result);
                self.check_room(growth)?;
            }
            held.push(slot);
        }
        for (slot, done) in held.into_iter().zip(done) {
            if let Some(result) = done.result {
                self.note_result(slot, None, result);
            }
            self.finish(slot, Operation::Ack(By::Receipt), None);
        }
        // The reply must wait for the acks.
        self.report.stir(true);
        Ok(())
    }
}
