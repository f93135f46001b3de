//! Batches: the commands on them, what time does to them, and what happens once one is done.
//!
//! A batch knows the numbers of its tasks. Who waits for it is found by going through all tasks.
//! How tasks come in and leave is in `bonds`.

use pinpriq_proto::batches::{
    BATCH_STEPS_MAX, BatchRecord, BatchShown, BatchState, Cancelling, batch_bytes, check_batch_name,
};
use pinpriq_proto::command::{BatchCommand, Cancel, QueueName, Wait};
use pinpriq_proto::limits::{NAME_BYTES_MAX, REASON_BYTES_MAX, WAIT_OVERHEAD_BYTES};
use pinpriq_proto::names::{NamePattern, NamesPage};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::task::{Bytes, ClientId, RequestId, StateKind};
use pinpriq_proto::time::{Span, Timestamp};

use super::turns::trace_of;
use super::within::page_of;
use super::{Answer, Exit, Model, fits};

/// A batch with its tasks.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What is kept of it.
    pub record: BatchRecord,
    /// The numbers of its pending tasks, in the order in which they joined. Tasks of an emptied
    /// queue are among them until they are freed.
    pub members: Vec<u64>,
    /// Those of them that still have to be cancelled.
    pub(super) to_cancel: Vec<u64>,
    /// Whether holders are asked again to stop that were asked before.
    asks_again: bool,
}

/// A client that blocks until a batch is done.
#[derive(Clone, Debug)]
pub(super) struct BatchAwaiter {
    pub(super) turn: u64,
    pub(super) client: ClientId,
    request: RequestId,
    /// The number of the batch.
    number: u64,
    pub(super) until: Option<Timestamp>,
}

impl Batch {
    fn new(record: BatchRecord) -> Self {
        Self { record, members: Vec::new(), to_cancel: Vec::new(), asks_again: false }
    }
}

impl Model {
    pub(super) fn keep_batches(
        &mut self,
        asking: (ClientId, RequestId),
        command: &BatchCommand<'_>,
    ) -> Answer {
        let named = match *command {
            BatchCommand::Open { name, .. }
            | BatchCommand::Cancel { name, .. }
            | BatchCommand::Await { name, .. }
            | BatchCommand::Close(name)
            | BatchCommand::Show(name)
            | BatchCommand::Drop(name) => name,
            BatchCommand::List(page) => return Ok(Some(self.list_batches(page, None))),
        };
        fits(named.len() <= NAME_BYTES_MAX)?;
        match *command {
            BatchCommand::Open { name, ttl } => self.open_batch(name, ttl),
            BatchCommand::Close(name) => self.close_batch(name),
            BatchCommand::Cancel { name, reason, grace } => self.cancel_batch(name, reason, grace),
            BatchCommand::Await { name, wait } => self.await_batch(asking, name, wait),
            BatchCommand::Show(name) => {
                let shown = self.shown_batch(self.known_batch(name)?);
                Ok(Some(Reply::Batch(Box::new(shown))))
            }
            BatchCommand::Drop(name) => self.drop_batch(name),
            BatchCommand::List(_) => unreachable!("it is listed above"),
        }
    }

    pub(super) fn list_batches(
        &self,
        page: NamesPage<'_>,
        within: Option<&[NamePattern<'_>]>,
    ) -> Reply {
        let names = self.batches.values().map(|batch| &batch.record.name);
        page_of(names.map(|name| (name, name)), page, within)
    }

    fn open_batch(&mut self, name: &[u8], ttl: Option<Span>) -> Answer {
        check_batch_name(name).map_err(|refusal| refusal.kind)?;
        self.span_fits(ttl, false)?;
        if self.known_batch(name).is_ok() {
            return Err(RefusalKind::Exists);
        }
        self.another_batch_fits()?;
        self.has_room(batch_bytes(name.len()))?;
        self.make_batch(name, ttl.map(|ttl| self.now.after(ttl)));
        Ok(Some(Reply::Done))
    }

    fn close_batch(&mut self, name: &[u8]) -> Answer {
        let number = self.known_batch(name)?;
        let now = self.now;
        let record = &mut self.batch_mut(number).record;
        if record.state != BatchState::Open {
            return Ok(Some(Reply::Count(0)));
        }
        (record.state, record.changed_at) = (BatchState::Closed, now);
        let pending = record.pending();
        self.end_batch_without_members(number);
        Ok(Some(Reply::Count(pending)))
    }

    fn cancel_batch(&mut self, name: &[u8], reason: Option<&[u8]>, grace: Option<Span>) -> Answer {
        fits(reason.is_none_or(|reason| reason.len() <= REASON_BYTES_MAX))?;
        self.span_fits(grace, false)?;
        let number = self.known_batch(name)?;
        let record = &self.batches[&number].record;
        if record.is_done() {
            return Ok(Some(Reply::Count(0)));
        }
        let (known_reason, known_grace) =
            record.cancelling.clone().map_or((None, None), |it| (it.reason, it.grace));
        let known_bytes = known_reason.as_ref().map_or(0, |known| known.len());
        let growth = reason.map_or(0, <[u8]>::len).saturating_sub(known_bytes);
        if growth > 0 {
            self.has_room(growth as u64)?;
        }
        let now = self.now;
        let batch = self.batch_mut(number);
        batch.record.cancelling = Some(Cancelling {
            reason: reason.map(Bytes::from).or(known_reason),
            grace: grace.or(known_grace),
        });
        (batch.record.state, batch.record.changed_at) = (BatchState::Closed, now);
        batch.to_cancel = batch.members.clone();
        batch.asks_again = !batch.to_cancel.is_empty();
        let pending = batch.record.pending();
        self.go_on_cancelling(number);
        self.end_batch_without_members(number);
        Ok(Some(Reply::Count(pending)))
    }

    fn drop_batch(&mut self, name: &[u8]) -> Answer {
        let Ok(number) = self.known_batch(name) else { return Ok(Some(Reply::Count(0))) };
        if !self.may_be_forgotten(number) {
            return Err(RefusalKind::WrongState);
        }
        self.forget_batch(number);
        Ok(Some(Reply::Count(1)))
    }

    fn await_batch(
        &mut self,
        (client, request): (ClientId, RequestId),
        name: &[u8],
        wait: Wait,
    ) -> Answer {
        if let Wait::For(wait) = wait {
            self.span_fits(Some(wait), true)?;
        }
        let number = self.known_batch(name)?;
        let is_done = self.batches[&number].record.is_done();
        let until = match wait {
            Wait::No | Wait::For(Span::ZERO) => None,
            _ if is_done => None,
            Wait::For(span) => Some(Some(self.now.after(span))),
            Wait::Forever => Some(None),
        };
        let Some(until) = until else {
            return Ok(Some(Reply::BatchAwaited(Box::new(self.shown_batch(number)))));
        };
        self.may_wait(client, WAIT_OVERHEAD_BYTES)?;
        let turn = self.draw();
        self.note_due(until);
        self.batch_awaiters.push(BatchAwaiter { turn, client, request, number, until });
        Ok(None)
    }

    fn shown_batch(&self, number: u64) -> BatchShown {
        let Batch { record, members, .. } = &self.batches[&number];
        let is_buried = |member: &&u64| {
            let is_there = self.places.contains_key(*member);
            // What is emptied away counts until it is freed.
            let mut emptied = self.emptied.iter().filter(|gone| gone.number == **member);
            is_there && self.task(**member).progress.state.kind() == StateKind::Buried
                || emptied.any(|gone| gone.is_buried)
        };
        BatchShown {
            name: record.name.clone(),
            state: record.state,
            total: record.total,
            pending: record.pending(),
            buried: members.iter().filter(is_buried).count() as u64,
            acked: record.acked,
            failed: record.failed,
            waiting: self.followers_of(&record.name).len() as u64,
            opened_at: record.opened_at,
            done_at: record.done_at,
        }
    }

    /// The number of the batch of this name.
    pub(super) fn known_batch(&self, name: &[u8]) -> Result<u64, RefusalKind> {
        let known = self.batches.iter().find(|(_, batch)| *batch.record.name == *name);
        known.map(|(number, _)| *number).ok_or(RefusalKind::NotFound)
    }

    pub(super) fn batch_mut(&mut self, number: u64) -> &mut Batch {
        self.quiet_until = Timestamp::ZERO;
        let Some(batch) = self.batches.get_mut(&number) else {
            unreachable!("there is no batch {number}")
        };
        batch
    }

    /// Refuses another batch if there are as many as may be, and none can be forgotten.
    pub(super) fn another_batch_fits(&self) -> Result<(), RefusalKind> {
        let has_place = self.batches.len() < self.limits.batches_max;
        if has_place || self.next_to_forget().is_some() { Ok(()) } else { Err(RefusalKind::Busy) }
    }

    /// Makes a batch. If there are too many, one that is done is forgotten for it.
    pub(super) fn make_batch(&mut self, name: &[u8], expires_at: Option<Timestamp>) -> u64 {
        if self.batches.len() >= self.limits.batches_max
            && let Some(former) = self.next_to_forget()
        {
            self.forget_batch(former);
        }
        self.last_number += 1;
        let number = self.last_number;
        let record = BatchRecord::new(number, name, self.now, expires_at);
        self.batches.insert(number, Batch::new(record));
        self.quiet_until = Timestamp::ZERO;
        number
    }

    /// The batch that is done for longest and for which nobody waits.
    fn next_to_forget(&self) -> Option<u64> {
        let numbers = self.batches.keys().copied();
        let forgettable = numbers.filter(|number| self.may_be_forgotten(*number));
        forgettable.min_by_key(|number| (self.batches[number].record.done_at, *number))
    }

    /// Whether a batch is done and nobody is left who has waited for it.
    fn may_be_forgotten(&self, number: u64) -> bool {
        let record = &self.batches[&number].record;
        record.is_done() && self.followers_of(&record.name).is_empty()
    }

    fn forget_batch(&mut self, number: u64) {
        // In a transaction its awaiters have not been told yet that it is done.
        self.tell_awaiters_of_batch(number);
        self.batches.remove(&number);
    }

    /// Ends a closed batch of which no task is left.
    pub(super) fn end_batch_without_members(&mut self, number: u64) {
        let batch = &self.batches[&number];
        if batch.record.state == BatchState::Closed && batch.members.is_empty() {
            self.end_batch(number);
        }
    }

    fn end_batch(&mut self, number: u64) {
        let now = self.now;
        let record = &mut self.batch_mut(number).record;
        (record.state, record.done_at) = (BatchState::Done, Some(now));
        self.cancelling.retain(|other| *other != number);
        self.fired.push(number);
    }

    /// Ends a batch whose tasks have not ended. They are in none from now on.
    fn give_up(&mut self, number: u64) {
        let now = self.now;
        let batch = self.batch_mut(number);
        batch.to_cancel.clear();
        let members = std::mem::take(&mut batch.members);
        batch.record.failed += batch.record.pending();
        batch.record.given_up = true;
        batch.record.changed_at = now;
        for member in members {
            if let Some(gone) = self.emptied.iter_mut().find(|gone| gone.number == member) {
                gone.batch = None;
            } else {
                self.task_mut(member).set_batch(None);
            }
        }
        self.end_batch(number);
    }
}

/// Time, and the end of calls.
impl Model {
    /// When something becomes of each batch by itself.
    pub(super) fn dues_of_batches(&self) -> impl Iterator<Item = (Timestamp, u64)> {
        self.batches.iter().filter_map(|(number, batch)| Some((self.due_of_batch(batch)?, *number)))
    }

    fn due_of_batch(&self, batch: &Batch) -> Option<Timestamp> {
        let record = &batch.record;
        match record.state {
            BatchState::Done if !self.followers_of(&record.name).is_empty() => None,
            BatchState::Done => record.done_at.map(|at| at.after(self.limits.batch_retain)),
            BatchState::Open if batch.members.is_empty() => {
                let abandoned_at = record.changed_at.after(self.limits.batch_abandon);
                Some(record.expires_at.map_or(abandoned_at, |at| at.min(abandoned_at)))
            }
            BatchState::Open | BatchState::Closed => record.expires_at,
        }
    }

    /// Forgets a batch, or gives it up, whose moment has come.
    pub(super) fn fire_batch(&mut self, number: u64) {
        if self.batches[&number].record.is_done() {
            self.forget_batch(number);
        } else {
            self.give_up(number);
        }
    }

    /// Ends a wait for a batch that is not done in time. Returns whether there was one.
    pub(super) fn time_out_batch_awaiter(&mut self, turn: u64) -> bool {
        let known = self.batch_awaiters.iter().position(|known| known.turn == turn);
        let Some(at) = known else { return false };
        let awaiter = self.batch_awaiters.remove(at);
        self.answer_batch_awaiter(&awaiter);
        true
    }

    fn tell_awaiters_of_batch(&mut self, number: u64) {
        let of_batch = |known: &BatchAwaiter| known.number == number;
        while let Some(at) = self.batch_awaiters.iter().position(of_batch) {
            let awaiter = self.batch_awaiters.remove(at);
            self.answer_batch_awaiter(&awaiter);
        }
    }

    fn answer_batch_awaiter(&mut self, awaiter: &BatchAwaiter) {
        let shown = self.shown_batch(awaiter.number);
        self.reply(awaiter.client, awaiter.request, Reply::BatchAwaited(Box::new(shown)));
    }

    /// Whether batches are done whose followers still wait, or have tasks that are to be cancelled.
    pub(super) fn has_batches_to_settle(&self) -> bool {
        !self.fired.is_empty() || !self.cancelling.is_empty()
    }

    /// Ends a call: frees what has waited for batches, cancels what is to be cancelled, and hands
    /// out what became ready. What is handed out may be popped, and end further batches.
    pub(super) fn conclude(&mut self) {
        let mut steps = BATCH_STEPS_MAX;
        loop {
            self.settle_batches(&mut steps);
            self.serve_all();
            if steps == 0 || !self.has_batches_to_settle() {
                break;
            }
        }
        if !self.batches.is_empty() {
            self.quiet_until = Timestamp::ZERO;
        }
    }

    fn settle_batches(&mut self, steps: &mut usize) {
        while *steps > 0 {
            if let Some(number) = self.fired.first().copied() {
                *steps -= usize::from(self.free_next_follower(number));
            } else if let Some(number) = self.cancelling.first().copied() {
                *steps -= usize::from(self.cancel_next_member(number));
            } else {
                return;
            }
        }
    }

    /// Lets the first of those who wait for a batch that is done wait for it no longer. Returns
    /// whether there was one. If not, the next batch is the first.
    fn free_next_follower(&mut self, number: u64) -> bool {
        let Some(batch) = self.batches.get(&number) else {
            // It was forgotten in the transaction in which it was done.
            self.fired.remove(0);
            return false;
        };
        let (name, has_failed) = (batch.record.name.clone(), batch.record.has_failed());
        self.tell_awaiters_of_batch(number);
        let Some(follower) = self.followers_of(&name).into_iter().min() else {
            self.fired.remove(0);
            return false;
        };
        if let Some(gone) = self.emptied.iter_mut().find(|gone| gone.number == follower) {
            gone.after.retain(|own| *own != name);
            return true;
        }
        let progress = &mut self.task_mut(follower).progress;
        let mut trace = trace_of(progress);
        if let Some(after) = &mut trace.after {
            after.names.retain(|own| *own != name);
            after.any_failed |= has_failed;
        }
        progress.trace = trace.kept();
        self.free_if_nothing_is_left(follower);
        true
    }

    /// Cancels the next task of a batch. Returns whether there was one. If not, the next batch is
    /// the first.
    fn cancel_next_member(&mut self, number: u64) -> bool {
        let batch = self.batch_mut(number);
        batch.to_cancel.sort_unstable();
        if batch.to_cancel.is_empty() {
            batch.asks_again = false;
            self.cancelling.remove(0);
            return false;
        }
        let (member, asks_again) = (batch.to_cancel.remove(0), batch.asks_again);
        let told = batch.record.cancelling.clone();
        let Some(Cancelling { reason, grace }) = told else {
            unreachable!("the batch {number} is being cancelled")
        };
        if !self.places.contains_key(&member) {
            // Its queue was emptied, and it leaves when it is freed.
            return true;
        }
        let progress = &self.task(member).progress;
        if progress.state.kind() != StateKind::Taken {
            self.leave(member, Exit::Cancelled);
        } else if asks_again || progress.cancelled().is_none() {
            let queue = QueueName { name: b"", member: None };
            let cancel = Cancel { queue, id: b"", reason: reason.as_deref(), grace };
            // If there is no room for the reason, it is asked to stop without one.
            if self.ask_to_stop(member, &cancel).is_err() {
                let asked = self.ask_to_stop(member, &Cancel { reason: None, ..cancel });
                assert!(asked.is_ok(), "no reason needs no room");
            }
        }
        true
    }

    /// Goes through the tasks of a batch that are still to be cancelled, after those of others.
    pub(super) fn go_on_cancelling(&mut self, number: u64) {
        if !self.batches[&number].to_cancel.is_empty() && !self.cancelling.contains(&number) {
            self.cancelling.push(number);
        }
    }

    /// Continues with the batches that a store has kept, and the tasks that are left of them.
    pub(super) fn revive_batches(&mut self, kept: Vec<BatchRecord>) {
        self.batches = kept.into_iter().map(|it| (it.number, Batch::new(it))).collect();
        self.quiet_until = Timestamp::ZERO;
        for number in self.places.keys().copied().collect::<Vec<_>>() {
            self.revive_bonds(number);
        }
        let now = self.now;
        for number in self.batches.keys().copied().collect::<Vec<_>>() {
            let batch = self.batch_mut(number);
            if batch.record.is_done() {
                continue;
            }
            let lost = batch.record.pending().saturating_sub(batch.members.len() as u64);
            if lost > 0 {
                batch.record.failed += lost;
                batch.record.changed_at = now;
            }
            if batch.record.cancelling.is_some() {
                batch.to_cancel = batch.members.clone();
                self.go_on_cancelling(number);
            }
            self.end_batch_without_members(number);
        }
        let has_fired = |batch: &Batch| {
            let record = &batch.record;
            record.is_done() && !self.followers_of(&record.name).is_empty()
        };
        let fired = self.batches.values().filter(|batch| has_fired(batch));
        self.fired = fired.map(|batch| batch.record.number).collect();
        for number in self.places.keys().copied().collect::<Vec<_>>() {
            self.free_if_nothing_is_left(number);
        }
    }
}
