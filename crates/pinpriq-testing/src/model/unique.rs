//! Unique tasks: what a put meets, and what becomes of it.

use pinpriq_proto::batches::{After, Bonds};
use pinpriq_proto::command::{Put, TimeToLive};
use pinpriq_proto::limits::{UNIQUE_OVERHEAD_BYTES, WAIT_OVERHEAD_BYTES};
use pinpriq_proto::reply::{Outcome, RefusalKind, Reply};
use pinpriq_proto::task::{Bytes, ClientId, RequestId, State, StateKind, TaskId, history};
use pinpriq_proto::time::Timestamp;
use pinpriq_proto::unique::{
    Awaited, OnDuplicate, PutUnique, UNIQUE_BYTES_MAX, Unique, WindowRecord, window_bytes,
};

use super::history::set_attempts;
use super::waits::{PutAwaited, with_result};
use super::{Answer, Model, Place, fits};

impl Model {
    pub(super) fn unique_fits(&self, unique: Option<&Unique<'_>>) -> Result<(), RefusalKind> {
        let Some(unique) = unique else { return Ok(()) };
        fits((1..=UNIQUE_BYTES_MAX).contains(&unique.key.len()))?;
        self.span_fits(unique.window, false)
    }

    /// The task that holds a key in a queue.
    fn holder(&self, place: &Place, key: &[u8]) -> Option<u64> {
        let home = self.homes.get(place)?;
        let mut tasks = home.tasks.values();
        let holder = tasks.find(|task| {
            !matches!(task.progress.state.kind(), StateKind::Zombie | StateKind::Done)
                && task.unique().is_some_and(|own| **own == *key)
        });
        holder.map(|task| task.number)
    }

    /// The id and the number of what a put with this key meets. There is no number if only the
    /// window is left.
    #[must_use]
    pub fn duplicate(&self, queue: &[u8], key: &[u8]) -> Option<(TaskId, Option<u64>)> {
        if let Some(number) = self.holder(&Place::Queue(queue.into()), key) {
            return Some((self.task(number).id.clone(), Some(number)));
        }
        let mut windows = self.windows.values();
        let window = windows.find(|known| *known.queue == *queue && *known.key == *key)?;
        Some((window.id.clone(), None))
    }

    /// Refuses another window while too many outlive their tasks.
    pub(super) fn window_fits(&self, unique: Option<&Unique<'_>>) -> Result<(), RefusalKind> {
        if unique.is_some_and(|unique| unique.window.is_some()) {
            self.another_window_fits()?;
        }
        Ok(())
    }

    /// Refuses another window while too many outlive their tasks.
    pub(super) fn another_window_fits(&self) -> Result<(), RefusalKind> {
        let outlives = |known: &&WindowRecord| {
            let place = Place::Queue(known.queue.clone());
            self.holder(&place, &known.key) != Some(known.number)
        };
        let outliving = self.windows.values().filter(outlives).count() as u64;
        if outliving >= self.limits.unique_max { Err(RefusalKind::Busy) } else { Ok(()) }
    }

    /// The bytes of the key of a put and of its window.
    pub(super) fn bytes_of_unique(put: &Put<'_>) -> u64 {
        let Some(unique) = put.unique else { return 0 };
        let id = put.id.map_or(0, <[u8]>::len);
        let window = unique.window.map(|_| window_bytes(put.queue.len(), unique.key.len(), id));
        (unique.key.len() + UNIQUE_OVERHEAD_BYTES) as u64 + window.unwrap_or(0)
    }

    pub(super) fn open_window(&mut self, number: u64, queue: &[u8], unique: Option<Unique<'_>>) {
        let Some(unique) = unique else { return };
        let Some(window) = unique.window else { return };
        let (id, until) = (self.task(number).id.clone(), self.now.after(window));
        let (queue, key): (Bytes, Bytes) = (queue.into(), unique.key.into());
        self.keep_window(WindowRecord { number, queue, key, id, until });
    }

    /// Keeps a window in place of the one of its key, if there is one.
    pub(super) fn keep_window(&mut self, window: WindowRecord) {
        self.note_due(Some(window.until));
        self.windows.retain(|_, known| known.queue != window.queue || known.key != window.key);
        self.windows.insert(window.number, window);
    }

    pub(super) fn put_again(
        &mut self,
        client: ClientId,
        request: RequestId,
        put: &Put<'_>,
        (unique, expires_at): (&Unique<'_>, Option<Timestamp>),
        (id, number): (TaskId, Option<u64>),
    ) -> Answer {
        let place = Place::Queue(put.queue.into());
        self.totals.duplicates += 1;
        if let Some(home) = self.homes.get_mut(&place) {
            home.tally.duplicates += 1;
        }
        let until = self.end_of_wait(put);
        if unique.on_duplicate == OnDuplicate::Reject {
            return Err(RefusalKind::Exists);
        }
        let replaced = number.filter(|_| unique.on_duplicate == OnDuplicate::Replace);
        if let Some(number) = replaced {
            self.may_replace(client, number, put, until.is_some())?;
            self.replace(number, put, unique, expires_at);
        }
        let kind = number.map(|number| self.task(number).progress.state.kind());
        let awaited = match (put.wait, kind) {
            (None, _) => Awaited::No,
            (Some(_), None) => Awaited::Unknown,
            (Some(_), Some(StateKind::Buried)) => Awaited::Known(Outcome::Buried),
            (Some(_), Some(_)) => Awaited::Known(Outcome::Timeout),
        };
        if let (Some(until), Some(number), Awaited::Known(Outcome::Timeout)) =
            (until, number, awaited)
        {
            self.may_wait(client, WAIT_OVERHEAD_BYTES)?;
            let awaited = PutAwaited { id, unique: Some(false) };
            self.add_awaiter((client, request), number, until, Some(awaited), put.result);
        } else {
            let reply = Reply::PutUnique(PutUnique { id, new: false, awaited });
            let wants_result = put.result && put.wait.is_some();
            self.reply(client, request, with_result(reply, wants_result, None));
        }
        if let Some(number) = replaced {
            if put.ttl == TimeToLive::Instant {
                self.end_instant(number);
            }
            self.free_if_nothing_is_left(number);
        }
        Ok(None)
    }

    fn may_replace(
        &self,
        client: ClientId,
        number: u64,
        put: &Put<'_>,
        waits: bool,
    ) -> Result<(), RefusalKind> {
        let task = self.task(number);
        if task.progress.state.kind() == StateKind::Taken {
            return Err(RefusalKind::Taken);
        }
        // It stays in the batch in which it is, whichever the put names.
        let own = task.batch().map(|batch| &**batch);
        fits(own.is_none_or(|own| put.bonds.names_after().all(|name| name != own)))?;
        self.after_fits(put.bonds)?;
        if waits {
            self.may_wait(client, WAIT_OVERHEAD_BYTES)?;
        }
        let reason = task.progress.reason.as_ref().map_or(0, |reason| reason.len());
        let attempts = history::bytes(task.progress.history());
        let texts = reason + task.progress.checkpoint_bytes() + attempts;
        let after = task.progress.after().map_or(0, After::bytes);
        let former = task.payload.len() + task.terms.bytes() + texts + after;
        let id = if let TaskId::Given(id) = &task.id { id.len() } else { 0 };
        let window = put
            .unique
            .filter(|unique| unique.window.is_some() && !self.windows.contains_key(&number));
        let window = window.map(|unique| window_bytes(put.queue.len(), unique.key.len(), id));
        let only_after = Bonds { batch: None, ..put.bonds }.bytes();
        let content = put.payload.len() + put.terms.bytes() + only_after;
        let current = content as u64 + window.unwrap_or(0);
        self.has_room(current.saturating_sub(former as u64))
    }

    fn replace(
        &mut self,
        number: u64,
        put: &Put<'_>,
        unique: &Unique<'_>,
        expires_at: Option<Timestamp>,
    ) {
        let after = self.after_of(put);
        let delay = self.length_of(put.delay);
        let state = if after.is_some() { State::HELD } else { put.delay.state(self.now) };
        self.give_payload(number, put.payload);
        let task = self.task_mut(number);
        task.terms = put.terms.kept();
        task.progress.priority = put.priority;
        task.progress.expires_at = expires_at;
        (task.progress.failures, task.progress.reason) = (0, None);
        self.set_held(number, false);
        self.forget_checkpoint(number);
        set_attempts(self.task_mut(number), Vec::clear);
        self.shift(number, state);
        if after.is_some() {
            self.note_delay(number, delay);
            self.set_after(number, after);
        }
        self.open_window(number, put.queue, Some(*unique));
    }

    /// Takes its key from a task if another one holds that.
    pub(super) fn claim_key(&mut self, number: u64) {
        let Some(key) = self.task(number).unique().cloned() else { return };
        let place = self.places[&number].clone();
        let home = &self.homes[&place];
        let holds = |task: &pinpriq_proto::task::TaskRecord| {
            !matches!(task.progress.state.kind(), StateKind::Zombie | StateKind::Done)
        };
        let is_other = |task: &&pinpriq_proto::task::TaskRecord| {
            task.number != number && holds(task) && task.unique() == Some(&key)
        };
        let is_held = holds(self.task(number)) && home.tasks.values().any(|task| is_other(&task));
        if is_held {
            let task = self.task_mut(number);
            let batch = task.batch().cloned();
            task.forget_unique();
            task.set_batch(batch);
        }
    }
}
