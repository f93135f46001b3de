//! Subscriptions to queues of shards that several nodes own.

use pinpriq_store::ledger::Writer;

use super::choosing::queues;
use super::{Stage, TTL_MS, instance};

const SHARDS: u16 = 4;

/// A stage of two nodes, a queue in each shard, those of the first node first, and how a
/// subscription names them all.
fn stage() -> (Stage, Vec<String>, String) {
    let stage = Stage::of(2, SHARDS);
    let (own, others) = queues(&stage, 0);
    let all: Vec<String> = own.into_iter().chain(others).collect();
    let names = format!("QUEUES {SHARDS} {}", all.join(" "));
    (stage, all, names)
}

#[test]
fn the_nodes_deliver_what_the_credit_permits() {
    let (mut stage, queues, all) = stage();
    for at in 0..2 {
        let (client, putter) = (stage.visit(at), stage.visit(1 - at));
        stage.ask(client, "HELLO 3");
        for mode in ["POP", "TTR 900000"] {
            assert_eq!(stage.ask(client, &format!("SUBSCRIBE {all} {mode}")), ":4\r\n");
            for queue in &queues {
                assert_eq!(stage.ask(client, "READY"), ":1\r\n");
                stage.advance(100);
                stage.ask(putter, &format!("PUT {queue} loaf"));
                stage.advance(100);
                assert!(stage.received(client).contains("loaf"), "{mode} {queue}");
                stage.ask(putter, &format!("PUT {queue} later"));
                stage.advance(100);
                assert_eq!(stage.received(client), "");
                assert!(stage.ask(putter, &format!("POP {queue}")).contains("later"));
            }
            assert_eq!(stage.ask(client, "UNSUBSCRIBE"), ":0\r\n");
        }
    }
}

#[test]
fn what_two_nodes_deliver_at_once_for_one_credit_is_delivered_once() {
    let (mut stage, queues, all) = stage();
    let client = stage.visit(0);
    let putters = [stage.visit(0), stage.visit(1)];
    stage.ask(client, "HELLO 3");
    for mode in ["POP", "TTR 900000", ""] {
        stage.ask(client, &format!("SUBSCRIBE {all} {mode}"));
        stage.ask(client, "READY");
        stage.advance(100);
        stage.send(putters[0], &format!("PUT {} one", queues[0]));
        stage.send(putters[1], &format!("PUT {} two", queues[3]));
        stage.advance(500);
        let told = stage.received(client);
        let (got, left, queue) =
            if told.contains("one") { ("one", "two", 3) } else { ("two", "one", 0) };
        assert!(told.contains(got) && !told.contains(left), "{told}");
        let back = stage.ask(putters[0], &format!("POP {}", queues[queue]));
        assert!(back.contains(left), "it went back: {back}");
        stage.received(putters[1]);
        stage.ask(client, "RESET");
        stage.ask(client, "HELLO 3");
    }
}

#[test]
fn deliveries_go_on_when_the_owner_of_some_shards_dies() {
    let (mut stage, queues, all) = stage();
    let [client, putter] = [(); 2].map(|()| stage.visit(0));
    stage.ask(client, "HELLO 3");
    stage.ask(client, &format!("SUBSCRIBE {all} TTR 900000"));
    assert_eq!(stage.ask(client, "CREDIT 6"), ":6\r\n");
    stage.advance(100);
    stage.kill(1);
    for (number, queue) in queues[..2].iter().enumerate() {
        stage.ask(putter, &format!("PUT {queue} first{number}"));
        stage.advance(100);
        assert!(stage.received(client).contains(&format!("first{number}")));
    }
    stage.advance(6 * TTL_MS);
    for (number, queue) in queues.iter().enumerate() {
        stage.ask(putter, &format!("PUT {queue} second{number}"));
        stage.advance(100);
        assert!(stage.received(client).contains(&format!("second{number}")), "{queue}");
    }
    // All credit is used up, and none was lost.
    stage.ask(putter, &format!("PUT {} third", queues[2]));
    stage.advance(100);
    assert_eq!(stage.received(client), "");
    let told = stage.ask(client, "READY");
    assert!(told.starts_with(":1\r\n") && told.contains("third"), "{told}");
}

#[test]
fn a_delivery_that_is_lost_with_an_owner_costs_no_credit() {
    for mode in ["TTR 900000", ""] {
        let mut stage = Stage::start(2);
        let owner = stage.owner();
        let [client, putter] = [(); 2].map(|()| stage.visit(1 - owner));
        stage.ask(client, "HELLO 3");
        stage.ask(client, &format!("SUBSCRIBE q {mode}"));
        stage.ask(putter, "PUT q loaf");
        // The owner makes the delivery, which waits for the engine, and says so with what it says
        // of the next request.
        stage.engine.cut(Writer(instance(owner).0), true);
        assert_eq!(stage.ask(client, "CREDIT 1"), ":1\r\n");
        stage.send(client, "PUT other crumb");
        stage.advance(100);
        assert_eq!(stage.received(client), "");
        stage.kill(owner);
        stage.advance(6 * TTL_MS);
        let told = stage.received(client);
        assert!(told.contains("loaf"), "{mode}: {told}");
        // It costs what was granted.
        stage.ask(putter, "PUT q bread");
        stage.advance(100);
        assert_eq!(stage.received(client), "");
    }
}

#[test]
fn subscriptions_get_to_several_shards_while_the_first_has_no_owner() {
    let (mut stage, queues, _) = stage();
    let [client, putter] = [(); 2].map(|()| stage.visit(0));
    stage.ask(client, "HELLO 3");
    stage.ask(client, &format!("SUBSCRIBE {} TTR 900000", queues[2]));
    stage.ask(client, "CREDIT 9");
    stage.kill(1);
    let told =
        stage.ask(client, &format!("SUBSCRIBE QUEUES 2 {} {} TTR 900000", queues[0], queues[1]));
    assert_eq!(told, ":3\r\n");
    stage.ask(putter, &format!("PUT {} early", queues[0]));
    stage.advance(100);
    assert!(stage.received(client).contains("early"), "the other shards deliver");
    stage.advance(6 * TTL_MS);
    for queue in &queues[..3] {
        stage.ask(putter, &format!("PUT {queue} loaf"));
        stage.advance(100);
        assert!(stage.received(client).contains("loaf"), "{queue}");
    }
}

#[test]
fn a_client_stays_subscribed_while_its_shard_is_handed_over() {
    let (mut stage, queues, _) = stage();
    let client = stage.visit(0);
    stage.ask(client, &format!("SUBSCRIBE {}", queues[2]));
    stage.nodes[1].drain();
    for _ in 0..TTL_MS / 10 {
        // It speaks RESP2.
        let told = stage.ask(client, &format!("PUT {} loaf", queues[0]));
        assert!(told.contains("a subscribed connection"), "{told}");
    }
    assert!(stage.nodes[1].is_drained(), "the shard has moved");
}

#[test]
fn a_subscription_that_pops_ends_with_the_owner_that_may_have_popped() {
    let (mut stage, queues, all) = stage();
    let [client, other, putter] = [(); 3].map(|()| stage.visit(0));
    for client in [client, other] {
        stage.ask(client, "HELLO 3");
    }
    stage.ask(client, &format!("SUBSCRIBE {all} POP"));
    stage.ask(client, "CREDIT 6");
    // It has nothing there that pops.
    stage.ask(other, &format!("SUBSCRIBE QUEUES 2 {} {} POP", queues[0], queues[1]));
    stage.ask(other, "CREDIT 6");
    stage.advance(100);
    stage.kill(1);
    stage.advance(6 * TTL_MS);
    for queue in &queues {
        stage.ask(putter, &format!("PUT {queue} loaf"));
    }
    stage.advance(100);
    assert_eq!(stage.received(other).matches("loaf").count(), 2);
    for queue in &queues[2..] {
        assert!(stage.ask(putter, &format!("POP {queue}")).contains("loaf"));
    }
}

#[test]
fn a_pop_that_is_lost_with_an_owner_ends_the_connection_that_no_longer_pops() {
    for (how, told) in [("SUBSCRIBE", ":4\r\n"), ("UNSUBSCRIBE", ":0\r\n")] {
        let (mut stage, queues, all) = stage();
        let [client, putter] = [(); 2].map(|()| stage.visit(0));
        stage.ask(client, "HELLO 3");
        stage.ask(client, &format!("SUBSCRIBE {all} POP"));
        stage.ask(client, "CREDIT 6");
        stage.advance(100);
        // The task is held for the client, which learns of it when the request is answered.
        stage.engine.cut(Writer(instance(1).0), true);
        stage.send(putter, &format!("PUT {} loaf", queues[2]));
        stage.advance(50);
        stage.send(client, &format!("{how} {all}"));
        stage.advance(50);
        assert_eq!(stage.received(client), "");
        stage.engine.cut(Writer(instance(1).0), false);
        stage.stand_still(10);
        let mut answers = (0..9).map(|_| {
            stage.engine.step();
            stage.round();
            stage.received(client)
        });
        let answer = answers.find(|answer| !answer.is_empty());
        assert_eq!(answer.as_deref(), Some(told), "the task is not popped yet");
        // The owner pops it, and what it says of that is lost.
        for _ in 0..9 {
            stage.engine.step();
            stage.nodes[1].run();
            stage.nodes[1].take_bodies();
        }
        stage.kill(1);
        stage.advance(6 * TTL_MS);
        let left = stage.ask(putter, &format!("PEEK {}", queues[2]));
        assert!(left.ends_with("*0\r\n"), "it was popped: {left}");
        assert_eq!(stage.received(client), "");
        assert!(!stage.nodes[0].is_connected(client.1), "{how}");
    }
}

#[test]
fn a_subscription_that_may_have_begun_to_pop_ends_with_its_owner() {
    let mut stage = Stage::start(2);
    let owner = stage.owner();
    let (client, putter) = (stage.visit(1 - owner), stage.visit(owner));
    stage.ask(client, "HELLO 3");
    stage.ask(client, "SUBSCRIBE q TTR 900000");
    stage.ask(client, "CREDIT 1");
    stage.send(client, "SUBSCRIBE q POP");
    stage.nodes[1 - owner].run();
    stage.carry();
    // The owner pops for the new subscription, and nothing that it says arrives.
    stage.send(putter, "PUT q loaf");
    for _ in 0..9 {
        stage.engine.step();
        stage.nodes[owner].run();
        stage.nodes[owner].take_bodies();
    }
    assert!(stage.received(putter).starts_with('$'));
    stage.kill(owner);
    stage.advance(6 * TTL_MS);
    let other = stage.visit(1 - owner);
    assert_eq!(stage.ask(other, "PEEK q"), "*0\r\n", "it was popped");
    assert!(!stage.nodes[1 - owner].is_connected(client.1));
}

#[test]
fn what_was_not_started_comes_back_when_its_owner_dies() {
    let mut stage = Stage::start(2);
    let owner = stage.owner();
    let [client, putter] = [(); 2].map(|()| stage.visit(1 - owner));
    stage.ask(client, "HELLO 3");
    stage.ask(client, "SUBSCRIBE q TTR 900000 RECALL");
    assert_eq!(stage.ask(client, "CREDIT 2"), ":2\r\n");
    for loaf in ["white", "brown"] {
        stage.ask(putter, &format!("PUT q {loaf} PRIORITY 5"));
        stage.advance(100);
        assert!(stage.received(client).contains(loaf));
    }
    assert_eq!(stage.ask(client, "START q 1-1-1"), "+OK\r\n");
    stage.ask(putter, "PUT q urgent");
    stage.advance(100);
    let told = stage.received(client);
    assert!(told.contains("recall") && told.contains("2-1-2") && told.contains("urgent"), "{told}");
    stage.kill(owner);
    stage.advance(6 * TTL_MS);
    // No credit was left, and the one that was started goes on.
    assert_eq!(stage.received(client), "");
    assert!(stage.ask(client, "START q 3-1-3").starts_with("-STALE"));
    assert_eq!(stage.ask(client, "ACK q 1-1-1"), "+OK\r\n");
    // The next owner calls back too.
    let told = stage.ask(client, "CREDIT 1");
    assert!(told.starts_with(":1\r\n") && told.contains("urgent"), "{told}");
    stage.ask(putter, "PUT q most PRIORITY -1");
    stage.advance(100);
    let told = stage.received(client);
    assert!(told.contains("recall") && told.contains("most"), "{told}");
    let taken = stage.ask(putter, "POP q COUNT 9 WITHMETA");
    assert!(taken.contains("urgent") && taken.contains("brown"), "{taken}");
    assert_eq!(taken.matches("attempts\r\n:1\r\n").count(), 2, "{taken}");
}

#[test]
fn starts_are_asked_again_when_their_owner_dies() {
    let mut stage = Stage::start(2);
    let owner = stage.owner();
    let [client, putter] = [(); 2].map(|()| stage.visit(1 - owner));
    stage.ask(client, "HELLO 3");
    stage.ask(client, "SUBSCRIBE q TTR 900000 RECALL");
    stage.ask(client, "CREDIT 2");
    for loaf in ["white", "brown"] {
        stage.ask(putter, &format!("PUT q {loaf}"));
        stage.advance(100);
        assert!(stage.received(client).contains(loaf));
    }
    // The owner starts them, and nothing that it says arrives.
    stage.send(client, "START q 1-1-1 2-1-2");
    stage.nodes[1 - owner].run();
    stage.carry();
    for _ in 0..9 {
        stage.engine.step();
        stage.nodes[owner].run();
        stage.nodes[owner].take_bodies();
    }
    assert_eq!(stage.received(client), "");
    stage.kill(owner);
    stage.advance(6 * TTL_MS);
    // The next owner came too late for it. It may be asked again, as what was not carried out.
    let told = stage.received(client);
    assert!(told.starts_with("-TRYAGAIN"), "{told}");
    for command in ["START", "ACK"] {
        let told = stage.ask(client, &format!("{command} q 1-1-1 2-1-2"));
        assert_eq!(told, "*2\r\n+OK\r\n+OK\r\n", "{command}");
    }
}

#[test]
fn a_reset_ends_what_a_refused_subscription_left_in_shards_without_owner() {
    let mut stage = Stage::of(3, SHARDS);
    let owners: Vec<Vec<String>> = (0..3).map(|at| queues(&stage, at).0).collect();
    assert!(owners.iter().all(|owned| !owned.is_empty()), "{owners:?}");
    let all = format!("QUEUES {SHARDS} {}", owners.concat().join(" "));
    let [client, putter] = [(); 2].map(|()| stage.visit(0));
    stage.ask(client, "HELLO 3");
    assert_eq!(stage.ask(client, &format!("SUBSCRIBE {all} TTR 900000")), ":4\r\n");
    stage.kill(2);
    stage.send(client, &format!("SUBSCRIBE {all} TTR 600000"));
    stage.advance(50);
    // Two nodes have done their part, and no shard gets another owner.
    stage.kill(1);
    stage.engine.cut(Writer(instance(0).0), true);
    stage.send(putter, &format!("PUT {} loaf", owners[0][0]));
    stage.advance(TTL_MS);
    let told = stage.received(client);
    assert!(told.starts_with("-TRYAGAIN"), "{told}");
    stage.send(client, "RESET");
    stage.advance(100);
    stage.engine.cut(Writer(instance(0).0), false);
    stage.advance(6 * TTL_MS);
    assert_eq!(stage.received(client), "+RESET\r\n");
    let told = stage.ask(client, &format!("PUT {} crumb", owners[1][0]));
    assert!(told.starts_with('$'), "nothing is subscribed: {told}");
}

#[test]
fn a_reset_ends_what_was_asked_before_it_when_the_owner_changes() {
    // The owner dies before it has received anything, before it has answered, and after that.
    for (before, cuts) in [(0, true), (500, true), (500, false)] {
        let mut stage = Stage::start(2);
        let owner = stage.owner();
        let [client, other] = [(); 2].map(|()| stage.visit(1 - owner));
        stage.engine.cut(Writer(instance(owner).0), cuts);
        stage.send(client, "SUBSCRIBE q\r\nTAKE q\r\nRESET\r\nCREDIT 1");
        stage.advance(before);
        stage.kill(owner);
        stage.advance(6 * TTL_MS);
        let told = stage.received(client);
        assert!(told.ends_with("+RESET\r\n:1\r\n"), "{told}");
        assert!(stage.ask(other, "PUT q loaf").starts_with('$'));
        let told = stage.ask(client, "PUT r crumb");
        assert!(told.starts_with('$'), "nothing is subscribed: {told}");
        let told = stage.ask(client, "SUBSCRIBE q");
        assert!(told.contains("loaf"), "the credit from after the reset stays: {told}");
    }
}
