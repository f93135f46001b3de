//! What tasks have to do with batches: how they join one and leave it, and how they wait for
//! others. What batches do by themselves is in `batches`.

use pinpriq_proto::batches::{
    AFTER_MAX, After, BATCH_WAITERS_MAX, Bonds, MEMBER_OF_BATCH_BYTES, OnlyIf, batch_bytes,
    check_batch_name,
};
use pinpriq_proto::command::{Delay, Put, TimeToLive};
use pinpriq_proto::looking::Reason;
use pinpriq_proto::reply::RefusalKind;
use pinpriq_proto::task::{Bytes, State, StateKind, TaskRecord, Trace};

use super::turns::trace_of;
use super::{Exit, Model, fits};

/// A task of an emptied queue that has not been freed.
#[derive(Clone, Debug)]
pub(super) struct Emptied {
    pub(super) number: u64,
    /// The bytes that it occupies alone.
    pub(super) own_bytes: u64,
    /// The batch in which it is pending.
    pub(super) batch: Option<Bytes>,
    /// The batches that it has waited for.
    pub(super) after: Vec<Bytes>,
    /// Whether it was buried.
    pub(super) is_buried: bool,
}

/// Whether a put waits for batches.
pub(super) fn waits_for_batches(put: &Put<'_>) -> bool {
    put.bonds.after.is_some()
}

/// Whether what a put says about batches makes sense.
pub(super) fn bonds_make_sense(put: &Put<'_>) -> Result<(), RefusalKind> {
    put.bonds.check().map_err(|refusal| refusal.kind)?;
    let is_delayed_otherwise = matches!(put.delay, Delay::Until(_) | Delay::Held);
    fits(put.bonds.after.is_none() || !(is_delayed_otherwise || put.ttl == TimeToLive::Instant))
}

/// Whether a filter names what can be a batch.
pub(super) fn batch_name_fits(name: Option<&[u8]>) -> Result<(), RefusalKind> {
    name.map_or(Ok(()), check_batch_name).map_err(|refusal| refusal.kind)
}

/// Whether a task is pending in the batch of this name, if one is named.
pub(super) fn is_pending_in(task: &TaskRecord, batch: Option<&[u8]>) -> bool {
    batch.is_none() || task.batch().map(|own| &**own) == batch
}

/// What a task occupies because of batches.
pub(super) fn bytes_of_bonds(task: &TaskRecord) -> u64 {
    let batch = task.batch().map_or(0, |_| MEMBER_OF_BATCH_BYTES);
    batch + task.progress.after().map_or(0, After::bytes) as u64
}

impl Model {
    /// The numbers of the tasks that wait for a batch. Those of an emptied queue are among them
    /// until they are freed.
    pub(super) fn followers_of(&self, name: &[u8]) -> Vec<u64> {
        let names = |names: &[Bytes]| names.iter().any(|own| **own == *name);
        let waits =
            |task: &&TaskRecord| task.progress.after().is_some_and(|after| names(&after.names));
        let there = self.tasks().filter(waits).map(|task| task.number);
        let gone = self.emptied.iter().filter(|gone| names(&gone.after)).map(|gone| gone.number);
        there.chain(gone).collect()
    }

    /// Refuses a put because of the batches that it names.
    pub(super) fn bonds_fit(&self, bonds: Bonds<'_>) -> Result<(), RefusalKind> {
        self.after_fits(bonds)?;
        bonds.batch.map_or(Ok(()), |name| self.may_join(name))
    }

    /// Refuses a put because of the batches that its task would wait for.
    pub(super) fn after_fits(&self, bonds: Bonds<'_>) -> Result<(), RefusalKind> {
        bonds.names_after().try_for_each(|name| self.may_follow(name))
    }

    fn may_follow(&self, name: &[u8]) -> Result<(), RefusalKind> {
        let number = self.known_batch(name)?;
        let is_done = self.batches[&number].record.is_done();
        if !is_done && self.followers_of(name).len() >= BATCH_WAITERS_MAX {
            return Err(RefusalKind::Busy);
        }
        Ok(())
    }

    fn may_join(&self, name: &[u8]) -> Result<(), RefusalKind> {
        let Ok(number) = self.known_batch(name) else { return self.another_batch_fits() };
        let record = &self.batches[&number].record;
        let takes_no_more = record.is_done() || record.cancelling.is_some();
        if takes_no_more { Err(RefusalKind::WrongState) } else { Ok(()) }
    }

    /// The bytes that a batch needs if it has to be made.
    pub(super) fn room_of_batch(&self, name: Option<&[u8]>) -> u64 {
        let is_new = |name: &&[u8]| self.known_batch(name).is_err();
        name.filter(is_new).map_or(0, |name| batch_bytes(name.len()))
    }

    /// What a new task waits for. Batches that are done are left out.
    pub(super) fn after_of(&self, put: &Put<'_>) -> Option<After> {
        put.bonds.after?;
        let names = put.bonds.names_after().map(Bytes::from).collect();
        Some(self.without_done(After { names, only_if: put.only_if, any_failed: false }))
    }

    /// Leaves out the batches that are done. An unknown one, which only a damaged store has, counts
    /// as done and failed.
    fn without_done(&self, mut after: After) -> After {
        for name in std::mem::take(&mut after.names) {
            let known = self.known_batch(&name).ok();
            match known.map(|number| &self.batches[&number].record) {
                Some(record) if !record.is_done() => after.names.push(name),
                Some(record) => after.any_failed |= record.has_failed(),
                None => after.any_failed = true,
            }
        }
        after
    }

    /// Makes the batch that a new task is to join, if there is none.
    pub(super) fn make_if_new(&mut self, name: Option<&[u8]>) {
        if let Some(name) = name.filter(|name| self.known_batch(name).is_err()) {
            self.make_batch(name, None);
        }
    }

    /// A new task joins a batch. Returns its name.
    pub(super) fn join_new(&mut self, number: u64, name: Option<&[u8]>) -> Option<Bytes> {
        let name = name?;
        let batch = self.known_batch(name).ok()?;
        if self.batches[&batch].record.is_done() {
            // Its last task was evicted to make room for this one.
            return None;
        }
        self.batch_mut(batch).record.total += 1;
        self.join_batch(number, batch);
        Some(name.into())
    }

    fn join_batch(&mut self, number: u64, batch: u64) {
        let now = self.now;
        let known = self.batch_mut(batch);
        known.record.changed_at = now;
        known.members.push(number);
        if known.record.cancelling.is_some() {
            known.to_cancel.push(number);
        }
        self.go_on_cancelling(batch);
    }

    /// A task that was popped comes back, and is pending again in the batch that it had then, if
    /// that can be. Returns the batch.
    pub(super) fn join_again(&mut self, number: u64, name: Option<&Bytes>) -> Option<Bytes> {
        let batch = self.known_batch(name?).ok()?;
        let record = &mut self.batch_mut(batch).record;
        if !record.may_have(number) || record.acked == 0 {
            return None;
        }
        record.acked -= 1;
        self.join_batch(number, batch);
        name.cloned()
    }

    /// A task has left for good, or goes elsewhere.
    pub(super) fn part_from_batch(&mut self, task: &TaskRecord, exit: Exit) {
        let was_acked = match exit {
            // Its membership goes along.
            Exit::Moved => return,
            Exit::Acked => true,
            Exit::Skipped => {
                let after = task.progress.after();
                after.is_some_and(|after| after.only_if == OnlyIf::Failed)
            }
            Exit::Expired | Exit::Killed | Exit::Dead | Exit::Evicted | Exit::Cancelled => false,
        };
        self.leave_batch(task.number, task.batch(), was_acked);
    }

    /// A task is not pending in its batch any more, if it was in one.
    pub(super) fn leave_batch(&mut self, number: u64, name: Option<&Bytes>, was_acked: bool) {
        let Some(batch) = name.and_then(|name| self.known_batch(name).ok()) else { return };
        let now = self.now;
        let known = self.batch_mut(batch);
        known.members.retain(|member| *member != number);
        known.to_cancel.retain(|member| *member != number);
        known.record.changed_at = now;
        if was_acked {
            known.record.acked += 1;
        } else {
            known.record.failed += 1;
        }
        self.end_batch_without_members(batch);
    }

    /// A task that was acknowledged is kept, and is in no batch.
    pub(super) fn leave_batch_acked(&mut self, number: u64) {
        let name = self.task(number).batch().cloned();
        self.task_mut(number).set_batch(None);
        self.leave_batch(number, name.as_ref(), true);
    }

    /// A task in a batch has another number, since it was moved.
    pub(super) fn rename_member(&mut self, task: &TaskRecord, former: u64) {
        let Some(batch) = task.batch().and_then(|name| self.known_batch(name).ok()) else { return };
        let now = self.now;
        let known = self.batch_mut(batch);
        known.record.changed_at = now;
        known.members.retain(|member| *member != former);
        known.members.push(task.number);
        if known.record.cancelling.is_some() {
            known.to_cancel.retain(|member| *member != former);
            known.to_cancel.push(task.number);
        }
        self.go_on_cancelling(batch);
    }

    /// Lets a task wait for batches, in W.
    pub(super) fn set_after(&mut self, number: u64, after: Option<After>) {
        let progress = &mut self.task_mut(number).progress;
        progress.trace = Trace { after, ..trace_of(progress) }.kept();
    }

    /// Frees a task that has waited for batches, if all of them are done by now.
    pub(super) fn free_if_nothing_is_left(&mut self, number: u64) {
        if !self.places.contains_key(&number) {
            return;
        }
        let progress = &self.task(number).progress;
        let Some(after) = progress.after().filter(|after| after.names.is_empty()) else { return };
        let is_skipped = after.only_if.skips(after.any_failed);
        let row = ("the batches before it are done", StateKind::Waiting);
        let delay = progress.delay();
        *self.happened.entry(row).or_default() += 1;
        if is_skipped {
            return self.leave(number, Exit::Skipped);
        }
        let ready_at = self.now.after(delay);
        let waiting = State::Waiting { ready_at: Some(ready_at) };
        self.shift(number, if delay.is_zero() { State::Ready } else { waiting });
    }

    /// Finds what a restored task has to do with batches, which are there already.
    pub(super) fn revive_bonds(&mut self, number: u64) {
        if let Some(name) = self.task(number).batch().cloned() {
            let known = self.known_batch(&name).ok();
            let pending = known.filter(|batch| self.batches[batch].record.may_have(number));
            match pending {
                Some(batch) => self.batch_mut(batch).members.push(number),
                None => self.task_mut(number).set_batch(None),
            }
        }
        let after = self.task(number).progress.after().cloned();
        if let Some(mut after) = after {
            // Those that are done are told in their turn.
            let names = after.names.len();
            after.names.retain(|name| self.known_batch(name).is_ok());
            after.any_failed |= after.names.len() < names;
            self.set_after(number, Some(after));
        }
    }

    /// Why a task waits that is not ready at any moment.
    pub(super) fn why_held(&self, task: &TaskRecord) -> Vec<Reason> {
        let Some(after) = task.progress.after() else { return vec![Reason::Held] };
        let why = |name: &Bytes| {
            let known = self.known_batch(name).ok();
            let pending = known.map_or(0, |number| self.batches[&number].record.pending());
            Reason::After { batch: name.clone(), pending }
        };
        after.names.iter().map(why).collect()
    }

    /// Refuses an imported task because of the batches that it names. One that has been
    /// acknowledged joins none.
    pub(super) fn imported_bonds_fit(&self, from: &TaskRecord) -> Result<(), RefusalKind> {
        let after = from.progress.after().map_or(&[][..], |after| &after.names[..]);
        after.iter().try_for_each(|name| self.may_follow(name))?;
        batch_of_imported(from).map_or(Ok(()), |name| self.may_join(name))
    }

    /// Ties an imported task, which gets this number, to the batches that it names.
    pub(super) fn tie_imported(&mut self, number: u64, task: &mut TaskRecord) {
        let trace = trace_of(&task.progress);
        if let Some(after) = trace.after.clone() {
            let after = Some(self.without_done(after));
            task.progress.trace = Trace { after, ..trace }.kept();
        }
        let name = batch_of_imported(task).cloned();
        let batch = self.join_new(number, name.as_deref());
        task.set_batch(batch);
    }
}

/// Whether what an imported task says about batches makes sense.
pub(super) fn imported_bonds_make_sense(from: &TaskRecord) -> Result<(), RefusalKind> {
    let after = from.progress.after().map_or(&[][..], |after| &after.names[..]);
    fits(after.len() <= AFTER_MAX)?;
    fits(after.is_empty() || from.progress.state == State::HELD)?;
    let mut names = after.iter().chain(from.batch()).map(|name| check_batch_name(name));
    names.try_for_each(|it| it.map_err(|refusal| refusal.kind))?;
    fits(!from.batch().is_some_and(|batch| after.contains(batch)))?;
    fits((1..after.len()).all(|at| !after[..at].contains(&after[at])))
}

/// The batch that an imported task joins.
pub(super) fn batch_of_imported(from: &TaskRecord) -> Option<&Bytes> {
    let is_finished = matches!(from.progress.state.kind(), StateKind::Zombie | StateKind::Done);
    from.batch().filter(|_| !is_finished)
}
