//! Moving tasks to other queues, by hand or as dead letters.

use pinpriq_proto::command::QueueName;
use pinpriq_proto::limits::{MOVED_MAX, NAME_BYTES_MAX};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::settings::Ids;
use pinpriq_proto::task::{Bytes, StateKind, TaskId, TaskRecord, Trace};
use pinpriq_proto::time::Span;

use super::history::end_attempt;
use super::turns::{share_of, trace_of};
use super::{Answer, Exit, Home, Model, Place, fits};

impl Model {
    pub(super) fn move_tasks(
        &mut self,
        from: QueueName<'_>,
        to: &[u8],
        count: u32,
        state: StateKind,
    ) -> Answer {
        fits(to.len() <= NAME_BYTES_MAX && state != StateKind::Taken)?;
        fits(from.member.is_some() || from.name != to)?;
        let from = self.place_of_moved(from, count)?;
        let to = Place::Queue(to.into());
        let mut moved = 0;
        for number in self.oldest(&from, state).into_iter().take(count as usize) {
            if moved == 0 {
                self.may_arrive(&to, number)?;
            }
            if self.accepts(&to, number).is_err() {
                break;
            }
            self.move_by_hand(number, &to);
            moved += 1;
        }
        Ok(Some(Reply::Count(moved)))
    }

    pub(super) fn redrive(&mut self, queue: QueueName<'_>, count: u32) -> Answer {
        let from = self.place_of_moved(queue, count)?;
        let mut moved = 0;
        for number in self.oldest(&from, StateKind::Ready) {
            let Some(origin) = self.task(number).origin() else { continue };
            let to = Place::Queue(origin.queue.clone());
            if to == from {
                continue;
            }
            if moved == 0 {
                self.may_arrive(&to, number)?;
            }
            if self.accepts(&to, number).is_err() {
                break;
            }
            self.take_home(number, &to);
            moved += 1;
            if moved == u64::from(count) {
                break;
            }
        }
        Ok(Some(Reply::Count(moved)))
    }

    pub(super) fn place_of_moved(
        &self,
        queue: QueueName<'_>,
        count: u32,
    ) -> Result<Place, RefusalKind> {
        fits((1..=MOVED_MAX).contains(&count))?;
        self.place_of(queue)
    }

    /// The tasks of one state, the oldest first.
    pub(super) fn oldest(&self, place: &Place, state: StateKind) -> Vec<u64> {
        let Some(home) = self.homes.get(place) else { return Vec::new() };
        let there = home.tasks.values().filter(|task| task.progress.state.kind() == state);
        let mut there: Vec<(u64, u64)> =
            there.map(|task| (task.progress.seq, task.number)).collect();
        there.sort_unstable();
        there.into_iter().map(|(_, number)| number).collect()
    }

    fn growth_by_move(&self, number: u64) -> u64 {
        let task = self.task(number);
        let shares = self.kept.shares.contains_key(&number);
        if shares { (task.payload.len() + task.terms.bytes()) as u64 } else { 0 }
    }

    fn may_arrive(&self, to: &Place, number: u64) -> Result<(), RefusalKind> {
        let Place::Queue(name) = to else { unreachable!("tasks move into queues") };
        self.has_room(self.room_of_queue(name) + self.growth_by_move(number))
    }

    /// Moves a task in the state that it has.
    pub(super) fn move_by_hand(&mut self, number: u64, to: &Place) {
        self.relocate(number, Exit::Moved, to, |task| {
            let is_buried = task.progress.state.kind() == StateKind::Buried;
            task.progress.reason = task.progress.reason.take().filter(|_| is_buried);
        });
    }

    /// Moves a dead letter into the queue that it comes from.
    pub(super) fn take_home(&mut self, number: u64, to: &Place) {
        let expires_at = self.settings(to).ttl.map(|ttl| self.now.after(ttl));
        self.relocate(number, Exit::Moved, to, |task| {
            task.progress.expires_at = expires_at;
            task.progress.reason = None;
            task.set_origin(None);
        });
    }

    pub(super) fn may_move(&self, number: u64, to: &Place) -> Result<(), RefusalKind> {
        self.may_arrive(to, number)?;
        self.accepts(to, number)
    }

    fn accepts(&self, to: &Place, number: u64) -> Result<(), RefusalKind> {
        let task = self.task(number);
        let content = (task.payload.len() + task.terms.key_bytes()) as u64;
        let kind = task.progress.state.kind();
        let is_finished = matches!(kind, StateKind::Zombie | StateKind::Done);
        let refuses =
            |home: &Home| home.is_full_for(content) || home.share_is_full(&share_of(&task.terms));
        let is_full = !is_finished && self.homes.get(to).is_some_and(refuses);
        if is_full {
            return Err(RefusalKind::Full);
        }
        if self.paused(to).input.is_on() {
            return Err(RefusalKind::Paused);
        }
        self.has_room(self.growth_by_move(number))
    }

    /// Moves a task into a queue, where it is a new one. `change` makes it what it is to be there.
    pub(super) fn relocate(
        &mut self,
        number: u64,
        exit: Exit,
        to: &Place,
        change: impl FnOnce(&mut TaskRecord),
    ) {
        let from = self.places[&number].clone();
        let most = self.settings(&from).history;
        let mut task = self.take_out(number, exit);
        let since = self.since.remove(&number);
        // A dead letter begins again. What is moved by hand stays in its state, and follows and
        // waits for the same batches.
        let begins_again = matches!(exit, Exit::Dead | Exit::Evicted);
        let batch = task.batch().cloned().filter(|_| exit == Exit::Moved);
        let after = task.progress.after().cloned().filter(|_| exit == Exit::Moved);
        let delay = if after.is_some() { task.progress.delay() } else { Span::ZERO };
        change(&mut task);
        end_attempt(&mut task, self.now, self.how, most);
        self.last_number += 1;
        task.number = self.last_number;
        task.forget_unique();
        task.set_batch(batch);
        self.rename_member(&task, number);
        let since = if begins_again { Some(self.now) } else { since };
        self.since.extend(since.map(|since| (task.number, since)));
        task.progress.seq = task.number;
        (task.progress.attempts, task.progress.failures) = (0, 0);
        let checkpoint = task.progress.checkpoint().cloned();
        let result = task.progress.result().filter(|_| !begins_again).cloned();
        let history = trace_of(&task.progress).history;
        let trace = Trace { delay, checkpoint, result, history, after, ..Trace::NONE };
        task.progress.trace = trace.kept();
        task.id = self.id_after_move(to, task.number, &task.id);
        task.lane = None;
        if let Place::Queue(name) = to {
            task.queue = name.clone();
            self.note_became(&task);
        }
        self.enter(to, task);
        self.tidy(&from);
    }

    fn id_after_move(&mut self, to: &Place, number: u64, former: &TaskId) -> TaskId {
        let ids = self.settings(to).ids;
        if ids != Ids::Given {
            return self.new_id(ids, number);
        }
        let former = self.resolve(former).unwrap_or_else(|| former.clone());
        let own: Bytes = match &former {
            TaskId::Given(own) => own.clone(),
            other => other.to_string().into_bytes().into(),
        };
        let own = TaskId::Given(own);
        let home = self.homes.get(to);
        let is_taken = home.is_some_and(|home| home.tasks.values().any(|task| task.id == own));
        if is_taken { self.new_id(Ids::Uuid, number) } else { own }
    }
}
