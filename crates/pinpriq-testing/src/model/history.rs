//! The attempts of tasks, as far as their queues note them.

use std::sync::Arc;

use pinpriq_proto::limits::{ATTEMPT_OVERHEAD_BYTES, ATTEMPT_REASON_BYTES_MAX, HISTORY_MAX};
use pinpriq_proto::task::history::{Attempt, Clients, End, How};
use pinpriq_proto::task::{ClientId, State, TaskRecord, Trace};
use pinpriq_proto::time::Timestamp;

use super::Model;
use super::endings::beginning;

impl Model {
    /// Sets what knows who the clients are.
    pub fn set_clients(&mut self, clients: Option<Arc<dyn Clients>>) {
        self.clients = clients;
    }

    /// An attempt begins, if there is room to note it.
    pub(super) fn begin_attempt(&mut self, number: u64) {
        let most = self.settings(&self.places[&number]).history;
        let State::Taken(lease) = self.task(number).progress.state else { return };
        if lease.is_held_for_pop() {
            return;
        }
        let client = lease.client().map(ClientId::first);
        let known = client.and_then(|client| self.clients.as_ref()?.contact(client));
        let contact = known.unwrap_or_default();
        let texts = contact.name.len() + contact.address.len() + ATTEMPT_REASON_BYTES_MAX;
        if most == 0 || self.has_room((ATTEMPT_OVERHEAD_BYTES + texts) as u64).is_err() {
            return;
        }
        let attempt = Attempt { client, contact, taken_at: self.now, end: None };
        set_attempts(self.task_mut(number), |attempts| attempts.push(attempt));
    }
}

/// Notes how the attempt has ended that is under way.
pub(super) fn end_attempt(task: &mut TaskRecord, at: Timestamp, how: How, most: u8) {
    if task.progress.history().last().is_none_or(|last| last.end.is_some()) {
        return;
    }
    let reason = task.progress.reason.as_ref().filter(|_| matches!(how, How::Failed | How::Buried));
    let reason = reason.map(|reason| beginning(reason, ATTEMPT_REASON_BYTES_MAX));
    let most = if most == 0 { HISTORY_MAX } else { most };
    set_attempts(task, |attempts| {
        if let Some(last) = attempts.last_mut() {
            last.end = Some(End { at, how, reason });
        }
        while attempts.len() > usize::from(most) {
            attempts.remove(0);
        }
    });
}

/// An attempt that was never one is not noted.
pub(super) fn forget_open_attempt(task: &mut TaskRecord) {
    set_attempts(task, |attempts| attempts.retain(|attempt| attempt.end.is_some()));
}

pub(super) fn set_attempts(task: &mut TaskRecord, change: impl FnOnce(&mut Vec<Attempt>)) {
    let mut attempts = task.progress.history().to_vec();
    change(&mut attempts);
    let history = (!attempts.is_empty()).then(|| attempts.into());
    let trace = task.progress.trace.as_deref().cloned().unwrap_or(Trace::NONE);
    task.progress.trace = Trace { history, ..trace }.kept();
}
