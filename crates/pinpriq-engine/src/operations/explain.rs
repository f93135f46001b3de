//! Explains why a task is not handed out, or which task of a queue would be next.
//!
//! It changes nothing, except that a passed deadline of the task that is asked for is fired first.
//! Every count is bounded.

use crate::engine::{Answered, Engine};
use crate::memory::slots::{QueueSlot, Slot};
use crate::memory::turns::HeldBack;
use crate::operations::arguments::check_id;
use crate::operations::find::not_found;
use pinpriq_proto::command::{QueueName, Selection};
use pinpriq_proto::limits::{BEHIND_MAX, LOOKED_STEPS_MAX};
use pinpriq_proto::looking::{Eta, Explanation, Reason};
use pinpriq_proto::reply::Reply;
use pinpriq_proto::settings::Ranking;
use pinpriq_proto::task::{State, StateKind};
use pinpriq_proto::time::Timestamp;

impl Engine {
    /// Explains one task, or the one that would be next.
    #[inline(never)]
    pub(crate) fn explain(&mut self, queue: QueueName<'_>, id: Option<&[u8]>) -> Answered {
        let explanation = if let Some(id) = id {
            check_id(id)?;
            if let Some(slot) = self.find_task(queue, id)? {
                self.note_openings(self.tasks[slot].queue);
                self.explain_task(slot)
            } else {
                let ending = self.ending_of(queue, id);
                let (id, ending) = ending.ok_or_else(|| not_found(queue, id))?;
                let (id, since) = (Some(id), Some(ending.at));
                let reasons = vec![Reason::Ended(ending)];
                Explanation { id, since, reasons, ..Explanation::default() }
            }
        } else {
            let found = self.find_queue(queue)?;
            if let Some(slot) = found {
                self.note_openings(slot);
            }
            found.map_or_else(Explanation::default, |slot| self.explain_queue(slot))
        };
        Ok(Some(Reply::Explained(Box::new(explanation))))
    }

    /// Since when a task is in its state, if that was since the server has started. What never
    /// changed its state has been in it since its put.
    pub(crate) fn since(&self, slot: Slot) -> Option<Timestamp> {
        let task = &self.tasks[slot];
        let is_known = task.put_at() >= self.started_at;
        task.since().or_else(|| is_known.then_some(task.put_at()))
    }

    fn explain_queue(&self, queue: QueueSlot) -> Explanation {
        let walk = || self.queues[queue].walk(Selection::DEFAULT).take(LOOKED_STEPS_MAX);
        let is_there = |slot: &Slot| !self.looks_gone(*slot);
        match self.next_there(queue, false).or_else(|| walk().find(is_there)) {
            Some(next) => self.explain_task(next),
            None => Explanation { reasons: self.why_none(queue), ..Explanation::default() },
        }
    }

    fn explain_task(&self, slot: Slot) -> Explanation {
        let task = &self.tasks[slot];
        let since = self.since(slot);
        let (mut reasons, mut eta) = (Vec::new(), None);
        match task.state() {
            State::Ready => eta = self.explain_ready(slot, &mut reasons),
            State::Waiting { ready_at: None } if task.after().is_some() => {
                reasons.extend(self.why_after(slot));
            }
            State::Waiting { ready_at } => reasons.push(match *ready_at {
                Some(until) => Reason::Delayed { until },
                None => Reason::Held,
            }),
            State::Taken(lease) => {
                let (client, until) = (lease.client(), lease.deadline);
                let progress = task.progress_text().cloned();
                reasons.push(Reason::Taken { client, since, until, progress });
            }
            State::Buried(_) => reasons.push(Reason::Buried { reason: task.reason().cloned() }),
            State::Zombie { .. } | State::Done => {}
        }
        let is_kept = matches!(task.kind(), StateKind::Taken | StateKind::Buried);
        if is_kept && task.is_expired(self.now) {
            reasons.push(Reason::Expired);
        }
        Explanation { id: Some(task.id()), state: Some(task.kind()), since, reasons, eta }
    }

    /// The batches that a task waits for.
    fn why_after(&self, slot: Slot) -> impl Iterator<Item = Reason> {
        let names = self.tasks[slot].after().into_iter().flat_map(|after| &after.names);
        names.map(|name| Reason::After {
            batch: name.clone(),
            pending: self.batches.called(name).map_or(0, |batch| batch.record.pending()),
        })
    }

    /// Explains a ready task. Returns how long it takes until it is handed out.
    fn explain_ready(&self, slot: Slot, reasons: &mut Vec<Reason>) -> Option<Eta> {
        let task = &self.tasks[slot];
        let queue = &self.queues[task.queue];
        if queue.paused.output.is_on() {
            reasons.push(Reason::Paused);
        }
        if let Some(gate) = &queue.gate {
            let taken = queue.counters.count(StateKind::Taken);
            let limit = gate.reached(taken);
            reasons.extend(limit.map(|most| Reason::Limit { taken, most }));
            reasons.extend(gate.next_token(self.now).map(|next_at| Reason::Rate { next_at }));
            let limits = gate.uses.numbers().filter_map(|number| self.named_limits.one(number));
            reasons.extend(limits.filter_map(|limit| limit.why_shut(self.now)));
        }
        if task.rank().is_none() {
            reasons.push(Reason::NoPriority);
            return None;
        }
        let of_queue = reasons.len();
        reasons.extend(self.held_back(slot).into_iter().map(|held| self.reason_of(slot, held)));
        let is_held_back = !reasons.is_empty();
        // The pace says nothing about single keys and shares.
        let is_paced = reasons.len() == of_queue && !queue.paused.output.is_on();
        let behind = self.count_before(slot);
        if behind > 0 {
            reasons.push(self.reason_behind(slot, behind));
        }
        if queue.waiting.first(task.is_narrow(), !task.is_narrow()).is_none() {
            reasons.push(Reason::NoConsumer);
        }
        if behind == 0 && !is_held_back {
            reasons.push(Reason::Next);
        }
        let pace = queue.pace.as_ref().filter(|_| is_paced && behind < BEHIND_MAX as u64);
        pace.and_then(|pace| pace.eta(behind + 1, self.now))
    }

    /// What holds back a ready task besides its queue.
    fn reason_of(&self, slot: Slot, held: HeldBack) -> Reason {
        let task = &self.tasks[slot];
        let key = || task.key().cloned().unwrap_or_default();
        let share = || task.share().or_else(|| task.key()).cloned().unwrap_or_default();
        match held {
            HeldBack::KeyLimit { taken, most } => Reason::KeyLimit { key: key(), taken, most },
            HeldBack::KeyRate { opens_at } => Reason::KeyRate { key: key(), open_at: opens_at },
            HeldBack::KeyHeld { by } => Reason::KeyHeld { key: key(), by: self.tasks[by].id() },
            HeldBack::ShareLimit { taken, most } => {
                Reason::ShareLimit { share: share(), taken, most }
            }
            HeldBack::ShareRate { opens_at } => {
                Reason::ShareRate { share: share(), open_at: opens_at }
            }
        }
    }

    /// Says that so many others come before a ready task.
    fn reason_behind(&self, slot: Slot, behind: u64) -> Reason {
        let task = &self.tasks[slot];
        if self.queues[task.queue].settings.ranking != Ranking::Fair {
            return Reason::Behind { at_least: behind };
        }
        let share = task.share().or_else(|| task.key()).cloned().unwrap_or_default();
        Reason::ShareTurn { share, ahead: behind }
    }

    /// Counts the tasks that would be handed out before this one, up to [`BEHIND_MAX`]. Where keys
    /// or shares hold it back, it counts as if they did not.
    fn count_before(&self, slot: Slot) -> u64 {
        let queue = self.tasks[slot].queue;
        let in_turn = self.foresee(queue, Some(slot), |tasks| {
            let before = tasks.take(LOOKED_STEPS_MAX).take_while(|other| *other != slot);
            before.filter(|other| !self.looks_gone(*other)).take(BEHIND_MAX).count() as u64
        });
        if let Some(before) = in_turn {
            return before;
        }
        let walk = self.queues[queue].walk(Selection::DEFAULT).take(LOOKED_STEPS_MAX);
        let before = walk.take_while(|other| *other != slot);
        let before = before.filter(|other| !self.looks_gone(*other)).take(BEHIND_MAX).count();
        before as u64
    }

    /// Why no task of a queue can be chosen: one reason for each state in which there are tasks. A
    /// delay is the one that ends first, and of other states the oldest task counts.
    fn why_none(&self, queue: QueueSlot) -> Vec<Reason> {
        let queue = &self.queues[queue];
        let there = |kind: StateKind| {
            let tasks = queue.indexes.resting(kind).take(LOOKED_STEPS_MAX);
            tasks.filter(|slot| !self.looks_gone(*slot))
        };
        let ready_at = |slot: Slot| match self.tasks[slot].state() {
            State::Waiting { ready_at } => *ready_at,
            _ => None,
        };
        let mut reasons = Vec::new();
        let delayed = there(StateKind::Waiting).filter_map(ready_at).min();
        reasons.extend(delayed.map(|until| Reason::Delayed { until }));
        let is_held = |slot: Slot| {
            let task = &self.tasks[slot];
            *task.state() == State::HELD && task.after().is_none()
        };
        if there(StateKind::Waiting).any(is_held) {
            reasons.push(Reason::Held);
        }
        let follows = |slot: &Slot| self.tasks[*slot].after().is_some();
        let oldest = there(StateKind::Waiting).find(follows);
        reasons.extend(oldest.and_then(|slot| self.why_after(slot).next()));
        for kind in [StateKind::Taken, StateKind::Buried] {
            let oldest = there(kind).next();
            reasons
                .extend(oldest.and_then(|slot| self.explain_task(slot).reasons.into_iter().next()));
        }
        let has_unranked = there(StateKind::Ready).next().is_some();
        if queue.paused.output.is_on() && (has_unranked || !reasons.is_empty()) {
            reasons.push(Reason::Paused);
        }
        if has_unranked {
            reasons.push(Reason::NoPriority);
        }
        reasons
    }
}
