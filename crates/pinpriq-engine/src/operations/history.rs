//! Notes the last attempts of the tasks of a queue, for people to look at: who held the task, when,
//! and how that ended.
//!
//! An attempt is noted when it begins, since only then is it sure that its client is connected. No
//! pop is an attempt, and no delivery that was never started.

use crate::engine::Engine;
use crate::memory::packed::{Task, Unsaved};
use crate::memory::reasons::cut;
use crate::memory::slots::{QueueSlot, Slot};
use crate::transition::Operation;
use pinpriq_proto::limits::{ATTEMPT_REASON_BYTES_MAX, HISTORY_MAX};
use pinpriq_proto::task::ClientId;
use pinpriq_proto::task::history::{Attempt, End, History, How};
use pinpriq_proto::time::Timestamp;

impl Engine {
    /// Notes that an attempt begins, if the queue notes attempts.
    #[inline]
    pub(crate) fn begin_attempt(&mut self, slot: Slot, queue: QueueSlot) {
        if self.queues[queue].settings.history > 0 {
            self.note_attempt(slot);
        }
    }

    /// Notes an attempt, unless there is no room for it.
    #[cold]
    #[inline(never)]
    fn note_attempt(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        let Some(lease) = task.lease().filter(|lease| !lease.is_held_for_pop()) else { return };
        let client = lease.client().map(ClientId::first);
        let contact = client.and_then(|client| self.clients.as_ref()?.contact(client));
        let contact = contact.unwrap_or_default();
        let attempt = Attempt { client, contact, taken_at: self.now, end: None };
        // A reason may come with its end.
        if self.check_room((attempt.bytes() + ATTEMPT_REASON_BYTES_MAX) as u64).is_err() {
            return;
        }
        let former = task.history().map_or(&[][..], |attempts| attempts);
        let attempts: History = former.iter().cloned().chain([attempt]).collect();
        self.amend(slot, Unsaved::Progress, |task| task.set_history(Some(attempts)));
    }

    /// Notes how the attempt has ended that is under way.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_attempt(&mut self, slot: Slot, operation: Operation) {
        let most = self.queues[self.tasks[slot].queue].settings.history;
        close_attempt(&mut self.tasks[slot], self.now, operation, most);
    }
}

/// Notes how the attempt has ended that is under way, and keeps the last ones. If the queue no
/// longer notes attempts, those that there are stay.
pub(crate) fn close_attempt(task: &mut Task, now: Timestamp, operation: Operation, most: u8) {
    let Some([ended @ .., open]) = task.history().map(|attempts| &**attempts) else { return };
    let how = how_of(operation);
    // How says the rest.
    let reason = task.reason().filter(|_| matches!(how, How::Failed | How::Buried));
    let reason = reason.map(|reason| cut(reason.clone(), ATTEMPT_REASON_BYTES_MAX));
    let last = Attempt { end: Some(End { at: now, how, reason }), ..open.clone() };
    let most = usize::from(if most == 0 { HISTORY_MAX } else { most });
    let over = (ended.len() + 1).saturating_sub(most);
    let attempts: History = ended.iter().cloned().chain([last]).skip(over).collect();
    task.set_history(Some(attempts));
}

const fn how_of(operation: Operation) -> How {
    match operation {
        Operation::Ack(_) => How::Acked,
        Operation::Fail(_) => How::Failed,
        Operation::Bury(_) => How::Buried,
        Operation::Deadline => How::Expired,
        Operation::HolderGone => How::Closed,
        Operation::Snatch => How::Snatched,
        _ => How::Released,
    }
}
