//! The settings of a queue, and the table that describes them.
//!
//! Settings are defaults and bounds, never switches: every operation is always enabled. They may
//! change while the queue is in use. What started under the old settings finishes under them.

mod table;
mod value;

pub use table::{
    AFTERACK, CAPACITY, Changes, IDS, Kind, Lanes, Length, SETTINGS, Setting, Shown, TTL, TTR, Word,
};
pub use value::{Misfit, Value};

use crate::time::Span;

/// How the tasks of a queue get their ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ids {
    /// The next number of the shard's counter.
    #[default]
    Sequence,
    /// The wall clock in nanoseconds, increased by one while that id is in use.
    Time64,
    /// A uuid, version 7.
    Uuid,
    /// The caller names each task, in 1 to 255 bytes.
    Given,
}

/// What happens to a task that was acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AfterAck {
    /// It is removed.
    #[default]
    Delete,
    /// It stays for good, in state D.
    Keep,
    /// It stays for this duration, in state Z.
    Zombie(Span),
}

/// The settings of one queue. Each field has a line in [`SETTINGS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// How tasks get their ids. Can change only while the queue is empty.
    pub ids: Ids,
    /// The time to live of a task whose put gives none.
    pub ttl: Option<Span>,
    /// The time to release if neither the take nor the task gives one.
    pub ttr: Option<Span>,
    /// What happens to acknowledged tasks.
    pub after_ack: AfterAck,
    /// The most tasks in the states R, T, W and B together.
    pub capacity: Option<u64>,
}

/// A setting and its new value.
pub type Assignment<'a> = (&'static Setting, Value<'a>);

/// Which sides of a queue are paused. A pause survives a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Paused {
    /// Puts are refused.
    pub input: bool,
    /// The queue looks empty to takes, pops and subscribers.
    pub output: bool,
}

impl Ids {
    /// All kinds of ids, in the order of their words in [`IDS`].
    pub const ALL: [Self; 4] = [Self::Sequence, Self::Time64, Self::Uuid, Self::Given];
}

impl Settings {
    /// The settings that differ from the default, in the order of the table.
    pub fn changed(&self) -> impl Iterator<Item = Assignment<'_>> {
        let values = SETTINGS.into_iter().map(|setting| (setting, (setting.read)(self)));
        values.filter(|(setting, value)| *value != (setting.read)(&Self::default()))
    }

    /// Returns these settings with `changes` made, one after the other. Bounds are not checked.
    pub fn with(mut self, changes: &[Assignment<'_>]) -> Result<Self, Misfit> {
        for (setting, value) in changes {
            (setting.write)(&mut self, *value)?;
        }
        Ok(self)
    }
}

impl Paused {
    /// Whether either side is paused.
    #[must_use]
    pub const fn any(self) -> bool {
        self.input || self.output
    }
}
