//! How a server with several shards stops and starts.

use std::path::Path;

use pinpriq_server::config::{Config, Durability};
use pinpriq_server::{Server, Stop};

use super::{SHARDS, World, home, homes, payloads, queue_in, queues, several, several_shards};
use crate::resp::client::{Client, elements, field, number, receipt, show};
use crate::world::test;

fn on_disk(data: &Path) -> Config {
    Config { data: data.to_owned(), durability: Durability::Sync, ..several() }
}

#[test]
fn a_stop_reaches_those_who_wait_in_another_shard() {
    test(async || {
        let world = several_shards().await;
        let mut homes = Vec::from(homes(&world).await);
        let mut control = world.connect().await;
        for _ in 0..3 {
            homes.push(world.connect().await);
        }
        for (number, client) in homes.iter_mut().enumerate() {
            // Each in another shard than its own.
            let shard = home(client).await + 1 + number / SHARDS;
            let (puts, takes) = (queue_in(shard % SHARDS, 0), queue_in(shard % SHARDS, 1));
            let is_owed = number % 2 == 0;
            client.say("ECHO before").await;
            let request = if is_owed { format!("PUT {puts} p") } else { format!("TAKE {takes}") };
            client.say(&format!("{request} WAIT -1")).await;
            control.see_blocked(&client.name()).await;
        }
        world.stop.ask();
        for (number, mut client) in homes.into_iter().enumerate() {
            assert_eq!(show(&client.value().await), "before");
            if number % 2 == 0 {
                assert_eq!(show(&client.value().await), "CLOSING");
            }
            assert_eq!(client.rest().await, b"");
        }
        assert_eq!(control.rest().await, b"");
        world.end().await;
    });
}

#[test]
fn a_stop_sends_what_other_shards_have_answered() {
    test(async || {
        let mut config = several();
        config.limits.payload_bytes_max = 16 << 20;
        let world = World::start_by_the_machine(config).await;
        let mut homes = homes(&world).await;
        let payload = vec![b'p'; 16 << 20];
        for (home, client) in homes.iter_mut().enumerate() {
            let queue = queue_in((home + 1) % SHARDS, 0);
            client.ask_words(&[b"PUT", queue.as_bytes(), &payload]).await;
            client.say(&format!("POP {queue}")).await;
        }
        let mut control = world.connect().await;
        // Carried out, and more than the sockets hold.
        while number(&control.ask("STATS").await, "present") > 0 {}
        world.stop.ask();
        for mut client in homes {
            let told = client.value().await;
            assert!(elements(&elements(&told)[0])[3].as_bytes() == Some(&payload[..]));
            assert_eq!(client.rest().await, b"");
        }
        world.end().await;
    });
}

/// Puts tasks into all shards and leaves some behind: one that is ready, one under a lease that
/// lasts, and one whose lease ends with its connection. Returns the receipts of the second.
async fn leave_tasks(client: &mut Client) -> Vec<String> {
    let mut receipts = Vec::new();
    for queue in queues() {
        for payload in ["held", "lost", "ready", "gone"] {
            client.ask(&format!("PUT {queue} {payload}")).await;
        }
        receipts.push(receipt(&client.ask(&format!("TAKE {queue} TTR 10000000")).await));
        assert_eq!(payloads(&client.ask(&format!("TAKE {queue}")).await), ["lost"]);
        let popped = client.ask(&format!("POP {queue} COUNT 1 ORDER newest")).await;
        assert_eq!(payloads(&popped), ["gone"]);
    }
    receipts
}

#[test]
fn tasks_of_all_shards_are_there_after_a_start() {
    test(async || {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let mut receipts = Vec::new();
        for round in 0..4 {
            let world = World::start_by_the_machine(on_disk(&data)).await;
            let mut homes = homes(&world).await;
            if round > 0 {
                let client = &mut homes[round % SHARDS];
                for (queue, receipt) in queues().iter().zip(&receipts) {
                    assert_eq!(client.reply(&format!("ACK {queue} {receipt}")).await, "OK");
                    let left = client.ask(&format!("POP {queue} COUNT 9")).await;
                    assert_eq!(payloads(&left), ["lost", "ready"]);
                }
                assert_eq!(number(&client.ask("STATS").await, "present"), 0);
                assert_eq!(client.info("durability").await, "sync");
                assert_eq!(client.info("incarnation").await, (round + 1).to_string());
            }
            receipts = leave_tasks(&mut homes[(round + 1) % SHARDS]).await;
            world.end().await;
        }
        let mut names: Vec<_> =
            data.read_dir().unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        names.retain(|name| name != "LOCK");
        assert_eq!(names, ["shard-00", "shard-01", "shard-02", "shards"]);
    });
}

#[test]
fn a_directory_of_another_number_of_shards_is_refused() {
    test(async || {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let world = World::start_by_the_machine(on_disk(&data)).await;
        let queue = queue_in(2, 0);
        world.connect().await.ask(&format!("PUT {queue} p")).await;
        world.end().await;
        for shards in [1, 2, 4] {
            let config = Config { shards, ..on_disk(&data) };
            let Err(error) = Server::bind(config, Stop::default()).await else {
                panic!("{shards} shards were accepted")
            };
            let mut told = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(error) = source {
                told = format!("{told}: {error}");
                source = error.source();
            }
            assert!(told.contains('3') && told.contains(&shards.to_string()), "{told}");
        }
        let world = World::start_by_the_machine(on_disk(&data)).await;
        let mut client = world.connect().await;
        assert_eq!(payloads(&client.ask(&format!("POP {queue}")).await), ["p"]);
        world.end().await;

        let one = dir.path().join("one");
        let world = World::start_by_the_machine(Config { shards: 1, ..on_disk(&one) }).await;
        world.connect().await.ask("PUT q p").await;
        world.end().await;
        let refused = Server::bind(on_disk(&one), Stop::default()).await;
        assert!(refused.is_err());
    });
}

#[test]
fn answers_of_all_shards_wait_for_the_disk_and_keep_their_order() {
    test(async || {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let world = World::start_by_the_machine(on_disk(&data)).await;
        let mut playing = Vec::new();
        for (home, mut client) in homes(&world).await.into_iter().enumerate() {
            playing.push(tokio::task::spawn_local(async move {
                let mut requests = Vec::new();
                for number in 0..300 {
                    let queue = queue_in(number % SHARDS, 1 + home);
                    for line in
                        [format!("PUT {queue} {number}"), format!("TAKE {queue} TTR 10000000")]
                    {
                        pinpriq_proto::wire::resp::Words::new(&line).put(&mut requests);
                    }
                }
                let replies = client.exchange(&requests, 600).await;
                for (number, replies) in replies.chunks_exact(2).enumerate() {
                    assert_eq!(payloads(&replies[1]), [number.to_string()]);
                }
            }));
        }
        for playing in playing {
            playing.await.unwrap();
        }
        world.end().await;
        let world = World::start_by_the_machine(on_disk(&data)).await;
        let figures = world.connect().await.ask("STATS").await;
        assert_eq!(number(field(&figures, "counts"), "T"), 900);
        world.end().await;
    });
}
