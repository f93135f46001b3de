//! The bounds of one connection and of all of them.

use pinpriq_server::config::{Config, Durability};

use crate::client::{Client, frame_bytes, named_bytes, push_bytes};
use crate::line::{Line, encrypted_too};
use crate::world::{World, in_memory, test, with_clients};

#[test]
fn connections_beyond_the_bound_are_closed_at_once() {
    let mut config = in_memory();
    config.limits.connections_max = 2;
    with_clients(config, async |world, [first, second]| {
        first.fence().await;
        second.fence().await;
        for _ in 0..10 {
            world.connect().await.ended().await;
        }
        first.half_close().await;
        first.ended().await;
        let mut third = world.connect_when_free().await;
        world.connect().await.ended().await;
        second.fence().await;
        third.fence().await;
    });
}

#[test]
fn connections_that_come_together_are_counted_too() {
    let mut config = in_memory();
    config.limits.connections_max = 3;
    with_clients(config, async |world, []| {
        // All of them are there before the server accepts the first.
        let connect = || std::net::TcpStream::connect(world.address).unwrap();
        let streams: Vec<std::net::TcpStream> = std::iter::repeat_with(connect).take(10).collect();
        let mut served = Vec::new();
        for stream in streams {
            stream.set_nonblocking(true).unwrap();
            let mut client =
                Client { stream: Line::Plain(tokio::net::TcpStream::from_std(stream).unwrap()) };
            if client.try_fence().await {
                served.push(client);
            }
        }
        assert_eq!(served.len(), 3);
        for client in &mut served {
            client.fence().await;
        }
    });
}

/// Everything that a client can ask for, many times and in one write.
async fn converse(world: &World, rounds: u32) {
    let mut client = world.connect().await;
    let mut requests = Vec::new();
    let mut replies = Vec::new();
    for number in 0..rounds {
        let payload = number.to_be_bytes();
        let packet = [(payload.to_vec(), payload.to_vec())];
        requests.extend(push_bytes(b"q", 60_000, 1, &payload, &payload));
        requests.extend(named_bytes(b's', b"elsewhere"));
        requests.extend(named_bytes(b'P', b"q"));
        replies.extend(frame_bytes(&packet));
        requests.extend(named_bytes(b'u', b"elsewhere"));
        requests.extend(push_bytes(b"q", 60_000, 1, &payload, &payload));
        requests.extend(named_bytes(b'P', b"empty"));
        replies.extend([0, 0]);
        requests.extend(named_bytes(b'P', b"q"));
        replies.extend(frame_bytes(&packet));
    }
    client.send(&requests).await;
    assert!(client.bytes(replies.len()).await == replies);
    client.fence().await;
}

/// More credit than may be under way, used up by as many deliveries.
async fn deliver(world: &World, deliveries: u32) {
    let (mut subscriber, mut pusher) = (world.connect().await, world.connect().await);
    subscriber.ready(deliveries as usize).await;
    subscriber.subscribe("delivered").await;
    subscriber.fence().await;
    for number in 0..deliveries {
        let payload = number.to_be_bytes();
        pusher.send(&push_bytes(b"delivered", 60_000, 1, &payload, &payload)).await;
        if number % 7 == 0 {
            assert_eq!(subscriber.frame().await.len(), 1);
        }
    }
    for _ in 0..deliveries - deliveries.div_ceil(7) {
        assert_eq!(subscriber.frame().await.len(), 1);
    }
    pusher.push("delivered", 1, "k", "unpaid").await;
    pusher.fence().await;
    subscriber.fence().await;
}

/// Thousands of requests without an answer in one write, and then some with one.
async fn push_many(world: &World) {
    let mut client = world.connect().await;
    client.send(&push_bytes(b"many", 60_000, 1, b"k", b"p").repeat(5_000)).await;
    client.fence().await;
    assert_eq!(client.pop_packets("many").await.len(), 5_000);
}

#[test]
fn any_number_of_requests_may_be_under_way_at_any_bound() {
    for (in_flight_max, out_bytes_max) in [(1, 1), (1, 1 << 20), (2, 20), (3, 100), (1_024, 1)] {
        for durability in [Durability::Memory, Durability::Interval, Durability::Sync] {
            test(async || {
                let data = tempfile::tempdir().unwrap();
                let mut config = Config { data: data.path().to_owned(), durability, ..in_memory() };
                config.limits.in_flight_max = in_flight_max;
                config.limits.out_bytes_max = out_bytes_max;
                let rounds = if durability == Durability::Sync { 40 } else { 300 };
                let world = World::start(config).await;
                converse(&world, rounds).await;
                deliver(&world, rounds).await;
                world.end().await;
            });
        }
    }
}

#[test]
fn thousands_of_requests_at_once_are_done_at_the_usual_bounds() {
    for durability in [Durability::Memory, Durability::Interval, Durability::Sync] {
        test(async || {
            let data = tempfile::tempdir().unwrap();
            let config = Config { data: data.path().to_owned(), durability, ..in_memory() };
            let world = World::start(config).await;
            push_many(&world).await;
            converse(&world, 3_000).await;
            deliver(&world, 3_000).await;
            world.end().await;
        });
    }
}

#[test]
fn a_subscription_too_many_closes_after_the_earlier_replies() {
    let mut config = in_memory();
    config.limits.subscriptions_max = 2;
    with_clients(config, async |world, [client]| {
        for queue in ["a", "b", "a", "b"] {
            client.subscribe(queue).await;
        }
        client.unsubscribe("a").await;
        client.subscribe("c").await;
        client.fence().await;
        client.push("q", 1, "k", "p").await;
        client.send(&named_bytes(b'P', b"q")).await;
        client.subscribe("d").await;
        client.push("q", 1, "k", "too late").await;
        assert_eq!(client.rest().await, frame_bytes(&[(b"k".to_vec(), b"p".to_vec())]));
        assert_eq!(world.connect().await.pop("q").await, [""; 0]);
    });
}

#[test]
fn a_payload_too_large_closes_after_the_earlier_replies() {
    let mut config = in_memory();
    config.limits.payload_bytes_max = 1_000;
    with_clients(config, async |_, [client, other]| {
        let mut requests = push_bytes(b"q", 60_000, 1, &[b'k'; 5_000], &[7; 1_000]);
        requests.extend(named_bytes(b'P', b"q"));
        requests.extend(push_bytes(b"q", 60_000, 1, b"k", &[7; 1_001]));
        requests.extend(push_bytes(b"q", 60_000, 1, b"k", b"too late"));
        client.send(&requests).await;
        let reply = frame_bytes(&[(vec![b'k'; 5_000], vec![7; 1_000])]);
        assert!(client.rest().await == reply);
        assert_eq!(other.pop("q").await, [""; 0]);
    });
}

#[test]
fn a_refused_push_keeps_nothing_and_disturbs_no_other() {
    let mut config = in_memory();
    config.limits.payload_bytes_max = 4;
    with_clients(config, async |world, [subscriber, other]| {
        subscriber.subscribe("q").await;
        subscriber.ready(1).await;
        subscriber.fence().await;
        for _ in 0..50 {
            let mut client = world.connect().await;
            client.push_for(0, "q", 1, "k", "large").await;
            client.ended().await;
        }
        subscriber.fence().await;
        other.push("q", 1, "k", "fits").await;
        assert_eq!(subscriber.payloads().await, ["fits"]);
    });
}

encrypted_too! {
    any_number_of_requests_may_be_under_way_at_any_bound
    thousands_of_requests_at_once_are_done_at_the_usual_bounds
    a_subscription_too_many_closes_after_the_earlier_replies
    a_payload_too_large_closes_after_the_earlier_replies
    a_refused_push_keeps_nothing_and_disturbs_no_other
}
