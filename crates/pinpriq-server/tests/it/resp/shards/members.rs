//! Members with lanes in several shards.

use pinpriq_proto::wire::resp::put_command;

use super::{SHARDS, homes, payloads, queue_in, queues, several, several_shards, with_homes};
use crate::resp::client::{Client, elements, field, number, receipt, show};
use crate::world::test;

/// Until when each member of a topic is alive, by name.
async fn leases(client: &mut Client, topic: &str) -> Vec<(String, i64)> {
    let members = client.ask(&format!("MEMBERS {topic}")).await;
    let one = |it| (show(field(it, "member")), number(it, "lease_until"));
    elements(&members).iter().map(one).collect()
}

#[test]
fn a_member_is_alive_in_every_shard_and_leaves_all_of_them() {
    with_homes(several(), async |_, homes| {
        for client in homes {
            let topics = queues();
            for topic in &topics {
                let joined = client.reply(&format!("JOIN {topic} m LEASE 1000000")).await;
                assert!(joined.parse::<u64>().is_ok(), "{joined}");
            }
            let further = queue_in(1, 1);
            client.ask(&format!("JOIN {further} m")).await;
            client.ask(&format!("JOIN {further} other")).await;
            let mut before = Vec::new();
            for topic in &topics {
                before.push(leases(client, topic).await[0].1);
            }
            assert_eq!(client.reply("BEAT m LEASE 9000000").await, "OK");
            for (topic, before) in topics.iter().zip(before) {
                let after = leases(client, topic).await;
                assert_eq!((after.len(), after[0].0.as_str()), (1, "m"));
                assert!(after[0].1 >= before + 7_000_000, "{topic}: {before} {after:?}");
            }
            // One that is known in one shard alone is known.
            assert_eq!(client.reply("BEAT other").await, "OK");
            assert_eq!(client.reply("BEAT nemo").await, "NOTFOUND");
            assert_eq!(client.reply(&format!("LEAVE {} m", topics[2])).await, "1");
            assert_eq!(client.reply("LEAVE m").await, "3");
            assert_eq!(client.reply("LEAVE m").await, "0");
            assert_eq!(client.reply("BEAT m").await, "NOTFOUND");
            for topic in topics {
                assert_eq!(leases(client, &topic).await, []);
            }
            assert_eq!(client.reply("LEAVE other").await, "1");
        }
    });
}

#[test]
fn members_of_another_shard_are_told_however_long_their_names_are() {
    const MEMBERS: usize = 60;
    with_homes(several(), async |_, homes| {
        let topic = queue_in(0, 0);
        let name = |number: usize| format!("{number:020000}");
        for number in 0..MEMBERS {
            homes[0].ask(&format!("JOIN {topic} {}", name(number))).await;
        }
        for client in homes {
            // Nothing overtakes anything.
            for line in [format!("MEMBERS {topic}"), format!("GET {topic} none")] {
                client.say(&line).await;
            }
            let members = client.value().await;
            let names = elements(&members).iter().map(|it| show(field(it, "member")));
            assert!(names.eq((0..MEMBERS).map(name)), "other members");
            assert_eq!(show(&client.value().await), "null");
        }
    });
}

#[test]
fn what_is_published_in_any_shard_comes_to_the_lanes_there() {
    test(async || {
        let world = several_shards().await;
        let mut homes = homes(&world).await;
        let topics = queues();
        for (home, client) in homes.iter_mut().enumerate() {
            for topic in &topics[..=home] {
                client.ask(&format!("JOIN {topic} m{home}")).await;
            }
        }
        for (home, client) in homes.iter_mut().enumerate() {
            for (place, topic) in topics.iter().enumerate() {
                // In the first are three members, in the last is one.
                let lanes = client.reply(&format!("PUBLISH {topic} {home}")).await;
                assert_eq!(lanes, (SHARDS - place).to_string());
            }
        }
        for (member, client) in homes.iter_mut().enumerate() {
            for topic in &topics[..=member] {
                let line = format!("TAKE {topic} COUNT 9 WAIT 1000 MEMBER m{member}");
                let taken = client.ask(&line).await;
                assert_eq!(payloads(&taken), ["0", "1", "2"]);
                let ack = format!("ACK {topic} {}", receipt(&taken));
                assert_eq!(client.reply(&ack).await, "OK");
            }
            let elsewhere = client.ask(&format!("TAKE {} MEMBER nemo", topics[0])).await;
            assert_eq!(show(&elsewhere), "NOTFOUND");
        }
        assert_eq!(number(&homes[0].ask("STATS").await, "present"), 2 * 6);
        for (member, client) in homes.iter_mut().enumerate() {
            assert_eq!(client.reply(&format!("LEAVE m{member}")).await, (member + 1).to_string());
        }
        while number(&homes[0].ask("STATS").await, "present") > 0 {}
        world.end().await;
    });
}

#[test]
fn a_lane_in_another_shard_is_subscribed_to_and_waited_for() {
    with_homes(several(), async |_, homes| {
        for home in 0..SHARDS {
            for topic in queues() {
                homes[home].ask(&format!("JOIN {topic} m")).await;
                homes[home].say(&format!("POP {topic} WAIT -1 MEMBER m")).await;
                let name = homes[home].name();
                let publisher = (home + 2) % SHARDS;
                homes[publisher].see_blocked(&name).await;
                assert_eq!(homes[publisher].reply(&format!("PUBLISH {topic} one")).await, "1");
                assert_eq!(payloads(&homes[home].value().await), ["one"]);
                let subscribed = homes[home].reply(&format!("SUBSCRIBE {topic} MEMBER m")).await;
                assert_eq!(subscribed, "1");
                assert_eq!(homes[home].reply("READY").await, "1");
                homes[publisher].ask(&format!("PUBLISH {topic} two")).await;
                let delivery = homes[home].value().await;
                assert_eq!(show(&elements(&delivery)[4]), "two");
                assert_eq!(homes[home].reply("RESET").await, "RESET");
                assert_eq!(homes[home].reply("LEAVE m").await, "1");
            }
        }
    });
}

#[test]
fn who_leaves_and_joins_at_once_is_a_member() {
    test(async || {
        let world = several_shards().await;
        for client in &mut homes(&world).await {
            for topic in queues() {
                let mut requests = Vec::new();
                for _ in 0..20 {
                    // What all shards are asked for comes before what stands behind it.
                    let join = [&b"JOIN"[..], topic.as_bytes(), b"m"];
                    for words in [&join[..], &[b"BEAT", b"m"], &[b"LEAVE", b"m"]] {
                        put_command(&mut requests, words);
                    }
                }
                let replies = client.exchange(&requests, 60).await;
                for (round, replies) in replies.chunks_exact(3).enumerate() {
                    assert_eq!(show(&replies[1]), "OK", "{topic} {round}");
                    assert_eq!(show(&replies[2]), "1", "{topic} {round}");
                }
                assert_eq!(leases(client, &topic).await, []);
            }
        }
        world.end().await;
    });
}
