//! Moves tasks to other queues by hand: move, redrive.
//!
//! What a task keeps is described at [`pinpriq_proto::command::Command::Move`]. How dead letters
//! come about is in `fail.rs`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::engine::{Answered, Engine};
use crate::memory::packed::Task;
use crate::memory::queues::Queue;
use crate::memory::share_counts::share_of;
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::arguments::{bad, check_count, quoted};
use crate::operations::put::paused;
use crate::operations::transfer::forget_failures;
use crate::operations::within::{Within, not_permitted};
use crate::transition::Operation;
use pinpriq_proto::command::QueueName;
use pinpriq_proto::limits::{MOVED_MAX, queue_bytes};
use pinpriq_proto::reply::{Refusal, Reply};
use pinpriq_proto::stats::Exit;
use pinpriq_proto::task::StateKind;

impl Engine {
    /// Moves the oldest tasks of one state. Stops early when the other queue is full or paused, or
    /// when there is no room. Costs O(log n) for each task, and for R also for each priority.
    #[inline(never)]
    pub(crate) fn move_tasks(
        &mut self,
        from: QueueName<'_>,
        to: &[u8],
        count: u32,
        state: StateKind,
    ) -> Answered {
        check_moved(count)?;
        if state == StateKind::Taken {
            return Err(bad("no taken task can be moved: snatch it first".to_owned()));
        }
        check_elsewhere(from, to)?;
        let Some(from) = self.find_queue(from)? else { return Ok(Some(Reply::Count(0))) };
        let slots = self.oldest(from, state, count, |_| true);
        if slots.is_empty() {
            return Ok(Some(Reply::Count(0)));
        }
        self.check_arrival(to, slots[0])?;
        let to = self.queues.find_or_make(to);
        let mut moved = 0;
        for slot in slots {
            if self.check_accepts(to, slot).is_err() {
                break;
            }
            self.move_by_hand(slot, to);
            moved += 1;
        }
        self.tidy_queue(to);
        Ok(Some(Reply::Count(moved)))
    }

    /// Moves the oldest ready dead letters back. Costs O(log n) for each, and a step for each ready
    /// task that is passed over because it is none. Keeps within names if some are given.
    #[inline(never)]
    pub(crate) fn redrive(
        &mut self,
        queue: QueueName<'_>,
        count: u32,
        names: Option<&Within<'_>>,
    ) -> Answered {
        check_moved(count)?;
        let Some(from) = self.find_queue(queue)? else { return Ok(Some(Reply::Count(0))) };
        let queue = &self.queues[from];
        let slots = self.oldest(from, StateKind::Ready, count, |task| has_home(queue, task));
        if let Some(names) = names {
            self.check_homes(slots.iter().copied(), names)?;
        }
        let mut moved = 0;
        for slot in slots {
            let Some(origin) = self.tasks[slot].origin() else { continue };
            let to = origin.queue.clone();
            if moved == 0 {
                self.check_arrival(&to, slot)?;
            }
            let target = self.queues.find_or_make(&to);
            if self.check_accepts(target, slot).is_err() {
                self.tidy_queue(target);
                break;
            }
            self.take_home(slot, target);
            moved += 1;
        }
        Ok(Some(Reply::Count(moved)))
    }

    /// Moves a task into another queue, in the state that it has.
    pub(crate) fn move_by_hand(&mut self, slot: Slot, to: QueueSlot) {
        self.relocate(slot, (Operation::Move, Exit::Moved), to, |task| {
            let reason = task.reason().filter(|_| task.kind() == StateKind::Buried).cloned();
            forget_failures(task);
            task.set_reason(reason);
        });
    }

    /// Moves a dead letter into the queue that it comes from.
    pub(crate) fn take_home(&mut self, slot: Slot, to: QueueSlot) {
        let expires_at = self.queues[to].settings.ttl.map(|ttl| self.now.after(ttl));
        self.relocate(slot, (Operation::Move, Exit::Moved), to, |task| {
            forget_failures(task);
            task.set_expires_at(expires_at);
            task.set_origin(None);
        });
    }

    /// Refuses to redrive any of these dead letters if one of them comes from elsewhere.
    pub(crate) fn check_homes(
        &self,
        mut slots: impl Iterator<Item = Slot>,
        names: &Within<'_>,
    ) -> Result<(), Refusal> {
        let is_elsewhere = |slot: Slot| {
            self.tasks[slot].origin().is_some_and(|origin| !names.matches(&origin.queue))
        };
        if slots.any(is_elsewhere) {
            return Err(not_permitted("a queue that one of the dead letters comes from"));
        }
        Ok(())
    }

    /// Returns the oldest tasks of one state that are wanted, by seq, without those whose time is
    /// over.
    fn oldest(
        &self,
        queue: QueueSlot,
        state: StateKind,
        count: u32,
        is_wanted: impl Fn(&Task) -> bool,
    ) -> Vec<Slot> {
        let indexes = &self.queues[queue].indexes;
        let there = |slot: &Slot| !self.looks_gone(*slot) && is_wanted(&self.tasks[*slot]);
        let (resting, count) = (indexes.resting(state), count as usize);
        if state != StateKind::Ready {
            return resting.filter(there).take(count).collect();
        }
        if indexes.have_many_priorities() {
            let by_seq = indexes.by_seq(0, Some(state)).map(|(_, slot)| slot);
            return by_seq.filter(there).take(count).collect();
        }
        let seq = |slot: Slot| self.tasks[slot].seq();
        let mut levels: Vec<Box<dyn Iterator<Item = Slot> + '_>> = vec![Box::new(resting)];
        levels.extend(indexes.levels().map(|level| Box::new(level) as Box<_>));
        let mut fronts: BinaryHeap<Reverse<(u64, Slot, usize)>> = BinaryHeap::new();
        let advance = |level: &mut Box<dyn Iterator<Item = Slot> + '_>| level.find(there);
        for (index, level) in levels.iter_mut().enumerate() {
            fronts.extend(advance(level).map(|slot| Reverse((seq(slot), slot, index))));
        }
        let mut found = Vec::new();
        while found.len() < count
            && let Some(Reverse((_, slot, index))) = fronts.pop()
        {
            found.push(slot);
            fronts
                .extend(advance(&mut levels[index]).map(|slot| Reverse((seq(slot), slot, index))));
        }
        found
    }

    /// Refuses to move a first task for which there is no room.
    fn check_arrival(&self, to: &[u8], slot: Slot) -> Result<(), Refusal> {
        let exists = self.queues.find(to).is_some_and(|slot| self.queues[slot].counted);
        let of_queue = if exists { 0 } else { queue_bytes(to.len()) };
        self.check_room(of_queue + self.growth_by_move(slot))
    }

    /// Refuses to move a task that the other queue does not accept, or for which there is no room.
    pub(crate) fn check_move(&self, to: &[u8], slot: Slot) -> Result<(), Refusal> {
        self.check_arrival(to, slot)?;
        self.queues.find(to).map_or(Ok(()), |to| self.check_accepts(to, slot))
    }

    /// Refuses a task that comes from elsewhere if the queue does not accept another one.
    fn check_accepts(&self, to: QueueSlot, slot: Slot) -> Result<(), Refusal> {
        let task = &self.tasks[slot];
        let name = &self.queues[to].name;
        if !task.kind().is_finished() {
            self.check_not_full(name, to, share_of(task), task.content_bytes())?;
        }
        if self.queues[to].paused.input.is_on() {
            return Err(paused(name));
        }
        self.check_room(self.growth_by_move(slot))
    }

    /// Returns the number of bytes by which a move of this task grows what is kept. A copy of a
    /// publication has its payload alone afterwards.
    fn growth_by_move(&self, slot: Slot) -> u64 {
        let task = &self.tasks[slot];
        if task.shares() { task.content_bytes() + task.extras_bytes() } else { 0 }
    }
}

/// Whether a task of this queue is a dead letter from another one.
pub(crate) fn has_home(queue: &Queue, task: &Task) -> bool {
    let own = queue.lane.is_none().then_some(&queue.name);
    task.origin().is_some_and(|origin| own != Some(&origin.queue))
}

/// Refuses to move tasks to the queue in which they are.
pub(crate) fn check_elsewhere(from: QueueName<'_>, to: &[u8]) -> Result<(), Refusal> {
    if from.member.is_none() && from.name == to {
        return Err(bad(format!("the tasks of the queue {} are there already", quoted(to))));
    }
    Ok(())
}

fn check_moved(count: u32) -> Result<(), Refusal> {
    check_count(u64::from(count))?;
    if count > MOVED_MAX {
        return Err(bad(format!("one request moves at most {MOVED_MAX} tasks, and not {count}")));
    }
    Ok(())
}
