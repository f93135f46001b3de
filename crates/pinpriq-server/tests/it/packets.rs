//! What the pinpriq door does with packets besides handing them to the engine, whose scripts say
//! which ones a pop takes, in which order, and who is served.

use pinpriq_server::config::{Framing, TtlZero};

use crate::client::{frame_bytes, named_bytes, push_bytes};
use crate::line::encrypted_too;
use crate::world::{in_memory, with_clients};

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
fn bare_deliveries_are_packets_without_a_number() {
    let mut config = in_memory();
    config.pinpriq_options.framing = Framing::Bare;
    with_clients(config, async |_, [subscriber, pusher]| {
        for (priority, payload) in [(1, "1"), (2, "2"), (0, "0")] {
            pusher.push("q", priority, "k", payload).await;
        }
        pusher.fence().await;
        subscriber.subscribe("q").await;
        subscriber.ready(1).await;
        for payload in ["1", "2", "0"] {
            let packet = (b"k".to_vec(), payload.as_bytes().to_vec());
            assert_eq!(subscriber.packet().await, packet);
        }
        subscriber.fence().await;
    });
}

#[test]
fn the_time_to_live_begins_when_the_push_is_whole() {
    with_clients(in_memory(), async |world, [slow, other]| {
        let push = push_bytes(b"q", 100, 1, b"k", b"p");
        slow.send(&push[..push.len() - 1]).await;
        other.fence().await;
        world.advance(5_000);
        slow.send(&push[push.len() - 1..]).await;
        slow.fence().await;
        world.advance(99);
        assert_eq!(other.pop("q").await, ["p"]);
    });
}

#[test]
fn ttl_0_lives_for_ever_where_the_server_was_told_so() {
    let mut config = in_memory();
    config.pinpriq_options.ttl_zero = TtlZero::Forever;
    with_clients(config, async |world, [client]| {
        client.push_for(0, "q", 1, "k", "endless").await;
        client.push_for(0, "q", 0, "k", "rider").await;
        client.push_for(65_535, "q", 1, "k", "mortal").await;
        client.fence().await;
        world.advance(100 * 365 * 24 * 3_600_000);
        assert_eq!(client.pop("q").await, ["endless", "rider"]);
    });
}

encrypted_too! {
    names_keys_and_payloads_are_any_65535_bytes bare_deliveries_are_packets_without_a_number
}
