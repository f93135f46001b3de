//! Puts tasks, and puts popped tasks back.

use crate::engine::{Answered, Engine};
use crate::issued::Issued;
use crate::memory::consumers::PutAwaited;
use crate::memory::packed::{NewTask, Task, Unsaved};
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::arguments::{
    bad, check_cost_below, check_id, check_positive, check_reason, quoted,
};
use crate::operations::batches::check_bonds;
use crate::operations::held::be_buried;
use crate::operations::ids::{can_have, uuid_v7};
use crate::transition::Operation;
use pinpriq_proto::batches::Bonds;
use pinpriq_proto::command::{Delay, Put, TimeToLive, Wait};
use pinpriq_proto::limits::{
    ID_BYTES_MAX, TASK_OVERHEAD_BYTES, WAIT_OVERHEAD_BYTES, given_id_bytes, put_bytes,
};
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::room::Room;
use pinpriq_proto::settings::{COST_MAX_DEFAULT, Ids};
use pinpriq_proto::task::{
    Bytes, COST_USUAL, ClientId, Progress, RequestId, State, StateKind, TaskId, TaskRecord,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{Awaited, PutUnique};

impl Engine {
    /// Gives a task what few puts say.
    #[inline(never)]
    fn adorn(&self, task: &mut Task, put: &Put<'_>) {
        task.set_unique_key(put.unique.map(|unique| unique.key.into()));
        let after = self.after_put(put);
        if put.delay == Delay::Held || after.is_some() {
            task.set_state(State::HELD);
        }
        task.set_after(after);
    }

    pub(crate) fn put(&mut self, client: ClientId, request: RequestId, put: &Put<'_>) -> Answered {
        self.put_as(client, request, put, |_, _| {})
    }

    /// Puts a task after `change` has made it what it is to be.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is all of a put")]
    fn put_as(
        &mut self,
        client: ClientId,
        request: RequestId,
        put: &Put<'_>,
        change: impl FnOnce(&mut Task, &mut Issued),
    ) -> Answered {
        let mut existing = self.queues.find(put.queue);
        let (ids, ttl) = existing.map_or_else(Default::default, |slot| {
            let settings = &self.queues[slot].settings;
            (settings.ids, settings.ttl)
        });
        let (delay, expires_at) = self.check_put(put, ids, ttl)?;
        let is_untied = put.is_untied();
        if !is_untied {
            if let Some(answered) = self.answer_tied_put(client, request, put, expires_at) {
                return answered;
            }
            existing = self.queues.find(put.queue);
        }
        let is_bounded = existing.is_some_and(|queue| self.queues[queue].is_bounded());
        self.check_put_allowed(put, existing, is_bounded)?;
        if put.wait.is_some_and(Wait::blocks) {
            self.check_waits(client, WAIT_OVERHEAD_BYTES)?;
        }

        // The search for a task of this id, or making room, may have ended the queue.
        if put.id.is_some() || is_bounded {
            if is_bounded {
                self.make_room();
            }
            existing = None;
        }
        let queue = existing.unwrap_or_else(|| self.queues.find_or_make(put.queue));
        self.count_queue(queue);
        let number = self.issued.next();
        let id = match put.id {
            Some(id) => TaskId::Given(id.into()),
            None => self.new_id(ids, number),
        };
        let ready_at = (!delay.is_zero()).then(|| self.now.after(delay));
        let payload = self.tasks.keep(put.payload);
        let mut task = Task::new(NewTask {
            number,
            queue,
            epoch: self.queues[queue].epoch,
            id: id.clone(),
            put_at: self.now,
            terms: put.terms.kept_plain(),
            priority: put.priority,
            expires_at,
            ready_at,
            payload,
        });
        if !put.terms.are_plain() {
            task.set_extras(&put.terms);
        }
        if !is_untied || put.delay == Delay::Held {
            self.adorn(&mut task, put);
        }
        change(&mut task, &mut self.issued);
        self.tube_puts += u64::from(self.queues[queue].is_tube);
        let slot = self.enter(task, Operation::Put);
        self.count_for_account(number);
        if let Some(unique) = &put.unique {
            self.open_window(number, put.queue, unique, id.clone());
        }
        self.tell_put((client, request), put, (id, number));
        if !is_untied {
            self.bind(slot, number, &put.bonds);
        }
        if put.ttl == TimeToLive::Instant {
            self.end_instant(slot, number);
        }
        Ok(None)
    }

    /// Replies to a put whose task is there already, or that names batches which take no more.
    /// Makes the batch of another one if there is none, once nothing refuses the put any more.
    #[inline(never)]
    fn answer_tied_put(
        &mut self,
        client: ClientId,
        request: RequestId,
        put: &Put<'_>,
        expires_at: Option<Timestamp>,
    ) -> Option<Answered> {
        if let Some(unique) = &put.unique
            && let Some(duplicate) = self.find_duplicate(put.queue, unique.key)
        {
            return Some(self.put_again(client, request, put, (unique, expires_at), duplicate));
        }
        self.prepare_batch(client, put).err().map(Err)
    }

    /// Makes the batch of a put, before its task has a number.
    fn prepare_batch(&mut self, client: ClientId, put: &Put<'_>) -> Result<(), Refusal> {
        self.check_named_batches(&put.bonds)?;
        let Some(name) = put.bonds.batch else { return Ok(()) };
        let existing = self.queues.find(put.queue);
        let is_bounded = existing.is_some_and(|queue| self.queues[queue].is_bounded());
        self.check_put_allowed(put, existing, is_bounded)?;
        if put.wait.is_some_and(Wait::blocks) {
            self.check_waits(client, WAIT_OVERHEAD_BYTES)?;
        }
        self.make_if_new(name);
        Ok(())
    }

    /// Replies to a put of a new task, now or at its end.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every put")]
    fn tell_put(
        &mut self,
        (client, request): (ClientId, RequestId),
        put: &Put<'_>,
        (id, number): (TaskId, u64),
    ) {
        let unique = put.unique.map(|_| true);
        match (put.wait, unique) {
            (Some(wait), _) => {
                let awaited = PutAwaited { id, unique };
                self.await_put(client, request, number, awaited, (wait, put.result));
            }
            (None, None) => self.reply(client, request, Reply::Put(id)),
            (None, Some(new)) => {
                let put = PutUnique { id, new, awaited: Awaited::No };
                self.reply(client, request, Reply::PutUnique(put));
            }
        }
    }

    /// Puts a task, and replies with its number.
    #[inline(never)]
    pub(crate) fn put_numbered(
        &mut self,
        client: ClientId,
        request: RequestId,
        put: &Put<'_>,
    ) -> Answered {
        if put.wait.is_some() || !put.is_untied() {
            let sentence = "a put that is answered with a number is neither unique nor waited \
                            for, and names no batch";
            return Err(bad(sentence.to_owned()));
        }
        self.put(client, request, put)?;
        let number = self.issued.last();
        if let Some(Output::Reply { reply, .. }) = self.outputs.back_mut() {
            *reply = Reply::Count(number);
        }
        Ok(None)
    }

    /// Puts a task that is buried at once.
    #[inline(never)]
    pub(crate) fn put_buried(
        &mut self,
        client: ClientId,
        request: RequestId,
        put: &Put<'_>,
        reason: Option<&[u8]>,
    ) -> Answered {
        check_reason(reason)?;
        let what = match put {
            Put { delay, .. } if !delay.is_none() => Some("have a delay"),
            Put { wait: Some(_), .. } => Some("be waited for"),
            Put { unique: Some(_), .. } => Some("be unique"),
            Put { ttl: TimeToLive::Instant, .. } => Some("live for an instant"),
            Put { bonds: Bonds { after: Some(_), .. }, .. } => Some("wait for a batch"),
            _ => None,
        };
        if let Some(what) = what {
            return Err(bad(format!("a task that is put as buried cannot {what}")));
        }
        let now = self.now;
        self.put_as(client, request, put, |task, issued| {
            task.set_reason(reason.map(Bytes::from));
            let state = be_buried(task, issued.bury(now));
            task.set_state(state);
        })
    }

    /// Undoes pops whose reply or delivery could not be sent: each task is ready again in its old
    /// place, with its old deadlines. A task stays popped if another task has its id by now, or if
    /// its queue can no longer have that id. The reply is the number of tasks that came back.
    pub(crate) fn put_back(&mut self, records: &[TaskRecord]) -> Reply {
        let mut count = 0;
        for record in records {
            count += u64::from(self.put_back_one(record.clone()));
        }
        Reply::Count(count)
    }

    fn put_back_one(&mut self, mut record: TaskRecord) -> bool {
        if record.progress.cancelled().is_some() {
            // It was cancelled while it was held for the pop, so it ends.
            return false;
        }
        record.progress.forget_text();
        let lane = record.lane.as_ref().map(|lane| self.queues.find_lane(lane.number));
        if lane.is_some_and(|lane| lane.is_none_or(|slot| self.has_ended(slot))) {
            return false;
        }
        if let Some(slot) = self.live(record.number) {
            // It was kept as a finished task after the pop.
            let finished = self.tasks[slot].kind().is_finished();
            if finished {
                self.refund(self.tasks[slot].queue, self.tasks[slot].cost());
                self.shift(slot, Operation::PutBack, Unsaved::Progress, |_| State::Ready);
                if let Some(batch) = record.batch() {
                    self.join_again(slot, batch);
                    self.mark(slot, Unsaved::Whole);
                }
                self.uncharge_turn(self.charged(slot));
                self.expire_if_over(slot);
            }
            return finished;
        }
        if let Some(slot) = self.tasks.find(record.number) {
            // It was kept after the pop, and its queue was emptied later.
            self.free_early(slot);
        }
        let existing = lane.unwrap_or_else(|| self.queues.find(&record.queue));
        let existing_queue = existing.map(|slot| &self.queues[slot]);
        let ids = existing_queue.map_or_else(Ids::default, |queue| queue.settings.ids);
        let is_taken =
            existing_queue.is_some_and(|queue| queue.indexes.find_id(&record.id).is_some());
        if is_taken || !can_have(ids, &record.id, record.number) {
            return false;
        }
        let queue = existing.unwrap_or_else(|| self.queues.find_or_make(&record.queue));
        self.count_queue(queue);
        let progress = Progress { state: State::Ready, ..record.progress };
        let record = TaskRecord { progress, ..record };
        let batch = record.batch().cloned();
        let shares = self.share_again(&record);
        let payload = if shares {
            self.tasks.keep_shared(&record.payload)
        } else {
            self.tasks.keep_bytes(&record.payload)
        };
        let mut task = Task::of(record, payload, queue, self.queues[queue].epoch);
        task.set_shares(shares);
        task.set_since(self.now);
        self.age_as_before(queue, &mut task);
        self.refund(queue, task.cost());
        self.forget_ending(queue, &task.id());
        let slot = self.enter(task, Operation::PutBack);
        if let Some(batch) = batch {
            self.join_again(slot, &batch);
        }
        self.uncharge_turn(self.charged(slot));
        self.expire_if_over(slot);
        true
    }

    /// Makes a popped copy share its publication again, if that still exists.
    fn share_again(&mut self, record: &TaskRecord) -> bool {
        let Some((_, published)) = self.publications.of_copy(record.number) else { return false };
        let is_same = Bytes::ptr_eq(&published.record.payload, &record.payload);
        published.sharers += u64::from(is_same);
        is_same
    }

    fn expire_if_over(&mut self, slot: Slot) {
        if self.tasks[slot].is_expired(self.now) {
            self.expire(slot);
        }
    }

    /// Serves a task that lives only for this instant to a consumer that waits already, or removes
    /// it. A task that was taken under a lease has a TTL that is over, so it never becomes ready
    /// again.
    pub(crate) fn end_instant(&mut self, slot: Slot, number: u64) {
        if let Some(undo) = &mut self.undo {
            return undo.end_later(slot, number);
        }
        self.serve();
        if self.tasks.find(number) != Some(slot) {
            return;
        }
        let now = self.now;
        match self.tasks[slot].kind() {
            StateKind::Ready => self.expire(slot),
            StateKind::Taken => {
                self.amend(slot, Unsaved::Whole, |task| task.set_expires_at(Some(now)));
            }
            StateKind::Waiting | StateKind::Buried | StateKind::Zombie | StateKind::Done => {}
        }
    }

    /// Checks only the arguments, and returns the delay and the end of the TTL.
    fn check_put(
        &self,
        put: &Put<'_>,
        ids: Ids,
        ttl: Option<Span>,
    ) -> Result<(Span, Option<Timestamp>), Refusal> {
        let delay = put.delay.from(self.now);
        put.terms.check_key()?;
        if !put.terms.are_plain() {
            self.check_terms(put)?;
        }
        self.check_payload(put.payload)?;
        if !put.is_untied() {
            self.check_ties(put)?;
        }
        if let Some(ttr) = put.terms.ttr {
            check_positive("the TTR", Some(ttr))?;
            self.moment("the TTR", ttr)?;
        }
        if !put.delay.is_none() {
            self.moment("the delay", delay)?;
            if put.wait.is_some() && put.delay != Delay::Held && !follows(put) {
                return Err(bad("a put that waits for its task cannot have a delay".to_owned()));
            }
        }
        if let Some(Wait::For(wait)) = put.wait {
            self.moment("the wait", wait)?;
        }
        if put.ttl == TimeToLive::Instant && !put.delay.is_none() {
            return Err(bad("a task that lives for an instant cannot have a delay".to_owned()));
        }
        match (put.id, ids) {
            (Some(id), Ids::Given) => check_id(id)?,
            (Some(_), _) => {
                return Err(bad(format!(
                    "the queue {} makes its ids itself: leave the id out",
                    quoted(put.queue)
                )));
            }
            (None, Ids::Given) => {
                return Err(Refusal::new(
                    RefusalKind::IdRequired,
                    format!(
                        "the queue {} wants each task's id: give one of 1 to {ID_BYTES_MAX} bytes",
                        quoted(put.queue)
                    ),
                ));
            }
            (None, _) => {}
        }
        let ttl = match put.ttl {
            // The queue's would end what waits for people, or for other tasks.
            TimeToLive::Default => ttl.filter(|_| put.delay != Delay::Held && !follows(put)),
            TimeToLive::For(ttl) => Some(ttl),
            TimeToLive::Endless | TimeToLive::Instant => None,
        };
        match ttl {
            Some(ttl) => {
                self.check_ttl(ttl, delay)?;
                Ok((delay, Some(self.now.after(ttl))))
            }
            None => Ok((delay, None)),
        }
    }

    #[inline(never)]
    fn check_ties(&self, put: &Put<'_>) -> Result<(), Refusal> {
        put.unique.as_ref().map_or(Ok(()), |unique| self.check_unique(unique))?;
        check_bonds(put)
    }

    #[inline(never)]
    fn check_terms(&self, put: &Put<'_>) -> Result<(), Refusal> {
        put.terms.check()?;
        self.check_cost(put.queue, put.terms.cost())
    }

    /// Refuses a cost that is too high for tasks of this queue.
    pub(crate) fn check_cost(&self, queue: &[u8], cost: u32) -> Result<(), Refusal> {
        if cost == COST_USUAL { Ok(()) } else { self.check_cost_given(queue, cost) }
    }

    #[cold]
    fn check_cost_given(&self, queue: &[u8], cost: u32) -> Result<(), Refusal> {
        let existing = self.queues.find(queue);
        let most = existing.map_or(COST_MAX_DEFAULT, |it| self.queues[it].settings.cost_max);
        check_cost_below(most, cost)
    }

    /// Like [`Self::check_put_allowed`], for the put of a schedule.
    #[inline(never)]
    pub(crate) fn check_put_of_schedule(
        &mut self,
        put: &Put<'_>,
        existing: Option<QueueSlot>,
        is_bounded: bool,
    ) -> Result<(), Refusal> {
        self.check_put_allowed(put, existing, is_bounded)
    }

    /// Checks the state of the queue: whether the id is free, whether there is room, and whether
    /// puts are allowed. Notes the tasks that have to make room.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every put")]
    fn check_put_allowed(
        &mut self,
        put: &Put<'_>,
        existing: Option<QueueSlot>,
        is_bounded: bool,
    ) -> Result<(), Refusal> {
        let name = || quoted(put.queue);
        if let Some(id) = put.id
            && self.find_task(put.queue.into(), id)?.is_some()
        {
            return Err(Refusal::new(
                RefusalKind::Exists,
                format!("the queue {} has a task {} already", name(), quoted(id)),
            ));
        }
        if let Some(queue) = existing.filter(|_| is_bounded) {
            self.check_capacity(put, queue)?;
        }
        if existing.is_some_and(|slot| self.queues[slot].paused.input.is_on()) {
            return Err(paused(put.queue));
        }
        let id = given_id_bytes(put.id.map_or(0, <[u8]>::len));
        let mut content = put.payload.len() + put.terms.bytes() + id;
        if !put.is_untied() {
            content += self.bytes_of_ties(put)?;
        }
        // Usually there is room for a new queue too.
        if !self.is_busy_for(put_bytes(put.queue.len(), content)) {
            return Ok(());
        }
        self.check_room(self.growth_by_put(existing, put.queue, content))
    }

    /// Returns how many bytes a put needs because it is unique or names batches. Refuses another
    /// window where there are too many.
    #[inline(never)]
    fn bytes_of_ties(&self, put: &Put<'_>) -> Result<usize, Refusal> {
        let mut bytes = self.bytes_of_bonds(&put.bonds);
        if let Some(unique) = &put.unique {
            self.check_windows(unique)?;
            bytes += unique.bytes(put.queue.len(), put.id.map_or(0, <[u8]>::len));
        }
        Ok(bytes)
    }

    /// Returns the growth of [`Engine::bytes`] by a put of a task with `content` bytes of payload,
    /// key and given id.
    pub(crate) fn growth_by_put(
        &self,
        existing: Option<QueueSlot>,
        name: &[u8],
        content: usize,
    ) -> u64 {
        if existing.is_some_and(|slot| self.queues[slot].counted) {
            TASK_OVERHEAD_BYTES + content as u64
        } else {
            put_bytes(name.len(), content)
        }
    }

    /// Refuses what needs more memory or disk than there is.
    pub(crate) fn check_room(&self, bytes: u64) -> Result<(), Refusal> {
        if !self.is_busy_for(bytes) {
            return Ok(());
        }
        if self.room > Room::Enough {
            return Err(self.lacks_room());
        }
        let (bytes, most) = (self.bytes, self.limits.bytes_max);
        let sentence = format!(
            "tasks, queues and members occupy {bytes} of {most} bytes: finish some, try again"
        );
        Err(Refusal::new(RefusalKind::Busy, sentence))
    }

    /// Returns the id of a task that comes from another queue, where it had this one.
    pub(crate) fn new_id_of(&mut self, queue: QueueSlot, number: u64, former: &TaskId) -> TaskId {
        let ids = self.queues[queue].settings.ids;
        if ids != Ids::Given {
            return self.new_id(ids, number);
        }
        let own = match former {
            TaskId::Given(own) => own.clone(),
            other => other.to_string().into_bytes().into(),
        };
        let own = TaskId::Given(own);
        if self.queues[queue].indexes.find_id(&own).is_none() {
            return own;
        }
        let uuid = TaskId::Uuid(uuid_v7(self.now, number, self.seed));
        TaskId::Given(uuid.to_string().into_bytes().into())
    }

    /// Returns an id generated by the server.
    pub(crate) fn new_id(&mut self, ids: Ids, number: u64) -> TaskId {
        match ids {
            Ids::Sequence | Ids::Given => TaskId::Number(number),
            Ids::Time64 => TaskId::Number(self.issued.time64(self.now)),
            Ids::Uuid => TaskId::Uuid(uuid_v7(self.now, number, self.seed)),
        }
    }
}

/// Whether a put waits for batches.
#[inline(never)]
const fn follows(put: &Put<'_>) -> bool {
    put.bonds.after.is_some()
}

/// The refusal of a put into a queue that is paused for puts.
pub(crate) fn paused(queue: &[u8]) -> Refusal {
    let sentence = format!("the queue {} is paused for puts", quoted(queue));
    Refusal::new(RefusalKind::Paused, sentence)
}
