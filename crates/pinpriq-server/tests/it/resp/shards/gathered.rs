//! Answers that are made of the parts of all shards.

use std::collections::BTreeSet;

use pinpriq_proto::wire::resp::{Value, Words};

use super::{SHARDS, homes, payloads, queue_in, queues, several, several_shards, with_homes};
use crate::resp::client::{Client, check_balance, elements, field, number, show};
use crate::world::test;

/// All pages of `QUEUE LIST` with these options.
async fn pages(client: &mut Client, options: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let page = client.ask(&format!("QUEUE LIST CURSOR {cursor}{options}")).await;
        let [next, names] = elements(&page) else { panic!("{page:?}") };
        pages.push(elements(names).iter().map(show).collect());
        cursor = show(next);
        if cursor == "0" {
            return pages;
        }
    }
}

#[test]
fn pages_have_the_queues_of_all_shards_once_and_in_order() {
    test(async || {
        let world = several_shards().await;
        let mut names = BTreeSet::new();
        let mut homes = homes(&world).await;
        for name in 0..40 {
            let name = format!("{}:{name}", ["jobs", "mails"][name % 2]);
            homes[0].ask(&format!("PUT {name} p")).await;
            names.insert(name);
        }
        let names: Vec<String> = names.into_iter().collect();
        for client in &mut homes {
            for count in [1, 2, 3, 7, 13, 39, 40, 41, 1_000] {
                let pages = pages(client, &format!(" COUNT {count}")).await;
                assert_eq!(pages.concat(), names, "{count}");
                assert_eq!(pages.len(), names.len().div_ceil(count), "{count}");
            }
            assert_eq!(pages(client, "").await, std::slice::from_ref(&names));
            let mails = pages(client, " PREFIX mails COUNT 6").await;
            assert_eq!(mails.concat(), names[20..]);
            assert_eq!(mails.len(), 4);
            // What one refuses all do, and it is answered once.
            for wrong in ["QUEUE LIST CURSOR n7", "QUEUE LIST COUNT 0", "BEAT m LEASE 0"] {
                assert_eq!(client.reply(wrong).await, "BADARG", "{wrong}");
            }
            assert_eq!(client.reply("PING").await, "PONG");
        }
        world.end().await;
    });
}

#[test]
fn leases_of_all_shards_come_once_and_in_order() {
    test(async || {
        let world = several_shards().await;
        let mut homes = homes(&world).await;
        let mut names = BTreeSet::new();
        for number in 0..20 {
            let name = format!("jobs:{number}");
            homes[0].ask(&format!("PUT {name} p")).await;
            homes[number % SHARDS].ask(&format!("TAKE {name} TTR 60000")).await;
            names.insert(name);
        }
        let names: Vec<String> = names.into_iter().collect();
        for client in &mut homes {
            for count in [1, 3, 7, 20, 100] {
                let (mut queues, mut pages, mut cursor) = (Vec::new(), 0, "0".to_owned());
                loop {
                    let page = client.ask(&format!("LEASES CURSOR {cursor} COUNT {count}")).await;
                    let [next, leases] = elements(&page) else { panic!("{page:?}") };
                    queues.extend(elements(leases).iter().map(|it| show(field(it, "queue"))));
                    pages += 1;
                    cursor = show(next);
                    if cursor == "0" {
                        break;
                    }
                }
                assert_eq!(queues, names, "{count}");
                assert_eq!(pages, names.len().div_ceil(count), "{count}");
            }
            assert_eq!(client.reply("LEASES COUNT 1001").await, "BADARG");
            assert_eq!(client.reply("LEASES CURSOR n").await, "BADARG");
        }
        world.end().await;
    });
}

#[test]
fn figures_are_those_of_all_shards_together() {
    with_homes(several(), async |_, homes| {
        let mut expected = [0; 4];
        for (shard, queue) in queues().iter().enumerate() {
            let client = &mut homes[(shard + 1) % SHARDS];
            // Different in each shard, so that none can be counted in place of another.
            let puts = [7, 20, 50][shard];
            for number in 0..puts {
                client.ask(&format!("PUT {queue} payload-{number}")).await;
            }
            client.ask(&format!("POP {queue} COUNT {}", shard + 1)).await;
            client.ask(&format!("TAKE {queue}")).await;
            let figures = client.ask(&format!("STATS {queue}")).await;
            check_balance(&figures);
            for (sum, name) in expected.iter_mut().zip(["put", "acked", "present", "bytes"]) {
                *sum += number(&figures, name);
            }
        }
        assert_eq!(expected[..3], [77, 6, 71]);
        for client in homes {
            for line in ["STATS", "HELLO 3", "STATS"] {
                let all = client.ask(line).await;
                if line == "STATS" {
                    check_balance(&all);
                    let names = ["put", "acked", "present", "bytes"];
                    assert_eq!(names.map(|name| number(&all, name)), expected);
                    assert_eq!(number(field(&all, "counts"), "T"), 3);
                }
            }
            assert_eq!(client.info("shards").await, "3");
            assert_eq!(client.info("durability").await, "memory");
            assert_eq!(client.info("connected_clients").await, "3");
            for (name, sum) in ["put", "acked", "present", "bytes"].iter().zip(expected) {
                assert_eq!(client.info(name).await, sum.to_string(), "{name}");
            }
        }
    });
}

#[test]
fn a_connection_counts_once_wherever_it_has_been() {
    test(async || {
        let world = several_shards().await;
        let mut homes = homes(&world).await;
        for client in &mut homes {
            for queue in queues() {
                client.ask(&format!("PEEK {queue}")).await;
            }
        }
        let [mut first, mut second, mut third] = homes;
        let mut wire = crate::client::Client::connect(world.wire_address).await;
        wire.fence().await;
        second.say(&format!("TAKE {} WAIT -1", queue_in(2, 0))).await;
        first.see_blocked(&second.name()).await;
        for client in [&mut first, &mut third] {
            assert_eq!(client.info("connected_clients").await, "4");
            assert_eq!(client.info("blocked_clients").await, "1");
        }
        world.end().await;
    });
}

/// The numbers and addresses in `CLIENT LIST`.
async fn listed(client: &mut Client) -> Vec<(u64, String)> {
    let list = client.ask("CLIENT LIST").await;
    let list = String::from_utf8(list.as_bytes().unwrap().to_vec()).unwrap();
    let word = |line: &str, place: usize, name: &str| {
        let word = line.split(' ').nth(place).unwrap();
        word.strip_prefix(name).unwrap().to_owned()
    };
    list.lines()
        .map(|line| (word(line, 0, "id=").parse().unwrap(), word(line, 1, "addr=")))
        .collect()
}

#[test]
fn every_connection_is_listed_once_and_can_be_killed_from_everywhere() {
    test(async || {
        let world = several_shards().await;
        let mut clients = Vec::from(homes(&world).await);
        for _ in 0..4 {
            clients.push(world.connect().await);
        }
        let mut expected = Vec::new();
        for client in &mut clients {
            client.ask(&format!("PUT {} p", queue_in(1, 0))).await;
            let Value::Integer(id) = client.ask("CLIENT ID").await else { panic!("a number") };
            expected.push((id.cast_unsigned(), client.name()));
        }
        expected.sort();
        let ids: BTreeSet<u64> = expected.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), clients.len());
        for client in &mut clients {
            assert_eq!(listed(client).await, expected);
            assert_eq!(client.reply("CLIENT KILL ID 999999").await, "0");
        }
        // Of those in each shard the first ends the second, which is in another.
        for round in 0..SHARDS {
            let mut killed = clients.remove((round + 1) % SHARDS + 1);
            let Value::Integer(id) = killed.ask("CLIENT ID").await else { panic!("a number") };
            assert_eq!(clients[0].reply(&format!("CLIENT KILL ID {id}")).await, "1");
            assert_eq!(killed.rest().await, b"");
            clients[0].see_gone(&killed.name()).await;
            assert_eq!(clients[0].reply(&format!("CLIENT KILL ID {id}")).await, "0");
        }
        assert_eq!(listed(&mut clients[0]).await.len(), 4);
        world.end().await;
    });
}

#[test]
fn an_answer_of_all_shards_keeps_its_place() {
    test(async || {
        let world = several_shards().await;
        for client in &mut homes(&world).await {
            let queue = queue_in(1, 0);
            let mut requests = Vec::new();
            for round in 0..200 {
                for line in
                    [format!("PUT {queue} {round}"), "STATS".to_owned(), format!("POP {queue}")]
                {
                    Words::new(&line).put(&mut requests);
                }
            }
            let replies = client.exchange(&requests, 600).await;
            for (round, replies) in replies.chunks_exact(3).enumerate() {
                // It is carried out in its place as well: the task is there.
                assert_eq!(number(&replies[1], "present"), 1, "{round}");
                assert_eq!(payloads(&replies[2]), [round.to_string()]);
            }
        }
        world.end().await;
    });
}
