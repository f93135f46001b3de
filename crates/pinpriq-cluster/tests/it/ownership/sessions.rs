//! Sessions that end, other nodes of the same name, and a registry that is away.

use pinpriq_cluster::{
    HostEnd, Instance, Meta, Order, OwnState, RegistryCall, RolledBack, ShardState,
};

use super::stage::{DATA, Stage, TTL, node, record, shards};

#[test]
fn a_session_is_renewed_five_times_in_its_time_to_live() {
    let mut stage = Stage::alone(1);
    stage.forget_log();
    stage.run(10 * TTL);
    let renewals = stage.desk().log.iter().filter(|(_, it)| *it == RegistryCall::Renew).count();
    assert!((49..=51).contains(&renewals), "{renewals}");
    assert_eq!(stage.desk().log.len(), renewals);
}

#[test]
fn who_has_lost_a_session_comes_back_as_another_and_serves_on() {
    let mut stage = Stage::alone(3);
    stage.join(node("b", 20, 1));
    stage.desk().ended = Some(Instance(1));
    stage.desk().forget(Instance(1));
    // Another node has claimed one of the shards meanwhile.
    stage.set_owner(1, record(20, 0, OwnState::Loading));
    stage.forget_log();
    assert_eq!(stage.run(TTL), []);
    assert_eq!(stage.node.node().instance, Instance(2));
    assert_eq!(stage.node.counters().sessions_lost, 1);
    assert!((0..3).all(|shard| stage.node.state(shard) == ShardState::Serving));
    assert_eq!(stage.owner(0), record(2, 5, OwnState::Serving));
    assert_eq!(stage.owner(1), record(20, 0, OwnState::Loading));
    assert_eq!(stage.owner(2), record(2, 5, OwnState::Serving));
    assert!(stage.owns().iter().all(|(_, shard, ..)| *shard != 1), "{:?}", stage.owns());
    // The log has decided for the other one.
    stage.node.note_failed(1, HostEnd::Fenced);
    stage.run(TTL);
    assert_eq!(stage.owner(1), record(20, 0, OwnState::Loading));
    assert_eq!(stage.node.counters().fenced, 1);
}

#[test]
fn what_an_older_session_of_this_process_has_left_is_replaced() {
    let mut stage = Stage::alone(2);
    // The registry still shows it.
    stage.desk().ended = Some(Instance(1));
    assert_eq!(stage.run(TTL), []);
    assert_eq!(stage.node.node().instance, Instance(2));
    assert!(stage.has_asked(&RegistryCall::End(Instance(1))));
    for shard in 0..2 {
        assert_eq!(stage.owner(shard), record(2, 5, OwnState::Serving));
    }
}

#[test]
fn the_session_of_the_process_before_is_ended_at_once() {
    let mut stage = Stage::new(2);
    stage.join(node("a", 9, DATA));
    stage.set_owner(0, record(9, 4, OwnState::Serving));
    let orders = stage.run(TTL / 5);
    assert!(stage.has_asked(&RegistryCall::End(Instance(9))));
    assert_eq!(shards(&orders, Order::Host).len(), 2);
    assert_eq!(stage.desk().view.nodes.len(), 1);
}

#[test]
fn a_node_waits_for_another_of_its_name_and_gives_up() {
    let mut stage = Stage::new(2);
    stage.join(node("a", 9, 1));
    assert_eq!(stage.run(2 * TTL - 1), []);
    assert!(stage.desk().log.iter().all(|(_, call)| *call == RegistryCall::Look));
    let orders = stage.run(TTL / 5);
    assert!(matches!(orders[..], [(_, Order::GiveUp(_))]), "{orders:?}");
    assert!(stage.node.has_left());
    assert_eq!(stage.run(TTL), []);
}

#[test]
fn a_node_begins_when_another_of_its_name_has_gone() {
    let mut stage = Stage::new(1);
    stage.join(node("a", 9, 1));
    assert_eq!(stage.run(2 * TTL - 1), []);
    stage.desk().forget(Instance(9));
    assert_eq!(shards(&stage.run(TTL), Order::Host), [0]);
}

#[test]
fn a_node_that_is_long_there_does_not_mind_a_new_one_of_its_name() {
    let mut stage = Stage::alone(2);
    stage.join(node("a", 9, 1));
    stage.forget_log();
    assert_eq!(stage.run(10 * TTL), []);
    assert!(!stage.has_asked(&RegistryCall::End(Instance(9))));
    assert!(stage.node.has_session());
}

#[test]
fn a_process_whose_place_was_taken_gives_up() {
    let mut stage = Stage::alone(2);
    // A younger process of the same data has ended its session.
    stage.join(node("a", 9, DATA));
    stage.run(TTL / 5);
    stage.desk().forget(Instance(1));
    stage.desk().ended = Some(Instance(1));
    stage.forget_log();
    let orders = stage.run(3 * TTL);
    assert!(matches!(orders[..], [(_, Order::GiveUp(_))]), "{orders:?}");
    assert!(!stage.has_asked(&RegistryCall::End(Instance(9))));
}

#[test]
fn two_new_nodes_of_one_name_claim_nothing() {
    let mut stage = Stage::new(2);
    stage.desk().holds = true;
    stage.run(10);
    // It comes between the look and the announcement.
    stage.join(node("a", 9, 1));
    stage.desk().holds = false;
    let orders = stage.run(3 * TTL);
    assert!(matches!(orders[..], [(_, Order::GiveUp(_))]), "{orders:?}");
    assert_eq!(stage.claims(), []);
    assert!(stage.desk().view.nodes.iter().all(|node| node.instance == Instance(9)));
}

#[test]
fn hosts_go_on_while_the_registry_is_away() {
    let mut stage = Stage::alone(2);
    assert_eq!(stage.node.registry_silent_for(stage.now), 0);
    stage.desk().is_silent = true;
    assert_eq!(stage.run(10 * TTL), []);
    let silent = stage.node.registry_silent_for(stage.now);
    assert!((9 * TTL..=10 * TTL).contains(&silent), "{silent}");
    assert!((0..2).all(|shard| stage.node.state(shard) == ShardState::Serving));
    stage.desk().is_silent = false;
    assert_eq!(stage.run(TTL), []);
    assert_eq!(stage.node.registry_silent_for(stage.now), 0);
}

#[test]
fn nothing_is_served_while_a_roll_back_is_not_accepted() {
    let mut stage = Stage::alone(2);
    let rolled_back = Some(RolledBack { node: "b".to_owned(), ..RolledBack::default() });
    stage.desk().view.meta = Some(Meta { shards: 2, rolled_back, ..Meta::default() });
    let orders = stage.run(TTL);
    assert_eq!(shards(&orders, Order::Release), [0, 1]);
    for shard in 0..2 {
        stage.node.note_released(shard);
    }
    stage.forget_log();
    assert_eq!(stage.run(10 * TTL), []);
    assert_eq!((stage.claims(), stage.owner(0), stage.owner(1)), (vec![], None, None));
    assert!(stage.node.has_session());
    stage.desk().view.meta = Some(Meta { shards: 2, generation: 1, ..Meta::default() });
    assert_eq!(shards(&stage.run(TTL), Order::Host), [0, 1]);
}

#[test]
fn who_is_not_answered_lets_its_session_end_though_its_renewals_may_arrive() {
    let mut stage = Stage::alone(2);
    stage.desk().is_silent = true;
    stage.forget_log();
    stage.run(TTL + TTL / 5);
    let since = stage.now;
    stage.forget_log();
    stage.run(10 * TTL);
    let log = stage.desk().log.clone();
    let keeps = log.iter().find(|(_, call)| *call != RegistryCall::Look);
    assert_eq!(keeps, None, "nothing is asked that keeps a session, since {since}");
    assert!(log.len() >= 45, "it goes on looking: {}", log.len());
    // The answers are back, and the session has ended.
    stage.desk().is_silent = false;
    stage.desk().ended = Some(Instance(1));
    stage.desk().forget(Instance(1));
    assert_eq!(stage.run(TTL / 2), []);
    assert!(stage.node.has_session());
    let (instance, owner) = (stage.node.node().instance, stage.owner(0));
    assert_eq!((instance, owner), (Instance(2), record(2, 5, OwnState::Serving)));
}

#[test]
fn who_is_not_answered_opens_no_session_after_another() {
    let mut stage = Stage::new(1);
    // The first look is answered, and nothing after it.
    stage.desk().holds = true;
    stage.run(10);
    stage.desk().is_silent = true;
    stage.desk().holds = false;
    stage.run(TTL / 5);
    let record = stage.node.node().clone();
    assert!(stage.has_asked(&RegistryCall::Announce(record)));
    stage.run(2 * TTL);
    stage.forget_log();
    stage.run(10 * TTL);
    let log = stage.desk().log.clone();
    assert!(log.iter().all(|(_, call)| *call == RegistryCall::Look), "{log:?}");
    stage.desk().is_silent = false;
    stage.run(TTL);
    assert!(stage.node.has_session());
}

#[test]
fn a_shard_whose_log_is_silent_is_given_up_to_a_node_that_reaches_it() {
    let mut stage = Stage::alone(2);
    stage.join(node("b", 20, 1));
    stage.run(TTL / 5);
    stage.node.note_suspended(0, true);
    stage.run(TTL / 5);
    assert_eq!(stage.owner(0), record(1, 5, OwnState::Suspended), "everybody can see it");
    assert!(!stage.node.node().suspended);
    let orders = stage.run(TTL / 5);
    assert_eq!(orders.iter().map(|(_, it)| it).collect::<Vec<_>>(), [&Order::Release(0)]);
    assert_eq!(stage.owner(0), None, "another node may claim it before the host has ended");
    let says_so = |stage: &Stage| {
        let desk = stage.desk();
        desk.view.nodes.iter().any(|it| it.name == "a" && it.suspended)
    };
    assert!(says_so(&stage));
    // It claims nothing, and no node moves anything to it.
    stage.node.note_failed(0, HostEnd::Silent);
    stage.forget_log();
    stage.run(TTL);
    assert_eq!((stage.claims(), stage.node.placement().target(0)), (vec![], Some("b")));
    stage.set_owner(0, record(20, 9, OwnState::Serving));
    stage.run(3 * TTL);
    assert!(!says_so(&stage), "after a while it counts again");
}

#[test]
fn a_shard_whose_log_is_silent_stays_if_no_other_node_reaches_it() {
    // No other node is there, the other node is suspended too, or the registry is silent as well.
    for case in 0..3 {
        let mut stage = Stage::alone(1);
        if case > 0 {
            let mut other = node("b", 20, 1);
            other.suspended = case == 1;
            stage.join(other);
            stage.run(TTL / 5);
        }
        stage.desk().is_silent = case == 2;
        stage.run(TTL / 2);
        stage.node.note_suspended(0, true);
        assert_eq!(stage.run(3 * TTL), [], "case {case}");
        stage.node.note_suspended(0, false);
        assert_eq!(stage.node.state(0), ShardState::Serving);
    }
}

#[test]
fn nothing_moves_to_a_node_that_is_suspended() {
    let mut stage = Stage::alone(16);
    let mut other = node("b", 20, 1);
    other.suspended = true;
    stage.join(other.clone());
    assert_eq!(stage.run(10 * TTL), []);
    other.suspended = false;
    stage.join(other);
    assert_eq!(shards(&stage.run(4 * TTL), Order::Release).len(), 1);
}
