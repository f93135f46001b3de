//! Batches: what clients were told of them, the clients, and what is left of them afterwards.

mod asks;
pub(crate) mod book;
pub(crate) mod check;
mod chores;
mod judge;
pub(crate) mod load;
mod notes;
mod stories;
mod talk;

/// The parts in braces of all names. They are those of the queues of `load`, so with as many shards
/// as that allows, each shard has one of them.
pub(crate) const FAMILIES: [&str; 4] = ["left", "up", "back", "front"];

/// What a queue of a family is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// For tasks of batches. What has failed too often there becomes a dead letter.
    Work,
    /// For tasks of batches. What has failed too often there is buried.
    Odd,
    /// For tasks that wait for batches.
    Then,
    /// For the dead letters.
    Dead,
}

/// A queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Queue {
    /// The place of its family among [`FAMILIES`].
    pub(crate) family: usize,
    pub(crate) kind: Kind,
}

impl Queue {
    /// Its name. The part in braces keeps all names of a family in one shard.
    pub(crate) fn name(self) -> String {
        let kind = match self.kind {
            Kind::Work => "work",
            Kind::Odd => "odd",
            Kind::Then => "then",
            Kind::Dead => "dead",
        };
        format!("{{{}}}-{kind}", FAMILIES[self.family])
    }
}
