//! Several nodes over one registry that lies, with nodes that die, pause, drain and come back. When
//! the trouble ends, every shard has the one owner that it should have, and nothing moves.

mod cluster;
mod hosts;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use cluster::Cluster;
use pinpriq_testing::registries::FakeKnobs;

const SEEDS: u64 = 600;

/// How long the trouble lasts, in milliseconds of the time of the nodes.
const TROUBLE_MS: u64 = 40_000;

/// How long the nodes may take to sort everything out.
const SETTLE_MS: u64 = 90_000;

/// How long nothing may happen after that.
const QUIET_MS: u64 = 15_000;

/// Runs a cluster through trouble into peace.
fn walk(seed: u64, knobs: FakeKnobs) -> Cluster {
    let run = || {
        let mut cluster = Cluster::new(seed, knobs);
        cluster.run(TROUBLE_MS);
        cluster.make_peace();
        cluster.run(SETTLE_MS);
        cluster.check();
        let orders = cluster.orders;
        cluster.run(QUIET_MS);
        assert_eq!(cluster.orders, orders, "something still moves");
        cluster.check();
        cluster
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|failure| {
        println!("the seed is {seed}");
        resume_unwind(failure)
    })
}

#[test]
fn after_any_trouble_every_shard_has_the_owner_that_it_should_have() {
    let mut happened: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..SEEDS {
        let cluster = walk(seed, FakeKnobs::ROUGH);
        for (name, count) in cluster.happened() {
            *happened.entry(name).or_default() += count;
        }
    }
    for (name, count) in happened {
        assert!(count > SEEDS / 60, "{name}: {count} times");
    }
}

#[test]
fn with_a_perfect_registry_only_nodes_make_trouble() {
    for seed in 0..100 {
        let cluster = walk(seed, FakeKnobs::PERFECT);
        let happened: BTreeMap<_, _> = cluster.happened().into_iter().collect();
        assert_eq!(happened["a node gave up"], 0, "seed {seed}");
    }
}

#[test]
fn the_same_seed_has_the_same_history() {
    let runs = [7, 7, 8].map(|seed| walk(seed, FakeKnobs::ROUGH).happened());
    assert_eq!(runs[0], runs[1]);
    assert!(runs[0] != runs[2]);
}
