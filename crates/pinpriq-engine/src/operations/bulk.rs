//! Changes all tasks of a queue that a filter chooses, page by page.
//!
//! First the tasks of the page are found, without a change, and then each is changed as the command
//! for one task does it. Which of them a change is about follows from the table of states.

use std::num::NonZeroU64;

use crate::engine::{Answered, Engine};
use crate::memory::packed::{Task, Unsaved};
use crate::memory::share_counts::share_of;
use crate::memory::slots::{QueueSlot, Slot};
use crate::operations::arguments::{bad, check_count, check_text};
use crate::operations::moving::{check_elsewhere, has_home};
use crate::operations::transfer::begin_anew;
use crate::operations::within::Within;
use crate::transition::{Answer, Operation, Standing, answer};
use pinpriq_proto::batches::check_batch_name;
use pinpriq_proto::command::{Amendment, Bulk, BulkChange, Filter};
use pinpriq_proto::facts::check_name;
use pinpriq_proto::limits::{
    BULK_STEPS_MAX, CHANGED_BYTES_MAX, CHANGED_MAX, PATTERN_BYTES_MAX, STEPS_PER_CHANGE,
};
use pinpriq_proto::pattern::Pattern;
use pinpriq_proto::reply::{Refusal, Reply};
use pinpriq_proto::shares::check_share_name;
use pinpriq_proto::stats::Exit;
use pinpriq_proto::task::{State, StateKind, headers, reasons};
use pinpriq_proto::time::{Span, Timestamp};

/// A filter whose patterns were read.
struct Sieve<'a> {
    filter: &'a Filter<'a>,
    state: Option<StateKind>,
    reason: Option<Pattern>,
    header: Option<(&'a [u8], Pattern)>,
}

/// A task that is to be changed.
struct Found {
    slot: Slot,
    seq: u64,
    /// How many tasks come before it on the page.
    looked: u64,
}

/// The tasks of a page.
struct Page {
    found: Vec<Found>,
    next: Option<NonZeroU64>,
    looked: u64,
}

impl Engine {
    /// Changes the tasks of a page, by seq. Keeps within names if some are given. Costs a step for
    /// each task that it looks at, and O(log n) for each that changes.
    #[inline(never)]
    pub(crate) fn bulk(&mut self, bulk: &Bulk<'_>, names: Option<&Within<'_>>) -> Answered {
        self.check_bulk(bulk)?;
        let nothing = Reply::Bulked { next: None, looked: 0, changed: 0 };
        let Some(queue) = self.find_queue(bulk.queue)? else { return Ok(Some(nothing)) };
        let Page { found, mut next, mut looked } = self.page_of_bulk(queue, bulk);
        let mut changed = found.len() as u64;
        if bulk.change == BulkChange::Redrive
            && let Some(names) = names
        {
            self.check_homes(found.iter().map(|it| it.slot), names)?;
        }
        if !bulk.dry {
            for (place, it) in found.into_iter().enumerate() {
                let Err(refusal) = self.change_in_bulk(it.slot, &bulk.change) else {
                    continue;
                };
                if place == 0 {
                    return Err(refusal);
                }
                (changed, looked) = (place as u64, it.looked);
                next = NonZeroU64::new(it.seq - 1);
                break;
            }
        }
        Ok(Some(Reply::Bulked { next, looked, changed }))
    }

    fn check_bulk(&self, bulk: &Bulk<'_>) -> Result<(), Refusal> {
        let Bulk { queue, change, filter, count, .. } = *bulk;
        check_count(u64::from(count))?;
        if count > CHANGED_MAX {
            let sentence = format!("one request changes at most {CHANGED_MAX} tasks, not {count}");
            return Err(bad(sentence));
        }
        filter.key.map_or(Ok(()), |key| check_name("key", key))?;
        filter.share.map_or(Ok(()), check_share_name)?;
        filter.batch.map_or(Ok(()), check_batch_name)?;
        check_text("a pattern", PATTERN_BYTES_MAX, filter.reason)?;
        if let Some((name, pattern)) = filter.header {
            headers::check_name(name)?;
            check_text("a pattern", PATTERN_BYTES_MAX, Some(pattern))?;
        }
        if let Some((low, high)) = filter.priorities.filter(|(low, high)| low > high) {
            return Err(bad(format!("no priority is from {low} to {high}: give the lower first")));
        }
        match change {
            BulkChange::Delay(delay) => {
                self.moment("the delay", delay)?;
            }
            BulkChange::Move(to) => check_elsewhere(queue, to)?,
            _ => {}
        }
        match filter.state {
            Some(state) if !is_about(&change, state) => {
                Err(bad(format!("{} changes no task in state {state}", change.word())))
            }
            _ => Ok(()),
        }
    }

    /// Finds the tasks that would change.
    fn page_of_bulk(&self, queue: QueueSlot, bulk: &Bulk<'_>) -> Page {
        let sieve = Sieve::of(bulk);
        let indexes = &self.queues[queue].indexes;
        let (mut found, mut looked, mut bytes) = (Vec::new(), 0, 0);
        let mut last = bulk.after;
        for (seq, slot) in indexes.by_seq(bulk.after, sieve.state) {
            let steps = looked + STEPS_PER_CHANGE * found.len();
            let is_full = found.len() == bulk.count as usize || bytes >= CHANGED_BYTES_MAX;
            if is_full || steps >= BULK_STEPS_MAX {
                let next = NonZeroU64::new(last);
                return Page { found, next, looked: looked as u64 };
            }
            (last, looked) = (seq, looked + 1);
            let is_meant = !self.looks_gone(slot)
                && self.is_changed_by(slot, queue, &bulk.change)
                && self.is_in_batch(slot, bulk.filter.batch)
                && sieve.lets_pass(&self.tasks[slot], self.now);
            if is_meant {
                let task = &self.tasks[slot];
                let moves = matches!(bulk.change, BulkChange::Move(_) | BulkChange::Redrive);
                // What has expired may become a dead letter.
                if moves || task.is_expired(self.now) {
                    bytes += task.content_bytes();
                }
                found.push(Found { slot, seq, looked: looked as u64 - 1 });
            }
        }
        Page { found, next: None, looked: looked as u64 }
    }

    /// Whether a change is about this task.
    fn is_changed_by(&self, slot: Slot, queue: QueueSlot, change: &BulkChange<'_>) -> bool {
        let task = &self.tasks[slot];
        is_about(change, task.kind())
            && match change {
                BulkChange::Cancel => task.cancelled().is_none(),
                BulkChange::Priority(priority) => task.priority() != *priority,
                BulkChange::Delay(delay) => match task.state() {
                    State::Waiting { ready_at } => ready_at.is_some(),
                    _ => !delay.is_zero(),
                },
                BulkChange::Redrive => has_home(&self.queues[queue], task),
                BulkChange::Restart | BulkChange::Kill | BulkChange::Move(_) => true,
            }
    }

    /// Changes one task.
    fn change_in_bulk(&mut self, slot: Slot, change: &BulkChange<'_>) -> Result<(), Refusal> {
        let unchanged = &Amendment::NONE;
        match *change {
            BulkChange::Restart => {
                self.bring_back(slot, Operation::Restart, Span::ZERO, unchanged, begin_anew);
            }
            BulkChange::Cancel => {
                if self.tasks[slot].kind() == StateKind::Taken {
                    return self.ask_to_stop(slot, Some(reasons::BULK), None);
                }
                self.leave(slot, Operation::Cancel, Exit::Cancelled);
            }
            BulkChange::Kill => self.leave(slot, Operation::Kill, Exit::Killed),
            BulkChange::Priority(priority) => {
                self.amend(slot, Unsaved::Progress, |task| task.set_priority(priority));
            }
            BulkChange::Delay(delay) => {
                self.bring_back(slot, Operation::PutOff, delay, unchanged, |_| {});
            }
            BulkChange::Move(to) => {
                self.check_move(to, slot)?;
                let to = self.queues.find_or_make(to);
                self.move_by_hand(slot, to);
            }
            BulkChange::Redrive => {
                let Some(origin) = self.tasks[slot].origin() else { return Ok(()) };
                let to = origin.queue.clone();
                self.check_move(&to, slot)?;
                let to = self.queues.find_or_make(&to);
                self.take_home(slot, to);
            }
        }
        Ok(())
    }
}

/// Whether a change is about tasks in this state: those that the operation moves or changes.
fn is_about(change: &BulkChange<'_>, state: StateKind) -> bool {
    let operation = match change {
        BulkChange::Restart => Operation::Restart,
        BulkChange::Cancel => Operation::Cancel,
        BulkChange::Kill => Operation::Kill,
        BulkChange::Redrive if state != StateKind::Ready => return false,
        BulkChange::Redrive | BulkChange::Move(_) => Operation::Move,
        BulkChange::Priority(_) => Operation::Update,
        BulkChange::Delay(_) => Operation::PutOff,
    };
    let standing = match state {
        StateKind::Taken => Standing::TakenElsewhere,
        resting => Standing::Resting(resting),
    };
    matches!(answer(operation, standing), Answer::Moves(_) | Answer::Stays)
}

impl<'a> Sieve<'a> {
    fn of(bulk: &'a Bulk<'a>) -> Self {
        let filter = &bulk.filter;
        let usual = match bulk.change {
            BulkChange::Restart => Some(StateKind::Buried),
            BulkChange::Redrive => Some(StateKind::Ready),
            _ => None,
        };
        Self {
            filter,
            state: filter.state.or(usual),
            reason: filter.reason.map(Pattern::of),
            header: filter.header.map(|(name, pattern)| (name, Pattern::of(pattern))),
        }
    }

    fn lets_pass(&self, task: &Task, now: Timestamp) -> bool {
        let Filter { key, share, priorities, older, failures, .. } = *self.filter;
        let is_between = |(low, high): (i64, i64)| {
            task.priority().is_some_and(|priority| (low..=high).contains(&priority))
        };
        key.is_none_or(|key| task.key().is_some_and(|it| **it == *key))
            && share.is_none_or(|share| share_of(task) == share)
            && priorities.is_none_or(is_between)
            && older.is_none_or(|older| now >= task.put_at().after(older))
            && failures.is_none_or(|least| task.failures() >= least)
            && self
                .reason
                .as_ref()
                .is_none_or(|pattern| task.reason().is_some_and(|it| pattern.matches(it)))
            && self.header.as_ref().is_none_or(|(name, pattern)| {
                let headers = task.headers().map_or(&[][..], |it| it);
                let mut found = headers::decode(headers).filter(|(known, _)| known == name);
                found.any(|(_, value)| pattern.matches(value))
            })
    }
}
