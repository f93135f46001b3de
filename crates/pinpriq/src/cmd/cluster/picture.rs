//! What was found of a cluster, and what follows from it. Asks nothing.

use pinpriq_cluster::remote::LogState;
use pinpriq_cluster::{Instance, NodeRecord, OwnRecord, OwnState, View};

/// A cluster as it was a moment ago.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) view: View,
    /// The log of each shard, if they were asked for.
    pub(super) logs: Vec<Option<LogState>>,
}

impl Picture {
    /// The node of this instance, if it lives.
    pub(super) fn node(&self, instance: Instance) -> Option<&NodeRecord> {
        self.view.nodes.iter().find(|node| node.instance == instance)
    }

    /// What the owner of a shard is called.
    pub(super) fn owner_name(&self, own: &OwnRecord) -> String {
        let node = self.node(own.instance);
        node.map_or_else(|| own.instance.to_string(), |node| node.name.clone())
    }

    /// The node that a shard was told to move to.
    pub(super) fn target(&self, shard: usize) -> Option<&str> {
        let told = self.view.targets.iter().find(|(it, _)| usize::from(*it) == shard);
        told.map(|(_, node)| node.as_str())
    }

    /// How many shards the nodes of this name own.
    pub(super) fn shards_of(&self, name: &str) -> usize {
        let owners = self.view.owners.iter().flatten();
        owners.filter(|own| self.node(own.instance).is_some_and(|node| node.name == name)).count()
    }

    /// Whether a node gives up its shards.
    pub(super) fn drains(&self, node: &NodeRecord) -> bool {
        node.draining || self.view.drained.contains(&node.name)
    }

    /// The shards without an owner.
    pub(super) fn without_owner(&self) -> Vec<usize> {
        self.shards_where(|own| own.is_none())
    }

    /// The shards that have an owner which does not serve them yet, or no longer.
    pub(super) fn changing(&self) -> Vec<usize> {
        self.shards_where(|own| own.is_some_and(|own| own.state != OwnState::Serving))
    }

    /// The shards that are not served.
    pub(super) fn unserved(&self) -> Vec<usize> {
        self.shards_where(|own| own.is_none_or(|own| own.state != OwnState::Serving))
    }

    fn shards_where(&self, is_one: impl Fn(Option<&OwnRecord>) -> bool) -> Vec<usize> {
        let owners = self.view.owners.iter().enumerate();
        owners.filter(|(_, own)| is_one(own.as_ref())).map(|(shard, _)| shard).collect()
    }
}

/// What a state is called.
pub(super) const fn state_word(state: OwnState) -> &'static str {
    match state {
        OwnState::Loading => "loading",
        OwnState::Serving => "serving",
        OwnState::Suspended => "suspended",
        OwnState::Releasing => "releasing",
    }
}

/// Shards in few words: `shard 3`, or `shards 0-2, 5`.
pub(super) fn named(shards: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &shard in shards {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == shard => *last = shard,
            _ => runs.push((shard, shard)),
        }
    }
    let run = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let runs: Vec<String> = runs.iter().map(run).collect();
    let word = if shards.len() == 1 { "shard" } else { "shards" };
    format!("{word} {}", runs.join(", "))
}
