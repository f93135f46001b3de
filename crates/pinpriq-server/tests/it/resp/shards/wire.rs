//! The pinpriq door of a server with several shards.

use std::collections::VecDeque;

use super::{SHARDS, World, queue_in, queues, several_shards};
use crate::client::{Client, Packet, frame_bytes, named_bytes, push_bytes};
use crate::line::encrypted_too;
use crate::world::test;
use pinpriq_testing::Dice;

/// A connection in each shard, where it stays since it has named a queue there.
async fn homes(world: &World) -> [Client; SHARDS] {
    let mut homes = [
        Client::connect(world.wire_address).await,
        Client::connect(world.wire_address).await,
        Client::connect(world.wire_address).await,
    ];
    for (shard, client) in homes.iter_mut().enumerate() {
        assert_eq!(client.pop(&queue_in(shard, 0)).await, [""; 0]);
    }
    homes
}

#[test]
fn packets_are_pushed_to_and_popped_from_all_shards_in_order() {
    for seed in 1..=5 {
        println!("seed {seed}");
        test(async || {
            let world = several_shards().await;
            let mut dice = Dice::new(seed);
            let mut playing = Vec::new();
            for (home, mut client) in homes(&world).await.into_iter().enumerate() {
                let mut queues: [VecDeque<Packet>; SHARDS] = [const { VecDeque::new() }; SHARDS];
                let (mut requests, mut expected) = (Vec::new(), Vec::new());
                for number in 0..2_000 {
                    let shard = dice.index(SHARDS);
                    let queue = queue_in(shard, 1 + home);
                    if dice.index(2) == 0 {
                        let (key, payload) = (number.to_string(), vec![7; dice.index(500)]);
                        let packet = (key.into_bytes(), payload);
                        let push = push_bytes(queue.as_bytes(), 0xffff, 1, &packet.0, &packet.1);
                        requests.extend(push);
                        queues[shard].push_back(packet);
                    } else {
                        requests.extend(named_bytes(b'P', queue.as_bytes()));
                        // The newest comes first.
                        let popped: Vec<Packet> = queues[shard].pop_back().into_iter().collect();
                        expected.extend(frame_bytes(&popped));
                    }
                }
                playing.push(tokio::task::spawn_local(async move {
                    let (mut reading, mut writing) = tokio::io::split(&mut client.stream);
                    let mut bytes = vec![0; expected.len()];
                    let read = tokio::io::AsyncReadExt::read_exact(&mut reading, &mut bytes);
                    let write = tokio::io::AsyncWriteExt::write_all(&mut writing, &requests);
                    let (read, written) = tokio::join!(read, write);
                    written.unwrap();
                    assert_eq!(read.unwrap(), expected.len());
                    assert!(bytes == expected, "answers of {home}");
                    client.fence().await;
                }));
            }
            for playing in playing {
                playing.await.unwrap();
            }
            world.end().await;
        });
    }
}

#[test]
fn a_subscription_in_another_shard_is_served_for_each_credit() {
    test(async || {
        let world = several_shards().await;
        let mut homes = homes(&world).await;
        for client in &mut homes {
            for shard in 0..SHARDS {
                let queue = queue_in(shard, 0);
                let mut subscriber = Client::connect(world.wire_address).await;
                // Some before it is known where they lead, and some after.
                subscriber.ready(2).await;
                subscriber.subscribe(&queue).await;
                subscriber.ready(1).await;
                for payload in ["1", "2", "3"] {
                    client.push(&queue, 1, payload, payload).await;
                    assert_eq!(subscriber.payloads().await, [payload]);
                }
                client.push(&queue, 1, "4", "4").await;
                subscriber.fence().await;
                subscriber.ready(1).await;
                assert_eq!(subscriber.payloads().await, ["4"]);
                subscriber.ready(1).await;
                subscriber.unsubscribe(&queue).await;
                // A pop behind it tells that it was done.
                assert_eq!(subscriber.pop(&queue).await, [""; 0]);
                client.push(&queue, 1, "5", "5").await;
                assert_eq!(client.pop(&queue).await, ["5"]);
            }
        }
        world.end().await;
    });
}

#[test]
fn subscriptions_in_several_shards_are_served_for_each_credit() {
    test(async || {
        let world = several_shards().await;
        let mut homes = homes(&world).await;
        for (first, client) in queues().iter().zip(&mut homes) {
            let mut subscriber = Client::connect(world.wire_address).await;
            subscriber.subscribe(first).await;
            subscriber.ready(2).await;
            client.push(first, 1, "k", "first").await;
            assert_eq!(subscriber.payloads().await, ["first"]);
            for queue in queues() {
                subscriber.subscribe(&queue).await;
            }
            for queue in queues() {
                client.push(&queue, 1, "k", &queue).await;
                assert_eq!(subscriber.payloads().await, [&queue[..]]);
                subscriber.ready(1).await;
            }
            for queue in queues() {
                subscriber.unsubscribe(&queue).await;
                assert_eq!(subscriber.pop(&queue).await, [""; 0]);
                client.push(&queue, 1, "k", "left").await;
                assert_eq!(client.pop(&queue).await, ["left"]);
            }
        }
        world.end().await;
    });
}

#[test]
fn a_refused_push_to_another_shard_ends_its_connection() {
    test(async || {
        let mut config = super::several();
        // Each shard has a third of it.
        config.limits.task_bytes_max = 6_000;
        let world = World::start_by_the_machine(config).await;
        for mut client in homes(&world).await {
            for queue in queues() {
                client.push(&queue, 1, "k", "fits").await;
                assert_eq!(client.pop(&queue).await, ["fits"]);
            }
            let [_, there, elsewhere] = queues();
            client.send(&push_bytes(elsewhere.as_bytes(), 60_000, 1, b"k", &[7; 1_001])).await;
            // It ends with whatever was answered before that was known.
            client.send(&named_bytes(b'P', there.as_bytes())).await;
            let mut told = Vec::new();
            let read = tokio::io::AsyncReadExt::read_to_end(&mut client.stream, &mut told).await;
            assert!(read.is_err() || told.is_empty() || told == [0, 0], "{told:?}");
        }
        world.end().await;
    });
}

encrypted_too! {
    packets_are_pushed_to_and_popped_from_all_shards_in_order
    a_subscription_in_another_shard_is_served_for_each_credit
    subscriptions_in_several_shards_are_served_for_each_credit
    a_refused_push_to_another_shard_ends_its_connection
}
