//! Subscriptions to the queues of several shards: who delivers, in which order, and that nothing is
//! delivered twice, lost, or beyond the credit.

use pinpriq_proto::wire::resp::Value;

use super::{
    SHARDS, World, ask_until_some, homes, payloads, queue_in, queues, several, with_homes,
};
use crate::resp::client::{Client, check_balance, elements, field, number, show};
use crate::world::test;

/// All queues of [`queues`], as a subscription names them.
fn all() -> String {
    format!("QUEUES {SHARDS} {}", queues().join(" "))
}

/// A delivery: its queue, receipt and payload.
async fn delivery(client: &mut Client) -> [String; 3] {
    parts_of(&client.value().await)
}

fn parts_of(delivery: &Value) -> [String; 3] {
    let parts = elements(delivery);
    assert_eq!(show(&parts[0]), "task");
    [1, 3, 4].map(|part| show(&parts[part]))
}

/// The payload of a delivery.
async fn delivered(client: &mut Client) -> String {
    let [_, _, payload] = delivery(client).await;
    payload
}

/// What is ready in all queues.
async fn ready(client: &mut Client) -> i64 {
    let figures = client.ask("STATS").await;
    check_balance(&figures);
    number(field(&figures, "counts"), "R")
}

/// Asks until this many tasks are ready in all queues.
async fn see_ready(client: &mut Client, count: i64) {
    while ready(client).await != count {}
}

#[test]
fn each_shard_delivers_as_much_as_the_credit_permits() {
    with_homes(several(), async |_, homes| {
        for home in 0..SHARDS {
            let putter = (home + 1) % SHARDS;
            for mode in ["", " POP", " TTR 90000"] {
                let subscribe = format!("SUBSCRIBE {}{mode}", all());
                assert_eq!(homes[home].reply("READY").await, "1");
                assert_eq!(homes[home].reply(&subscribe).await, "3");
                for queue in queues().iter().rev() {
                    homes[putter].ask(&format!("PUT {queue} {queue}")).await;
                    let [from, receipt, payload] = delivery(&mut homes[home]).await;
                    assert_eq!((&from, &payload), (queue, queue));
                    if mode == " POP" {
                        assert_eq!(receipt, "null");
                    } else {
                        let ack = format!("ACK {queue} {receipt}");
                        assert_eq!(homes[home].reply(&ack).await, "OK");
                    }
                    // There is no credit, so the next one stays.
                    homes[putter].ask(&format!("PUT {queue} later")).await;
                    let left = homes[putter].ask(&format!("POP {queue}")).await;
                    assert_eq!(payloads(&left), ["later"], "{mode}");
                    assert_eq!(homes[home].reply("READY").await, "1");
                }
                assert_eq!(homes[home].reply("UNSUBSCRIBE").await, "0");
                assert_eq!(homes[home].reply("RESET").await, "RESET");
            }
        }
        assert_eq!(number(&homes[0].ask("STATS").await, "present"), 0);
    });
}

#[test]
fn one_credit_goes_to_the_most_urgent_task_of_all_shards() {
    with_homes(several(), async |_, homes| {
        let [one, other, third] = queues();
        for home in 0..SHARDS {
            let (client, putter) = (home, (home + 1) % SHARDS);
            for (queue, priority) in [(&one, 3), (&other, 1), (&third, 2), (&other, 4)] {
                let put = format!("PUT {queue} p{priority} PRIORITY {priority}");
                homes[putter].ask(&put).await;
            }
            for mode in ["", " POP"] {
                homes[client].ask(&format!("SUBSCRIBE {}{mode}", all())).await;
                for priority in 1..=2 {
                    assert_eq!(homes[client].reply("READY").await, "1");
                    let payload = delivered(&mut homes[client]).await;
                    let expected = if mode.is_empty() { priority } else { priority + 2 };
                    assert_eq!(payload, format!("p{expected}"), "{mode}");
                }
            }
            homes[client].ask("RESET").await;
            // Leases end with a reset, which is a failure.
            for queue in queues() {
                while !payloads(&homes[putter].ask(&format!("POP {queue} COUNT 9")).await)
                    .is_empty()
                {}
            }
        }
    });
}

#[test]
fn what_comes_in_all_shards_at_once_is_delivered_once_for_one_credit() {
    with_homes(several(), async |_, [client, putter, other]| {
        for mode in ["", " POP", " TTR 90000"] {
            client.ask(&format!("SUBSCRIBE {}{mode}", all())).await;
            for _ in 0..30 {
                assert_eq!(client.reply("READY").await, "1");
                let puts = queues().map(|queue| format!("PUT {queue} p\r\n")).concat();
                putter.exchange(puts.as_bytes(), SHARDS).await;
                let [queue, receipt, _] = delivery(client).await;
                if mode != " POP" {
                    client.ask(&format!("ACK {queue} {receipt}")).await;
                }
                see_ready(other, 2).await;
                let mut left = Vec::new();
                for queue in queues() {
                    left.extend(payloads(&other.ask(&format!("POP {queue} COUNT 9")).await));
                }
                assert_eq!(left, ["p", "p"], "{mode}");
            }
            client.ask("RESET").await;
        }
        let figures = other.ask("STATS").await;
        check_balance(&figures);
        assert_eq!(number(&figures, "failures"), 0);
    });
}

#[test]
fn subscriptions_grow_into_further_shards_and_keep_the_credit() {
    with_homes(several(), async |_, homes| {
        for home in 0..SHARDS {
            for first in 0..SHARDS {
                let (queue, further) = (queue_in(first, 0), queue_in((first + 1) % SHARDS, 0));
                let last = queue_in((first + 2) % SHARDS, 0);
                let (client, putter) = (home, (home + 1) % SHARDS);
                assert_eq!(homes[client].reply("CREDIT 2").await, "2");
                assert_eq!(homes[client].reply(&format!("SUBSCRIBE {queue} POP")).await, "1");
                homes[putter].ask(&format!("PUT {queue} 1")).await;
                assert_eq!(delivered(&mut homes[client]).await, "1");
                assert_eq!(homes[client].reply("CREDIT 3").await, "4");
                assert_eq!(homes[client].reply(&format!("SUBSCRIBE {further} POP")).await, "2");
                assert_eq!(homes[client].reply(&format!("SUBSCRIBE {further} POP")).await, "2");
                assert_eq!(homes[client].reply(&format!("SUBSCRIBE {last} POP")).await, "3");
                for (queue, payload) in [(&further, "2"), (&queue, "3"), (&last, "4")] {
                    homes[putter].ask(&format!("PUT {queue} {payload}")).await;
                    assert_eq!(delivered(&mut homes[client]).await, payload);
                }
                assert_eq!(homes[client].reply("READY").await, "2");
                assert_eq!(homes[client].reply(&format!("UNSUBSCRIBE {queue}")).await, "2");
                homes[putter].ask(&format!("PUT {queue} stays")).await;
                for payload in ["5", "6"] {
                    homes[putter].ask(&format!("PUT {further} {payload}")).await;
                    assert_eq!(delivered(&mut homes[client]).await, payload);
                }
                assert_eq!(homes[client].reply("UNSUBSCRIBE").await, "0");
                assert_eq!(homes[client].reply("CREDIT 1").await, "1");
                let left = homes[putter].ask(&format!("POP {queue}")).await;
                assert_eq!(payloads(&left), ["stays"]);
                assert_eq!(homes[client].reply("RESET").await, "RESET");
            }
        }
    });
}

#[test]
fn a_blocked_take_holds_up_no_delivery() {
    with_homes(several(), async |_, [client, putter, _]| {
        client.ask("HELLO 3").await;
        client.ask(&format!("SUBSCRIBE {} POP", all())).await;
        for shard in 0..SHARDS {
            client.ask("CREDIT 3").await;
            client.say(&format!("TAKE {} WAIT -1", queue_in(shard, 1))).await;
            for queue in queues() {
                putter.ask(&format!("PUT {queue} {queue}")).await;
                assert_eq!(delivered(client).await, queue);
            }
            putter.ask(&format!("PUT {} taken", queue_in(shard, 1))).await;
            assert_eq!(payloads(&client.value().await), ["taken"]);
        }
    });
}

#[test]
fn there_is_one_bound_of_subscriptions_over_all_shards() {
    let mut config = several();
    config.limits.subscriptions_max = 3;
    with_homes(config, async |_, [client, ..]| {
        let [one, other, third] = queues();
        let further = queue_in(1, 1);
        assert_eq!(client.reply(&format!("UNSUBSCRIBE {}", all())).await, "0");
        assert_eq!(client.reply(&format!("SUBSCRIBE QUEUES 2 {one} {other}")).await, "2");
        let four = format!("SUBSCRIBE QUEUES 3 {other} {third} {further}");
        assert_eq!(client.reply(&four).await, "BUSY");
        assert_eq!(client.reply(&format!("SUBSCRIBE QUEUES 2 {other} {third}")).await, "3");
        assert_eq!(client.reply(&format!("SUBSCRIBE {further}")).await, "BUSY");
        assert_eq!(client.reply(&format!("UNSUBSCRIBE QUEUES 2 {one} {further}")).await, "2");
        assert_eq!(client.reply(&format!("SUBSCRIBE {further}")).await, "3");
        assert_eq!(client.reply(&format!("UNSUBSCRIBE {}", all())).await, "1");
        let figures = client.ask("RESET").await;
        drop(figures);
        assert_eq!(number(&client.ask("STATS").await, "subscribers"), 0);
    });
}

#[test]
fn one_shard_that_refuses_undoes_what_others_have_begun() {
    with_homes(several(), async |_, [client, putter, _]| {
        let [one, other, _] = queues();
        for topic in [&one, &other] {
            client.ask(&format!("JOIN {topic} m LEASE 600000")).await;
        }
        let [.., third] = queues();
        let subscribe = format!("SUBSCRIBE QUEUES 3 {one} {third} {other} MEMBER m");
        assert_eq!(client.reply(&subscribe).await, "NOTFOUND");
        assert_eq!(number(&client.ask("STATS").await, "subscribers"), 0);
        let subscribe = format!("SUBSCRIBE QUEUES 2 {one} {other} MEMBER m");
        assert_eq!(client.reply(&subscribe).await, "2");
        assert_eq!(client.reply("READY").await, "1");
        putter.ask(&format!("PUBLISH {other} news")).await;
        assert_eq!(delivered(client).await, "news");
        // A lane ends with its subscription.
        putter.ask("LEAVE m").await;
        while number(&putter.ask("STATS").await, "subscribers") > 0 {}
        assert_eq!(client.reply("UNSUBSCRIBE").await, "0");
    });
}

#[test]
fn an_undone_subscribe_leaves_former_subscriptions_as_they_were() {
    with_homes(several(), async |_, [client, putter, other]| {
        let ([one, second, third], later) = (queues(), queue_in(1, 1));
        for topic in [&one, &second] {
            putter.ask(&format!("JOIN {topic} m LEASE 600000")).await;
        }
        for (former, wrong) in [("POP", "TTR 90000"), ("TTR 70000", "POP"), ("TTR 70000", "")] {
            let subscribe = format!("SUBSCRIBE {one} MEMBER m {former}");
            assert_eq!(client.reply(&subscribe).await, "1");
            let wrong = format!("SUBSCRIBE QUEUES 3 {second} {third} {one} MEMBER m {wrong}");
            for round in 0..20 {
                client.ask("CREDIT 1").await;
                client.say(wrong.trim()).await;
                putter.ask(&format!("PUBLISH {one} news")).await;
                putter.ask(&format!("PUBLISH {second} other")).await;
                // Either comes first.
                let (mut told, mut delivery) = (client.value().await, client.value().await);
                if let Value::Error(_) = delivery {
                    std::mem::swap(&mut told, &mut delivery);
                }
                assert_eq!(show(&told), "NOTFOUND", "{round}");
                let [queue, receipt, payload] = parts_of(&delivery);
                assert_eq!((&queue, &*payload), (&one, "news"), "{former}");
                assert_eq!(receipt == "null", former == "POP", "{former}, {round}");
                if former != "POP" {
                    let touch = format!("TOUCH {one} {receipt} MEMBER m");
                    let until = client.ask(&touch).await.integer().unwrap();
                    other.ask(&format!("PUT {later} p")).await;
                    let taken = other.ask(&format!("TAKE {later} TTR 80000")).await;
                    let receipt = show(&elements(&elements(&taken)[0])[2]);
                    let touch = format!("TOUCH {later} {receipt}");
                    assert!(until < other.ask(&touch).await.integer().unwrap());
                }
            }
            client.ask("RESET").await;
        }
    });
}

#[test]
fn subscribers_of_all_shards_and_takers_share_the_tasks() {
    test(async || {
        let world = World::start_by_the_machine(several()).await;
        let [mut putter, mut taker, mut other] = homes(&world).await;
        let mut readers = Vec::new();
        for (at, mode) in ["", " POP", " TTR 90000", " POP"].into_iter().enumerate() {
            let mut client = world.connect().await;
            client.ask("HELLO 3").await;
            client.ask(&format!("SUBSCRIBE {}{mode}", all())).await;
            client.ask(&format!("CREDIT {}", [1, 2, 7, 40][at])).await;
            readers.push(tokio::task::spawn_local(async move {
                let mut got = Vec::new();
                loop {
                    let Value::Push(parts) = client.value().await else { continue };
                    let [queue, receipt, payload] = [1, 3, 4].map(|part| show(&parts[part]));
                    if payload == "end" {
                        return got;
                    }
                    got.push(payload);
                    if receipt != "null" {
                        client.say(&format!("ACK {queue} {receipt}")).await;
                    }
                    client.say("READY").await;
                }
            }));
        }
        let mut all_got = Vec::new();
        for number in 0..300 {
            let queue = &queues()[number % SHARDS];
            putter.ask(&format!("PUT {queue} {number}")).await;
            if number % 5 == 0 {
                all_got.extend(payloads(&taker.ask(&format!("POP {}", all())).await));
            }
        }
        while number(&other.ask("STATS").await, "present") > 0 {}
        for _ in 0..readers.len() {
            putter.ask(&format!("PUT {} end", queues()[0])).await;
        }
        for reader in readers {
            all_got.extend(reader.await.unwrap());
        }
        let mut numbers: Vec<usize> = all_got.iter().map(|it| it.parse().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..300).collect::<Vec<_>>());
        drop((taker, other));
        world.end().await;
    });
}

#[test]
fn what_was_not_sent_goes_back_when_the_connection_ends() {
    test(async || {
        let world = World::start_by_the_machine(several()).await;
        let [mut putter, mut other, third] = homes(&world).await;
        for round in 0..40 {
            let mode = ["", " POP"][round % 2];
            let mut client = world.connect().await;
            client.ask(&format!("SUBSCRIBE {}{mode}", all())).await;
            client.ask(&format!("CREDIT {}", 1 + round % 5)).await;
            let puts = queues().map(|queue| format!("PUT {queue} p\r\n")).concat();
            client.say("READY").await;
            let put = putter.exchange(puts.as_bytes(), SHARDS);
            if round % 3 == 0 {
                drop(client);
                put.await;
            } else {
                put.await;
                drop(client);
            }
            // What was sent and popped is gone; all others are ready.
            while field_of(&mut other, "subscribers").await > 0 {}
            while number(field(&other.ask("STATS").await, "counts"), "T") > 0 {}
            let mut back = 0;
            while field_of(&mut other, "present").await > 0 {
                let tasks = ask_until_some(&mut other, &format!("POP {} COUNT 9", all())).await;
                back += elements(&tasks).len();
            }
            if mode.is_empty() {
                assert_eq!(back, SHARDS, "leased ones come back");
            }
            check_balance(&other.ask("STATS").await);
        }
        drop((putter, other, third));
        world.end().await;
    });
}

async fn field_of(client: &mut Client, name: &str) -> i64 {
    number(&client.ask("STATS").await, name)
}
