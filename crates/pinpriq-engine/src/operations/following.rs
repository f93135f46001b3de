//! What happens in batches when tasks come and go, and what becomes of the tasks that wait for
//! them.
//!
//! A batch is done in the step in which its last task ends. Those that wait for it hear of that
//! before the call of the engine ends, as far as they are not too many: then the rest is done in
//! the next calls. After a start it follows from the records what is left to be done.

use std::collections::BTreeMap;

use crate::engine::Engine;
use crate::memory::batches::Batch;
use crate::memory::deadlines::Due;
use crate::memory::packed::{Task, Unsaved};
use crate::memory::slots::Slot;
use crate::operations::batches::counts_as_acked;
use crate::transition::Operation;
use pinpriq_proto::batches::{
    After, BATCH_STEPS_MAX, BatchRecord, BatchState, Bonds, Cancelling, MEMBER_OF_BATCH_BYTES,
};
use pinpriq_proto::change::Change;
use pinpriq_proto::command::Put;
use pinpriq_proto::stats::Exit;
use pinpriq_proto::task::{Bytes, State, StateKind};

/// How a task comes into a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Joining {
    /// It was put.
    New,
    /// It was acknowledged there, and that is undone.
    Again,
    /// It has left the queue for another one, and is counted already.
    Moved,
}

/// How a task leaves a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaving {
    /// It is acknowledged, or there was nothing to do.
    Acked,
    /// It ends in any other way.
    Failed,
    /// It comes into another queue, and stays in its batch.
    Moves,
}

impl Engine {
    /// How a task of a put waits for batches.
    #[inline(never)]
    pub(crate) fn after_put(&self, put: &Put<'_>) -> Option<After> {
        put.bonds.after.map(|names| self.after_of(names, put.only_if))
    }

    /// Does what a put says about batches, with the task that it has put.
    #[cold]
    #[inline(never)]
    pub(crate) fn bind(&mut self, slot: Slot, number: u64, bonds: &Bonds<'_>) {
        if let Some(name) = bonds.batch {
            self.join_named(slot, name);
        }
        self.free_at_once(number);
    }

    /// Frees a new task for which there is nothing to wait.
    pub(crate) fn free_at_once(&mut self, number: u64) {
        let Some(slot) = self.tasks.find(number) else { return };
        if self.tasks[slot].after().is_some_and(|after| after.names.is_empty()) {
            self.free_follower(slot);
        }
    }

    /// Lets a task join a batch.
    pub(crate) fn join_batch(&mut self, slot: Slot, number: u64, joining: Joining) {
        self.note_batch(number);
        self.tasks.memberships.join(slot, number);
        self.bytes += MEMBER_OF_BATCH_BYTES;
        let (now, is_buried) = (self.now, self.tasks[slot].kind() == StateKind::Buried);
        let cancels = self.batches.change(number, |batch| {
            match joining {
                Joining::New => batch.record.total += 1,
                Joining::Again => batch.record.acked -= 1,
                Joining::Moved => {}
            }
            batch.record.changed_at = now;
            batch.buried += u64::from(is_buried);
            batch.record.cancelling.is_some() && batch.next_to_cancel.is_none()
        });
        if cancels == Some(true) {
            self.batches.cancel_from(number, Some(slot));
        }
        self.note_change(number);
    }

    /// Lets a popped task that was put back join the batch again in which it was acknowledged.
    pub(crate) fn join_again(&mut self, slot: Slot, name: &Bytes) {
        let (number, batch) = (self.tasks[slot].number(), self.batches.called(name));
        let batch = batch.map(|batch| &batch.record);
        let batch = batch.filter(|record| record.may_have(number) && record.acked > 0);
        if let Some(number) = batch.map(|record| record.number) {
            self.join_batch(slot, number, Joining::Again);
        }
    }

    /// Takes a task out of its batch, if it is in one. It was in the state `from`.
    #[inline(never)]
    pub(crate) fn leave_batch(&mut self, slot: Slot, from: StateKind, leaving: Leaving) {
        if !self.tasks.memberships.has(slot) {
            return;
        }
        let next = self.tasks.memberships.next(slot);
        let batch = self.tasks.memberships.of(slot);
        if let Some(number) = batch {
            self.note_batch(number);
        }
        self.tasks.memberships.leave(slot);
        let Some(number) = batch else { return };
        let now = self.now;
        self.bytes -= MEMBER_OF_BATCH_BYTES;
        self.batches.change(number, |batch| {
            match leaving {
                Leaving::Acked => batch.record.acked += 1,
                Leaving::Failed => batch.record.failed += 1,
                Leaving::Moves => {}
            }
            batch.record.changed_at = now;
            batch.buried -= u64::from(from == StateKind::Buried);
            if batch.next_to_cancel == Some(slot) {
                batch.next_to_cancel = next;
            }
        });
        self.note_change(number);
    }

    /// Forgets the account of a task that has left its queue, takes it out of its batch, and ends
    /// its wait for others. It was in the state `from`.
    #[cold]
    #[inline(never)]
    pub(crate) fn forget_marks(
        &mut self,
        slot: Slot,
        task: &Task,
        (from, exit): (StateKind, Exit),
    ) {
        self.forget_account(task.number());
        let leaving = match exit {
            Exit::Acked => Leaving::Acked,
            Exit::Moved => Leaving::Moves,
            Exit::Skipped => {
                let only_if = task.after().map(|after| after.only_if);
                if only_if.is_some_and(counts_as_acked) { Leaving::Acked } else { Leaving::Failed }
            }
            Exit::Expired | Exit::Killed | Exit::Dead | Exit::Evicted | Exit::Cancelled => {
                Leaving::Failed
            }
        };
        self.leave_batch(slot, from, leaving);
        self.unfollow(task);
    }

    /// Follows a task that may be in a batch from one state into another. Returns whether it has
    /// left its batch by that.
    #[inline(never)]
    pub(crate) fn move_in_batch(&mut self, slot: Slot, from: StateKind, to: StateKind) -> bool {
        if to.is_finished() && self.tasks.memberships.has(slot) {
            self.leave_batch(slot, from, Leaving::Acked);
            return true;
        }
        if from != to && [from, to].contains(&StateKind::Buried) {
            self.recount_buried(slot, from, to);
        }
        false
    }

    fn recount_buried(&mut self, slot: Slot, from: StateKind, to: StateKind) {
        let Some(number) = self.tasks.memberships.of(slot) else { return };
        self.note_batch(number);
        self.batches.change(number, |batch| {
            batch.buried += u64::from(to == StateKind::Buried);
            batch.buried -= u64::from(from == StateKind::Buried);
        });
    }

    /// Notes that the record of a batch has changed. It may be done by that.
    pub(crate) fn note_change(&mut self, number: u64) {
        self.batches.mark(number);
        let is_over =
            |record: &BatchRecord| record.state == BatchState::Closed && record.pending() == 0;
        if self.batches.one(number).is_some_and(|batch| is_over(&batch.record)) {
            self.finish_batch(number);
        }
        let now = self.now;
        self.batches.change(number, |batch| batch.record.changed_at = now);
        self.arm_batch(number);
    }

    /// A batch is done. What is left of its tasks is in none from now on.
    fn finish_batch(&mut self, number: u64) {
        let now = self.now;
        self.batches.change(number, |batch| {
            batch.record.state = BatchState::Done;
            batch.record.done_at = Some(now);
            batch.buried = 0;
            batch.next_to_cancel = None;
        });
        self.bytes -= MEMBER_OF_BATCH_BYTES * self.tasks.memberships.count(number);
        self.tasks.memberships.end(number);
        self.batches.fire(number);
        self.forget_account(number);
    }

    /// Notes a batch that is about to change, as it is.
    pub(crate) fn note_batch(&mut self, number: u64) {
        if let Some(undo) = &mut self.undo {
            undo.batches.entry(number).or_insert_with(|| self.batches.one(number).cloned());
        }
    }

    /// Puts a batch into the index of deadlines at its next moment.
    pub(crate) fn arm_batch(&mut self, number: u64) {
        let Some(batch) = self.batches.one(number) else { return };
        let due = batch.due(self.tasks.memberships.count(number), &self.limits);
        if due == batch.armed {
            return;
        }
        self.disarm_batch(number);
        if let Some(at) = due {
            self.deadlines.insert(at, Due::Batch(number));
        }
        self.batches.change(number, |batch| batch.armed = due);
    }

    pub(crate) fn disarm_batch(&mut self, number: u64) {
        let armed = self.batches.change(number, |batch| batch.armed.take()).flatten();
        if let Some(at) = armed {
            self.deadlines.remove(at, Due::Batch(number));
        }
    }

    /// Forgets a batch that is done, or gives up one that is not: its tasks count as failed.
    pub(crate) fn fire_batch(&mut self, number: u64) {
        let is_done = self.batches.change(number, |batch| {
            batch.armed = None;
            batch.record.is_done()
        });
        match is_done {
            Some(true) => self.forget_batch(number),
            Some(false) => {
                self.batches.note_given_up(number);
                self.batches.change(number, |batch| {
                    batch.record.failed += batch.record.pending();
                    batch.record.given_up = true;
                    batch.record.state = BatchState::Closed;
                });
                self.note_change(number);
            }
            None => {}
        }
    }

    /// Notes that a task waits for the batches that it names.
    #[inline(never)]
    pub(crate) fn follow(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        let (number, names) = (task.number(), task.after().map(|after| after.names.clone()));
        for name in names.into_iter().flatten() {
            self.change_followers(&name, |batch| _ = batch.followers.insert(number));
        }
    }

    /// Notes that a task waits for its batches no longer.
    pub(crate) fn unfollow(&mut self, task: &Task) {
        let number = task.number();
        for name in task.after().into_iter().flat_map(|after| &after.names) {
            self.change_followers(name, |batch| _ = batch.followers.remove(&number));
        }
    }

    /// Ends the wait of a task for its batches. Returns how many bytes it occupies less.
    #[inline(never)]
    pub(crate) fn wait_no_longer(&mut self, slot: Slot) -> u64 {
        let task = self.tasks[slot].clone();
        self.unfollow(&task);
        let task = &mut self.tasks[slot];
        let before = task.own_bytes();
        task.set_after(None);
        before - task.own_bytes()
    }

    fn change_followers(&mut self, name: &Bytes, change: impl FnOnce(&mut Batch)) {
        let Some(number) = self.batches.called(name).map(|batch| batch.record.number) else {
            return;
        };
        self.note_batch(number);
        self.batches.change(number, change);
        // One that is done may be forgotten once nobody waits for it.
        self.arm_batch(number);
    }

    /// Ends a call as [`Self::conclude`] does. Before, it serves consumers, and tells those that
    /// wait for batches that these are done, until neither leads to more, or the rest has to wait
    /// for the next call.
    #[cold]
    #[inline(never)]
    pub(crate) fn conclude_with_batches(&mut self) {
        if !self.batches.have_work() {
            self.serve_all();
        }
        // What was served may have ended a batch.
        if self.batches.have_work() {
            self.settle_batches();
        }
        self.save();
        self.save_batches();
        self.report.conclude();
    }

    fn settle_batches(&mut self) {
        let mut steps = BATCH_STEPS_MAX;
        while steps > 0 && self.batches.have_work() {
            steps = self.settle_some(steps);
            self.batches.note_work();
            self.serve_all();
        }
    }

    /// Does what is left to be done with batches, at most so many steps. Returns how many remain.
    fn settle_some(&mut self, mut steps: usize) -> usize {
        while steps > 0 {
            if let Some(number) = self.batches.first_fired() {
                steps -= usize::from(self.tell_follower(number));
            } else if let Some((number, first)) = self.batches.first_to_cancel() {
                steps -= self.cancel_some(number, first, steps);
            } else {
                break;
            }
        }
        steps
    }

    /// Tells all that await a batch that it is done, and the next task that waits for it. Returns
    /// whether there was one.
    fn tell_follower(&mut self, number: u64) -> bool {
        self.answer_batch_awaiters(number);
        let told = self.batches.change(number, |batch| {
            (batch.followers.pop_first(), batch.record.name.clone(), batch.record.has_failed())
        });
        let Some((Some(follower), name, has_failed)) = told else {
            self.batches.end_firing();
            self.arm_batch(number);
            return false;
        };
        // What was emptied away meanwhile waits for nothing.
        let Some(slot) = self.live(follower) else { return true };
        let Some(mut after) = self.tasks[slot].after().cloned() else { return true };
        after.names.retain(|known| *known != name);
        after.any_failed |= has_failed;
        let is_free = after.names.is_empty();
        self.amend(slot, Unsaved::Progress, |task| task.set_after(Some(after)));
        if is_free {
            self.free_follower(slot);
        }
        true
    }

    /// Lets a task go on that waits for no batch any more, or skips it.
    fn free_follower(&mut self, slot: Slot) {
        let Some(After { only_if, any_failed, .. }) = self.tasks[slot].after() else { return };
        if only_if.skips(*any_failed) {
            return self.leave(slot, Operation::Follow, Exit::Skipped);
        }
        let delay = self.tasks[slot].progress().delay();
        let ready_at = (!delay.is_zero()).then(|| self.now.after(delay));
        self.shift(slot, Operation::Follow, Unsaved::Progress, |_| match ready_at {
            None => State::Ready,
            ready_at => State::Waiting { ready_at },
        });
    }

    /// Cancels some tasks of a batch, at most so many, from this one on. Returns how many.
    fn cancel_some(&mut self, number: u64, first: Slot, most: usize) -> usize {
        let memberships = &self.tasks.memberships;
        let mut rest = std::iter::successors(Some(first), |slot| memberships.next(*slot));
        let mut slots: Vec<Slot> = rest.by_ref().take(most).collect();
        let next = rest.next();
        self.batches.cancel_from(number, next);
        let Some(Batch { record, asks_again, .. }) = self.batches.one(number) else { return most };
        let Some(Cancelling { reason, grace }) = record.cancelling.clone() else { return most };
        let asks_again = *asks_again;
        let ends_at = grace.map(|grace| self.now.after(grace));
        slots.sort_unstable_by_key(|slot| self.tasks[*slot].number());
        let count = slots.len();
        for slot in slots {
            let task = &self.tasks[slot];
            // What was emptied away is counted when its memory is freed.
            if self.live(task.number()).is_none() {
                continue;
            }
            if task.kind() != StateKind::Taken {
                self.leave(slot, Operation::Cancel, Exit::Cancelled);
            } else if asks_again || task.cancelled().is_none() {
                // Without room for the reason, it is cancelled without one.
                if self.ask_to_stop(slot, reason.as_deref(), ends_at).is_err() {
                    _ = self.ask_to_stop(slot, None, ends_at);
                }
            }
        }
        if next.is_none() {
            self.batches.change(number, |batch| batch.asks_again = false);
        }
        count
    }

    /// Reports the batches that the store does not know as they are now.
    pub(crate) fn save_batches(&mut self) {
        for record in self.batches.take_unsaved() {
            self.report.add(Change::detail(record));
        }
    }

    /// Makes the changed batches what they were, before their tasks are.
    pub(crate) fn put_back_batches(&mut self, batches: BTreeMap<u64, Option<Batch>>) {
        self.batches.forget_unsaved();
        for number in batches.keys() {
            self.disarm_batch(*number);
            self.batches.remove(*number);
        }
        for (number, former) in batches {
            let is_followed = former.as_ref().is_some_and(|batch| !batch.record.is_done());
            if !is_followed {
                self.tasks.memberships.end(number);
            }
            let Some(former) = former else { continue };
            if is_followed && !self.tasks.memberships.follow(number) {
                self.tasks.memberships.begin(number, former.record.name.clone());
            }
            if let Some(at) = former.armed {
                self.deadlines.insert(at, Due::Batch(number));
            }
            self.batches.insert(former);
        }
    }

    /// Goes through the tasks of these batches again that are being cancelled.
    pub(crate) fn go_on_cancelling(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            let batch = self.batches.one(number).map(|batch| &batch.record);
            if batch.is_some_and(|it| it.cancelling.is_some() && !it.is_done()) {
                let first = self.tasks.memberships.first(number);
                self.batches.cancel_from(number, first);
            }
        }
    }

    /// Makes restored batches what they were: with their tasks, and those that wait for them. Then
    /// what has become of their tasks meanwhile is counted.
    pub(crate) fn revive_batches(&mut self) {
        let restored = std::mem::take(&mut self.tasks.memberships);
        let numbers: Vec<u64> = self.batches.iter().map(|batch| batch.record.number).collect();
        for batch in self.batches.iter() {
            self.bytes += batch.record.bytes();
            if !batch.record.is_done() {
                self.tasks.memberships.begin(batch.record.number, batch.record.name.clone());
            }
        }
        let slots: Vec<Slot> = self.tasks.slots().collect();
        for slot in slots {
            self.revive_member(slot, restored.name_of(slot));
            if self.tasks[slot].after().is_some() {
                self.batches.note_use();
                self.has_marks = true;
                self.revive_follower(slot);
            }
        }
        for number in numbers {
            self.revive_batch(number);
        }
    }

    fn revive_member(&mut self, slot: Slot, name: Option<&Bytes>) {
        let kind = self.tasks[slot].kind();
        let batch = name.filter(|_| !kind.is_finished()).and_then(|it| self.batches.called(it));
        let (batch, task) = (batch.map(|batch| &batch.record), self.tasks[slot].number());
        let Some(record) = batch.filter(|record| record.may_have(task)) else { return };
        let number = record.number;
        self.tasks.memberships.join(slot, number);
        self.bytes += MEMBER_OF_BATCH_BYTES;
        let is_buried = kind == StateKind::Buried;
        self.batches.change(number, |batch| batch.buried += u64::from(is_buried));
    }

    fn revive_follower(&mut self, slot: Slot) {
        self.follow(slot);
        let Some(after) = self.tasks[slot].after() else { return };
        let is_known = |name: &&Bytes| self.batches.called(name).is_some();
        let known: Vec<Bytes> = after.names.iter().filter(is_known).cloned().collect();
        if known.len() < after.names.len() || known.is_empty() {
            // Only damage makes the store forget a batch for which a task waits.
            let is_lost = known.len() < after.names.len();
            let after =
                After { names: known, any_failed: after.any_failed || is_lost, ..after.clone() };
            let is_free = after.names.is_empty();
            self.amend(slot, Unsaved::Progress, |task| task.set_after(Some(after)));
            if is_free {
                self.free_follower(slot);
            }
        }
    }

    /// Counts the tasks of a batch that were lost, and goes on with what was not done.
    fn revive_batch(&mut self, number: u64) {
        let members = self.tasks.memberships.count(number);
        let lost = self.batches.change(number, |batch| {
            let lost = batch.record.pending().saturating_sub(members);
            if !batch.record.is_done() {
                batch.record.failed += lost;
                // More tasks than were counted are there only after damage.
                let total = batch.record.acked + batch.record.failed + members;
                batch.record.total = batch.record.total.max(total);
            }
            lost
        });
        let Some(batch) = self.batches.one(number) else { return };
        if batch.record.is_done() {
            if !batch.followers.is_empty() {
                self.batches.fire(number);
            }
            return self.arm_batch(number);
        }
        let is_over = batch.record.state == BatchState::Closed && batch.record.pending() == 0;
        if batch.record.cancelling.is_some() {
            let first = self.tasks.memberships.first(number);
            self.batches.cancel_from(number, first);
        }
        if lost.is_some_and(|lost| lost > 0) || is_over {
            return self.note_change(number);
        }
        self.arm_batch(number);
    }
}
