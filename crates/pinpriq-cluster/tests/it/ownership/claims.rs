//! How shards without an owner are claimed, and what becomes of claims.

use pinpriq_cluster::clocks::{is_off, off_by};
use pinpriq_cluster::{HostEnd, Instance, Meta, Order, OwnState, RegistryCall, ShardState};

use super::stage::{Loss, Stage, TTL, node, record, shards};

#[test]
fn shards_are_claimed_in_the_order_of_their_ranking() {
    let mut stage = Stage::new(16);
    stage.join(node("b", 20, 1));
    stage.join(node("c", 30, 1));
    let begin = stage.now;
    stage.run(2_000);
    let mut seen = [0; 3];
    let claims = stage.claims();
    assert_eq!(claims.len(), 16);
    for (at, shard) in claims {
        let rank = stage.node.placement().rank(shard, "a").unwrap();
        assert_eq!(stage.node.placement().ranking(shard)[usize::try_from(rank).unwrap()], "a");
        // The first turns find out who is there, without taking any time here.
        assert!((begin..begin + 60).contains(&(at - rank * 250)), "{shard} of {rank} at {at}");
        seen[usize::try_from(rank).unwrap()] += 1;
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn a_shard_is_hosted_once_its_claim_is_done_and_not_before() {
    let mut stage = Stage::new(1);
    stage.join(node("b", 20, 1));
    stage.set_owner(0, record(20, 9, OwnState::Serving));
    stage.run(TTL);
    assert_eq!(stage.node.state(0), ShardState::Absent);
    assert_eq!(stage.node.owner(0).unwrap().0.name, "b");
    stage.desk().forget(Instance(20));
    stage.desk().holds_owns = true;
    assert_eq!(stage.run(TTL), []);
    assert_eq!(stage.claims().len(), 1);
    assert_eq!(stage.node.state(0), ShardState::Claiming);
    stage.desk().holds_owns = false;
    assert_eq!(shards(&stage.run(600), Order::Host), [0]);
    assert_eq!(stage.node.state(0), ShardState::Loading);
    assert_eq!(stage.node.counters().take_overs, 1);
    stage.node.note_serving(0, 10);
    assert_eq!(stage.run(600), []);
    assert_eq!(stage.owner(0), record(1, 10, OwnState::Serving));
    assert_eq!(stage.node.state(0), ShardState::Serving);
}

#[test]
fn a_claim_that_was_not_answered_is_no_claim() {
    for loss in [Loss::Never, Loss::Applied] {
        let mut stage = Stage::new(1);
        stage.desk().loss = Some(loss);
        assert_eq!(stage.run(TTL), [], "{loss:?}");
        assert_ne!(stage.node.state(0), ShardState::Loading);
        // A record of that claim may be there, and nothing hosts the shard.
        stage.desk().loss = None;
        assert_eq!(shards(&stage.run(TTL), Order::Host), [0], "{loss:?}");
        assert_eq!(stage.node.state(0), ShardState::Loading);
        assert_eq!(stage.owner(0), record(1, 0, OwnState::Loading));
    }
}

#[test]
fn a_claim_that_finds_another_owner_is_lost_and_looks_again() {
    let mut stage = Stage::new(1);
    stage.desk().loss = Some(Loss::Changed);
    assert_eq!(stage.run(200), []);
    let claims = stage.claims();
    assert!(claims.len() > 1, "{claims:?}");
    assert_eq!(stage.node.counters().claims_lost, u64::try_from(claims.len()).unwrap());
    // Each rests on a view of its own.
    let log = stage.desk().log.clone();
    let looks = log.iter().filter(|(_, call)| *call == RegistryCall::Renew).count();
    assert!(looks >= claims.len(), "{log:?}");
    stage.set_owner(0, record(20, 0, OwnState::Loading));
    stage.join(node("b", 20, 1));
    stage.desk().loss = None;
    assert_eq!(stage.run(TTL), []);
    assert_eq!(stage.owner(0), record(20, 0, OwnState::Loading));
}

#[test]
fn who_has_not_seen_what_is_true_of_the_cluster_claims_nothing() {
    let mut stage = Stage::new(8);
    stage.join(node("b", 20, 1));
    let first = Meta { shards: 8, ..Meta::default() };
    let second = Meta { generation: 1, ..first.clone() };
    stage.desk().view.meta = Some(first.clone());
    (0..8).for_each(|shard| stage.set_owner(shard, record(20, 3, OwnState::Serving)));
    stage.run(100);
    (0..8).for_each(|shard| stage.set_owner(shard, None));
    while stage.claims().is_empty() {
        stage.run(1);
    }
    // The node waits for the claims of the other one, and does not look meanwhile.
    stage.desk().view.meta = Some(second.clone());
    stage.forget_log();
    let hosts = shards(&stage.run(400), Order::Host);
    let is_second = |shard: &u16| stage.node.placement().rank(*shard, "a") == Some(1);
    let late: Vec<u16> = (0..8).filter(is_second).collect();
    assert!(!late.is_empty());
    assert_eq!(hosts, late);
    assert_eq!(stage.node.counters().claims_lost, u64::try_from(late.len()).unwrap());
    for own in late {
        let log = stage.desk().log.clone();
        let metas = log.into_iter().filter_map(|(_, call)| match call {
            RegistryCall::Claim { shard, meta, .. } if shard == own => meta,
            _ => None,
        });
        assert_eq!(metas.collect::<Vec<_>>(), [first.clone(), second.clone()]);
    }
}

#[test]
fn after_a_failure_a_shard_is_free_for_others_first() {
    let mut stage = Stage::alone(1);
    stage.forget_log();
    let failed_at = stage.now;
    stage.node.note_failed(0, HostEnd::Failed);
    assert_eq!(stage.node.state(0), ShardState::Absent);
    stage.run(500);
    assert_eq!(stage.owner(0), None);
    assert_eq!(shards(&stage.run(3_000), Order::Host), [0]);
    let claims = stage.claims();
    assert_eq!(claims.len(), 1);
    assert!((failed_at + 1_000..failed_at + 1_300).contains(&claims[0].0), "{claims:?}");
    assert_eq!(stage.node.counters().failed, 1);
}

#[test]
fn few_claims_are_under_way_at_a_time() {
    let mut stage = Stage::new(1_000);
    assert_eq!(shards(&stage.run(100), Order::Host).len(), 1_000);
    // The renewal is one more.
    let most = stage.desk().most;
    assert!((10..=17).contains(&most), "{most} at once");
}

#[test]
fn a_node_whose_clock_is_wrong_claims_nothing_and_serves_on() {
    let mut stage = Stage::new(2);
    stage.join(node("b", 20, 1));
    stage.set_owner(1, record(20, 9, OwnState::Serving));
    assert_eq!(shards(&stage.run(TTL), Order::Host), [0]);
    stage.node.note_serving(0, 10);
    stage.node.note_clock(is_off(off_by(&[6_000, 6_000])));
    stage.desk().forget(Instance(20));
    assert_eq!(stage.run(3 * TTL), []);
    assert_eq!(stage.node.state(0), ShardState::Serving);
    assert_eq!(stage.node.state(1), ShardState::Absent);
    stage.node.note_clock(is_off(off_by(&[4_000, 4_000])));
    assert_eq!(shards(&stage.run(TTL), Order::Host), [1]);
}
