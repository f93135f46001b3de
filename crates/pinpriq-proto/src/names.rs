//! Sets of names, for commands that must keep within them. Who gets which set is not decided here.

use crate::limits::{NAMES_DEFAULT, NAMES_MAX};

/// A page of the names of everything of a kind, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct NamesPage<'a> {
    /// Only names that begin with this.
    #[option(default = b"")]
    pub prefix: &'a [u8],
    /// The most names to return.
    #[option(default = NAMES_DEFAULT, most = NAMES_MAX)]
    pub count: usize,
    /// Only names after this one.
    #[letter(1)]
    #[option(CURSOR, with = cursors::name)]
    pub after: Option<&'a [u8]>,
}

/// A name of a queue or topic, or what such names begin with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, pinpriq_derive::Letter)]
#[letter(closed, most = crate::limits::WITHIN_NAMES_MAX)]
pub struct NamePattern<'a> {
    /// The name or the prefix.
    pub bytes: &'a [u8],
    /// Whether every name that begins with these bytes is meant, and not only this name.
    pub is_prefix: bool,
}

impl<'a> NamePattern<'a> {
    /// Exactly this name.
    #[must_use]
    pub const fn exactly(name: &'a [u8]) -> Self {
        Self { bytes: name, is_prefix: false }
    }

    /// All names that begin with this prefix.
    #[must_use]
    pub const fn beginning(prefix: &'a [u8]) -> Self {
        Self { bytes: prefix, is_prefix: true }
    }

    /// Whether this name is meant.
    #[must_use]
    pub fn matches(self, name: &[u8]) -> bool {
        if self.is_prefix { name.starts_with(self.bytes) } else { name == self.bytes }
    }
}

/// The queue that a command is about. A topic and a queue of the same name are unrelated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct QueueName<'a> {
    /// The name of the queue, or of the topic.
    pub name: &'a [u8],
    /// For a lane: the member that has the lane in that topic.
    pub member: Option<&'a [u8]>,
}

impl<'a> From<&'a [u8]> for QueueName<'a> {
    fn from(name: &'a [u8]) -> Self {
        Self { name, member: None }
    }
}
