//! The placement: every part is fair, little moves, and all nodes arrive at the same.

use std::collections::{BTreeMap, BTreeSet};

use pinpriq_cluster::{Member, Placement};
use proptest::collection::vec;
use proptest::prelude::*;

fn member(name: &str, is_draining: bool) -> Member {
    Member { name: name.to_owned(), is_draining }
}

fn members(names: &[String]) -> Vec<Member> {
    names.iter().map(|name| member(name, false)).collect()
}

fn targets(placement: &Placement, shards: u16) -> Vec<String> {
    (0..shards).map(|shard| placement.target(shard).unwrap().to_owned()).collect()
}

fn counts(placement: &Placement, shards: u16) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for target in targets(placement, shards) {
        *counts.entry(target).or_default() += 1;
    }
    counts
}

fn moved(before: &Placement, after: &Placement, shards: u16) -> usize {
    (0..shards).filter(|shard| before.target(*shard) != after.target(*shard)).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn parts_differ_by_one_at_most(names in vec("[a-z0-9-]{1,8}", 1..12), shards in 1_u16..300) {
        let mut distinct = names.clone();
        distinct.sort();
        distinct.dedup();
        let placement = Placement::new(&members(&names), shards);
        let counts = counts(&placement, shards);
        let floor = usize::from(shards) / distinct.len();
        let extras = usize::from(shards) % distinct.len();
        for name in &distinct {
            let count = counts.get(name).copied().unwrap_or(0);
            prop_assert!(count == floor || count == floor + 1, "{name} has {count} of {shards}");
        }
        let larger = counts.values().filter(|count| **count > floor).count();
        prop_assert_eq!(larger, extras);
    }

    #[test]
    fn shards_go_where_they_were_told(
        names in vec("[a-f]", 1..6),
        told in vec((0_u16..40, "[a-h]"), 0..30),
        shards in 1_u16..30,
    ) {
        let told: BTreeMap<u16, String> = told.into_iter().collect();
        let told: Vec<_> = told.into_iter().collect();
        let placement = Placement::with_targets(&members(&names), shards, &told);
        let mut own: BTreeMap<&str, usize> = BTreeMap::new();
        for (shard, name) in told.iter().filter(|(shard, _)| *shard < shards) {
            if names.contains(name) {
                prop_assert_eq!(placement.target(*shard), Some(name.as_str()));
                prop_assert_eq!(placement.rank(*shard, name), Some(0));
                *own.entry(name).or_default() += 1;
            }
        }
        let floor = usize::from(shards) / names.iter().collect::<BTreeSet<_>>().len();
        for (name, count) in counts(&placement, shards) {
            let told = own.get(name.as_str()).copied().unwrap_or(0);
            prop_assert!(count == told || count <= floor + 1, "{name} has {count}, told {told}");
        }
    }

    #[test]
    fn the_order_of_the_members_does_not_matter(
        names in vec("[a-z]{1,4}", 1..9),
        turn in 0_usize..9,
        shards in 1_u16..100,
    ) {
        let mut turned = names.clone();
        turned.rotate_left(turn % names.len());
        turned.reverse();
        let [first, second] = [names, turned].map(|names| Placement::new(&members(&names), shards));
        prop_assert_eq!(&first, &second);
        for shard in 0..shards {
            let ranking = first.ranking(shard);
            prop_assert_eq!(ranking[0], first.target(shard).unwrap());
            for (place, name) in (0..).zip(&ranking) {
                prop_assert_eq!(second.rank(shard, name), Some(place));
            }
        }
    }

    #[test]
    fn little_moves_when_a_node_comes_or_goes(
        run in any::<u32>(),
        nodes in 1_usize..10,
        shards in 16_u16..300,
    ) {
        let names: Vec<String> = (0..=nodes).map(|node| format!("{run}-{node}")).collect();
        let more = Placement::new(&members(&names), shards);
        let fewer = Placement::new(&members(&names[..nodes]), shards);
        let moved = moved(&fewer, &more, shards);
        let needed = usize::from(shards) / (nodes + 1);
        prop_assert!(moved >= needed);
        prop_assert!(moved <= needed + 6 + usize::from(shards) / 10, "{moved}, not {needed}");
    }
}

#[test]
fn on_average_hardly_more_moves_than_must() {
    let (mut all, mut needed) = (0, 0);
    for run in 0..20 {
        for nodes in 2..8 {
            let names: Vec<String> = (0..=nodes).map(|node| format!("{run}-{node}")).collect();
            let more = Placement::new(&members(&names), 64);
            let fewer = Placement::new(&members(&names[..nodes]), 64);
            all += moved(&fewer, &more, 64);
            needed += 64 / (nodes + 1);
        }
    }
    assert!(all * 10 < needed * 14, "{all} instead of {needed}");
}

#[test]
fn draining_nodes_get_nothing_unless_all_drain() {
    let some = [member("a", true), member("b", false), member("c", false)];
    let without = [member("b", false), member("c", false)];
    assert_eq!(Placement::new(&some, 16), Placement::new(&without, 16));
    assert_eq!(Placement::new(&some, 16).rank(0, "a"), None);
    let all = ["a", "b", "c"].map(|name| member(name, true));
    let none = ["a", "b", "c"].map(|name| member(name, false));
    assert_eq!(Placement::new(&all, 16), Placement::new(&none, 16));
    // A node that was started again while its last session lives is no other node.
    let twice = [member("a", true), member("a", false), member("b", false)];
    assert_eq!(Placement::new(&twice, 16), Placement::new(&none[..2], 16));
}

#[test]
fn the_placement_is_the_same_in_every_version() {
    let names = ["n1", "n2", "n3"].map(|name| member(name, false));
    let placement = Placement::new(&names, 8);
    let targets = targets(&placement, 8).join(" ");
    assert_eq!(targets, "n3 n1 n2 n1 n3 n2 n3 n1");
    assert_eq!(Placement::new(&[], 8).target(0), None);
    assert_eq!(placement.target(8), None);
}
