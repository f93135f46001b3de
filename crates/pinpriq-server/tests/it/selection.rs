//! Which packets a pop takes, and in which order they come.

use crate::client::{frame_bytes, named_bytes, push_bytes};
use crate::world::{in_memory, with_clients};

#[test]
fn the_smallest_priority_comes_first_and_then_the_newest() {
    with_clients(in_memory(), async |_, [one, other]| {
        for (number, priority) in [5, 255, 1, 5, 1, 2].into_iter().enumerate() {
            // From two connections: the order is that in which the server applied the pushes.
            let client = if number % 2 == 0 { &mut *one } else { &mut *other };
            client.push("q", priority, &number.to_string(), &number.to_string()).await;
            client.fence().await;
        }
        for expected in ["4", "2", "5", "3", "0", "1"] {
            assert_eq!(one.pop("q").await, [expected]);
        }
        assert_eq!(one.pop("q").await, [""; 0]);
    });
}

#[test]
fn priority_0_is_never_selected_and_goes_with_its_group() {
    with_clients(in_memory(), async |_, [client]| {
        client.push("q", 0, "k", "old").await;
        client.push("q", 0, "k", "new").await;
        client.push("q", 0, "alone", "alone").await;
        assert_eq!(client.pop("q").await, [""; 0]);
        client.push("q", 255, "k", "selected").await;
        assert_eq!(client.pop("q").await, ["selected", "new", "old"]);
        assert_eq!(client.pop("q").await, [""; 0]);
        client.push("q", 1, "alone", "selected").await;
        assert_eq!(client.pop("q").await, ["selected", "alone"]);
    });
}

#[test]
fn the_empty_key_is_a_key_like_any_other() {
    with_clients(in_memory(), async |_, [client]| {
        client.push("q", 3, "", "three").await;
        client.push("q", 1, "", "one").await;
        client.push("q", 2, "k", "keyed").await;
        client.push("q", 0, "", "zero").await;
        assert_eq!(client.pop("q").await, ["one", "three", "zero"]);
        assert_eq!(client.pop("q").await, ["keyed"]);
    });
}

#[test]
fn a_group_comes_in_the_order_of_repeated_pops() {
    with_clients(in_memory(), async |_, [client]| {
        for (priority, payload) in
            [(0, "g"), (9, "e"), (2, "c"), (0, "f"), (9, "d"), (1, "a"), (2, "b")]
        {
            client.push("q", priority, "k", payload).await;
        }
        assert_eq!(client.pop("q").await, ["a", "b", "c", "d", "e", "f", "g"]);
    });
}

#[test]
fn groups_end_at_their_queue_and_at_equal_bytes() {
    with_clients(in_memory(), async |_, [client]| {
        client.push("q", 1, "k", "1").await;
        client.push("other", 1, "k", "2").await;
        client.push("q", 2, "K", "3").await;
        client.push("q", 2, "k\0", "4").await;
        assert_eq!(client.pop("q").await, ["1"]);
        assert_eq!(client.pop("q").await, ["4"]);
        assert_eq!(client.pop("q").await, ["3"]);
        assert_eq!(client.pop("other").await, ["2"]);
    });
}

#[test]
fn identical_packets_are_both_kept() {
    with_clients(in_memory(), async |_, [client]| {
        for _ in 0..3 {
            client.push("q", 1, "k", "same").await;
        }
        assert_eq!(client.pop("q").await, ["same"; 3]);
        assert_eq!(client.pop("q").await, [""; 0]);
    });
}

#[test]
fn the_rest_of_a_group_of_70000_stays_with_its_order_and_its_deadline() {
    const ALL: u32 = 70_000;
    const MOST: u32 = 65_535;
    with_clients(in_memory(), async |world, [client]| {
        let mut pushes = Vec::new();
        for number in 0..ALL {
            pushes.extend(push_bytes(b"q", 1_000, 7, b"k", &number.to_be_bytes()));
        }
        client.send(&pushes).await;
        let newest_first = |from: u32, to: u32| -> Vec<_> {
            (to..from).rev().map(|n| (b"k".to_vec(), n.to_be_bytes().to_vec())).collect()
        };
        assert!(client.pop_packets("q").await == newest_first(ALL, ALL - MOST));
        world.advance(999);
        client.push("q", 9, "k", "less urgent").await;
        client.push("q", 0, "k", "rider").await;
        let mut rest = newest_first(ALL - MOST, 0);
        let packet = |payload: &[u8]| (b"k".to_vec(), payload.to_vec());
        rest.extend([packet(b"less urgent"), packet(b"rider")]);
        assert!(client.pop_packets("q").await == rest);
        client.fence().await;
    });
}

#[test]
fn a_rest_of_priority_0_alone_waits_for_the_next_of_its_group() {
    with_clients(in_memory(), async |_, [client]| {
        let mut pushes = push_bytes(b"q", 60_000, 1, b"k", b"first");
        pushes.extend(push_bytes(b"q", 60_000, 0, b"k", b"zero").repeat(65_536));
        client.send(&pushes).await;
        assert_eq!(client.pop("q").await.len(), 65_535);
        assert_eq!(client.pop("q").await, [""; 0]);
        client.push("q", 1, "k", "second").await;
        assert_eq!(client.pop("q").await, ["second", "zero", "zero"]);
    });
}

#[test]
fn the_queue_with_the_empty_name_is_a_queue() {
    with_clients(in_memory(), async |_, [client, subscriber]| {
        client.push("", 1, "k", "p").await;
        assert_eq!(client.pop("\0").await, [""; 0]);
        assert_eq!(client.pop("").await, ["p"]);
        subscriber.subscribe("").await;
        subscriber.ready(1).await;
        subscriber.fence().await;
        client.push("", 1, "k", "delivered").await;
        assert_eq!(subscriber.payloads().await, ["delivered"]);
    });
}

#[test]
fn an_empty_payload_and_an_empty_reply_are_told_apart() {
    with_clients(in_memory(), async |_, [client]| {
        client.push("q", 1, "", "").await;
        client.send(&named_bytes(b'P', b"q")).await;
        assert_eq!(client.bytes(6).await, [0, 1, 0, 0, 0, 0]);
        client.send(&named_bytes(b'P', b"q")).await;
        assert_eq!(client.bytes(2).await, [0, 0]);
        client.fence().await;
    });
}

#[test]
fn names_keys_and_payloads_are_any_65535_bytes() {
    with_clients(in_memory(), async |_, [client]| {
        let long: Vec<u8> = (0..65_535_u32).map(|n| n.to_be_bytes()[3]).collect();
        let odd = b"\x00/\xff\xfe\n";
        for (queue, key, payload) in
            [(&long[..], &long[..], &long[..]), (odd, odd, odd), (odd, b"", &long), (b"", odd, b"")]
        {
            client.send(&push_bytes(queue, 60_000, 1, key, payload)).await;
            client.send(&named_bytes(b'P', queue)).await;
            let reply = frame_bytes(&[(key.to_vec(), payload.to_vec())]);
            assert!(client.bytes(reply.len()).await == reply);
        }
        client.fence().await;
    });
}

#[test]
fn a_fence_makes_pushes_visible_to_everybody() {
    with_clients(in_memory(), async |_, [one, other]| {
        for number in 0..100 {
            let text = number.to_string();
            one.push("q", 1, &text, &text).await;
            one.fence().await;
            assert_eq!(other.pop("q").await, [text]);
        }
    });
}

#[test]
fn requests_of_one_connection_are_applied_in_order() {
    with_clients(in_memory(), async |_, [client]| {
        let mut requests = Vec::new();
        let mut replies = Vec::new();
        for number in 0..5_000_u32 {
            let payload = number.to_be_bytes();
            requests.extend(push_bytes(b"q", 60_000, 1, b"k", &payload));
            requests.extend(named_bytes(b'P', b"q"));
            replies.extend(frame_bytes(&[(b"k".to_vec(), payload.to_vec())]));
        }
        client.send(&requests).await;
        assert!(client.bytes(replies.len()).await == replies);
        client.fence().await;
    });
}
