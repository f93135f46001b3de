//! Unique tasks: when a put meets a duplicate, and what becomes of it.
//!
//! A task holds its key while it is ready, taken, waiting or buried. A window makes puts with a key
//! duplicates for a time, with or without a holder. It outlives its task, a truncated queue, and
//! one that has ceased to exist; `QUEUE DROP` ends it.

use std::ops::Bound;

use crate::engine::{Answered, Engine};
use crate::memory::consumers::{PutAwaited, with_result};
use crate::memory::deadlines::Due;
use crate::memory::packed::{Task, Unsaved};
use crate::memory::slots::{QueueSlot, Slot};
use crate::memory::windows::Window;
use crate::operations::arguments::{bad, check_positive, quoted};
use crate::transition::Operation;
use pinpriq_proto::batches::Bonds;
use pinpriq_proto::change::{Change, Place};
use pinpriq_proto::command::{Put, TimeToLive, Wait};
use pinpriq_proto::details::DetailKind;
use pinpriq_proto::limits::WAIT_OVERHEAD_BYTES;
use pinpriq_proto::reply::{Outcome, Refusal, RefusalKind, Reply};
use pinpriq_proto::task::{Bytes, ClientId, RequestId, State, StateKind, TaskId};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{
    Awaited, OnDuplicate, PutUnique, UNIQUE_BYTES_MAX, Unique, WindowRecord, window_bytes,
};

/// What a put meets.
#[derive(Debug)]
pub(crate) enum Duplicate {
    /// The first task, which is there.
    Task(Slot),
    /// Only the window of the first task, which had this id.
    Window(TaskId),
}

impl Engine {
    /// Checks the arguments about uniqueness.
    pub(crate) fn check_unique(&self, unique: &Unique<'_>) -> Result<(), Refusal> {
        let length = unique.key.len();
        if length == 0 || length > UNIQUE_BYTES_MAX {
            return Err(bad(format!(
                "a unique key has 1 to {UNIQUE_BYTES_MAX} bytes, and this one has {length}"
            )));
        }
        check_positive("the window", unique.window)?;
        self.moment("the window", unique.window.unwrap_or(Span::ZERO)).map(drop)
    }

    /// Returns what makes a put with this key a duplicate. Fires a passed deadline of the first
    /// task, so its queue may have ended afterwards.
    #[inline(never)]
    pub(crate) fn find_duplicate(&mut self, queue: &[u8], key: &[u8]) -> Option<Duplicate> {
        let slot = self.queues.find(queue);
        if let Some(holder) = slot.and_then(|slot| self.queues[slot].indexes.holder(key)) {
            let number = self.tasks[holder].number();
            let holder = self.live_by_now(number).filter(|slot| self.tasks[*slot].holds_its_key());
            if let Some(slot) = holder {
                return Some(Duplicate::Task(slot));
            }
        }
        let window = self.windows.find(queue, key)?;
        let is_open = window.record.until > self.now;
        is_open.then(|| Duplicate::Window(window.record.id.clone()))
    }

    /// Refuses a new task with a window while too many windows outlive their tasks.
    pub(crate) fn check_windows(&self, unique: &Unique<'_>) -> Result<(), Refusal> {
        if unique.window.is_none() { Ok(()) } else { self.check_windows_left() }
    }

    /// Refuses another window while too many outlive their tasks.
    pub(super) fn check_windows_left(&self) -> Result<(), Refusal> {
        let most = self.limits.unique_max;
        if self.windows.counted() < most {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalKind::Busy,
            format!("{most} windows of unique tasks outlive their tasks: use shorter windows"),
        ))
    }

    /// Answers a put that is a duplicate.
    pub(crate) fn put_again(
        &mut self,
        client: ClientId,
        request: RequestId,
        put: &Put<'_>,
        (unique, expires_at): (&Unique<'_>, Option<Timestamp>),
        duplicate: Duplicate,
    ) -> Answered {
        self.count_duplicate(put.queue);
        let (id, slot) = match duplicate {
            Duplicate::Task(slot) => (self.tasks[slot].id(), Some(slot)),
            Duplicate::Window(id) => (id, None),
        };
        match (unique.on_duplicate, slot) {
            (OnDuplicate::Reject, _) => {
                let (name, key) = (quoted(put.queue), quoted(unique.key));
                let sentence = format!("the task {id} in the queue {name} was put with {key} too");
                return Err(Refusal::new(RefusalKind::Exists, sentence));
            }
            (OnDuplicate::Replace, Some(slot)) => {
                self.check_replacement(client, put, unique, slot)?;
                self.replace(put, unique, expires_at, slot);
            }
            (OnDuplicate::Keep, _) | (OnDuplicate::Replace, None) => {}
        }
        let awaited = match (put.wait, slot) {
            (None, _) => Awaited::No,
            (Some(_), None) => Awaited::Unknown,
            (Some(wait), Some(slot)) => {
                let task = &self.tasks[slot];
                let number = task.number();
                if task.kind() == StateKind::Buried {
                    Awaited::Known(Outcome::Buried)
                } else {
                    if wait.blocks() {
                        self.check_waits(client, WAIT_OVERHEAD_BYTES)?;
                    }
                    let awaited = PutAwaited { id, unique: Some(false) };
                    self.await_put(client, request, number, awaited, (wait, put.result));
                    self.end_replaced(put, unique, slot, number);
                    self.free_at_once(number);
                    return Ok(None);
                }
            }
        };
        let number = slot.map(|slot| self.tasks[slot].number());
        let reply = Reply::PutUnique(PutUnique { id, new: false, awaited });
        let wants_result = put.result && awaited != Awaited::No;
        self.reply(client, request, with_result(reply, wants_result, None));
        if let (Some(slot), Some(number)) = (slot, number) {
            self.end_replaced(put, unique, slot, number);
            self.free_at_once(number);
        }
        Ok(None)
    }

    /// A task that was replaced by one that lives only for this instant goes at once.
    fn end_replaced(&mut self, put: &Put<'_>, unique: &Unique<'_>, slot: Slot, number: u64) {
        if put.ttl == TimeToLive::Instant && unique.on_duplicate == OnDuplicate::Replace {
            self.end_instant(slot, number);
        }
    }

    fn check_replacement(
        &self,
        client: ClientId,
        put: &Put<'_>,
        unique: &Unique<'_>,
        slot: Slot,
    ) -> Result<(), Refusal> {
        let task = &self.tasks[slot];
        if task.kind() == StateKind::Taken {
            let (name, id) = (quoted(put.queue), task.id());
            let sentence = format!("the task {id} in the queue {name} is taken: it stays as it is");
            return Err(Refusal::new(RefusalKind::Taken, sentence));
        }
        if put.wait.is_some_and(Wait::blocks) {
            self.check_waits(client, WAIT_OVERHEAD_BYTES)?;
        }
        let after = Bonds { batch: None, ..put.bonds };
        if !after.are_none() {
            // It stays in its batch, whatever the put says.
            let own = self.tasks.memberships.name_of(slot);
            Bonds { batch: own.map(|name| &**name), ..after }.check()?;
            self.check_after(&after)?;
        }
        let former = task.own_bytes() + task.away_bytes();
        let bytes = put.payload.len() + put.terms.bytes() + after.bytes();
        let texts = task.reason_bytes() + task.checkpoint_bytes() + task.history_bytes();
        let waits = task.after().map_or(0, |after| after.bytes() as u64);
        let replaced = task.content_bytes() + task.extras_bytes() + texts + waits;
        let current = former - replaced + bytes as u64;
        let is_new = unique.window.is_some() && self.windows.one(task.number()).is_none();
        let id = if let TaskId::Given(id) = task.id() { id.len() } else { 0 };
        let window = if is_new { window_bytes(put.queue.len(), unique.key.len(), id) } else { 0 };
        self.check_room((current + window).saturating_sub(former))
    }

    /// Makes the first task what a later put says. It keeps its id and its place.
    fn replace(
        &mut self,
        put: &Put<'_>,
        unique: &Unique<'_>,
        expires_at: Option<Timestamp>,
        slot: Slot,
    ) {
        let after = self.after_put(put);
        let follows = after.is_some();
        let state = if follows { State::HELD } else { put.delay.state(self.now) };
        let delay = put.delay.from(self.now);
        self.set_payload(slot, put.payload);
        self.shift(slot, Operation::Replace, Unsaved::Whole, |task| {
            task.set_terms(put.terms.kept());
            task.set_priority(put.priority);
            task.set_expires_at(expires_at);
            task.set_failures(0);
            task.set_reason(None);
            task.set_checkpoint(None);
            task.set_history(None);
            if follows {
                task.set_delay(delay);
            }
            task.set_after(after);
            state
        });
        if follows {
            self.follow(slot);
        }
        let number = self.tasks[slot].number();
        self.open_window(number, put.queue, unique, self.tasks[slot].id());
    }

    /// Opens the window that a put names.
    pub(crate) fn open_window(
        &mut self,
        number: u64,
        queue: &[u8],
        unique: &Unique<'_>,
        id: TaskId,
    ) {
        let Some(window) = unique.window else { return };
        let record = WindowRecord {
            number,
            queue: queue.into(),
            key: unique.key.into(),
            id,
            until: self.now.after(window),
        };
        self.keep_window(record);
        self.windows.hold(number, true);
    }

    /// Keeps a window in place of the one of its key, if there is one: the last one that was named
    /// counts. That one is over, and has not been removed yet, or has the same number; or it
    /// outlives its task, and the new one is of an older task that came back from Z or D and was
    /// replaced. The new one is held if that one was.
    pub(super) fn keep_window(&mut self, record: WindowRecord) {
        let number = record.number;
        let other = self.windows.find(&record.queue, &record.key);
        let mut held = false;
        if let Some((other, was_held)) = other.map(|window| (window.record.number, window.held)) {
            held = was_held && other == number;
            self.end_window(other, other != number);
        }
        self.note_window(number);
        self.bytes += record.bytes();
        self.deadlines.insert(record.until, Due::Window(number));
        self.report.add(Change::detail(record.clone()));
        self.windows.insert(Window { record, place: None, held });
    }

    /// Removes a window that is over.
    pub(crate) fn fire_window(&mut self, number: u64) {
        if let Some(window) = self.windows.remove(number) {
            self.forget_window(&window, true);
        }
    }

    /// Removes a window. It is reported, unless another one of this number follows.
    fn end_window(&mut self, number: u64, is_reported: bool) {
        self.note_window(number);
        let Some(window) = self.windows.remove(number) else { return };
        self.deadlines.remove(window.record.until, Due::Window(number));
        self.forget_window(&window, is_reported);
    }

    fn forget_window(&mut self, window: &Window, is_reported: bool) {
        self.bytes -= window.record.bytes();
        self.report.give_up(window.place);
        if is_reported {
            self.report.add(Change::DetailGone(DetailKind::Window, window.record.number));
        }
    }

    /// Ends the windows of a queue that is dropped, and returns their number. Costs O(log n) for
    /// each.
    pub(crate) fn end_windows(&mut self, queue: &[u8]) -> usize {
        let windows = self.windows_of(queue);
        for number in &windows {
            self.end_window(*number, true);
        }
        windows.len()
    }

    fn windows_of(&self, queue: &[u8]) -> Vec<u64> {
        let windows = self.windows.of_queue(queue, Bound::Unbounded);
        windows.map(|window| window.record.number).collect()
    }

    /// Notes that no task of a queue holds its key now. Costs O(log n) for each window.
    pub(crate) fn outlive(&mut self, queue: QueueSlot) {
        if self.queues[queue].lane.is_some() {
            return;
        }
        let name = self.queues[queue].name.clone();
        for number in self.windows_of(&name) {
            self.windows.hold(number, false);
        }
    }

    /// Lets a task hold its key, or leave it behind if another task holds it.
    pub(crate) fn claim_key(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        let Some(key) = task.unique_key().filter(|_| task.holds_its_key()).cloned() else {
            return;
        };
        let (queue, number) = (task.queue, task.number());
        if self.queues[queue].indexes.hold(&key, slot) {
            self.windows.hold(number, true);
            return;
        }
        self.amend(slot, Unsaved::Whole, |task| task.set_unique_key(None));
    }

    /// Notes that a task with a key has moved between these states.
    #[inline(never)]
    pub(crate) fn note_key(&mut self, slot: Slot, from: StateKind) {
        let task = &self.tasks[slot];
        match (holds_key(from), task.holds_its_key()) {
            (true, false) => {
                let (queue, number) = (task.queue, task.number());
                if let Some(key) = task.unique_key().cloned() {
                    self.free_key(queue, number, &key);
                }
            }
            (false, true) => self.claim_key(slot),
            _ => {}
        }
    }

    /// Takes its key from a task that is finished or leaves.
    pub(crate) fn free_key(&mut self, queue: QueueSlot, number: u64, key: &Bytes) {
        self.queues[queue].indexes.release(key);
        self.windows.hold(number, false);
    }

    /// Counts a put that met a duplicate.
    fn count_duplicate(&mut self, queue: &[u8]) {
        self.totals.duplicates += 1;
        if let Some(slot) = self.queues.find(queue).filter(|slot| self.queues[*slot].counted) {
            if self.undo.is_some() {
                self.note_queue(slot);
            }
            self.queues[slot].counters.duplicates += 1;
        }
    }

    pub(crate) fn restore_window(&mut self, record: WindowRecord, place: Option<Place>) {
        self.issued.raise(record.number);
        for former in self.windows.restore(Window { record, place, held: false }) {
            self.report.give_up(former);
        }
    }

    /// Lets restored tasks hold their keys, and makes restored windows due.
    pub(crate) fn revive_unique(&mut self, tasks: &[Slot]) {
        for slot in tasks {
            self.claim_key(*slot);
        }
        let windows = self.windows.iter().map(|window| &window.record);
        let due: Vec<(Timestamp, u64, u64)> =
            windows.map(|known| (known.until, known.number, known.bytes())).collect();
        for (until, number, bytes) in due {
            self.bytes += bytes;
            self.deadlines.insert(until, Due::Window(number));
        }
    }
}

impl Task {
    /// Whether it is in a state in which it holds its key, if it has one.
    pub(crate) fn holds_its_key(&self) -> bool {
        holds_key(self.kind())
    }
}

/// Whether tasks in this state hold their keys.
pub(crate) const fn holds_key(kind: StateKind) -> bool {
    !kind.is_finished()
}
