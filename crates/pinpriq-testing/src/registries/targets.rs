//! Shards with a target, the node that they have to move to.

use super::{Bench, Case, Site, instances};
use pinpriq_cluster::RegistryCall;

pub(super) const CASES: &[Case] =
    named![targets_are_set_and_taken_back, a_target_outlives_every_session];

fn target(shard: u16, node: Option<&str>) -> RegistryCall {
    RegistryCall::Target { shard, node: node.map(str::to_owned) }
}

/// Targets need no session, come in the order of their shards, and may be changed.
fn targets_are_set_and_taken_back(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let mut stranger = site.stranger();
    let odd = "ñ🦔' \0/";
    for (shard, node, expected) in [
        (3, None, &[][..]),
        (3, Some("b"), &[(3, "b")]),
        (3, Some("b"), &[(3, "b")]),
        (15, Some(odd), &[(3, "b"), (15, odd)]),
        (0, Some(""), &[(0, ""), (3, "b"), (15, odd)]),
        (3, Some("c"), &[(0, ""), (3, "c"), (15, odd)]),
        (3, None, &[(0, ""), (15, odd)]),
        (3, None, &[(0, ""), (15, odd)]),
        (0, None, &[(15, odd)]),
        (15, None, &[]),
    ] {
        site.done(&mut stranger, target(shard, node));
        let targets = site.look(&mut stranger).targets;
        let found: Vec<_> = targets.iter().map(|(shard, node)| (*shard, node.as_str())).collect();
        assert_eq!(found, expected, "after {shard}: {node:?}");
    }
}

/// A target stays when its node ends, and the one that has set it.
fn a_target_outlives_every_session(bench: &mut dyn Bench) {
    let mut site = Site::new(bench);
    let [mut anna, mut bela] = site.pair();
    site.done(&mut anna, target(7, Some("n1")));
    site.done(&mut bela, RegistryCall::End(anna.instance()));
    let view = site.renew(&mut bela);
    assert_eq!((instances(&view), view.targets), (vec![2], vec![(7, "n1".to_owned())]));
    site.done(&mut anna, RegistryCall::End(bela.instance()));
    let mut stranger = site.stranger();
    assert_eq!(site.look(&mut stranger).targets, [(7, "n1".to_owned())], "no node is there");
}
