//! Takes from queues of shards that several nodes own.

use pinpriq_cluster::slots::{shard_of_slot, slot_of};

use super::{Stage, TTL_MS};

const SHARDS: u16 = 4;

/// A queue in each shard that this node owns, and in each that another one does.
pub(super) fn queues(stage: &Stage, node: usize) -> (Vec<String>, Vec<String>) {
    let own = stage.nodes[node].serves();
    let each = (0..usize::from(SHARDS)).map(|shard| {
        let is_there =
            |name: &String| shard_of_slot(slot_of(name.as_bytes()), usize::from(SHARDS)) == shard;
        (shard, (0..1_000).map(|number| format!("q{number}")).find(is_there).unwrap())
    });
    let (own, others): (Vec<_>, Vec<_>) =
        each.partition(|(shard, _)| own.iter().any(|(it, _)| it == shard));
    let names = |queues: Vec<(usize, String)>| queues.into_iter().map(|(_, name)| name).collect();
    (names(own), names(others))
}

fn all(stage: &Stage) -> String {
    let (own, others) = queues(stage, 0);
    format!("QUEUES {SHARDS} {} {}", own.join(" "), others.join(" "))
}

#[test]
fn who_waits_over_nodes_is_served_by_any_shard_once() {
    let mut stage = Stage::of(2, SHARDS);
    let (own, others) = queues(&stage, 0);
    let all = all(&stage);
    let (client, putter) = (stage.visit(0), stage.visit(1));
    for command in ["TAKE", "POP"] {
        for queue in own.iter().chain(&others) {
            stage.send(client, &format!("{command} {all} WAIT -1"));
            stage.advance(100);
            assert_eq!(stage.received(client), "");
            stage.ask(putter, &format!("PUT {queue} loaf"));
            stage.advance(100);
            assert!(stage.received(client).contains("loaf"), "{command} {queue}");
            // The waiter has gone.
            stage.ask(putter, &format!("PUT {queue} later"));
            assert!(stage.ask(putter, &format!("POP {queue}")).contains("later"));
        }
    }
}

#[test]
fn what_two_nodes_hand_over_at_once_is_taken_once() {
    let mut stage = Stage::of(2, SHARDS);
    let (own, others) = queues(&stage, 0);
    let all = all(&stage);
    let client = stage.visit(0);
    let putters = [stage.visit(0), stage.visit(1)];
    for command in ["TAKE", "POP"] {
        stage.send(client, &format!("{command} {all} WAIT -1"));
        stage.advance(100);
        stage.send(putters[0], &format!("PUT {} one", own[0]));
        stage.send(putters[1], &format!("PUT {} two", others[0]));
        stage.advance(500);
        let told = stage.received(client);
        let (got, left, queue) =
            if told.contains("one") { ("one", "two", &others[0]) } else { ("two", "one", &own[0]) };
        assert!(told.contains(got) && !told.contains(left), "{told}");
        assert!(stage.ask(putters[0], &format!("POP {queue}")).contains(left), "it went back");
        stage.received(putters[1]);
    }
}

#[test]
fn a_node_that_dies_delays_no_waiter_of_other_shards() {
    let mut stage = Stage::of(2, SHARDS);
    let (own, others) = queues(&stage, 0);
    let all = all(&stage);
    let [popper, taker, late, putter] = [(); 4].map(|()| stage.visit(0));
    stage.send(popper, &format!("POP {all} WAIT -1"));
    stage.send(taker, &format!("TAKE {all} WAIT -1"));
    stage.advance(100);
    stage.kill(1);
    stage.advance(100);
    // The shards of the dead node have no owner yet.
    stage.ask(putter, &format!("PUT {} first", own[0]));
    stage.advance(100);
    assert!(stage.received(popper).contains("first"));
    assert_eq!(stage.ask(popper, "PING"), "+PONG\r\n");
    assert!(stage.ask(late, &format!("TAKE {all}")).starts_with("-TRYAGAIN"));
    stage.ask(putter, &format!("PUT {} second", own[1]));
    stage.advance(100);
    assert!(stage.received(taker).contains("second"));
    stage.ask(putter, &format!("PUT {} third", own[1]));
    assert!(stage.ask(late, &format!("POP {all}")).contains("third"));
    // A client that begins to wait now waits for the next owner too.
    stage.send(popper, &format!("POP {all} WAIT -1"));
    stage.send(taker, &format!("TAKE {all} WAIT -1"));
    stage.advance(6 * TTL_MS);
    assert_eq!((stage.received(popper), stage.received(taker)), (String::new(), String::new()));
    stage.ask(putter, &format!("PUT {} fourth", others[0]));
    stage.ask(putter, &format!("PUT {} fifth", others[1]));
    stage.advance(100);
    assert!(stage.received(popper).contains("fourth"));
    assert!(stage.received(taker).contains("fifth"));
}

#[test]
fn what_waits_while_its_owner_dies_is_asked_of_the_next_one() {
    let mut stage = Stage::of(2, SHARDS);
    let (_, others) = queues(&stage, 0);
    let all = all(&stage);
    let [popper, taker, timed, putter] = [(); 4].map(|()| stage.visit(0));
    stage.send(popper, &format!("POP {all} WAIT -1"));
    stage.send(taker, &format!("TAKE {all} WAIT -1"));
    stage.advance(100);
    stage.kill(1);
    stage.send(timed, &format!("TAKE {all} WAIT 5000"));
    stage.advance(6 * TTL_MS);
    assert_eq!(stage.received(timed), "*0\r\n", "both shards have an owner before its time is up");
    stage.ask(putter, &format!("PUT {} fourth", others[0]));
    stage.ask(putter, &format!("PUT {} fifth", others[1]));
    stage.advance(100);
    assert!(stage.received(popper).contains("fourth"));
    assert!(stage.received(taker).contains("fifth"));
}

#[test]
fn what_a_node_had_taken_for_its_clients_over_links_is_ready_again_when_it_dies() {
    let mut stage = Stage::of(2, SHARDS);
    let (own, _) = queues(&stage, 0);
    let all = all(&stage);
    let [popper, taker] = [(); 2].map(|()| stage.visit(1));
    let putter = stage.visit(0);
    stage.send(taker, &format!("TAKE {all} WAIT -1"));
    stage.send(popper, &format!("POP {all} WAIT -1"));
    stage.advance(100);
    stage.kill(1);
    for queue in &own {
        stage.ask(putter, &format!("PUT {queue} {queue}"));
    }
    stage.advance(100);
    for queue in &own {
        assert!(stage.ask(putter, &format!("POP {queue}")).contains(queue.as_str()));
    }
}

/// Each change comes some rounds after the request, which is refused as a whole or not at all.
#[test]
fn a_take_that_was_refused_has_acknowledged_nothing() {
    let mut stage = Stage::of(2, SHARDS);
    let (own, others) = queues(&stage, 0);
    let (near, far) = (&own[0], &others[0]);
    let (client, other) = (stage.visit(0), stage.visit(1));
    for (option, change) in
        [("FROM MAX", format!("QUEUE SET {far} RANKING fair")), ("MEMBER m", "LEAVE m".to_owned())]
    {
        let mut heard = String::new();
        for rounds in 0..16 {
            let receipts = [near, far].map(|queue| {
                stage.ask(client, &format!("JOIN {queue} m"));
                stage.ask(client, &format!("PUT {queue} held"));
                let taken = stage.ask(client, &format!("TAKE {queue}"));
                taken.lines().nth(7).unwrap().to_owned()
            });
            stage.ask(client, &format!("PUT {far} left"));
            stage.ask(client, &format!("PUBLISH {far} left"));
            let done = format!("DONE {near} {} DONE {far} {}", receipts[0], receipts[1]);
            stage.send(client, &format!("TAKE QUEUES 2 {near} {far} {option} {done}"));
            for _ in 0..rounds {
                stage.round();
                stage.engine.step();
            }
            stage.ask(other, &change);
            stage.advance(100);
            let told = stage.received(client);
            let acks = [(near, &receipts[0]), (far, &receipts[1])];
            let acks = acks.map(|(queue, held)| stage.ask(client, &format!("ACK {queue} {held}")));
            let expected = if told.starts_with('-') { "+OK" } else { "-STALE" };
            let as_expected = acks.iter().all(|ack| ack.starts_with(expected));
            assert!(as_expected, "{option} {rounds}: {told} {acks:?}");
            heard += &told[..2];
            for queue in [near, far] {
                stage.ask(client, &format!("QUEUE DROP {queue}"));
            }
            stage.ask(client, "LEAVE m");
        }
        for outcome in ["-", "*0", "*1"] {
            assert!(heard.contains(outcome), "{option}: {heard}");
        }
    }
}

/// The node of the second shard dies at some moment after the request. Returns whether it is not
/// known then what that shard has popped.
fn kill_while_filling(command: &str, rounds: u32) -> bool {
    let mut stage = Stage::of(2, SHARDS);
    let (own, others) = queues(&stage, 0);
    let (client, putter) = (stage.visit(0), stage.visit(0));
    stage.ask(putter, &format!("PUT {} near PRIORITY 1", own[0]));
    stage.ask(putter, &format!("PUT {} far PRIORITY 2", others[0]));
    stage.send(client, &format!("{command} QUEUES 2 {} {} COUNT 9", own[0], others[0]));
    for _ in 0..rounds {
        stage.round();
        stage.engine.step();
    }
    stage.kill(1);
    stage.advance(6 * TTL_MS);
    let told = stage.received(client);
    let mut left = String::new();
    for queue in [&own[0], &others[0]] {
        left += &stage.ask(putter, &format!("POP {queue} COUNT 9"));
    }
    let is_unknown = told.starts_with("-UNKNOWN");
    assert!(is_unknown || told.starts_with('*'), "{command} {rounds}: {told}");
    let times = |payload| told.matches(payload).count() + left.matches(payload).count();
    assert_eq!(times("near\r\n"), 1, "{command} {rounds}: {told} {left}");
    // What was leased over a link is ready again when it ends.
    let least = usize::from(!is_unknown);
    let most = if command == "POP" { 1 } else { 2 };
    assert!((least..=most).contains(&times("far\r\n")), "{command} {rounds}: {told} {left}");
    is_unknown
}

#[test]
fn a_node_that_dies_while_a_reply_is_filled_loses_nothing_unnoticed() {
    let unknown: Vec<bool> = (1..9).map(|rounds| kill_while_filling("POP", rounds)).collect();
    assert!(unknown.contains(&true) && unknown.contains(&false), "{unknown:?}");
    for rounds in 1..9 {
        assert!(!kill_while_filling("TAKE", rounds), "{rounds}");
    }
}
