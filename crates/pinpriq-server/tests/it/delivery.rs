//! Subscriptions, credit, and who is served when.

use pinpriq_server::config::Framing;

use crate::line::encrypted_too;
use crate::world::{in_memory, with_clients};

#[test]
fn nothing_is_delivered_before_the_first_ready() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        subscriber.subscribe("q").await;
        subscriber.fence().await;
        pusher.push("q", 1, "k", "p").await;
        pusher.fence().await;
        subscriber.fence().await;
        subscriber.ready(1).await;
        assert_eq!(subscriber.payloads().await, ["p"]);
        subscriber.fence().await;
    });
}

#[test]
fn credit_adds_up_and_each_buys_one_delivery() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        subscriber.subscribe("q").await;
        subscriber.ready(2).await;
        subscriber.fence().await;
        for (key, payload) in [("a", "1"), ("b", "2"), ("c", "3")] {
            pusher.push("q", 1, key, payload).await;
        }
        pusher.fence().await;
        assert_eq!(subscriber.payloads().await, ["1"]);
        assert_eq!(subscriber.payloads().await, ["2"]);
        subscriber.fence().await;
        subscriber.ready(1).await;
        assert_eq!(subscriber.payloads().await, ["3"]);
        subscriber.fence().await;
    });
}

#[test]
fn one_credit_buys_a_packet_with_its_whole_group() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        for (priority, payload) in [(0, "zero"), (5, "five"), (2, "two")] {
            pusher.push("q", priority, "k", payload).await;
        }
        pusher.push("q", 9, "other", "later").await;
        pusher.fence().await;
        subscriber.subscribe("q").await;
        subscriber.ready(1).await;
        assert_eq!(subscriber.payloads().await, ["two", "five", "zero"]);
        subscriber.fence().await;
        assert_eq!(pusher.pop("q").await, ["later"]);
    });
}

#[test]
fn credit_given_before_the_first_subscription_is_kept() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        pusher.push("q", 1, "a", "1").await;
        pusher.fence().await;
        subscriber.ready(2).await;
        subscriber.fence().await;
        subscriber.subscribe("q").await;
        assert_eq!(subscriber.payloads().await, ["1"]);
        pusher.push("q", 1, "b", "2").await;
        assert_eq!(subscriber.payloads().await, ["2"]);
        subscriber.fence().await;
    });
}

#[test]
fn credit_outlives_an_unsubscribe() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        subscriber.subscribe("a").await;
        subscriber.ready(1).await;
        subscriber.unsubscribe("a").await;
        subscriber.fence().await;
        pusher.push("a", 1, "k", "unclaimed").await;
        pusher.push("b", 1, "k", "claimed").await;
        pusher.fence().await;
        subscriber.fence().await;
        subscriber.subscribe("b").await;
        assert_eq!(subscriber.payloads().await, ["claimed"]);
        assert_eq!(subscriber.pop("a").await, ["unclaimed"]);
    });
}

#[test]
fn credit_serves_the_queue_that_was_served_least_recently() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        for queue in ["a", "b", "c"] {
            for payload in ["1", "2", "3"] {
                pusher.push(queue, 1, payload, &format!("{queue}{payload}")).await;
            }
            subscriber.subscribe(queue).await;
        }
        pusher.fence().await;
        subscriber.fence().await;
        subscriber.ready(9).await;
        let mut rounds = Vec::new();
        for _ in 0..3 {
            let mut round = Vec::new();
            for _ in 0..3 {
                round.extend(subscriber.payloads().await);
            }
            rounds.push(round);
        }
        for (round, number) in rounds.iter().zip(["3", "2", "1"]) {
            let mut round = round.clone();
            round.sort();
            assert_eq!(round, ["a", "b", "c"].map(|queue| format!("{queue}{number}")));
        }
        let turns = |round: &[String]| -> Vec<char> {
            round.iter().filter_map(|payload| payload.chars().next()).collect()
        };
        assert_eq!(turns(&rounds[0]), turns(&rounds[1]));
        assert_eq!(turns(&rounds[1]), turns(&rounds[2]));
    });
}

#[test]
fn priorities_are_compared_within_one_queue_only() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        subscriber.subscribe("a").await;
        subscriber.subscribe("b").await;
        subscriber.fence().await;
        pusher.push("a", 1, "1", "urgent 1").await;
        pusher.push("a", 1, "2", "urgent 2").await;
        pusher.push("b", 255, "1", "late").await;
        pusher.fence().await;
        subscriber.ready(2).await;
        let first = subscriber.payloads().await;
        let second = subscriber.payloads().await;
        let mut both = [first, second].concat();
        both.sort();
        assert_eq!(both, ["late", "urgent 2"]);
    });
}

#[test]
fn a_second_subscribe_is_ignored() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        subscriber.subscribe("q").await;
        subscriber.ready(1).await;
        subscriber.subscribe("q").await;
        subscriber.subscribe("q").await;
        subscriber.fence().await;
        pusher.push("q", 1, "a", "1").await;
        pusher.push("q", 1, "b", "2").await;
        pusher.fence().await;
        assert_eq!(subscriber.payloads().await, ["1"]);
        subscriber.fence().await;
        subscriber.unsubscribe("q").await;
        subscriber.ready(1).await;
        subscriber.fence().await;
        assert_eq!(pusher.pop("q").await, ["2"]);
    });
}

#[test]
fn a_second_subscribe_keeps_the_turn() {
    with_clients(in_memory(), async |_, [first, second, pusher]| {
        for subscriber in [&mut *first, second] {
            subscriber.subscribe("q").await;
            subscriber.ready(1).await;
            subscriber.fence().await;
        }
        first.subscribe("q").await;
        first.fence().await;
        pusher.push("q", 1, "k", "p").await;
        assert_eq!(first.payloads().await, ["p"]);
        second.fence().await;
    });
}

#[test]
fn a_needless_unsubscribe_is_ignored() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        subscriber.unsubscribe("never heard of").await;
        pusher.push("q", 1, "k", "kept").await;
        pusher.fence().await;
        subscriber.unsubscribe("q").await;
        subscriber.unsubscribe("q").await;
        subscriber.fence().await;
        assert_eq!(subscriber.pop("q").await, ["kept"]);
    });
}

#[test]
fn a_subscription_waits_for_a_queue_that_does_not_exist() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        assert_eq!(subscriber.pop("q").await, [""; 0]);
        subscriber.subscribe("q").await;
        subscriber.ready(2).await;
        subscriber.fence().await;
        pusher.push("q", 1, "k", "first").await;
        assert_eq!(subscriber.payloads().await, ["first"]);
        // The queue has gone with its last packet, and the subscription has not.
        pusher.push("q", 1, "k", "second").await;
        assert_eq!(subscriber.payloads().await, ["second"]);
    });
}

#[test]
fn priority_0_waits_for_its_group_and_uses_no_credit() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        subscriber.subscribe("q").await;
        subscriber.ready(1).await;
        subscriber.fence().await;
        pusher.push("q", 0, "k", "rider").await;
        pusher.push("q", 0, "other", "stays").await;
        pusher.fence().await;
        subscriber.fence().await;
        pusher.push("q", 200, "k", "driver").await;
        assert_eq!(subscriber.payloads().await, ["driver", "rider"]);
        pusher.push("q", 1, "unpaid", "unpaid").await;
        pusher.fence().await;
        subscriber.fence().await;
    });
}

#[test]
fn several_subscribers_are_served_in_the_order_of_their_readiness() {
    with_clients(in_memory(), async |world, [pusher]| {
        let mut subscribers = Vec::new();
        for _ in 0..3 {
            let mut subscriber = world.connect().await;
            subscriber.subscribe("q").await;
            subscriber.fence().await;
            subscribers.push(subscriber);
        }
        // They subscribed as 0, 1, 2 and become ready as 2, 0, 1. Each is ready for two.
        for index in [2, 0, 1] {
            subscribers[index].ready(2).await;
            subscribers[index].fence().await;
        }
        for number in 0..6 {
            pusher.push("q", 1, &number.to_string(), &number.to_string()).await;
        }
        pusher.fence().await;
        for (index, payloads) in [(2, ["0", "3"]), (0, ["1", "4"]), (1, ["2", "5"])] {
            for payload in payloads {
                assert_eq!(subscribers[index].payloads().await, [payload]);
            }
            subscribers[index].fence().await;
        }
    });
}

#[test]
fn pop_wins_over_a_subscriber_without_credit() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        subscriber.subscribe("q").await;
        subscriber.fence().await;
        pusher.push("q", 1, "k", "p").await;
        assert_eq!(pusher.pop("q").await, ["p"]);
        subscriber.ready(1).await;
        subscriber.fence().await;
    });
}

#[test]
fn a_delivered_packet_is_seen_by_no_pop() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        subscriber.subscribe("q").await;
        subscriber.ready(1).await;
        subscriber.fence().await;
        pusher.push("q", 1, "k", "p").await;
        assert_eq!(pusher.pop("q").await, [""; 0]);
        assert_eq!(subscriber.payloads().await, ["p"]);
    });
}

#[test]
fn a_client_can_deliver_to_itself() {
    with_clients(in_memory(), async |_, [client]| {
        client.subscribe("q").await;
        client.ready(1).await;
        client.push("q", 1, "a", "1").await;
        client.push("q", 1, "b", "2").await;
        assert_eq!(client.payloads().await, ["1"]);
        assert_eq!(client.pop("q").await, ["2"]);
        client.fence().await;
    });
}

#[test]
fn after_unsubscribe_and_a_fence_no_delivery_comes() {
    with_clients(in_memory(), async |_, [subscriber, pusher]| {
        subscriber.subscribe("q").await;
        subscriber.ready(3).await;
        pusher.push("q", 1, "a", "on its way").await;
        pusher.fence().await;
        subscriber.unsubscribe("q").await;
        assert_eq!(subscriber.payloads().await, ["on its way"]);
        subscriber.fence().await;
        pusher.push("q", 1, "b", "too late").await;
        pusher.fence().await;
        subscriber.fence().await;
    });
}

#[test]
fn a_disconnect_voids_subscriptions_and_credit() {
    with_clients(in_memory(), async |world, [subscriber, pusher]| {
        subscriber.push("q", 0, "kept", "kept").await;
        subscriber.subscribe("q").await;
        subscriber.ready(5).await;
        subscriber.fence().await;
        subscriber.half_close().await;
        subscriber.ended().await;
        pusher.push("q", 1, "kept", "p").await;
        assert_eq!(pusher.pop("q").await, ["p", "kept"]);
        // The same client coming back begins with nothing.
        let mut subscriber = world.connect().await;
        pusher.push("q", 1, "k", "p").await;
        pusher.fence().await;
        subscriber.subscribe("q").await;
        subscriber.fence().await;
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

encrypted_too! {
    nothing_is_delivered_before_the_first_ready credit_adds_up_and_each_buys_one_delivery
    one_credit_buys_a_packet_with_its_whole_group
    credit_given_before_the_first_subscription_is_kept credit_outlives_an_unsubscribe
    credit_serves_the_queue_that_was_served_least_recently
    priorities_are_compared_within_one_queue_only a_second_subscribe_is_ignored
    a_second_subscribe_keeps_the_turn a_needless_unsubscribe_is_ignored
    a_subscription_waits_for_a_queue_that_does_not_exist
    priority_0_waits_for_its_group_and_uses_no_credit
    several_subscribers_are_served_in_the_order_of_their_readiness
    pop_wins_over_a_subscriber_without_credit a_delivered_packet_is_seen_by_no_pop
    a_client_can_deliver_to_itself after_unsubscribe_and_a_fence_no_delivery_comes
    a_disconnect_voids_subscriptions_and_credit bare_deliveries_are_packets_without_a_number
}
