//! Stopping in order: what was answered is sent, and no client holds up the end.

use pinpriq_server::config::{Config, Durability};

use crate::client::{Client, named_bytes, push_bytes};
use crate::line::encrypted_too;
use crate::world::{World, in_memory, test};

/// How long a stop waits for clients that do not read.
const DRAIN_MS: u64 = 5_000;

#[test]
fn a_stop_with_idle_clients_ends_at_once() {
    test(async || {
        let world = World::plain().await;
        let (mut one, mut other) = (world.connect().await, world.connect().await);
        one.fence().await;
        other.subscribe("q").await;
        other.ready(1).await;
        other.fence().await;
        let (stop, served) = (world.stop, world.served);
        stop.ask();
        served.await.unwrap().unwrap();
        one.ended().await;
        other.ended().await;
    });
}

#[test]
fn a_stop_sends_what_was_answered() {
    test(async || {
        let data = tempfile::tempdir().unwrap();
        let config = Config {
            data: data.path().to_owned(),
            durability: Durability::Interval,
            ..in_memory()
        };
        let world = World::start(config).await;
        let mut client = Client::connect_narrow(world.address).await;
        client.send(&push_bytes(b"q", 60_000, 1, b"k", &vec![7; 60_000]).repeat(300)).await;
        client.send(&named_bytes(b'P', b"q")).await;
        assert_eq!(client.bytes(2).await, 300_u16.to_be_bytes());
        let (stop, served) = (world.stop, world.served);
        stop.ask();
        assert_eq!(client.rest().await.len(), 300 * 60_005);
        served.await.unwrap().unwrap();
    });
}

#[test]
fn a_stop_accepts_no_connection_and_does_nothing_new() {
    test(async || {
        let world = World::plain().await;
        let mut client = world.connect().await;
        client.fence().await;
        world.stop.ask();
        client.send(&named_bytes(b'P', b"q")).await;
        client.ended().await;
        let address = world.address;
        world.end().await;
        assert!(tokio::net::TcpStream::connect(address).await.is_err());
    });
}

/// Stops a server while a client has begun to read a reply of many megabytes and stalls. Answers
/// how far the clock was moved until the stop was over.
async fn stop_while_stalled(config: Config) -> u64 {
    let world = World::start(config).await;
    let mut pusher = world.connect().await;
    for number in 0..300_u16 {
        let mut payload = vec![7; 60_000];
        payload[..2].copy_from_slice(&number.to_be_bytes());
        pusher.send(&push_bytes(b"q", 60_000, 1, b"k", &payload)).await;
    }
    pusher.fence().await;
    let mut stalled = Client::connect_narrow(world.address).await;
    stalled.send(&named_bytes(b'P', b"q")).await;
    assert_eq!(stalled.bytes(2).await, 300_u16.to_be_bytes());
    world.stop.ask();
    let mut moved = 0;
    while !world.served.is_finished() {
        assert!(moved < 2 * DRAIN_MS, "the stop waits for the client without end");
        // Everything that can happen at this moment does.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        if !world.served.is_finished() {
            world.advance(500);
            moved += 500;
        }
    }
    world.end().await;
    moved
}

#[test]
fn a_stalled_client_holds_up_a_stop_for_the_drain_time_only() {
    test(async || {
        let moved = stop_while_stalled(in_memory()).await;
        assert!((DRAIN_MS..=DRAIN_MS + 500).contains(&moved), "{moved} ms");
    });
}

#[test]
fn what_a_stalled_client_did_not_take_is_there_after_a_stop() {
    for (requeue, expected) in [(true, 300), (false, 0)] {
        test(async || {
            let data = tempfile::tempdir().unwrap();
            let mut config = Config {
                data: data.path().to_owned(),
                durability: Durability::Interval,
                ..in_memory()
            };
            config.pinpriq_options.requeue = requeue;
            stop_while_stalled(config.clone()).await;
            let world = World::start(config).await;
            let packets = world.connect().await.pop_packets("q").await;
            assert_eq!(packets.len(), expected, "requeue: {requeue}");
            for (packet, number) in packets.iter().zip((0..300_u16).rev()) {
                assert_eq!(packet.1[..2], number.to_be_bytes());
            }
            world.end().await;
        });
    }
}

#[test]
fn what_was_fenced_is_there_after_a_stop_at_every_level_with_a_journal() {
    for durability in [Durability::Sync, Durability::Interval] {
        test(async || {
            let data = tempfile::tempdir().unwrap();
            let config = Config { data: data.path().to_owned(), durability, ..in_memory() };
            for round in 0..3 {
                let world = World::start(config.clone()).await;
                let mut client = world.connect().await;
                if round > 0 {
                    assert_eq!(client.pop("q").await, ["new", "old"]);
                    assert_eq!(client.pop("q").await, [""; 0]);
                }
                client.push("q", 1, "k", "old").await;
                client.push("q", 1, "k", "new").await;
                client.push("gone", 1, "k", "p").await;
                assert_eq!(client.pop("gone").await, ["p"]);
                world.end().await;
            }
        });
    }
}

encrypted_too! {
    a_stop_with_idle_clients_ends_at_once a_stop_sends_what_was_answered
    a_stop_accepts_no_connection_and_does_nothing_new
    a_stalled_client_holds_up_a_stop_for_the_drain_time_only
    what_a_stalled_client_did_not_take_is_there_after_a_stop
    what_was_fenced_is_there_after_a_stop_at_every_level_with_a_journal
}
