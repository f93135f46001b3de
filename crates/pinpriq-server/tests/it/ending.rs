//! How connections end: what is still done, what is still answered, and who notices.

use pinpriq_server::config::Durability;

use crate::client::{Client, frame_bytes, named_bytes, push_bytes};
use crate::line::encrypted_too;
use crate::world::{World, in_memory, test, with_clients};

/// The bytes that open no request.
fn unknown_operations() -> impl Iterator<Item = u8> {
    (0..=255).filter(|byte| !b"pPsuA".contains(byte))
}

#[test]
fn every_unknown_operation_closes_after_the_earlier_replies() {
    with_clients(in_memory(), async |world, [witness]| {
        for unknown in unknown_operations() {
            let mut client = world.connect().await;
            let mut requests = push_bytes(b"q", 60_000, 1, b"k", b"p");
            requests.extend(named_bytes(b'P', b"q"));
            requests.extend(push_bytes(b"kept", 60_000, 1, b"k", &[unknown]));
            requests.push(unknown);
            requests.extend(push_bytes(b"lost", 60_000, 1, b"k", b"p"));
            client.send(&requests).await;
            let reply = frame_bytes(&[(b"k".to_vec(), b"p".to_vec())]);
            assert_eq!(client.rest().await, reply, "operation {unknown}");
            let kept = witness.pop_packets("kept").await;
            assert_eq!(kept, [(b"k".to_vec(), vec![unknown])]);
            assert_eq!(witness.pop_packets("lost").await, []);
        }
    });
}

#[test]
fn a_line_end_is_an_unknown_operation() {
    with_clients(in_memory(), async |_, [client]| {
        client.send(b"\x50\x00\x01q\r\n\x50\x00\x01q").await;
        assert_eq!(client.rest().await, [0, 0]);
    });
}

#[test]
fn replies_survive_what_the_client_sends_after_an_unknown_operation() {
    const GROUP: usize = 200;
    with_clients(in_memory(), async |world, [witness]| {
        witness.send(&push_bytes(b"q", 60_000, 1, b"k", &vec![7; 60_000]).repeat(GROUP)).await;
        witness.fence().await;
        let mut client = Client::connect_narrow(world.address).await;
        let mut requests = named_bytes(b'P', b"q");
        requests.push(0xFF);
        client.send(&requests).await;
        let begun = client.bytes(2).await;
        // More than the server reads before it closes, and all of it in vain.
        client.send(&vec![0x41; 100_000]).await;
        witness.fence().await;
        let reply = client.rest().await;
        assert_eq!(begun, [0, 200]);
        assert_eq!(reply.len(), GROUP * (4 + 1 + 60_000));
    });
}

#[test]
fn a_client_that_goes_on_sending_is_cut_off_in_the_end() {
    with_clients(in_memory(), async |world, [client]| {
        client.send(b"\xFF").await;
        assert!(client.rest().await.is_empty());
        client.send(b"more").await;
        world.advance(1_000);
        let mut other = world.connect().await;
        loop {
            // The server has closed its socket as soon as one of these writes is refused.
            other.fence().await;
            if client.stream.try_write(b"more").is_err() {
                break;
            }
        }
    });
}

#[test]
fn a_truncated_request_has_no_effect() {
    with_clients(in_memory(), async |world, [witness]| {
        let push = push_bytes(b"q", 60_000, 1, b"key", b"payload");
        for request in [push, named_bytes(b'P', b"queue"), named_bytes(b's', b"queue")] {
            for cut in 1..request.len() {
                let mut client = world.connect().await;
                client.send(&named_bytes(b'P', b"q")).await;
                client.send(&request[..cut]).await;
                client.half_close().await;
                assert_eq!(client.rest().await, [0, 0]);
                assert_eq!(witness.pop_packets("q").await, []);
            }
        }
    });
}

#[test]
fn after_a_half_close_pops_are_answered_and_credit_lapses() {
    test(async || {
        for durability in [Durability::Memory, Durability::Sync] {
            let data = tempfile::tempdir().unwrap();
            let config = in_memory();
            let config = pinpriq_server::config::Config {
                data: data.path().to_owned(),
                durability,
                ..config
            };
            let world = World::start(config).await;
            let (mut client, mut other) = (world.connect().await, world.connect().await);
            client.push("q", 1, "k", "p").await;
            client.subscribe("other").await;
            client.ready(3).await;
            client.send(&named_bytes(b'P', b"q")).await;
            client.send(&named_bytes(b'P', b"q")).await;
            client.half_close().await;
            let mut expected = frame_bytes(&[(b"k".to_vec(), b"p".to_vec())]);
            expected.extend([0, 0]);
            assert_eq!(client.rest().await, expected);
            other.push("other", 1, "k", "unclaimed").await;
            assert_eq!(other.pop("other").await, ["unclaimed"]);
            world.end().await;
        }
    });
}

#[test]
fn a_one_shot_client_gets_a_reply_of_many_megabytes() {
    with_clients(in_memory(), async |world, [pusher]| {
        pusher.send(&push_bytes(b"q", 60_000, 1, b"k", &vec![7; 60_000]).repeat(300)).await;
        pusher.fence().await;
        let mut client = world.connect().await;
        client.send(&named_bytes(b'P', b"q")).await;
        client.half_close().await;
        assert_eq!(client.rest().await.len(), 2 + 300 * 60_005);
    });
}

#[test]
fn what_was_pushed_stays_when_the_pusher_goes() {
    with_clients(in_memory(), async |world, [pusher]| {
        pusher.push("q", 1, "k", "p").await;
        pusher.half_close().await;
        pusher.ended().await;
        assert_eq!(world.connect().await.pop("q").await, ["p"]);
    });
}

encrypted_too! {
    every_unknown_operation_closes_after_the_earlier_replies a_line_end_is_an_unknown_operation
    replies_survive_what_the_client_sends_after_an_unknown_operation
    a_client_that_goes_on_sending_is_cut_off_in_the_end a_truncated_request_has_no_effect
    after_a_half_close_pops_are_answered_and_credit_lapses
    a_one_shot_client_gets_a_reply_of_many_megabytes what_was_pushed_stays_when_the_pusher_goes
}
