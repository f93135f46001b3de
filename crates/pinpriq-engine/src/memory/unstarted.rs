//! The deliveries of a queue that were not started, so that they can be called back.
//!
//! They are in the order of selection: the last one is called back first. When and why is decided
//! in `operations/recall.rs`.

use std::collections::BTreeSet;

use crate::memory::packed::Task;

/// The place of a delivered task: by its priority or rank, then by seq. Without one it comes last.
type Place = (bool, i128, u64, u64);

/// The deliveries of one queue that were not started. Every operation costs O(log n).
#[derive(Debug, Default)]
pub(crate) struct Unstarted(BTreeSet<Place>);

impl Unstarted {
    /// Adds a task with its current fields, which goes by this number.
    pub(crate) fn insert(&mut self, task: &Task, number: Option<i128>) {
        self.0.insert(place_of(task, number));
    }

    /// Removes a task that was added with its current fields.
    pub(crate) fn remove(&mut self, task: &Task, number: Option<i128>) {
        let was_there = self.0.remove(&place_of(task, number));
        debug_assert!(was_there, "task {} was added with other fields", task.number());
    }

    /// The numbers of all tasks.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|(_, _, _, number)| *number)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of the task that comes last, if one of this priority or rank comes before it
    /// whatever their seqs are.
    pub(crate) fn last_behind(&self, priority: i128) -> Option<u64> {
        let (has_none, last, _, number) = self.0.last()?;
        (*has_none || priority < *last).then_some(*number)
    }

    /// The number of deliveries. For checks only.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether it has this task, with its current fields. For checks only.
    pub(crate) fn has(&self, task: &Task, number: Option<i128>) -> bool {
        self.0.contains(&place_of(task, number))
    }
}

fn place_of(task: &Task, number: Option<i128>) -> Place {
    (number.is_none(), number.unwrap_or(0), task.seq(), task.number())
}
