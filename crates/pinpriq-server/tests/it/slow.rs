//! Clients that do not read: what they hold up is themselves.

use crate::client::{Client, named_bytes, push_bytes};
use crate::line::encrypted_too;
use crate::world::{in_memory, with_clients};

/// Sends `piece` again and again until the server has stopped reading, and returns how many bytes
/// it took. Each time that nothing can be sent the others get so many turns that a server that
/// still reads would have read.
async fn fill(slow: &Client, others: &mut Client, piece: &[u8]) -> usize {
    let mut sent = 0;
    let mut refused = 0;
    while refused < 200 {
        match slow.stream.try_write(&piece[sent % piece.len()..]) {
            Ok(count) => {
                sent += count;
                refused = 0;
            }
            Err(_) => refused += 1,
        }
        others.fence().await;
        assert!(sent < 100 << 20, "the server reads without end");
    }
    sent
}

/// A push, and the pop that brings it back.
fn echo() -> Vec<u8> {
    let mut requests = push_bytes(b"echo", 60_000, 1, b"k", &vec![7; 30_000]);
    requests.extend(named_bytes(b'P', b"echo"));
    requests
}

#[test]
fn the_server_stops_reading_from_a_client_that_does_not_read() {
    with_clients(in_memory(), async |world, [others]| {
        let slow = Client::connect_narrow(world.address).await;
        fill(&slow, others, &echo()).await;
        others.push("q", 1, "k", "p").await;
        assert_eq!(others.pop("q").await, ["p"]);
    });
}

#[test]
fn a_slow_client_gets_all_its_replies_in_the_end() {
    with_clients(in_memory(), async |world, [others]| {
        let mut slow = Client::connect_narrow(world.address).await;
        let sent = fill(&slow, others, &echo()).await;
        let (whole, begun) = (sent / echo().len(), sent % echo().len());
        for _ in 0..whole {
            assert_eq!(slow.frame().await.len(), 1);
        }
        if begun > 0 {
            slow.send(&echo()[begun..]).await;
            assert_eq!(slow.frame().await.len(), 1);
        }
        slow.fence().await;
    });
}

#[test]
fn a_client_with_large_replies_leaves_most_of_its_pops_unread() {
    const PACKETS: usize = 400;
    with_clients(in_memory(), async |world, [others]| {
        for number in 0..PACKETS {
            let key = number.to_string();
            others.send(&push_bytes(b"q", 60_000, 1, key.as_bytes(), &vec![7; 60_000])).await;
        }
        others.fence().await;
        let mut slow = Client::connect_narrow(world.address).await;
        slow.send(&named_bytes(b'P', b"q").repeat(PACKETS)).await;
        assert_eq!(slow.bytes(2).await, [0, 1]);
        for _ in 0..200 {
            others.fence().await;
        }
        let left = {
            let mut left = 0;
            while !others.pop_packets("q").await.is_empty() {
                left += 1;
            }
            left
        };
        // What the sockets hold, what may wait for this client, and one round of pops.
        assert!(left > PACKETS / 3, "only {left} of {PACKETS} packets were left");
        let mut taken = 0;
        slow.packet().await;
        for _ in 1..PACKETS {
            taken += slow.frame().await.len();
        }
        assert_eq!(1 + taken + left, PACKETS);
        slow.fence().await;
    });
}

#[test]
fn a_subscriber_that_does_not_read_delays_no_other() {
    let mut config = in_memory();
    config.limits.in_flight_max = 16;
    with_clients(config, async |world, [others]| {
        let mut slow = Client::connect_narrow(world.address).await;
        slow.subscribe("q").await;
        slow.ready(10_000).await;
        others.fence().await;
        // Each group has 3 MB, and the slow one has credit for 30 GB of them.
        for group in 0..40 {
            let key = group.to_string();
            let push = push_bytes(b"q", 60_000, 0, key.as_bytes(), &vec![7; 60_000]);
            others.send(&push.repeat(50)).await;
            others.push("q", 1, &key, "selected").await;
            others.fence().await;
            others.push("other", 1, "k", "p").await;
            assert_eq!(others.pop("other").await, ["p"]);
        }
        let mut left = 0;
        while !others.pop_packets("q").await.is_empty() {
            left += 1;
        }
        assert!(left > 10, "only {left} of 40 groups are not under way to the slow one");
        for _ in left..40 {
            assert_eq!(slow.frame().await.len(), 51);
        }
        others.push("q", 1, "k", "goes on").await;
        assert_eq!(slow.payloads().await, ["goes on"]);
    });
}

#[test]
fn a_reply_larger_than_every_buffer_is_sent_piece_by_piece() {
    let mut config = in_memory();
    config.limits.out_bytes_max = 1;
    config.limits.in_flight_max = 1;
    with_clients(config, async |_, [client]| {
        for _ in 0..3 {
            client.send(&push_bytes(b"q", 60_000, 1, b"k", &vec![7; 60_000]).repeat(300)).await;
            client.push("q", 1, "other", "small").await;
            client.send(&named_bytes(b'P', b"q").repeat(3)).await;
            assert_eq!(client.payloads().await, ["small"]);
            assert_eq!(client.frame().await.len(), 300);
            assert_eq!(client.frame().await.len(), 0);
        }
        client.fence().await;
    });
}

encrypted_too! {
    the_server_stops_reading_from_a_client_that_does_not_read
    a_client_with_large_replies_leaves_most_of_its_pops_unread
    a_subscriber_that_does_not_read_delays_no_other
    a_reply_larger_than_every_buffer_is_sent_piece_by_piece
}
