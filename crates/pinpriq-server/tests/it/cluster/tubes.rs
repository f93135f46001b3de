//! Clients of beanstalkd at the nodes of a cluster: tubes of all shards, whichever node they ask.

use pinpriq_proto::task::ClientId;
use pinpriq_server::config::DoorName;

use super::choosing::queues;
use super::{Stage, TTL_MS};

const SHARDS: u16 = 4;

fn connect(stage: &mut Stage, at: usize) -> (usize, ClientId) {
    (at, stage.nodes[at].connect(DoorName::Beanstalkd))
}

/// Puts a job into a tube, and returns its id.
fn put(stage: &mut Stage, who: (usize, ClientId), tube: &str, priority: u32) -> String {
    assert_eq!(stage.ask(who, &format!("use {tube}")), format!("USING {tube}\r\n"));
    let told = stage.ask(who, &format!("put {priority} 0 600 4\r\nloaf"));
    told.strip_prefix("INSERTED ").expect(&told).trim().to_owned()
}

fn watch(stage: &mut Stage, who: (usize, ClientId), tubes: &[String]) {
    for tube in tubes {
        assert!(stage.ask(who, &format!("watch {tube}")).starts_with("WATCHING "));
    }
}

#[test]
fn jobs_of_all_shards_are_reserved_and_deleted_at_any_node() {
    let mut stage = Stage::of(2, SHARDS);
    let (own, others) = queues(&stage, 0);
    let tubes = [own, others].concat();
    for at in 0..2 {
        let (worker, producer) = (connect(&mut stage, at), connect(&mut stage, 1 - at));
        watch(&mut stage, worker, &tubes);
        let mut ids = Vec::new();
        for (tube, priority) in tubes.iter().zip([3, 1, 2, 0]) {
            ids.push((priority, put(&mut stage, producer, tube, priority)));
        }
        ids.sort();
        for (_, id) in ids {
            let reserved = stage.ask(worker, "reserve");
            assert_eq!(reserved, format!("RESERVED {id} 4\r\nloaf\r\n"));
            assert_eq!(stage.ask(producer, &format!("delete {id}")), "NOT_FOUND\r\n");
            assert!(stage.ask(producer, &format!("stats-job {id}")).contains("state: reserved"));
            assert_eq!(stage.ask(worker, &format!("delete {id}")), "DELETED\r\n");
        }
        assert_eq!(stage.ask(worker, "reserve-with-timeout 0"), "TIMED_OUT\r\n");
        for tube in &tubes {
            stage.send(worker, "reserve");
            stage.advance(100);
            assert_eq!(stage.received(worker), "");
            let id = put(&mut stage, producer, tube, 7);
            stage.advance(100);
            assert_eq!(stage.received(worker), format!("RESERVED {id} 4\r\nloaf\r\n"));
            assert_eq!(stage.ask(worker, &format!("release {id} 1 0")), "RELEASED\r\n");
            assert!(stage.ask(worker, &format!("reserve-job {id}")).starts_with("RESERVED "));
            assert_eq!(stage.ask(worker, &format!("bury {id} 1")), "BURIED\r\n");
            assert_eq!(stage.ask(producer, &format!("kick-job {id}")), "KICKED\r\n");
            assert_eq!(stage.ask(producer, &format!("delete {id}")), "DELETED\r\n");
        }
    }
}

#[test]
fn reserved_jobs_are_ready_again_when_their_connection_or_its_node_ends() {
    let mut stage = Stage::of(2, SHARDS);
    let (own, _) = queues(&stage, 0);
    let [first, second] = [(); 2].map(|()| connect(&mut stage, 1));
    let third = connect(&mut stage, 0);
    for worker in [first, second, third] {
        watch(&mut stage, worker, &own);
    }
    let id = put(&mut stage, third, &own[0], 1);
    assert_eq!(stage.ask(first, "reserve"), format!("RESERVED {id} 4\r\nloaf\r\n"));
    stage.nodes[first.0].cut(first.1);
    stage.advance(100);
    assert_eq!(stage.ask(second, "reserve"), format!("RESERVED {id} 4\r\nloaf\r\n"));
    stage.kill(1);
    stage.advance(100);
    // No shard of this tube is the dead node's.
    assert!(stage.ask(third, &format!("reserve-job {id}")).starts_with("INTERNAL_ERROR"));
    assert_eq!(stage.ask(third, "reserve"), format!("RESERVED {id} 4\r\nloaf\r\n"));
    stage.advance(6 * TTL_MS);
    assert_eq!(stage.ask(third, &format!("delete {id}")), "DELETED\r\n");
}

#[test]
fn who_waits_for_jobs_waits_for_the_next_owner_too() {
    let mut stage = Stage::of(2, SHARDS);
    let (own, others) = queues(&stage, 0);
    let (worker, producer) = (connect(&mut stage, 0), connect(&mut stage, 0));
    watch(&mut stage, worker, &[own, others.clone()].concat());
    stage.send(worker, "reserve");
    stage.advance(100);
    stage.kill(1);
    stage.advance(6 * TTL_MS);
    assert_eq!(stage.received(worker), "");
    let id = put(&mut stage, producer, &others[0], 1);
    stage.advance(100);
    assert_eq!(stage.received(worker), format!("RESERVED {id} 4\r\nloaf\r\n"));
}
