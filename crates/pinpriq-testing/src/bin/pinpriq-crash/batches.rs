//! Batches: what clients were told of them, the clients, and what is left of them afterwards. They
//! are played on one server, and in a cluster by `cluster::batches`.

mod asks;
pub(crate) mod book;
pub(crate) mod check;
mod chores;
mod judge;
pub(crate) mod load;
mod notes;
mod stories;
pub(crate) mod talk;

/// What differs between one server and a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The parts in braces of all names. What has the same part is in one shard.
    pub(crate) families: &'static [&'static str],
    /// Whether requests may be refused because a shard has no owner, or the engine is away. Then
    /// all leases have a TTR, and clients drop connections only between requests.
    is_cluster: bool,
    /// The most stories that are told together.
    stories_max: u64,
    /// Above this number of tasks, clients make no more batches.
    backlog_max: u64,
}

/// How batches are played on one server. The families are those of the queues of `load`, so with as
/// many shards as that allows, each shard has one of them.
pub(crate) const ON_SERVER: Plan = Plan {
    families: &["left", "up", "back", "front"],
    is_cluster: false,
    stories_max: 16,
    backlog_max: 4_000,
};

/// How they are played in a cluster. Each of its six shards has a family.
pub(crate) const IN_CLUSTER: Plan = Plan {
    families: &["up", "right", "back", "high", "near", "left"],
    is_cluster: true,
    stories_max: 2,
    backlog_max: 300,
};

impl Default for Plan {
    fn default() -> Self {
        ON_SERVER
    }
}

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
    /// The part of its name in braces.
    pub(crate) family: &'static str,
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
        format!("{{{}}}-{kind}", self.family)
    }
}
