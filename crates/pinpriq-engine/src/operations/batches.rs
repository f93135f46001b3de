//! Batches: the commands on them, and what a put says about them.
//!
//! What happens in a batch when its tasks come and go, and to those that wait for it, is in
//! `following.rs`.

use crate::engine::{Answered, Engine};
use crate::memory::batches::Batch;
use crate::memory::consumers::{Awaiter, Ended};
use crate::memory::slots::Slot;
use crate::operations::admin::page_of_names;
use crate::operations::arguments::{bad, check_positive, check_reason, quoted};
use crate::operations::following::Joining;
use pinpriq_proto::batches::{
    After, BATCH_WAITERS_MAX, BatchRecord, BatchState, Bonds, Cancelling, OnlyIf, batch_bytes,
    check_batch_name, decode_names,
};
use pinpriq_proto::change::{Change, Place};
use pinpriq_proto::command::{BatchCommand, Delay, Put, TimeToLive, Wait};
use pinpriq_proto::details::DetailKind;
use pinpriq_proto::limits::WAIT_OVERHEAD_BYTES;
use pinpriq_proto::names::NamesPage;
use pinpriq_proto::reply::{Outcome, Refusal, RefusalKind, Reply};
use pinpriq_proto::task::{Bytes, ClientId, RequestId};
use pinpriq_proto::time::{Span, Timestamp};

impl Engine {
    /// Returns the names of the batches that were given up since the last call, if they are not too
    /// many.
    pub fn take_given_up(&mut self) -> Vec<Bytes> {
        self.batches.take_given_up()
    }

    #[inline(never)]
    pub(crate) fn keep_batches(
        &mut self,
        client: ClientId,
        request: RequestId,
        command: BatchCommand<'_>,
    ) -> Answered {
        let reply = match command {
            BatchCommand::Open { name, ttl } => self.open_batch(name, ttl)?,
            BatchCommand::Close(name) => self.close_batch(name)?,
            BatchCommand::Show(name) => Reply::Batch(Box::new(self.existing_batch(name)?.shown())),
            BatchCommand::List(NamesPage { prefix, count, after }) => {
                page_of_names(self.batches.names_after(prefix, after), count)
            }
            BatchCommand::Cancel { name, reason, grace } => {
                self.cancel_batch(name, reason, grace)?
            }
            BatchCommand::Drop(name) => self.drop_batch(name)?,
            BatchCommand::Await { name, wait } => {
                return self.await_batch(client, request, name, wait);
            }
        };
        Ok(Some(reply))
    }

    fn open_batch(&mut self, name: &[u8], ttl: Option<Span>) -> Result<Reply, Refusal> {
        check_batch_name(name)?;
        check_positive("the TTL", ttl)?;
        let expires_at = ttl.map(|ttl| self.moment("the TTL", ttl)).transpose()?;
        if self.batches.called(name).is_some() {
            let sentence = format!("there is a batch {} already", quoted(name));
            return Err(Refusal::new(RefusalKind::Exists, sentence));
        }
        self.check_batches_left()?;
        self.check_room(batch_bytes(name.len()))?;
        self.make_batch(name, expires_at);
        Ok(Reply::Done)
    }

    /// Makes a batch, for which another one may have to give way. Returns its number.
    pub(crate) fn make_batch(&mut self, name: &[u8], expires_at: Option<Timestamp>) -> u64 {
        if self.batches.count() >= self.limits.batches_max
            && let Some(oldest) = self.batches.oldest_done()
        {
            self.forget_batch(oldest);
        }
        let number = self.issued.next();
        self.note_batch(number);
        let record = BatchRecord::new(number, name, self.now, expires_at);
        self.bytes += record.bytes();
        self.tasks.memberships.begin(number, record.name.clone());
        self.has_marks = true;
        self.batches.insert(Batch::new(record, None));
        self.count_for_account(number);
        self.note_change(number);
        number
    }

    /// Refuses another batch if there are too many and none can give way.
    fn check_batches_left(&self) -> Result<(), Refusal> {
        let most = self.limits.batches_max;
        if self.batches.count() < most || self.batches.oldest_done().is_some() {
            return Ok(());
        }
        let sentence = format!("{most} batches are not done: close some, or give them a TTL");
        Err(Refusal::new(RefusalKind::Busy, sentence))
    }

    fn close_batch(&mut self, name: &[u8]) -> Result<Reply, Refusal> {
        let record = &self.existing_batch(name)?.record;
        let (number, pending) = (record.number, record.pending());
        if record.state != BatchState::Open {
            return Ok(Reply::Count(0));
        }
        self.note_batch(number);
        self.batches.change(number, |batch| batch.record.state = BatchState::Closed);
        self.note_change(number);
        Ok(Reply::Count(pending))
    }

    fn cancel_batch(
        &mut self,
        name: &[u8],
        reason: Option<&[u8]>,
        grace: Option<Span>,
    ) -> Result<Reply, Refusal> {
        check_reason(reason)?;
        check_positive("the grace", grace)?;
        grace.map(|grace| self.moment("the grace", grace)).transpose()?;
        let record = &self.existing_batch(name)?.record;
        let (number, pending) = (record.number, record.pending());
        if record.is_done() {
            return Ok(Reply::Count(0));
        }
        let former = record.cancelling.clone();
        let (former_reason, former_grace) =
            former.map_or((None, None), |former| (former.reason, former.grace));
        let reason = reason.map(Bytes::from).or_else(|| former_reason.clone());
        let bytes = |reason: &Option<Bytes>| reason.as_ref().map_or(0, |it| it.len() as u64);
        let (before, after) = (bytes(&former_reason), bytes(&reason));
        if after > before {
            self.check_room(after - before)?;
        }
        self.note_batch(number);
        self.bytes = self.bytes + after - before;
        let first = self.tasks.memberships.first(number);
        self.batches.change(number, |batch| {
            batch.record.state = BatchState::Closed;
            batch.record.cancelling = Some(Cancelling { reason, grace: grace.or(former_grace) });
            batch.asks_again = first.is_some();
        });
        self.batches.cancel_from(number, first);
        self.note_change(number);
        Ok(Reply::Count(pending))
    }

    fn drop_batch(&mut self, name: &[u8]) -> Result<Reply, Refusal> {
        let Some(batch) = self.batches.called(name) else { return Ok(Reply::Count(0)) };
        if !batch.is_forgettable() {
            let name = quoted(name);
            let sentence = format!("the batch {name} is not done: cancel it, or wait for its end");
            return Err(Refusal::new(RefusalKind::WrongState, sentence));
        }
        self.forget_batch(batch.record.number);
        Ok(Reply::Count(1))
    }

    /// Forgets a batch that is done.
    pub(crate) fn forget_batch(&mut self, number: u64) {
        self.answer_batch_awaiters(number);
        self.note_batch(number);
        self.disarm_batch(number);
        let Some(batch) = self.batches.remove(number) else { return };
        self.bytes -= batch.record.bytes();
        self.report.give_up(batch.place);
        self.report.add(Change::DetailGone(DetailKind::Batch, number));
    }

    fn await_batch(
        &mut self,
        client: ClientId,
        request: RequestId,
        name: &[u8],
        wait: Wait,
    ) -> Answered {
        if let Wait::For(span) = wait {
            self.moment("the wait", span)?;
        }
        let batch = self.existing_batch(name)?;
        let number = batch.record.number;
        let until = match wait {
            Wait::No => Some(self.now),
            Wait::For(span) => Some(self.now.after(span)),
            Wait::Forever => None,
        };
        if batch.record.is_done() || until == Some(self.now) {
            return Ok(Some(Reply::BatchAwaited(Box::new(batch.shown()))));
        }
        self.check_waits(client, WAIT_OVERHEAD_BYTES)?;
        let (put, wants_result) = (None, false);
        self.add_awaiter(Awaiter { client, request, number, until, put, wants_result });
        Ok(None)
    }

    /// Answers those that have waited for a batch, which is done.
    pub(crate) fn answer_batch_awaiters(&mut self, number: u64) {
        let Some(batch) = self.batches.one(number).filter(|_| self.consumers.has_watchers()) else {
            return;
        };
        let batch = Some(Box::new(batch.shown()));
        let ended = Ended { outcome: Outcome::Acked, state: None, result: None, batch };
        self.tell_watchers_of(None, number, ended);
    }

    pub(crate) fn existing_batch(&self, name: &[u8]) -> Result<&Batch, Refusal> {
        self.batches.called(name).ok_or_else(|| {
            let sentence = format!("there is no batch {}", quoted(name));
            Refusal::new(RefusalKind::NotFound, sentence)
        })
    }

    /// Refuses to put a task into a batch that takes none, or that waits for one that does not take
    /// it.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_named_batches(&self, bonds: &Bonds<'_>) -> Result<(), Refusal> {
        self.check_after(bonds)?;
        bonds.batch.map_or(Ok(()), |name| self.check_joins(name))
    }

    /// Refuses a wait for a batch that is not there, or for which too many wait.
    pub(crate) fn check_after(&self, bonds: &Bonds<'_>) -> Result<(), Refusal> {
        bonds.names_after().try_for_each(|name| self.check_follows(name))
    }

    /// Refuses another wait for a batch.
    pub(crate) fn check_follows(&self, name: &[u8]) -> Result<(), Refusal> {
        let batch = self.existing_batch(name)?;
        if batch.record.is_done() || batch.followers.len() < BATCH_WAITERS_MAX {
            return Ok(());
        }
        let sentence = format!("{BATCH_WAITERS_MAX} tasks wait for the batch {}", quoted(name));
        Err(Refusal::new(RefusalKind::Busy, sentence))
    }

    /// Refuses another task for a batch.
    pub(crate) fn check_joins(&self, name: &[u8]) -> Result<(), Refusal> {
        let Some(batch) = self.batches.called(name) else { return self.check_batches_left() };
        let what = match batch.record {
            BatchRecord { state: BatchState::Done, .. } => "is done",
            BatchRecord { cancelling: Some(_), .. } => "is being cancelled",
            _ => return Ok(()),
        };
        let sentence = format!("the batch {} {what}, and takes no more tasks", quoted(name));
        Err(Refusal::new(RefusalKind::WrongState, sentence))
    }

    /// Whether a task is pending in this batch, if one is given.
    pub(crate) fn is_in_batch(&self, slot: Slot, batch: Option<&[u8]>) -> bool {
        batch
            .is_none_or(|name| self.tasks.memberships.name_of(slot).is_some_and(|it| **it == *name))
    }

    /// How many bytes a put needs for what it says about batches.
    #[cold]
    #[inline(never)]
    pub(crate) fn bytes_of_bonds(&self, bonds: &Bonds<'_>) -> usize {
        let of_batch = bonds.batch.map_or(0, |name| self.bytes_of_new_batch(name));
        bonds.bytes() + usize::try_from(of_batch).unwrap_or(usize::MAX)
    }

    /// How many bytes a batch needs of which there is none yet.
    pub(crate) fn bytes_of_new_batch(&self, name: &[u8]) -> u64 {
        if self.batches.called(name).is_some() { 0 } else { batch_bytes(name.len()) }
    }

    /// Returns those of these batches that are not done, and what the others say.
    pub(crate) fn after_of(&self, names: &[u8], only_if: OnlyIf) -> After {
        let names = decode_names(names).map(Bytes::from).collect();
        self.still_after(After { names, only_if, any_failed: false })
    }

    /// Leaves those out that are done, or that are not there any more.
    pub(crate) fn still_after(&self, mut after: After) -> After {
        let After { names, any_failed, .. } = &mut after;
        names.retain(|name| match self.batches.called(name) {
            Some(batch) if !batch.record.is_done() => true,
            Some(batch) => {
                *any_failed |= batch.record.has_failed();
                false
            }
            None => {
                *any_failed = true;
                false
            }
        });
        after
    }

    /// Makes a batch that a task is about to join, if there is none of this name.
    pub(crate) fn make_if_new(&mut self, name: &[u8]) {
        if self.batches.called(name).is_none() {
            self.make_batch(name, None);
        }
    }

    /// Lets a new task join a batch. One that is done by now, since its last task has made room for
    /// this one, takes no more.
    pub(crate) fn join_named(&mut self, slot: Slot, name: &[u8]) {
        let batch = self.batches.called(name).map(|batch| &batch.record);
        if let Some(number) = batch.filter(|it| !it.is_done()).map(|record| record.number) {
            self.join_batch(slot, number, Joining::New);
        }
    }

    pub(crate) fn restore_batch(&mut self, record: BatchRecord, place: Option<Place>) {
        self.issued.raise(record.number);
        self.has_marks = true;
        for former in self.batches.restore(Batch::new(record, place)) {
            self.report.give_up(former);
        }
    }
}

/// Checks the arguments of a put about batches.
#[cold]
#[inline(never)]
pub(crate) fn check_bonds(put: &Put<'_>) -> Result<(), Refusal> {
    put.bonds.check()?;
    if put.bonds.after.is_none() {
        return Ok(());
    }
    match put.delay {
        Delay::Until(_) => Err(bad("AT and AFTER exclude each other: give one of them".to_owned())),
        Delay::Held => Err(bad("HELD and AFTER exclude each other: give one of them".to_owned())),
        Delay::For(_) if put.ttl == TimeToLive::Instant => {
            Err(bad("a task that lives for an instant cannot wait for a batch".to_owned()))
        }
        Delay::For(_) => Ok(()),
    }
}

/// Whether a task that ends because its batches have ended otherwise than it was meant for counts
/// as acknowledged in its own batch: there was nothing for it to do.
pub(crate) const fn counts_as_acked(only_if: OnlyIf) -> bool {
    matches!(only_if, OnlyIf::Failed)
}
