//! Deliveries of several shards that are called back: what they have cost is there again.

use pinpriq_proto::wire::resp::Value;

use super::{SHARDS, queues, several, with_homes};
use crate::resp::client::{Client, elements, show};

/// Reads a message, and returns its word, its queue and its receipt.
async fn message(client: &mut Client) -> [String; 3] {
    parts_of(&client.value().await)
}

fn parts_of(message: &Value) -> [String; 3] {
    [0, 1, 3].map(|part| show(&elements(message)[part]))
}

#[test]
fn what_is_called_back_has_cost_no_credit() {
    with_homes(several(), async |_, homes| {
        let all = format!("QUEUES {SHARDS} {}", queues().join(" "));
        for home in 0..SHARDS {
            let (client, putter) = (home, (home + 1) % SHARDS);
            homes[client].ask(&format!("SUBSCRIBE {all} TTR 90000 RECALL")).await;
            assert_eq!(homes[client].reply("CREDIT 3").await, "3");
            for queue in queues() {
                homes[putter].ask(&format!("PUT {queue} late PRIORITY 5")).await;
                let [word, from, late] = message(&mut homes[client]).await;
                assert_eq!((word.as_str(), &from), ("task", &queue));
                // All credit may be in other shards.
                if queue != queues()[SHARDS - 1] {
                    continue;
                }
                {
                    homes[putter].ask(&format!("PUT {queue} urgent PRIORITY 1")).await;
                    let [word, _, receipt] = message(&mut homes[client]).await;
                    assert_eq!((word.as_str(), &receipt), ("recall", &late));
                    let [word, _, urgent] = message(&mut homes[client]).await;
                    assert_eq!(word, "task");
                    let start = format!("START {queue} {late}");
                    assert!(homes[client].reply(&start).await.starts_with("STALE"));
                    for request in ["START", "ACK"] {
                        let request = format!("{request} {queue} {urgent}");
                        assert_eq!(homes[client].reply(&request).await, "OK");
                    }
                    // The one that was called back comes again, for a new credit.
                    assert_eq!(homes[client].reply("READY").await, "1");
                    assert_eq!(message(&mut homes[client]).await[0], "task");
                }
            }
            // What is unstarted comes back before the reply, and its credit is there again.
            homes[client].say("UNSUBSCRIBE").await;
            let mut back = Vec::new();
            for _ in 0..SHARDS {
                let [word, queue, _] = message(&mut homes[client]).await;
                assert_eq!(word, "recall");
                back.push(queue);
            }
            back.sort();
            let mut expected = queues();
            expected.sort();
            assert_eq!(back, expected);
            assert_eq!(show(&homes[client].value().await), "0");
            assert_eq!(homes[client].reply("READY").await, "4");
            assert_eq!(homes[client].reply("RESET").await, "RESET");
            for queue in queues() {
                let popped = homes[putter].ask(&format!("POP {queue} COUNT 9 WITHMETA")).await;
                assert_eq!(elements(&popped).len(), 1, "{queue}");
            }
        }
    });
}

#[test]
fn what_other_shards_deliver_tells_everything_and_is_started_at_once() {
    with_homes(several(), async |_, homes| {
        let all = format!("QUEUES {SHARDS} {}", queues().join(" "));
        for home in 0..SHARDS {
            let (client, putter) = (home, (home + 1) % SHARDS);
            homes[client].ask(&format!("SUBSCRIBE {all} TTR 90000 RECALL WITHMETA")).await;
            assert_eq!(homes[client].reply("CREDIT 6").await, "6");
            for queue in queues() {
                let mut receipts = Vec::new();
                for payload in ["one", "two"] {
                    homes[putter].ask(&format!("PUT {queue} {payload} PRIORITY 5")).await;
                    let delivery = homes[client].value().await;
                    let task = &elements(&delivery)[1];
                    let field = |name| show(task.field(name).unwrap());
                    let known = ["queue", "payload", "priority", "attempts"].map(field);
                    assert_eq!(known, [&queue, payload, "5", "1"]);
                    receipts.push(field("receipt"));
                }
                for command in ["START", "ACK"] {
                    let request = format!("{command} {queue} {}", receipts.join(" "));
                    let told = homes[client].ask(&request).await;
                    assert_eq!(elements(&told).iter().map(show).collect::<Vec<_>>(), ["OK", "OK"]);
                }
            }
            // The last SUBSCRIBE decides, for all shards.
            homes[client].ask(&format!("SUBSCRIBE {all} TTR 90000")).await;
            assert_eq!(homes[client].reply("CREDIT 3").await, "3");
            for queue in queues() {
                homes[putter].ask(&format!("PUT {queue} three")).await;
                let delivery = homes[client].value().await;
                assert_eq!(show(&elements(&delivery)[4]), "three");
            }
            assert_eq!(homes[client].reply("RESET").await, "RESET");
            for queue in queues() {
                homes[putter].ask(&format!("POP {queue}")).await;
            }
        }
    });
}
