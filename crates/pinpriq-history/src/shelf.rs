//! A task with everything known about it, and its queue.
//!
//! These are facts gathered from a history. [`crate::checks`] draws the conclusions.

use crate::lease::{Handed, Span};

/// A put, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) span: Span,
    /// Whether the client received the answer that the put was carried out.
    pub(crate) acknowledged: bool,
    pub(crate) payload: String,
    pub(crate) priority: Option<i64>,
    pub(crate) delay_us: u64,
    pub(crate) ttl_us: Option<u64>,
    pub(crate) ttr_us: Option<u64>,
    /// Whether it may have been another put of the same payload, so that only the payload is
    /// certain.
    pub(crate) ambiguous: bool,
}

/// A removal, or a dig.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    pub(crate) span: Span,
    /// Whether it certainly found the task.
    pub(crate) certain: bool,
}

/// A task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The index of its queue.
    pub(crate) queue: usize,
    pub(crate) id: String,
    /// None if no put of this task was known before it was delivered.
    pub(crate) entry: Option<Entry>,
    /// Whether several puts had this id, so that these are several tasks.
    pub(crate) several: bool,
    /// Sorted by their beginnings.
    pub(crate) handed: Vec<Handed>,
    /// Those that may have found the task.
    pub(crate) kills: Vec<Visit>,
    pub(crate) digs: Vec<Visit>,
    /// The answers that reported the task as expired.
    pub(crate) expired: Vec<Span>,
    /// Whether a dig brought it back changed.
    pub(crate) changed: bool,
    /// The earliest moment at which something unknown may have changed it.
    pub(crate) disturbed_us: u64,
}

/// What is known about a queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) name: String,
    pub(crate) plows: Vec<Span>,
    pub(crate) disturbed_us: u64,
    /// How many tasks may have been removed by pops whose answer was lost.
    pub(crate) unheard_pops: u64,
    /// The longest time that a put gave to leases on its task.
    pub(crate) ttr_max_us: u64,
    /// When a take or pop whose answer was lost may hide tasks.
    pub(crate) hidden: Vec<Span>,
    /// When it was found to be empty, and whether buried tasks stayed.
    pub(crate) drained: Option<(u64, bool)>,
}

impl Task {
    pub(crate) const fn new(queue: usize, id: String) -> Self {
        Self {
            queue,
            id,
            entry: None,
            several: false,
            handed: Vec::new(),
            kills: Vec::new(),
            digs: Vec::new(),
            expired: Vec::new(),
            changed: false,
            disturbed_us: u64::MAX,
        }
    }
}

impl Queue {
    pub(crate) const fn new(name: String) -> Self {
        Self {
            name,
            plows: Vec::new(),
            disturbed_us: u64::MAX,
            unheard_pops: 0,
            ttr_max_us: 0,
            hidden: Vec::new(),
            drained: None,
        }
    }
}
