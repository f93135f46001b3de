//! Takes and subscriptions: where their queues must live, and what becomes of what is delivered.

use pinpriq_proto::wire::resp::Value;

use super::{
    SHARDS, World, ask_until_some, homes, payloads, queue_in, queues, several, with_homes,
};
use crate::resp::client::{Client, check_balance, elements, number, show};
use crate::world::test;

/// Names of queues that all live in one shard.
fn tagged(shard: usize) -> [String; 2] {
    let tag = queue_in(shard, 0);
    [format!("{{{tag}}}a"), format!("b{{{tag}}}")]
}

/// The payload of a delivery.
async fn delivered(client: &mut Client) -> String {
    show(&elements(&client.value().await)[4])
}

#[test]
fn queues_with_a_common_tag_are_taken_from_together() {
    with_homes(several(), async |_, homes| {
        for home in 0..SHARDS {
            for shard in 0..SHARDS {
                let [one, other] = tagged(shard);
                homes[home].ask(&format!("PUT {one} 1")).await;
                homes[home].ask(&format!("PUT {other} 2")).await;
                let taken = homes[home].ask(&format!("POP QUEUES 2 {one} {other} COUNT 5")).await;
                assert_eq!(payloads(&taken), ["1", "2"]);
                // And from a shard of another home than that of the waiter.
                homes[home].say(&format!("TAKE QUEUES 2 {one} {other} WAIT -1")).await;
                let (name, putter) = (homes[home].name(), (home + 1) % SHARDS);
                homes[putter].see_blocked(&name).await;
                homes[putter].ask(&format!("PUT {other} late")).await;
                let taken = homes[home].value().await;
                assert_eq!(payloads(&taken), ["late"]);
                let ack = format!("ACK {other} {}", crate::resp::client::receipt(&taken));
                assert_eq!(homes[home].reply(&ack).await, "OK");
            }
        }
    });
}

#[test]
fn subscriptions_in_one_shard_last_until_a_reset() {
    with_homes(several(), async |_, homes| {
        for home in 0..SHARDS {
            for shard in 0..SHARDS {
                let next = (shard + 1) % SHARDS;
                let (queue, elsewhere) = (queue_in(shard, 0), queue_in(next, 0));
                let (client, putter) = (home, (home + 1) % SHARDS);
                assert_eq!(homes[client].reply(&format!("SUBSCRIBE {queue} POP")).await, "1");
                let further = queue_in(shard, 1);
                assert_eq!(homes[client].reply(&format!("SUBSCRIBE {further} POP")).await, "2");
                assert_eq!(homes[client].reply("CREDIT 9").await, "9");
                for queue in [&queue, &further] {
                    homes[putter].ask(&format!("PUT {queue} {queue}")).await;
                    assert_eq!(delivered(&mut homes[client]).await, *queue);
                }
                assert_eq!(homes[client].reply("RESET").await, "RESET");
                // Nothing of what was there before is left: subscription, credit, or shard.
                let subscribed = homes[client].reply(&format!("SUBSCRIBE {elsewhere} POP")).await;
                assert_eq!(subscribed, "1");
                for queue in [&queue, &elsewhere] {
                    homes[putter].ask(&format!("PUT {queue} p")).await;
                    let left = homes[putter].ask(&format!("PEEK {queue}")).await;
                    assert_eq!(payloads(&left), ["p"]);
                }
                assert_eq!(homes[client].reply("READY").await, "1");
                assert_eq!(delivered(&mut homes[client]).await, "p");
                assert_eq!(homes[client].reply("RESET").await, "RESET");
                let left = homes[client].ask(&format!("POP {queue}")).await;
                assert_eq!(payloads(&left), ["p"]);
            }
        }
    });
}

#[test]
fn credits_count_wherever_the_first_subscription_leads() {
    with_homes(several(), async |_, homes| {
        for home in 0..SHARDS {
            for shard in 0..SHARDS {
                let queue = queue_in(shard, 0);
                assert_eq!(homes[home].reply("CREDIT 2").await, "2");
                assert_eq!(homes[home].reply("READY").await, "3");
                assert_eq!(homes[home].reply(&format!("SUBSCRIBE {queue} POP")).await, "1");
                assert_eq!(homes[home].reply("CREDIT 1").await, "4");
                let putter = &mut homes[(home + 1) % SHARDS];
                for number in 0..6 {
                    putter.ask(&format!("PUT {queue} {number}")).await;
                }
                let left = putter.ask(&format!("PEEK {queue} COUNT 9")).await;
                assert_eq!(payloads(&left), ["4", "5"]);
                putter.ask(&format!("POP {queue} COUNT 9")).await;
                for number in 0..4 {
                    assert_eq!(delivered(&mut homes[home]).await, number.to_string());
                }
                assert_eq!(homes[home].reply("CREDIT 1").await, "1");
                assert_eq!(homes[home].reply("RESET").await, "RESET");
            }
        }
    });
}

#[test]
fn what_was_not_read_goes_back_to_the_shard_from_which_it_came() {
    test(async || {
        let mut config = several();
        config.limits.payload_bytes_max = 16 << 20;
        let world = World::start_by_the_machine(config).await;
        // One in each shard, so that the next is at home in the first.
        let [mut control, _second, _third] = homes(&world).await;
        let payload = vec![b'p'; 16 << 20];
        for queue in queues() {
            for requests in [
                vec![format!("SUBSCRIBE {queue} POP"), "CREDIT 5".to_owned()],
                vec![format!("SUBSCRIBE {queue}"), "CREDIT 5".to_owned()],
                vec![format!("POP {queue}")],
                vec![format!("TAKE {queue} TTR 100000")],
            ] {
                let mut client = world.connect().await;
                let delivers = requests.len() > 1;
                if delivers {
                    for request in &requests {
                        client.ask(request).await;
                    }
                    // It takes this one whole, which is not to come back.
                    control.ask(&format!("PUT {queue} read")).await;
                    assert_eq!(delivered(&mut client).await, "read");
                }
                // More than the sockets hold, and it is never read.
                control.ask_words(&[b"PUT", queue.as_bytes(), &payload]).await;
                if !delivers {
                    client.say(&requests[0]).await;
                }
                while show(&control.ask(&format!("PEEK {queue}")).await) != "[]" {}
                drop(client);
                // What was leased ends with the connection, also when it was read.
                let expected = if requests[0] == format!("SUBSCRIBE {queue}") { 2 } else { 1 };
                let mut back = Vec::new();
                while back.len() < expected {
                    let tasks = ask_until_some(&mut control, &format!("POP {queue} COUNT 9")).await;
                    back.extend(elements(&tasks).iter().map(|task| elements(task)[3].clone()));
                }
                let is_large = |value: &Value| value.as_bytes() == Some(&payload[..]);
                assert!(back.iter().any(is_large), "{requests:?}");
                let figures = control.ask("STATS").await;
                check_balance(&figures);
                assert_eq!(number(&figures, "present"), 0);
            }
        }
        world.end().await;
    });
}
