//! How shards are given up: to be in balance, because a node drains, and at its end.

use pinpriq_cluster::{
    HostEnd, Instance, NodeRecord, Order, OwnState, RegistryCall, ShardNumber, ShardState,
};

use super::stage::{Stage, TTL, node, record, shards};

/// The shards whose records say that they are given up.
fn releasing(stage: &Stage, count: u16) -> Vec<ShardNumber> {
    let is_releasing =
        |shard: &u16| stage.owner(*shard).is_some_and(|record| record.state == OwnState::Releasing);
    (0..count).filter(is_releasing).collect()
}

#[test]
fn shards_move_one_by_one_to_where_they_belong_when_the_members_stay_the_same() {
    let mut stage = Stage::alone(8);
    stage.join(node("b", 20, 1));
    assert_eq!(stage.run(2 * TTL), []);
    assert!(releasing(&stage, 8).is_empty());
    let mut moved = Vec::new();
    while moved.len() < 4 {
        assert!(stage.now < 100 * TTL, "only {moved:?} have moved");
        let seen = releasing(&stage, 8);
        let orders = stage.run(100);
        assert!(releasing(&stage, 8).len() <= 1, "{:?} at once", releasing(&stage, 8));
        let [shard] = shards(&orders, Order::Release)[..] else {
            assert!(orders.is_empty(), "{orders:?}");
            continue;
        };
        // The others were told before.
        assert_eq!(seen, [shard]);
        assert_eq!(stage.node.placement().target(shard), Some("b"));
        assert_eq!(stage.node.state(shard), ShardState::Releasing);
        stage.node.note_released(shard);
        stage.run(0);
        assert_eq!(stage.owner(shard), None);
        // Nothing else moves until it has arrived.
        stage.set_owner(shard, record(20, 0, OwnState::Loading));
        assert_eq!(stage.run(TTL), []);
        assert!(releasing(&stage, 8).is_empty());
        stage.set_owner(shard, record(20, 6, OwnState::Serving));
        moved.push(shard);
    }
    assert_eq!(stage.run(10 * TTL), []);
    assert_eq!(stage.node.counters().moves, 4);
}

#[test]
fn nothing_moves_while_members_come_and_go() {
    let mut stage = Stage::alone(8);
    for _ in 0..5 {
        stage.join(node("b", 20, 1));
        assert_eq!(stage.run(2 * TTL - 1_000), []);
        stage.desk().forget(Instance(20));
        assert_eq!(stage.run(2 * TTL - 1_000), []);
        assert!(releasing(&stage, 8).is_empty());
    }
}

#[test]
fn nothing_moves_to_a_node_that_is_to_end() {
    let mut stage = Stage::alone(8);
    let mut leaving = node("b", 20, 1);
    leaving.draining = true;
    stage.join(leaving);
    stage.desk().view.drained = vec!["a".to_owned()];
    assert_eq!(stage.run(10 * TTL), []);
    assert!(stage.node.node().draining);
    assert!((0..8).all(|shard| stage.node.state(shard) == ShardState::Serving));
}

#[test]
fn a_host_that_does_not_stop_keeps_its_shard() {
    let mut stage = Stage::alone(2);
    stage.join(node("b", 20, 1));
    let orders = stage.run(4 * TTL);
    let [(told_at, Order::Release(shard)), (resumed_at, Order::Resume(resumed))] = orders[..]
    else {
        panic!("{orders:?}");
    };
    assert_eq!((shard, resumed_at - told_at), (resumed, 2_000));
    assert_eq!(stage.node.state(shard), ShardState::Serving);
    assert_eq!(stage.owner(shard), record(1, 5, OwnState::Serving));
    assert_eq!(stage.node.counters().moves_given_up, 1);
    // It is tried again, but not at once.
    let orders = stage.run(4 * TTL);
    let again = orders.iter().find(|(_, order)| *order == Order::Release(shard)).unwrap().0;
    assert!(again >= resumed_at + 2 * TTL);
    // A host that has stopped in the meantime has.
    stage.run(3_000);
    assert_eq!(stage.node.state(shard), ShardState::Serving);
    stage.node.note_released(shard);
    stage.run(0);
    assert_eq!(stage.owner(shard), None);
}

#[test]
fn a_shard_that_no_node_takes_comes_back_and_moves_less_often() {
    let mut stage = Stage::alone(2);
    stage.join(node("b", 20, 1));
    let mut released = Vec::new();
    while released.len() < 4 {
        assert!(stage.now < 100 * TTL, "only at {released:?}");
        for (_, order) in stage.run(100) {
            match order {
                Order::Release(shard) => {
                    released.push(stage.now);
                    stage.node.note_released(shard);
                }
                Order::Host(shard) => stage.node.note_serving(shard, 7),
                other => panic!("{other:?}"),
            }
        }
    }
    for three in released.windows(3) {
        assert!(three[2] - three[1] > (three[1] - three[0]) * 3 / 2, "{released:?}");
    }
    assert!(released[1] - released[0] >= 4 * TTL);
}

#[test]
fn a_shard_on_its_way_here_is_looked_for_often() {
    let mut stage = Stage::new(2);
    stage.join(node("b", 20, 1));
    for shard in 0..2 {
        stage.set_owner(shard, record(20, 9, OwnState::Serving));
    }
    stage.run(2 * TTL);
    let coming = (0..2).find(|shard| stage.node.placement().target(*shard) == Some("a")).unwrap();
    stage.set_owner(coming, record(20, 9, OwnState::Releasing));
    stage.run(TTL / 5);
    stage.set_owner(coming, None);
    let orders = stage.run(100);
    assert_eq!(shards(&orders, Order::Host), [coming]);
    assert_eq!(stage.node.counters().take_overs, 0);
}

#[test]
fn a_node_that_was_told_to_drain_gives_up_all_shards_and_claims_none() {
    let mut stage = Stage::alone(4);
    stage.join(node("b", 20, 1));
    stage.desk().view.drained = vec!["a".to_owned()];
    let orders = stage.run(2 * TTL / 5 + 50);
    assert_eq!(shards(&orders, Order::Release), [0, 1, 2, 3]);
    assert!(stage.node.node().draining);
    let is_told = |it: &NodeRecord| it.name == "a" && it.draining;
    assert!(stage.desk().view.nodes.iter().any(is_told));
    for shard in 0..4 {
        stage.node.note_released(shard);
    }
    stage.forget_log();
    assert_eq!(stage.run(2 * TTL), []);
    assert_eq!(stage.claims(), []);
    assert!((0..4).all(|shard| stage.owner(shard).is_none()));
    assert!(!stage.node.is_drained(), "the process does not end");
    // It comes back without a restart.
    stage.desk().view.drained.clear();
    assert_eq!(shards(&stage.run(TTL), Order::Host).len(), 4);
    assert!(!stage.node.node().draining);
}

#[test]
fn where_all_nodes_drain_none_does() {
    let mut stage = Stage::alone(4);
    stage.desk().view.drained = vec!["a".to_owned()];
    assert_eq!(stage.run(10 * TTL), []);
    let mut stage = Stage::new(4);
    stage.desk().view.drained = vec!["a".to_owned()];
    assert_eq!(shards(&stage.run(TTL), Order::Host), [0, 1, 2, 3]);
}

#[test]
fn a_node_that_is_to_end_hands_everything_over_and_leaves() {
    let mut stage = Stage::alone(3);
    stage.node.note_failed(2, HostEnd::Failed);
    stage.run(TTL);
    stage.node.drain();
    assert!(!stage.node.is_drained());
    // Shard 2 was claimed again and is loading.
    assert_eq!(stage.node.state(2), ShardState::Loading);
    assert_eq!(shards(&stage.run(0), Order::Release), [0, 1, 2]);
    stage.node.note_released(0);
    stage.node.note_failed(1, HostEnd::Fenced);
    stage.run(10 * TTL);
    assert!(!stage.node.is_drained(), "it takes the time that it takes");
    stage.node.note_released(2);
    assert!(stage.node.is_drained() && !stage.node.has_left());
    stage.forget_log();
    stage.run(TTL);
    assert_eq!(stage.claims(), []);
    stage.node.leave();
    stage.run(0);
    assert!(stage.node.has_left());
    assert!(stage.has_asked(&RegistryCall::End(Instance(1))));
    assert!(stage.desk().view.nodes.is_empty());
    assert_eq!(stage.node.poll_timeout(), None);
}

#[test]
fn the_end_does_not_wait_for_a_registry_that_is_away() {
    let mut stage = Stage::alone(2);
    stage.desk().is_silent = true;
    stage.node.drain();
    assert_eq!(shards(&stage.run(TTL), Order::Release), [0, 1]);
    stage.node.note_released(0);
    stage.node.note_released(1);
    stage.run(TTL);
    assert!(stage.node.is_drained());
    stage.node.leave();
    stage.run(TTL);
    assert!(stage.node.has_left());
}

#[test]
fn a_shard_moves_to_where_it_was_told() {
    let mut stage = Stage::alone(4);
    stage.join(node("b", 20, 1));
    stage.desk().view.targets = (0..4).map(|shard| (shard, "a".to_owned())).collect();
    assert_eq!(stage.run(8 * TTL), [], "all of them have to stay");
    stage.desk().view.targets[2].1 = "b".to_owned();
    // A node with that order does not wait.
    assert_eq!(shards(&stage.run(TTL), Order::Release), [2]);
    stage.node.note_released(2);
    stage.run(0);
    stage.set_owner(2, record(20, 6, OwnState::Serving));
    assert!(shards(&stage.run(10 * TTL), Order::Release).is_empty());
    // While that node is gone, the shard goes elsewhere.
    stage.desk().forget(Instance(20));
    assert_eq!(shards(&stage.run(TTL), Order::Host), [2]);
}
