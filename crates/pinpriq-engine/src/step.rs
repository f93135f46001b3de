//! The only code that moves a task. It updates indexes, deadline, counters and changes, and checks
//! every move against the transition table.
//!
//! Commands decide what happens and call `enter`, `shift`, `amend`, `leave` or `relocate`. Each of
//! these keeps every index, counter and deadline correct. Nothing here replies to a client, except
//! to the awaiters of a task.

use crate::engine::Engine;
use crate::memory::consumers::{Bond, Client, Ended};
use crate::memory::deadlines::Due;
use crate::memory::packed::{Task, Unsaved};
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::ageing::number_of;
use crate::operations::fail::Failure;
use crate::operations::following::Joining;
use crate::operations::history::close_attempt;
use crate::operations::progress::forget_the_way;
use crate::operations::recall::leave_unstarted;
use crate::operations::turns::leave_turns;
use crate::operations::unique::holds_key;
use crate::transition::{Operation, permits};
use pinpriq_proto::change::Change;
use pinpriq_proto::limits::TASK_OVERHEAD_BYTES;
use pinpriq_proto::reply::{Outcome, Refusal};
use pinpriq_proto::settings::{AfterAck, Ids};
use pinpriq_proto::stats::Exit;
use pinpriq_proto::task::{ClientId, State, StateKind, reasons};
use pinpriq_proto::time::Span;

impl Engine {
    /// A task enters its queue: X to R, W or (undoing a pop) R.
    pub(crate) fn enter(&mut self, task: Task, operation: Operation) -> Slot {
        let slot = self.enter_known(task, operation);
        self.mark(slot, Unsaved::Whole);
        slot
    }

    /// Like [`Self::enter`], for a task that is reported to the store in another way.
    pub(crate) fn enter_known(&mut self, task: Task, operation: Operation) -> Slot {
        let (queue, kind) = (task.queue, task.kind());
        assert!(permits(operation, None, Some(kind)), "{operation:?} cannot make {kind:?}");
        let (content, own) = (task.content_bytes(), task.own_bytes());
        let (is_unique, follows) = (task.unique_key().is_some(), task.after().is_some());
        if self.undo.is_some() {
            self.note_entry(task.number(), queue);
        }
        let settings = &self.queues[queue].settings;
        let (ids, ages) = (settings.ids, settings.age());
        if ids == Ids::Given {
            self.forget_ending(queue, &task.id());
        }
        let slot = self.tasks.insert(task);
        let owner = &mut self.queues[queue];
        if ids != Ids::Sequence {
            owner.indexes.insert_id(&self.tasks[slot].id(), slot);
        }
        let is_back = operation == Operation::PutBack;
        for counters in [&mut owner.counters, &mut self.totals] {
            counters.bytes += content;
            // What is finished has been acknowledged elsewhere.
            if !kind.is_finished() {
                *if is_back { &mut counters.revived } else { &mut counters.put } += 1;
            }
        }
        self.bytes += own + TASK_OVERHEAD_BYTES;
        self.count(queue, operation, None, Some(kind));
        if kind.is_finished() {
            self.weigh_finished(queue, None, Some((kind, content)));
        }
        self.report.stir(operation != Operation::Put);
        if ages {
            self.begin_rank(slot);
        }
        self.settle(slot);
        if is_unique {
            self.claim_key(slot);
        }
        if follows {
            self.follow(slot);
        }
        slot
    }

    /// Moves a task into the state that `change` returns. `change` may alter other fields of the
    /// task too.
    #[inline]
    pub(crate) fn shift(
        &mut self,
        slot: Slot,
        operation: Operation,
        unsaved: Unsaved,
        change: impl FnOnce(&mut Task) -> State,
    ) {
        let former = Some(Weight::of(&self.tasks[slot]));
        self.shift_weighed(slot, operation, (unsaved, former), change);
    }

    /// Like [`Self::shift`], for a task that is unfinished before and after, and of which `change`
    /// leaves everything that it weighs.
    #[inline]
    pub(crate) fn shift_only(
        &mut self,
        slot: Slot,
        operation: Operation,
        unsaved: Unsaved,
        change: impl FnOnce(&mut Task) -> State,
    ) {
        self.shift_weighed(slot, operation, (unsaved, None), change);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is most of the work of a take")]
    fn shift_weighed(
        &mut self,
        slot: Slot,
        operation: Operation,
        (mut unsaved, former): (Unsaved, Option<Weight>),
        change: impl FnOnce(&mut Task) -> State,
    ) {
        let from = self.lift(slot);
        let with_batches = self.batches.were_used();
        if with_batches && from == StateKind::Waiting && self.tasks[slot].after().is_some() {
            let freed = self.wait_no_longer(slot);
            if former.is_none() {
                self.bytes -= freed;
            }
            // The record of a grant would leave it waiting.
            unsaved = unsaved.max(Unsaved::Progress);
        }
        let task = &mut self.tasks[slot];
        let state = change(task);
        let to = state.kind();
        if from == StateKind::Taken && task.progress_text().is_some() {
            task.set_progress_text(None);
        }
        if from.is_finished() && !to.is_finished() {
            task.set_result(None);
        }
        if from == StateKind::Taken && task.has_open_attempt() {
            self.end_attempt(slot, operation);
        }
        let task = &mut self.tasks[slot];
        assert!(
            permits(operation, Some(from), Some(to)),
            "{operation:?} cannot move task {} from {from:?} to {to:?}",
            task.number()
        );
        task.set_state(state);
        let taken_at = task.since();
        if from != to {
            task.note_since(self.now);
        }
        let (queue, number) = (task.queue, task.number());
        if let Some(former) = former {
            self.reweigh(slot, former, from);
            for counters in [&mut self.queues[queue].counters, &mut self.totals] {
                counters.finish(from, to);
            }
        }
        self.count(queue, operation, Some(from), Some(to));
        if from == StateKind::Taken {
            self.end_hold(queue, taken_at);
        }
        let left = with_batches && self.move_in_batch(slot, from, to);
        let unsaved = if left { Unsaved::Whole } else { unsaved };
        let stirred = match from {
            StateKind::Ready => to != StateKind::Taken,
            StateKind::Taken => to == StateKind::Ready,
            _ => true,
        };
        self.report.stir(stirred);
        self.settle(slot);
        self.mark(slot, unsaved);
        if self.tasks[slot].unique_key().is_some() {
            self.note_key(slot, from);
        }
        let outcome = match to {
            StateKind::Buried => Outcome::Buried,
            StateKind::Zombie | StateKind::Done => Outcome::Acked,
            StateKind::Ready | StateKind::Taken | StateKind::Waiting => return,
        };
        if self.tasks[slot].is_held() {
            self.tasks[slot].set_held(false);
        }
        // Usually there are no awaiters.
        if self.consumers.has_watchers() {
            let result = self.tasks[slot].result().cloned();
            let ended = Ended { outcome, state: Some(to), result, batch: None };
            self.tell_watchers_of(Some(queue), number, ended);
        }
    }

    /// Changes fields of a task that stays in its state.
    pub(crate) fn amend(&mut self, slot: Slot, unsaved: Unsaved, change: impl FnOnce(&mut Task)) {
        let kind = self.lift(slot);
        self.report.stir(kind != StateKind::Taken);
        let task = &mut self.tasks[slot];
        let former = Weight::of(task);
        change(task);
        self.reweigh(slot, former, kind);
        self.settle(slot);
        if unsaved != Unsaved::Nothing {
            self.mark(slot, unsaved);
        }
    }

    /// Replaces the payload of a task by one of its own.
    pub(crate) fn set_payload(&mut self, slot: Slot, payload: &[u8]) {
        let kept = self.tasks.keep(payload);
        let mut former = None;
        self.amend(slot, Unsaved::Whole, |task| former = task.replace_payload(kept));
        self.forget_payload(former);
    }

    /// A task leaves its queue for good: any state to X.
    pub(crate) fn leave(&mut self, slot: Slot, operation: Operation, exit: Exit) {
        let task = self.take_out(slot, operation, exit);
        self.forget_payload(task.payload());
        self.report.give_up(task.place());
        self.tidy_queue(task.queue);
    }

    /// Takes a task out of its queue for good, and returns it with its payload and its place in the
    /// store. Its queue may be unneeded now.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is most of the work of an ack")]
    fn take_out(&mut self, slot: Slot, operation: Operation, exit: Exit) -> Task {
        let from = self.lift(slot);
        assert!(
            permits(operation, Some(from), None) || matches!(exit, Exit::Expired | Exit::Cancelled),
            "{operation:?} cannot remove a task that is {from:?}"
        );
        self.report.stir(from != StateKind::Taken);
        let task = self.detach(slot);
        if self.has_marks {
            self.forget_marks(slot, &task, (from, exit));
        }
        let queue = &mut self.queues[task.queue];
        let is_followed = queue.is_followed();
        if queue.settings.ids != Ids::Sequence {
            queue.indexes.remove_id(&task.id());
        }
        let content = task.content_bytes();
        let name = queue.remembered_as;
        queue.counters.exit(from, exit);
        queue.counters.bytes -= content;
        self.totals.exit(from, exit);
        self.totals.bytes -= content;
        if from.is_finished() {
            self.weigh_finished(task.queue, Some((from, content)), None);
        }
        self.count(task.queue, operation, Some(from), None);
        if from == StateKind::Taken {
            self.end_hold(task.queue, task.since());
        }
        if let Some(key) = task.unique_key().filter(|_| holds_key(from)) {
            self.free_key(task.queue, task.number(), key);
        }
        if task.is_recorded() {
            self.report.add(Change::Gone(task.number()));
        }
        if is_followed && !(from == StateKind::Taken && self.queues[task.queue].is_at_rest()) {
            self.conclude_turns(task.queue);
        }
        let outcome = match exit {
            Exit::Acked => Outcome::Acked,
            Exit::Expired => Outcome::Expired,
            Exit::Killed => Outcome::Killed,
            Exit::Dead => Outcome::Dead,
            Exit::Evicted => Outcome::Evicted,
            Exit::Moved => Outcome::Moved,
            Exit::Cancelled => Outcome::Cancelled,
            Exit::Skipped => Outcome::Skipped,
        };
        self.remember(name, &task, outcome);
        self.tell_watchers(Some(task.queue), &task, outcome);
        task
    }

    /// Moves a task into another queue, where it is a new task: it leaves this one, and enters that
    /// one under another number, with the same payload. `change` makes it what it is to be there,
    /// and gets its number. One batch holds both.
    pub(crate) fn relocate(
        &mut self,
        slot: Slot,
        (operation, exit): (Operation, Exit),
        to: QueueSlot,
        change: impl FnOnce(&mut Task),
    ) {
        let account = self.accounts.of(self.tasks[slot].number()).cloned();
        let batch = self.tasks.memberships.of(slot).filter(|_| exit == Exit::Moved);
        let mut task = self.take_out(slot, operation, exit);
        let from = task.queue;
        let text = task.id();
        let number = self.issued.next();
        let id = self.new_id_of(to, number, &text);
        let renamed = self.endings.are_wanted().then(|| id.clone());
        let epoch = self.queues[to].epoch;
        // A payload that was left in the store is read from the old record until the new one is
        // there. So that place is given up later.
        if task.away_bytes() == 0 {
            let place = task.replace_place(None);
            self.report.give_up(place);
        }
        if exit != Exit::Moved {
            task.set_after(None);
        }
        task.renew(number, id, to, epoch);
        change(&mut task);
        if task.has_open_attempt() {
            let most = self.queues[from].settings.history;
            close_attempt(&mut task, self.now, operation, most);
        }
        if let Some(id) = renamed {
            let name = self.queues[to].name.clone();
            self.endings.note_became((name, id), task.reason().cloned());
        }
        self.relocated_bytes += task.content_bytes();
        self.count_queue(to);
        let slot = self.enter(task, Operation::Arrive);
        if let Some(batch) = batch.filter(|batch| self.tasks.memberships.follow(*batch)) {
            self.join_batch(slot, batch, Joining::Moved);
        }
        if account.is_some() {
            self.set_account(number, account);
        }
        self.tidy_queue(from);
    }

    /// A task leaves because its TTL has passed: R, T, W or any other state to X.
    pub(crate) fn expire(&mut self, slot: Slot) {
        self.leave_expired(slot, Operation::Deadline);
    }

    /// Ends a task that was acknowledged or popped, as the setting of its queue says, or as a
    /// zombie for `zombie`.
    pub(crate) fn finish(&mut self, slot: Slot, operation: Operation, zombie: Option<Span>) {
        let queue = &self.queues[self.tasks[slot].queue];
        let setting = queue.settings.after_ack;
        if queue.is_followed() {
            self.tally(slot, |happened| happened.acked += 1);
        }
        let after_ack = zombie.map_or(setting, AfterAck::Zombie);
        match after_ack {
            AfterAck::Delete => self.leave(slot, operation, Exit::Acked),
            AfterAck::Keep => self.shift(slot, operation, Unsaved::Progress, |task| {
                forget_the_way(task);
                State::Done
            }),
            AfterAck::Zombie(stay) => {
                let purge_at = self.now.after(stay);
                self.shift(slot, operation, Unsaved::Progress, |task| {
                    forget_the_way(task);
                    State::Zombie { purge_at }
                });
            }
        }
    }

    /// Handles a task whose due moment has come.
    pub(crate) fn fire(&mut self, number: u64) {
        let Some(slot) = self.tasks.find(number) else {
            unreachable!("task {number} was due and is gone")
        };
        self.tasks[slot].set_armed(None);
        if self.live(number).is_none() {
            return;
        }
        let task = &self.tasks[slot];
        match task.state() {
            State::Ready => self.expire(slot),
            State::Waiting { .. } if task.is_expired(self.now) => self.expire(slot),
            State::Waiting { .. } => {
                self.shift(slot, Operation::Deadline, Unsaved::Progress, |_| State::Ready);
            }
            State::Taken(lease) if lease.is_unstarted() => self.take_back(slot),
            State::Taken(lease) => {
                let at = lease.deadline.unwrap_or(self.now);
                self.tasks[slot].count(|counts| &mut counts.timeouts);
                let is_tube = self.queues[self.tasks[slot].queue].is_tube;
                self.tube_timeouts += u64::from(is_tube);
                self.fail(slot, Operation::Deadline, Failure::at(at, reasons::LEASE_EXPIRED));
            }
            State::Zombie { .. } => self.leave(slot, Operation::Deadline, Exit::Acked),
            State::Buried(_) | State::Done => {
                unreachable!("task {number} was due in a state without a deadline")
            }
        }
    }

    /// Ends a lease without counting a failure: T to R, or to X if the TTL has passed meanwhile.
    pub(crate) fn end_lease(&mut self, slot: Slot, operation: Operation) {
        if self.leave_cancelled(slot, operation) {
            return;
        }
        if self.tasks[slot].is_expired(self.now) {
            self.leave_expired(slot, operation);
        } else {
            self.shift(slot, operation, Unsaved::Progress, |_| State::Ready);
        }
    }

    /// Records that a task must be reported to the store.
    pub(crate) fn mark(&mut self, slot: Slot, unsaved: Unsaved) {
        if !self.report.is_wanted() {
            return;
        }
        let task = &mut self.tasks[slot];
        if task.unsaved() == Unsaved::Nothing {
            self.report.mark(slot);
        }
        task.set_unsaved(task.unsaved().max(unsaved));
    }

    /// Reports everything that the store does not know yet.
    #[inline]
    pub(crate) fn save(&mut self) {
        if self.report.has_unsaved() {
            self.save_marked();
        }
    }

    #[inline(never)]
    fn save_marked(&mut self) {
        let mut unsaved = self.report.take_unsaved();
        for slot in unsaved.drain(..) {
            let Some(task) = self.tasks.at(slot) else { continue };
            // A task whose queue was emptied since was removed with it.
            if self.queues.is_current(task.queue, task.epoch) {
                let queue = &self.queues[task.queue];
                if let Some(change) = self.tasks.unsaved_change((slot, task), queue.names()) {
                    self.report.add(change);
                }
            }
            self.tasks[slot].set_saved();
        }
        self.report.reuse(unsaved);
    }

    /// Removes the task from memory and from everything that refers to it by number.
    pub(crate) fn remove_from_memory(&mut self, slot: Slot) -> Task {
        let task = self.detach(slot);
        self.forget_account(task.number());
        self.tasks.forget(task.payload());
        self.report.give_up(task.place());
        task
    }

    /// Like [`Self::remove_from_memory`], but keeps its payload and its place in the store.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is most of the work of an ack")]
    fn detach(&mut self, slot: Slot) -> Task {
        let task = self.tasks.detach(slot);
        if let Some(at) = task.armed() {
            self.deadlines.remove(at, Due::Task(task.number()));
        }
        self.bytes -= task.own_bytes() + TASK_OVERHEAD_BYTES;
        if task.shares() {
            self.let_go(task.number());
        }
        task
    }

    /// Ends the sharing of a copy with its publication. After the last copy, the publication is
    /// removed.
    fn let_go(&mut self, number: u64) {
        if self.undo.is_some() {
            self.note_publication_of(number);
        }
        let Some((first, published)) = self.publications.of_copy(number) else {
            unreachable!("task {number} shares no publication")
        };
        published.sharers -= 1;
        if published.sharers == 0 {
            let published = self.publications.remove(first);
            self.bytes -= published.content_bytes();
            self.report.give_up(published.place);
        }
    }

    /// Replies to all awaiters of a task that has left its queue, and notes that this may have
    /// room.
    #[inline]
    pub(crate) fn tell_watchers(
        &mut self,
        queue: Option<QueueSlot>,
        task: &Task,
        outcome: Outcome,
    ) {
        // Usually there are no awaiters.
        if self.consumers.has_watchers() {
            let result = task.result().cloned();
            let ended = Ended { outcome, state: None, result, batch: None };
            self.tell_watchers_of(queue, task.number(), ended);
        }
    }

    /// Replies to all awaiters of a task.
    #[inline(never)]
    pub(crate) fn tell_watchers_of(&mut self, queue: Option<QueueSlot>, number: u64, ended: Ended) {
        if let Some(queue) = queue {
            self.consumers.putters.note_vacancy(queue);
        }
        if let Some(undo) = &mut self.undo {
            return undo.tell_later(number, ended);
        }
        for (id, awaiter) in self.consumers.take_awaiters_of(number) {
            if let Some(at) = awaiter.until {
                self.deadlines.remove(at, Due::Awaiter(id));
            }
            self.answer_awaiter(awaiter, &ended);
        }
    }

    /// Removes a queue that is no longer needed. Its figures may be kept for a while.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every end of a task")]
    pub(crate) fn tidy_queue(&mut self, queue: QueueSlot) {
        if let Some(undo) = &mut self.undo {
            return undo.tidy_later(queue);
        }
        self.bytes -= self.queues.tidy(queue, self.now);
    }

    /// Counts a queue, which exists for clients from now on.
    #[inline]
    pub(crate) fn count_queue(&mut self, queue: QueueSlot) {
        if self.undo.is_some() {
            self.note_queue(queue);
        }
        if !self.queues[queue].counted {
            self.bytes += self.queues.count(queue, self.now);
        }
    }

    /// Refuses to give a task another payload, or another reason of this many bytes, if there is
    /// not enough room. Costs O(1).
    pub(crate) fn check_growth(
        &self,
        slot: Slot,
        payload: Option<&[u8]>,
        reason: Option<usize>,
    ) -> Result<(), Refusal> {
        self.check_change(slot, New { payload, reason, ..New::NOTHING })
    }

    /// Like [`Self::check_growth`], for all that a task can get. One that shares its terms must get
    /// a payload with its headers.
    pub(crate) fn check_change(&self, slot: Slot, new: New<'_>) -> Result<(), Refusal> {
        if new.is_nothing() {
            return Ok(());
        }
        let New { payload, reason, headers, progress_text, checkpoint, result } = new;
        let task = &self.tasks[slot];
        let reason = reason.unwrap_or_else(|| task.reason().map_or(0, |reason| reason.len()));
        // A payload that was left in the store counts too, so a shorter one always fits.
        let (mut former, mut current) = (task.own_bytes() + task.away_bytes(), reason as u64);
        current += former - task.reason_bytes();
        if let Some(payload) = payload {
            current = task.own_bytes_with(payload.len(), reason);
            // When its last copy stops sharing, a publication is removed.
            let shared = self.publications.shared_by(task.number()).filter(|_| task.shares());
            let last = shared.filter(|(_, published)| published.sharers == 1);
            former += last.map_or(0, |(_, published)| published.content_bytes());
        }
        if let Some(headers) = headers {
            current += headers.len() as u64;
            former += task.headers_bytes();
        }
        if let Some(text) = progress_text {
            current += text.len() as u64;
            former += task.progress_text().map_or(0, |text| text.len() as u64);
        }
        if let Some(checkpoint) = checkpoint {
            current += checkpoint.len() as u64;
            former += task.checkpoint_bytes();
        }
        current += result.map_or(0, |result| result.len() as u64);
        if current <= former {
            return Ok(());
        }
        self.check_room(current - former)
    }

    /// Removes a task from the indexes that depend on its state.
    pub(crate) fn lift(&mut self, slot: Slot) -> StateKind {
        if self.undo.is_some() {
            self.note_task(slot);
        }
        let task = &self.tasks[slot];
        let queue = &mut self.queues[task.queue];
        if queue.must_hear_of_exit(slot, task) {
            leave_turns(queue, slot, (&self.tasks, self.now), &mut self.buckets);
        }
        queue.indexes.remove(slot, &self.tasks);
        if let Some((client, bond)) = connection_lease(task) {
            if let Bond::Unstarted(_) = bond {
                leave_unstarted(queue, task);
            }
            let number = task.number();
            if let Some(holder) = self.consumers.clients.get_mut(&client) {
                holder.let_go(number, bond);
            }
            self.consumers.tidy(client);
        }
        task.kind()
    }

    /// Adds a task to the indexes that depend on its state, and wakes the consumers that wait for
    /// it.
    pub(crate) fn settle(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        let (queue, number, due, armed) = (task.queue, task.number(), task.due(), task.armed());
        let is_ready = task.kind() == StateKind::Ready;
        let owner = &mut self.queues[queue];
        owner.indexes.insert(slot, &self.tasks);
        let is_followed = owner.is_followed();
        let mut is_unstarted = false;
        if let Some((client, bond)) = connection_lease(task) {
            let holder: &mut Client = self.consumers.client(client);
            holder.hold(number, bond);
            is_unstarted = matches!(bond, Bond::Unstarted(_));
            if is_unstarted {
                self.note_unstarted(slot);
            }
        }
        if due != armed {
            if let Some(at) = armed {
                self.deadlines.remove(at, Due::Task(number));
            }
            if let Some(at) = due {
                self.deadlines.insert(at, Due::Task(number));
            }
            self.tasks[slot].set_armed(due);
        }
        if is_followed {
            self.join_turns(slot, is_ready);
        } else if is_ready || is_unstarted {
            self.wake(queue);
        }
    }

    /// Notes a task that was only delivered.
    #[inline(never)]
    fn note_unstarted(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        let queue = &mut self.queues[task.queue];
        let unstarted = queue.waiting.unstarted.get_or_insert_default();
        unstarted.insert(task, number_of(&queue.settings, task));
    }

    /// Counts a move, in the queue and in total.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "each caller knows where the task comes from")]
    fn count(
        &mut self,
        queue: QueueSlot,
        operation: Operation,
        from: Option<StateKind>,
        to: Option<StateKind>,
    ) {
        for counters in [&mut self.queues[queue].counters, &mut self.totals] {
            if operation == Operation::Pop {
                counters.note(from, Some(StateKind::Taken));
                counters.note(Some(StateKind::Taken), to);
            } else {
                counters.note(from, to);
            }
            if let Some(from) = from {
                counters.leave(from);
            }
            if let Some(to) = to {
                counters.enter(to);
            }
        }
    }

    /// Updates the accounting of a task that was in the state `from`, and whose payload may have
    /// been replaced.
    fn reweigh(&mut self, slot: Slot, former: Weight, from: StateKind) {
        let task = &self.tasks[slot];
        let current = Weight::of(task);
        let (queue, to) = (task.queue, task.kind());
        if from.is_finished() || to.is_finished() {
            self.weigh_finished(queue, Some((from, former.content)), Some((to, current.content)));
        }
        if former == current {
            return;
        }
        self.note_vacancy(queue);
        let number = self.tasks[slot].number();
        let counters = &mut self.queues[queue].counters;
        counters.bytes = counters.bytes + current.content - former.content;
        self.totals.bytes = self.totals.bytes + current.content - former.content;
        self.bytes = self.bytes + current.own - former.own;
        if former.shares && !current.shares {
            self.let_go(number);
        }
    }
}

/// What a task is about to get in place of what it has, where that takes room.
#[derive(Clone, Copy)]
pub(crate) struct New<'a> {
    pub(crate) payload: Option<&'a [u8]>,
    /// The bytes of a reason.
    pub(crate) reason: Option<usize>,
    pub(crate) headers: Option<&'a [u8]>,
    pub(crate) progress_text: Option<&'a [u8]>,
    pub(crate) checkpoint: Option<&'a [u8]>,
    /// It has none so far.
    pub(crate) result: Option<&'a [u8]>,
}

impl New<'_> {
    /// All stays as it is.
    pub(crate) const NOTHING: Self = Self {
        payload: None,
        reason: None,
        headers: None,
        progress_text: None,
        checkpoint: None,
        result: None,
    };

    /// Whether it certainly takes no room.
    #[inline]
    fn is_nothing(&self) -> bool {
        let Self { payload, reason, headers, progress_text, checkpoint, result } = *self;
        let texts = [progress_text, checkpoint, result];
        payload.is_none()
            && headers.is_none()
            && reason.is_none_or(|bytes| bytes == 0)
            && texts.into_iter().flatten().all(<[u8]>::is_empty)
    }
}

/// The number of bytes that a task counts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Weight {
    /// See [`Task::content_bytes`].
    content: u64,
    /// See [`Task::own_bytes`].
    own: u64,
    shares: bool,
}

impl Weight {
    fn of(task: &Task) -> Self {
        Self { content: task.content_bytes(), own: task.own_bytes(), shares: task.shares() }
    }
}

/// The connection that the lease of this task depends on, and how it does.
#[inline]
pub(crate) fn connection_lease(task: &Task) -> Option<(ClientId, Bond)> {
    let lease = task.lease().filter(|lease| lease.ends_with_connection())?;
    let bond = match lease.deadline {
        _ if lease.is_unstarted() => Bond::Unstarted(task.queue),
        None => Bond::Lasting,
        Some(at) => Bond::Until(at),
    };
    Some((lease.client()?, bond))
}
