//! The answers to cluster clients at the home of a cluster, without any other node.

use std::rc::Rc;
use std::sync::Arc;

use pinpriq_cluster::{Addresses, Instance, NodeRecord};
use pinpriq_proto::limits::Limits as EngineLimits;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::{Durable, MemoryStore};
use tokio::sync::Notify;

use super::*;
use crate::config::{DoorName, Durability};
use crate::doors;
use crate::home::recovery::gain_owner;
use crate::host::shard::Shard;
use crate::letters::mailbox::{Mailbox, Post, Route};
use crate::letters::owners::Owner;
use crate::manual_clock::ManualClock;
use crate::sharding::Sharding;

/// The shards of the cluster: the first is served here, the second by a node that expects cluster
/// clients, the third by one that does not, and the last by none.
const SHARDS: usize = 4;

/// The home of a node.
struct Node {
    home: Rc<Shard>,
}

impl Node {
    fn start(shards: usize) -> Self {
        let now = Timestamp::from_ms(1);
        let store = Box::new(MemoryStore::new());
        let durable = Durable::open(store, EngineLimits::default(), now, 1).unwrap().0;
        let boxes: Arc<[Mailbox]> = (0..=shards).map(|_| Mailbox::default()).collect();
        let (clock, bell) = (Rc::new(ManualClock::at(now)), Arc::new(Notify::new()));
        let post = Post::new(shards, Sharding::Slotted(shards), boxes).with_routes();
        let with = (Some(post), Arc::default());
        Self { home: Shard::new(durable, Durability::Sync, clock, bell, with) }
    }

    fn of_a_cluster() -> Self {
        let node = Self::start(SHARDS);
        let of = |instance, resp_cluster: &str| {
            let resp_cluster = resp_cluster.to_owned();
            let addresses = Addresses { resp_cluster, ..Addresses::default() };
            NodeRecord { instance: Instance(instance), addresses, ..NodeRecord::default() }
        };
        let owners = node.owners();
        owners.note_nodes(&of(1, "here:1"), &[of(2, "there:2"), of(3, "")]);
        let known = [(Owner::Here, Route::Here), (Owner::Node(2), Route::Away)];
        for (shard, (owner, route)) in
            known.into_iter().chain([(Owner::Node(3), Route::Away)]).enumerate()
        {
            owners.note_owner(shard, owner);
            gain_owner(&node.home, shard, route);
        }
        node
    }

    fn owners(&self) -> &Owners {
        self.home.post().and_then(Post::owners).unwrap()
    }

    /// Sends requests, each on a line, at this door. Returns the replies that need no other node,
    /// and how many requests are for each shard.
    fn ask(&self, door: DoorName, lines: &str) -> (String, Vec<usize>) {
        let mut client = doors::connect(&self.home, door);
        client.feed(lines.replace('\n', "\r\n").as_bytes());
        self.home.turn();
        client.encode();
        let told = String::from_utf8_lossy(&client.unwritten()).into_owned();
        let abroad = &mut *client.session.links.borrow_mut();
        let shards = self.home.shards();
        let asked = |shard| abroad.link(shards, shard).log.iter().count();
        (told, (0..shards).map(asked).collect())
    }
}

/// Names whose slots are in the shards one after the other.
const NAMES: [&str; SHARDS] = ["b", "c", "d", "a"];

#[test]
fn names_are_in_their_shards() {
    for (shard, name) in NAMES.into_iter().enumerate() {
        assert_eq!(Sharding::Slotted(SHARDS).shard_of(name.as_bytes()), shard, "{name}");
    }
}

#[test]
fn what_another_node_serves_is_refused_with_its_address() {
    let node = Node::of_a_cluster();
    let slot = slot_of(b"c");
    let moved = format!("-MOVED {slot} there:2\r\n");
    for request in [
        "PUT c x",
        "TAKE c WAIT 1000",
        "TAKE QUEUES 2 c c",
        "ACK c 1-1-1",
        "SUBSCRIBE c",
        "MOVE c c",
        "QUEUE CREATE c",
        "SCHEDULE SHOW c",
        "STATS c",
        "JOIN c m",
    ] {
        let (told, asked) = node.ask(DoorName::RespCluster, &format!("{request}\n"));
        assert_eq!((told.as_str(), asked), (moved.as_str(), vec![0; SHARDS]), "{request}");
    }
    let refusals = node.home.tally().counts().refusals_in_all();
    assert_eq!(refusals[Code::Moved.index()], 10);
}

#[test]
fn what_no_other_node_can_answer_is_forwarded_by_this_one() {
    let node = Node::of_a_cluster();
    for (shard, name) in [(0, "b"), (2, "d"), (3, "a")] {
        let (told, asked) = node.ask(DoorName::RespCluster, &format!("PUT {name} x\n"));
        let mut wanted = vec![0; SHARDS];
        wanted[shard] = 1;
        assert_eq!((told.as_str(), asked), ("", wanted), "{name}");
    }
}

#[test]
fn the_ordinary_door_redirects_no_client() {
    let node = Node::of_a_cluster();
    let (told, asked) = node.ask(DoorName::Resp, "PUT c x\n");
    assert_eq!((told.as_str(), asked), ("", vec![0, 1, 0, 0]));
    let (told, asked) = node.ask(DoorName::Resp, "TAKE QUEUES 2 b c\n");
    assert_eq!((told.as_str(), asked), ("", vec![1, 1, 0, 0]));
    let (told, _) = node.ask(DoorName::Resp, "MOVE b c\n");
    assert!(told.starts_with("-CROSSSHARD "), "{told}");
}

#[test]
fn names_in_several_shards_are_refused_as_in_redis() {
    let node = Node::of_a_cluster();
    let refusal = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
    for request in [
        "TAKE QUEUES 2 b c",
        "TAKE b DONE c 1-1-1",
        "MOVE c b",
        "QUEUE SET b DEADLETTER c",
        "QUEUE SET b USES c",
        "SCHEDULE SET b c p EVERY 1000",
    ] {
        let (told, asked) = node.ask(DoorName::RespCluster, &format!("{request}\n"));
        assert_eq!((told.as_str(), asked), (refusal, vec![0; SHARDS]), "{request}");
    }
}

#[test]
fn a_transaction_is_refused_with_the_first_command_for_another_node() {
    let node = Node::of_a_cluster();
    let slot = slot_of(b"c");
    let (told, asked) = node.ask(DoorName::RespCluster, "MULTI\nPUT c x\nEXEC\n");
    let wanted = format!(
        "+OK\r\n-MOVED {slot} there:2\r\n-EXECABORT Transaction discarded because of previous \
         errors.\r\n"
    );
    assert_eq!((told, asked), (wanted, vec![0; SHARDS]));
    let (told, _) = node.ask(DoorName::RespCluster, "MULTI\nPUT b x\nPUT c x\n");
    assert!(told.starts_with("+OK\r\n+QUEUED\r\n-CROSSSLOT "), "{told}");

    // What is served here goes on.
    let (told, asked) = node.ask(DoorName::RespCluster, "MULTI\nPUT b x\nPUT b y\nEXEC\n");
    assert_eq!((told.as_str(), asked), ("+OK\r\n+QUEUED\r\n+QUEUED\r\n", vec![1, 0, 0, 0]));
}

#[test]
fn the_cluster_is_described_at_every_door() {
    let node = Node::of_a_cluster();
    for door in [DoorName::Resp, DoorName::RespCluster] {
        let told = |line: &str| node.ask(door, &format!("{line}\n")).0;
        let id = "0000000000000000000000000000000000000001";
        assert_eq!(told("CLUSTER MYID"), format!("$40\r\n{id}\r\n"));
        assert_eq!(told("CLUSTER KEYSLOT foo"), ":12182\r\n");
        assert!(told("CLUSTER SLOTS").starts_with("*3\r\n*3\r\n:0\r\n:4095\r\n"));
        assert!(told("CLUSTER INFO").contains("cluster_state:fail\r\n"), "the last has no owner");
        assert!(told("CLUSTER NODES").contains("myself,master"));
        assert!(told("HELLO").contains("mode\r\n$7\r\ncluster\r\n"));
        assert!(told("CLUSTER NOSUCH").starts_with("-ERR unknown subcommand"));
    }
}

#[test]
fn a_cluster_may_have_one_shard() {
    let node = Node::start(1);
    let (told, asked) = node.ask(DoorName::Resp, "PUT q x\n");
    assert_eq!((told.as_str(), asked), ("", vec![1]), "the home has no queues");
}
