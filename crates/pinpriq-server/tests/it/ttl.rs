//! How long a packet lives, by a clock that moves only when the test says so.

use pinpriq_server::config::TtlZero;

use crate::world::{in_memory, with_clients};

#[test]
fn a_packet_is_popped_until_just_before_its_deadline() {
    with_clients(in_memory(), async |world, [client]| {
        for (ttl, later, expected) in
            [(1_000, 999, 1), (1_000, 1_000, 0), (1, 0, 1), (1, 1, 0), (65_535, 65_534, 1)]
        {
            client.push_for(ttl, "q", 1, "k", "p").await;
            client.fence().await;
            world.advance(later);
            assert_eq!(client.pop("q").await.len(), expected, "{ttl} ms, popped after {later}");
        }
        client.push_for(65_535, "q", 1, "k", "p").await;
        client.fence().await;
        world.advance(65_535);
        assert_eq!(client.pop("q").await, [""; 0]);
    });
}

#[test]
fn companions_leave_the_group_at_their_own_deadlines() {
    with_clients(in_memory(), async |world, [client]| {
        for (ttl, priority, payload) in
            [(100, 1, "first"), (300, 2, "last"), (200, 0, "zero"), (201, 3, "third")]
        {
            client.push_for(ttl, "q", priority, "k", payload).await;
        }
        client.fence().await;
        world.advance(200);
        assert_eq!(client.pop("q").await, ["last", "third"]);
    });
}

#[test]
fn an_expired_packet_is_not_delivered() {
    with_clients(in_memory(), async |world, [subscriber, pusher]| {
        subscriber.subscribe("q").await;
        pusher.push_for(10, "q", 1, "short", "short").await;
        pusher.push_for(20, "q", 9, "long", "long").await;
        pusher.fence().await;
        world.advance(10);
        subscriber.ready(2).await;
        assert_eq!(subscriber.payloads().await, ["long"]);
        subscriber.fence().await;
    });
}

#[test]
fn the_time_to_live_begins_when_the_push_is_whole() {
    with_clients(in_memory(), async |world, [slow, other]| {
        let push = crate::client::push_bytes(b"q", 100, 1, b"k", b"p");
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
fn ttl_0_is_for_those_who_wait_already() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        pusher.push_for(0, "q", 1, "k", "no puller yet").await;
        assert_eq!(pusher.pop("q").await, [""; 0]);

        subscriber.subscribe("q").await;
        subscriber.fence().await;
        pusher.push_for(0, "q", 1, "k", "none is ready").await;
        assert_eq!(pusher.pop("q").await, [""; 0]);

        subscriber.ready(1).await;
        subscriber.fence().await;
        pusher.push_for(0, "q", 0, "k", "no puller may wait for this").await;
        pusher.push("q", 0, "k", "rider").await;
        pusher.push_for(0, "q", 1, "k", "handed over").await;
        assert_eq!(subscriber.payloads().await, ["handed over", "rider"]);
        subscriber.fence().await;
    });
}

#[test]
fn ttl_0_takes_no_companions_where_nobody_waits() {
    with_clients(in_memory(), async |_, [client]| {
        client.push("q", 0, "k", "rider").await;
        client.push_for(0, "q", 1, "k", "dropped").await;
        assert_eq!(client.pop("q").await, [""; 0]);
        client.push("q", 1, "k", "driver").await;
        assert_eq!(client.pop("q").await, ["driver", "rider"]);
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

#[test]
fn a_mass_of_deadlines_expires_without_a_request() {
    let mut config = in_memory();
    // So little that the second lot has no room before the first has gone.
    config.limits.task_bytes_max = 5_000_000;
    with_clients(config, async |world, [client]| {
        let lot = crate::client::push_bytes(b"q", 500, 1, b"k", b"p").repeat(10_000);
        for _ in 0..3 {
            client.send(&lot).await;
            client.fence().await;
            world.advance(500);
        }
        assert_eq!(client.pop("q").await, [""; 0]);
    });
}
