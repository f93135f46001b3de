//! The settings of a queue, and the table that describes them.
//!
//! Settings are defaults and bounds, never switches: every operation is always enabled. They may
//! change while the queue is in use. What started under the old settings finishes under them.

mod table;
mod value;

pub use table::*;
pub use value::{Misfit, Value};

use std::fmt;

use crate::facts::{Destination, Subject};
use crate::rights::{Need, Right};
use crate::task::Bytes;
use crate::time::{Span, Timestamp};

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

/// What happens to a task whose TTL has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnExpiry {
    /// It is removed.
    #[default]
    Delete,
    /// It becomes a dead letter, if the queue has a queue for those.
    DeadLetter,
}

/// What happens to a put that finds its queue full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overflow {
    /// It is refused.
    #[default]
    Refuse,
    /// The last of the ready tasks make room, if all of them are less urgent.
    Evict,
}

/// Whose turn it is among ready tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ranking {
    /// That of the oldest.
    #[default]
    Strict,
    /// That of the share which has had least by its weight.
    Fair,
    /// Whose time has come, which is later the less urgent a task is.
    Ageing,
}

/// How many tasks a queue hands out in a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct Rate {
    /// The number of tasks, which is also the most that can be handed out at once. At least 1.
    pub count: u32,
    /// The time. At least 1 ms.
    pub per: Span,
}

/// A setting and its new value.
pub type Assignment<'a> = (&'static Setting, Value<'a>);

/// Which sides of a queue are paused. A pause survives a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct Paused {
    /// Puts are refused.
    #[letter(1)]
    pub input: Pause,
    /// The queue looks empty to takes, pops and subscribers.
    #[letter(2)]
    pub output: Pause,
}

/// Whether a side of a queue is paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub enum Pause {
    /// It is not.
    #[default]
    #[letter(1)]
    Off,
    /// Until a client ends it.
    #[letter(2)]
    Endless,
    /// Until this moment.
    #[letter(3)]
    Until(Timestamp),
}

impl Ids {
    /// All kinds of ids, in the order of their words in [`IDS`].
    pub const ALL: [Self; 4] = [Self::Sequence, Self::Time64, Self::Uuid, Self::Given];
}

impl Settings {
    /// The settings that differ from the default, in the order of the table.
    pub fn changed(&self) -> impl Iterator<Item = Assignment<'_>> {
        let values = SETTINGS.into_iter().map(|setting| (setting, (setting.read)(self)));
        values.filter(|(setting, value)| !setting.is_default(*value))
    }

    /// The queue that gets tasks whose TTL has passed, if there is one.
    #[must_use]
    pub fn gets_expired(&self) -> Option<&Bytes> {
        self.dead_letter.as_ref().filter(|_| self.on_expiry == OnExpiry::DeadLetter)
    }

    /// The bytes of the names in them, which count as occupied memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let names = SETTINGS.into_iter().map(|setting| match (setting.read)(self) {
            Value::Bytes(name) => name.len() as u64,
            _ => 0,
        });
        names.sum()
    }

    /// Whether tasks become more urgent the longer they wait.
    #[must_use]
    pub fn age(&self) -> bool {
        self.ranking == Ranking::Ageing
    }

    /// Returns these settings with `changes` made, one after the other. Bounds are not checked.
    pub fn with(mut self, changes: &[Assignment<'_>]) -> Result<Self, Misfit> {
        for (setting, value) in changes {
            (setting.write)(&mut self, *value)?;
        }
        Ok(self)
    }
}

impl fmt::Display for Rate {
    /// The number, a slash and the milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.per.ms())
    }
}

impl Pause {
    /// Whether the side is paused.
    #[must_use]
    #[inline]
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// When the pause ends by itself, if it does.
    #[must_use]
    pub const fn until(self) -> Option<Timestamp> {
        if let Self::Until(at) = self { Some(at) } else { None }
    }

    /// The pause as it is at this moment.
    const fn at(self, now: Timestamp) -> Self {
        match self {
            Self::Until(at) if at.ms() <= now.ms() => Self::Off,
            other => other,
        }
    }
}

impl Paused {
    /// Pauses these sides until a client ends it.
    #[must_use]
    pub const fn endlessly(input: bool, output: bool) -> Self {
        let input = if input { Pause::Endless } else { Pause::Off };
        let output = if output { Pause::Endless } else { Pause::Off };
        Self { input, output }
    }

    /// Whether either side is paused.
    #[must_use]
    pub const fn any(self) -> bool {
        self.input.is_on() || self.output.is_on()
    }

    /// When the pause of a side ends next by itself, if one does.
    #[must_use]
    pub fn next_end(self) -> Option<Timestamp> {
        self.input.until().into_iter().chain(self.output.until()).min()
    }

    /// What is paused at this moment.
    #[must_use]
    pub const fn at(self, now: Timestamp) -> Self {
        Self { input: self.input.at(now), output: self.output.at(now) }
    }
}

/// The names of the limits that a queue uses, as [`USES`] has them.
pub fn used(uses: &[u8]) -> impl Iterator<Item = &[u8]> {
    uses.split(|byte| *byte == b',')
}

/// Tells what settings need. Dead letters are put where they say, and limits are those of others.
pub(crate) fn each_need_of<'c>(
    queue: &'c [u8],
    settings: &[Assignment<'c>],
    tell: &mut dyn FnMut(Need<'c>),
) {
    queue.each(Right::Manage, tell);
    for (setting, value) in settings {
        match (&setting.kind, value) {
            (SettingKind::Name, Value::Bytes(dead_letters)) => {
                dead_letters.each(Right::Put, tell);
            }
            (SettingKind::Limits, Value::Bytes(uses)) => {
                used(uses).for_each(|limit| limit.each(Right::Manage, tell));
            }
            _ => {}
        }
    }
}

/// Returns where settings of a queue are set. A queue lives in the same shard as the queue for its
/// dead letters, and as the limits that it uses. Of a setting that is given twice, the last value
/// holds.
pub(crate) fn destination_of<'c>(queue: &'c [u8], settings: &[Assignment<'c>]) -> Destination<'c> {
    let name_in = |of: &Setting| match settings.iter().rfind(|(setting, _)| *setting == of) {
        Some((_, Value::Bytes(name))) => Some(*name),
        _ => None,
    };
    match (name_in(DEADLETTER), name_in(USES)) {
        (dead_letters, Some(uses)) => Destination::Uses { queue, dead_letters, uses },
        (Some(dead_letters), None) => Destination::Pair(queue, dead_letters),
        (None, None) => Destination::Queue(queue),
    }
}
