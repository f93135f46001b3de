//! Which node should own which shard.
//!
//! Every node computes this for itself from the same members, and arrives at the same result. Each
//! pair of a node and a shard has a score, the hash of both (rendezvous hashing), and the pairs are
//! gone through from the highest score down. A node gets no more than its part, so that a shard may
//! fall to a node with a lower score. When a node comes or goes, few shards change their nodes
//! besides those that must.
//!
//! This is only what ought to be. The registry has the owner of each shard.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::registry::ShardNumber;

/// A node as far as it matters for the placement.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Whether it gives up its shards.
    pub is_draining: bool,
}

/// The nodes that ought to own the shards of a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Placement {
    /// The names of the nodes that may own shards, in order.
    names: Vec<String>,
    /// The place in `names` of the node of each shard.
    targets: Vec<usize>,
}

impl Placement {
    /// Places this number of shards. Nodes that are draining get none, unless all are. The order of
    /// the members does not matter, nor does it matter if a name comes twice: then its node is
    /// draining if all of that name are.
    ///
    /// The number of shards of any two nodes differs by one at most. Takes O(n log n) for n pairs
    /// of a node and a shard.
    #[must_use]
    pub fn new(members: &[Member], shards: u16) -> Self {
        Self::with_targets(members, shards, &[])
    }

    /// Places shards like [`Self::new`], except those with a target of this
    /// name: they go there if it may own shards, and count as a part of what it gets. A node that
    /// was told more than its part gets nothing else.
    #[must_use]
    pub fn with_targets(members: &[Member], shards: u16, told: &[(ShardNumber, String)]) -> Self {
        let mut draining: BTreeMap<&str, bool> = BTreeMap::new();
        for member in members {
            let all = draining.entry(&member.name).or_insert(true);
            *all &= member.is_draining;
        }
        let all_drain = draining.values().all(|is_draining| *is_draining);
        let stays = |(name, is_draining): (&str, bool)| {
            (all_drain || !is_draining).then(|| name.to_owned())
        };
        let names: Vec<String> = draining.into_iter().filter_map(stays).collect();
        let told = told.iter().filter(|(shard, _)| *shard < shards).filter_map(|(shard, name)| {
            let place = names.iter().position(|known| known == name)?;
            Some((usize::from(*shard), place))
        });
        let targets = place(&names, shards, told.collect());
        Self { names, targets }
    }

    /// Returns the node that ought to own a shard. None if there are no nodes or no such shard.
    #[must_use]
    pub fn target(&self, shard: ShardNumber) -> Option<&str> {
        let target = self.targets.get(usize::from(shard))?;
        self.names.get(*target).map(String::as_str)
    }

    /// Returns the place of a node in the [`Self::ranking`] of a shard, from 0. None if it gets no
    /// shards. Takes O(n) for n nodes.
    #[must_use]
    pub fn rank(&self, shard: ShardNumber, name: &str) -> Option<u64> {
        let place = self.names.iter().position(|known| known == name)?;
        let target = self.targets.get(usize::from(shard))?;
        if place == *target {
            return Some(0);
        }
        let own = order(name, shard);
        let before = |(index, other): &(usize, &String)| {
            index != target && *index != place && order(other, shard) < own
        };
        let before = self.names.iter().enumerate().filter(before).count();
        Some(1 + u64::try_from(before).unwrap_or(u64::MAX - 1))
    }

    /// Returns all nodes that may own a shard, the one that ought to first, and then those with the
    /// higher scores before those with the lower ones. Takes O(n log n) for n nodes.
    #[must_use]
    pub fn ranking(&self, shard: ShardNumber) -> Vec<&str> {
        let target = self.target(shard);
        let mut ranking: Vec<&str> = self.names.iter().map(String::as_str).collect();
        ranking.sort_by_key(|name| (Some(*name) != target, order(name, shard)));
        ranking
    }
}

/// What the nodes of a shard are sorted by. The name decides between equal scores.
fn order(name: &str, shard: ShardNumber) -> (Reverse<u64>, &str) {
    (Reverse(xxh3_64_with_seed(name.as_bytes(), u64::from(shard))), name)
}

/// Returns the place of the node of each shard. Some have a target.
fn place(names: &[String], shards: u16, told: BTreeMap<usize, usize>) -> Vec<usize> {
    if names.is_empty() {
        return Vec::new();
    }
    let mut pairs: Vec<(ShardNumber, usize)> = Vec::new();
    for shard in 0..shards {
        pairs.extend((0..names.len()).map(|place| (shard, place)));
    }
    pairs.sort_by_cached_key(|(shard, place)| (order(&names[*place], *shard).0, *place, *shard));
    let floor = usize::from(shards) / names.len();
    // So many nodes get one more.
    let mut extras = usize::from(shards) % names.len();
    let mut counts = vec![0; names.len()];
    let mut targets = vec![None; usize::from(shards)];
    for (shard, place) in told {
        targets[shard] = Some(place);
        counts[place] += 1;
    }
    // A node with more than the floor has one of the extras, as far as there are any.
    extras -= extras.min(counts.iter().filter(|count| **count > floor).count());
    for (shard, place) in pairs {
        let target = &mut targets[usize::from(shard)];
        let count = &mut counts[place];
        let is_extra = *count == floor;
        if target.is_some() || *count > floor || (is_extra && extras == 0) {
            continue;
        }
        extras -= usize::from(is_extra);
        *count += 1;
        *target = Some(place);
    }
    // Each has one: the parts add up to all shards.
    targets.into_iter().map(Option::unwrap_or_default).collect()
}
