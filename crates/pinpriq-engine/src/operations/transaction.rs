//! Transactions: several commands at one moment, all or none.
//!
//! Each step is carried out like a command of its own, and sees what those before it did. What it
//! changes is noted. If a step is refused, all notes are undone. Nothing outside changes
//! before the last step is done: awaiters are notified, consumers served and queues removed after
//! it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::engine::{Answered, Engine};
use crate::memory::deadlines::Due;
use crate::memory::packed::Task;
use crate::memory::payloads::Kept;
use crate::memory::slots::{QueueSlot, Slot};
use crate::memory::undo::UndoLog;
use crate::memory::windows::Window;
use crate::operations::arguments::bad;
use pinpriq_proto::command::{Command, Step};
use pinpriq_proto::limits::TRANSACTION_STEPS_MAX;
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::settings::Ids;
use pinpriq_proto::task::{ClientId, RequestId};

impl Engine {
    /// Carries out all steps, or none. Costs what the commands would cost alone, and a copy of each
    /// task that is changed.
    #[inline(never)]
    pub(crate) fn transact(
        &mut self,
        client: ClientId,
        request: RequestId,
        steps: &[Step<'_>],
    ) -> Answered {
        if steps.len() > TRANSACTION_STEPS_MAX {
            let given = steps.len();
            return Err(bad(format!(
                "a transaction has at most {TRANSACTION_STEPS_MAX} commands, and not {given}"
            )));
        }
        self.begin_notes();
        let mut replies = Vec::with_capacity(steps.len());
        for (position, step) in (1..).zip(steps) {
            match self.carry_out_step(client, request, step) {
                Ok(reply) => replies.push(reply),
                Err(refusal) => {
                    self.undo();
                    return Err(aborted(position, &refusal));
                }
            }
        }
        let instants = self.keep();
        self.reply(client, request, Reply::Transaction(replies));
        for (slot, number) in instants {
            self.end_instant(slot, number);
        }
        Ok(None)
    }

    fn carry_out_step(
        &mut self,
        client: ClientId,
        request: RequestId,
        step: &Step<'_>,
    ) -> Result<Reply, Refusal> {
        let command = match step {
            Step::Nothing => return Ok(Reply::Done),
            Step::Bad(sentence) => return Err(bad((*sentence).to_owned())),
            Step::Command(command) => command,
        };
        if !command.is_step() {
            return Err(bad("this command cannot be part of a transaction".to_owned()));
        }
        command.check_names()?;
        self.check_store(command)?;
        let reply = match self.dispatch(client, request, command)? {
            Some(reply) => reply,
            None => self.take_back_reply(command),
        };
        match reply {
            Reply::Acks(acks) => {
                let acks: Vec<()> = acks.into_iter().collect::<Result<_, _>>()?;
                Ok(Reply::Acks(acks.into_iter().map(Ok).collect()))
            }
            reply => Ok(reply),
        }
    }

    /// Takes back the reply of a command that has replied by itself.
    fn take_back_reply(&mut self, command: &Command<'_>) -> Reply {
        match self.outputs.pop_back() {
            Some(Output::Reply { reply, .. }) => reply,
            other => unreachable!("{command:?} has no reply but {other:?}"),
        }
    }

    fn begin_notes(&mut self) {
        // What has become due before is no part of the transaction.
        self.save();
        self.save_batches();
        self.undo = Some(Box::new(UndoLog {
            tasks: BTreeMap::new(),
            queues: BTreeMap::new(),
            publications: BTreeMap::new(),
            windows: BTreeMap::new(),
            buckets: BTreeMap::new(),
            leases: BTreeMap::new(),
            batches: BTreeMap::new(),
            memberships: BTreeMap::new(),
            ended: Vec::new(),
            accounts: Vec::new(),
            copies: 0,
            totals: self.totals.clone(),
            bytes: self.bytes,
            endings: self.endings.mark(),
            endings_taken_back: Vec::new(),
            issued: self.issued.mark(),
            report: self.report.so_far(),
            outputs: self.outputs.len(),
            forgotten: Vec::new(),
            told: Vec::new(),
            untidied: Vec::new(),
            instants: Vec::new(),
        }));
    }

    /// Ends a transaction of which every step was carried out. Returns its tasks that live only for
    /// this instant.
    fn keep(&mut self) -> Vec<(Slot, u64)> {
        let Some(log) = self.undo.take() else { return Vec::new() };
        let UndoLog { queues, forgotten, told, untidied, instants, .. } = *log;
        for slot in queues.into_keys() {
            self.end_turn_notes(slot, false);
        }
        for payload in forgotten {
            self.tasks.forget(Some(payload));
        }
        for (number, ended) in told {
            self.tell_watchers_of(None, number, ended);
        }
        self.tidy_queues(untidied);
        self.endings.trim();
        instants
    }

    /// Makes everything what it was before the transaction. Costs O(log n) for each task that was
    /// changed.
    fn undo(&mut self) {
        let Some(log) = self.undo.take() else { return };
        self.endings.forget_since(log.endings);
        for taken_back in &log.endings_taken_back {
            self.endings.put_back(*taken_back);
        }
        let UndoLog { tasks, queues, publications, windows, .. } = *log;
        let UndoLog { leases, ended, accounts, buckets, forgotten, untidied, .. } = *log;
        let UndoLog { batches, memberships, .. } = *log;
        for (number, former) in accounts.into_iter().rev() {
            self.accounts.set(number, former);
        }
        // Each task that is put back has another place in the list of its batch.
        let moved: BTreeSet<u64> = batches.keys().chain(memberships.values()).copied().collect();
        self.take_out_tasks(&tasks, forgotten);
        self.put_back_windows(windows);
        self.put_back_batches(batches);
        self.put_back_tasks(tasks, &memberships);
        self.go_on_cancelling(moved);
        for (first, former) in publications {
            self.publications.put_back(first, former);
        }
        for (number, bucket) in buckets {
            if let Some(limit) = self.named_limits.one_mut(number) {
                limit.bucket = bucket;
            }
        }
        let touched: Vec<QueueSlot> = queues.keys().copied().chain(untidied).collect();
        for (slot, former) in queues {
            self.queues.put_back(slot, former);
            self.count_taken(slot);
            self.end_turn_notes(slot, true);
        }
        self.totals = log.totals;
        self.bytes = log.bytes;
        self.issued.go_back(log.issued);
        self.report.go_back(log.report);
        self.outputs.truncate(log.outputs);
        for (incarnation, lease_until) in leases {
            self.members.member(incarnation).lease_until = lease_until;
        }
        for incarnation in ended {
            self.report_member(incarnation);
        }
        self.tidy_queues(touched);
    }

    /// Removes what the changed tasks are now, all before any is put back: an id or a unique key
    /// may have passed from one to another.
    fn take_out_tasks(&mut self, tasks: &BTreeMap<u64, Option<Task>>, forgotten: Vec<Kept>) {
        let mut payloads = forgotten;
        for number in tasks.keys() {
            let Some(slot) = self.tasks.find(*number) else { continue };
            self.lift(slot);
            self.tasks.memberships.leave(slot);
            let task = self.tasks.detach(slot);
            if self.has_turns(task.queue) {
                self.conclude_turns(task.queue);
            }
            if let Some(at) = task.armed() {
                self.deadlines.remove(at, Due::Task(*number));
            }
            if self.queues[task.queue].settings.ids != Ids::Sequence {
                self.queues[task.queue].indexes.remove_id(&task.id());
            }
            if let Some(key) = task.unique_key().filter(|_| task.holds_its_key()) {
                self.free_key(task.queue, *number, key);
            }
            payloads.extend(task.payload());
        }
        let formers = tasks.values().flatten();
        let kept: Vec<_> = formers.filter_map(|task| Some(task.payload()?.parts())).collect();
        let kept = BTreeSet::from_iter(kept);
        payloads.retain(|payload| !kept.contains(&payload.parts()));
        for payload in payloads {
            self.tasks.forget(Some(payload));
        }
    }

    /// Makes the changed windows what they were.
    fn put_back_windows(&mut self, windows: BTreeMap<u64, Option<Window>>) {
        for number in windows.keys() {
            if let Some(window) = self.windows.remove(*number) {
                self.deadlines.remove(window.record.until, Due::Window(*number));
            }
        }
        for (number, window) in windows {
            if let Some(window) = window {
                self.deadlines.insert(window.record.until, Due::Window(number));
                self.windows.insert(window);
            }
        }
    }

    fn put_back_tasks(
        &mut self,
        tasks: BTreeMap<u64, Option<Task>>,
        memberships: &BTreeMap<u64, u64>,
    ) {
        for mut task in tasks.into_values().flatten() {
            // It is armed again for what is due next.
            task.set_armed(None);
            let (number, queue) = (task.number(), task.queue);
            let slot = self.tasks.insert(task);
            if let Some(batch) = memberships.get(&number) {
                self.tasks.memberships.join(slot, *batch);
            }
            if self.queues[queue].settings.ids != Ids::Sequence {
                self.queues[queue].indexes.insert_id(&self.tasks[slot].id(), slot);
            }
            self.settle(slot);
            self.claim_key(slot);
        }
    }

    /// Removes those of these queues that are not needed, each at its first place in the list.
    fn tidy_queues(&mut self, queues: Vec<QueueSlot>) {
        let mut seen = BTreeSet::new();
        for queue in queues {
            if seen.insert(queue) {
                self.tidy_queue(queue);
            }
        }
    }

    /// Notes a task that is about to change, as it is.
    #[inline(never)]
    pub(crate) fn note_task(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        let queue = task.queue;
        if let Some(undo) = &mut self.undo
            && let Entry::Vacant(place) = undo.tasks.entry(task.number())
        {
            place.insert(Some(task.clone()));
            let batch = self.tasks.memberships.of(slot);
            undo.memberships.extend(batch.map(|batch| (task.number(), batch)));
        }
        self.note_queue(queue);
    }

    /// Notes a task that is about to enter.
    #[inline(never)]
    pub(crate) fn note_entry(&mut self, number: u64, queue: QueueSlot) {
        if let Some(undo) = &mut self.undo {
            undo.tasks.entry(number).or_insert(None);
        }
        self.note_queue(queue);
    }

    /// Notes a queue that is about to change, as it is.
    #[inline(never)]
    pub(crate) fn note_queue(&mut self, slot: QueueSlot) {
        let Some(undo) = &mut self.undo else { return };
        if let Entry::Vacant(place) = undo.queues.entry(slot) {
            place.insert(self.queues.former(slot));
            self.note_turns(slot);
        }
    }

    /// Notes a publication that is about to change, as it is.
    #[inline(never)]
    pub(crate) fn note_publication(&mut self, first: u64) {
        if let Some(undo) = &mut self.undo {
            undo.publications.entry(first).or_insert_with(|| self.publications.copy(first));
        }
    }

    /// Notes a window that is about to change, as it is.
    pub(crate) fn note_window(&mut self, number: u64) {
        if let Some(undo) = &mut self.undo {
            undo.windows.entry(number).or_insert_with(|| self.windows.one(number).cloned());
        }
    }

    /// Notes the tokens of a limit with a name that are about to change.
    pub(crate) fn note_limit(&mut self, number: u64) {
        if let Some(undo) = &mut self.undo {
            let bucket = || self.named_limits.one(number).and_then(|limit| limit.bucket.clone());
            undo.buckets.entry(number).or_insert_with(bucket);
        }
    }

    /// Notes the publication of a copy.
    #[inline(never)]
    pub(crate) fn note_publication_of(&mut self, number: u64) {
        let first = self.publications.shared_by(number).map(|(first, _)| first);
        if let Some(first) = first {
            self.note_publication(first);
        }
    }

    /// Notes the end of the lease of a member that gives a sign of life.
    #[inline(never)]
    pub(crate) fn note_lease(&mut self, incarnation: u64) {
        let until = self.members.member(incarnation).lease_until;
        if let Some(undo) = &mut self.undo {
            undo.leases.entry(incarnation).or_insert(until);
        }
    }

    /// Forgets a payload that no task uses, after the transaction if there is one.
    #[inline]
    pub(crate) fn forget_payload(&mut self, payload: Option<Kept>) {
        match &mut self.undo {
            None => self.tasks.forget(payload),
            Some(undo) => undo.forgotten.extend(payload),
        }
    }
}

/// The refusal of a transaction of which the step at this position was refused.
fn aborted(position: usize, refusal: &Refusal) -> Refusal {
    Refusal::new(RefusalKind::ExecAbort, format!("{position} {refusal}"))
}
