//! One change of all tasks of a queue that a filter chooses, page by page.
//!
//! What is described here is what can be asked for. What the change does to a task in each state is
//! decided by the engine.

use super::Command;
use crate::facts::{Destination, Disk, Subject as _};
use crate::limits::CHANGED_DEFAULT;
use crate::names::QueueName;
use crate::request::options::{self, Opt};
use crate::rights::{Need, Right};
use crate::task::StateKind;
use crate::time::Span;

/// See [`Command::Bulk`](crate::command::Command::Bulk).
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Bulk<'a> {
    /// The queue.
    #[key]
    pub queue: QueueName<'a>,
    /// What is done with each task.
    #[flat]
    pub change: BulkChange<'a>,
    /// Which tasks.
    #[letter(1, default = Filter::ALL)]
    #[flat]
    pub filter: Filter<'a>,
    /// The most tasks to change, at most [`CHANGED_MAX`](crate::limits::CHANGED_MAX).
    #[letter(2, default = CHANGED_DEFAULT)]
    #[option(default = CHANGED_DEFAULT)]
    pub count: u32,
    /// Only tasks whose seq is above this one.
    #[letter(3)]
    #[option(CURSOR, with = cursors::seq)]
    pub after: u64,
    /// Whether the tasks are only counted.
    #[letter(4)]
    #[option]
    pub dry: bool,
}

/// What is done with each task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum BulkChange<'a> {
    /// What [`Command::Restart`](crate::command::Command::Restart) does.
    #[letter(1)]
    Restart,
    /// What [`Command::Cancel`](crate::command::Command::Cancel) does.
    #[letter(2)]
    Cancel,
    /// What [`Command::Kill`](crate::command::Command::Kill) does.
    #[letter(3)]
    Kill,
    /// What [`Command::Redrive`](crate::command::Command::Redrive) does.
    #[letter(4)]
    Redrive,
    /// What [`Command::Move`](crate::command::Command::Move) does, to this queue.
    #[letter(5)]
    Move(&'a [u8]),
    /// Another priority, or none.
    #[letter(6)]
    Priority(Option<i64>),
    /// Another delay, counted from now, for tasks that are ready or delayed already.
    #[letter(7)]
    Delay(Span),
}

/// Which tasks are meant: those for which everything holds that is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Filter<'a> {
    /// In this state. Without it, a restart is about buried tasks, and the others about those in
    /// any state.
    #[letter(1)]
    #[option]
    pub state: Option<StateKind>,
    /// With this key.
    #[letter(2)]
    #[option]
    pub key: Option<&'a [u8]>,
    /// Pending in this batch.
    #[letter(9)]
    #[option(BATCH_MEANT)]
    pub batch: Option<&'a [u8]>,
    /// Of this share.
    #[letter(3)]
    #[option(SHARE_MEANT)]
    pub share: Option<&'a [u8]>,
    /// With a priority from the first to the second. A task without one is never meant.
    #[letter(4)]
    #[option(PRIORITIES, with = reading::priorities)]
    pub priorities: Option<(i64, i64)>,
    /// Put at least this long ago.
    #[letter(5)]
    #[option]
    pub older: Option<Span>,
    /// That have failed at least this often.
    #[letter(6)]
    #[option(FAILURES, with = reading::failures)]
    pub failures: Option<u32>,
    /// Whose last reason matches this pattern: `*` stands for any bytes, and `\` takes the byte
    /// after it as it is. A task without a reason is not meant.
    #[letter(7)]
    #[option(REASON_PATTERN)]
    pub reason: Option<&'a [u8]>,
    /// With a header of this name whose value matches this pattern.
    #[letter(8)]
    #[option(HEADER, with = reading::header)]
    pub header: Option<(&'a [u8], &'a [u8])>,
}

impl Command<'_> {
    /// What the audit tells of it besides its name: what a bulk change does with which tasks.
    /// Longer texts are cut.
    #[must_use]
    pub fn audited_detail(&self) -> Option<String> {
        const SHOWN_BYTES_MAX: usize = 1_024;
        let Self::Bulk(_) = self else { return None };
        let words = self.words()?;
        let words = words.as_slice().iter().skip(2).map(|word| String::from_utf8_lossy(word));
        let mut text = words.collect::<Vec<_>>().join(" ");
        text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
        Some(text)
    }
}

impl Filter<'_> {
    /// All tasks.
    pub const ALL: Self = Self {
        state: None,
        key: None,
        batch: None,
        share: None,
        priorities: None,
        older: None,
        failures: None,
        reason: None,
        header: None,
    };
}

impl<'a> Bulk<'a> {
    /// This change of all tasks of a queue.
    #[must_use]
    pub fn new(queue: impl Into<QueueName<'a>>, change: BulkChange<'a>) -> Self {
        let (queue, filter, count) = (queue.into(), Filter::ALL, CHANGED_DEFAULT);
        Self { queue, change, filter, count, after: 0, dry: false }
    }

    /// The queue that tasks move to, if it is named.
    #[must_use]
    pub const fn target(&self) -> Option<&'a [u8]> {
        match self.change {
            BulkChange::Move(to) => Some(to),
            _ => None,
        }
    }

    pub(crate) fn each_need(&self, tell: &mut dyn FnMut(Need<'a>)) {
        self.queue.each(Right::Manage, tell);
        if let Some(to) = self.target() {
            to.each(Right::Put, tell);
        }
        if self.change == BulkChange::Redrive {
            tell(Need::Wherever(Right::Put));
        }
    }

    pub(crate) fn destination(&self) -> Destination<'a> {
        let queue = self.queue.name;
        self.target().map_or(Destination::Queue(queue), |to| Destination::Pair(queue, to))
    }

    /// What ends tasks needs no room, and neither does what only counts them.
    pub(crate) const fn on_full_disk(&self) -> Disk {
        match self.change {
            _ if self.dry => Disk::Served,
            BulkChange::Cancel | BulkChange::Kill => Disk::Served,
            _ => Disk::Refused,
        }
    }
}

impl BulkChange<'_> {
    /// The option that asks for it.
    pub(crate) const fn option(&self) -> Opt {
        match self {
            Self::Restart => options::RESTART,
            Self::Cancel => options::CANCEL,
            Self::Kill => options::KILL,
            Self::Redrive => options::REDRIVE,
            Self::Move(_) => options::MOVE,
            Self::Priority(_) => options::PRIORITY_SET,
            Self::Delay(_) => options::DELAY_SET,
        }
    }

    /// The word that asks for it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        self.option().word
    }
}
