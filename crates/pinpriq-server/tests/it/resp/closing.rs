//! Clients that close while more waits behind a blocked request than the server reads ahead, or
//! while nothing is read from them since what they pushed waits for room.

use pinpriq_server::config::Config;
use pinpriq_store::shards::shard_of;

use super::client::{Client, World, elements, number};
use crate::client::{Client as WireClient, push_bytes};
use crate::line::encrypted_too;
use crate::world::{in_memory, test};

/// How many requests stand behind the blocked one: some 100 kB, of which the server reads 64 KiB.
const PINGS: usize = 17_000;

/// In which of how many shards a connection lives, and the queue that it waits for.
const PLACES: [(usize, usize, usize); 4] = [(1, 0, 0), (2, 0, 0), (2, 1, 1), (2, 1, 0)];

/// A queue that lives in this shard.
fn queue_in(shard: usize, shards: usize) -> String {
    let mut names = (0..).map(|name| format!("q{name}"));
    names.find(|name| shard_of(name.as_bytes(), shards) == shard).unwrap()
}

/// A server, a client whose connection stays in the shard `home`, and one that watches it.
async fn placed(shards: usize, home: usize) -> (World, Client, Client) {
    let world = World::start(Config { shards, ..in_memory() }).await;
    let (mut client, control) = (world.connect().await, world.connect().await);
    client.ask(&format!("GET {} none", queue_in(home, shards))).await;
    (world, client, control)
}

/// Has a client wait for a task, with much behind that.
async fn block(client: &mut Client, control: &mut Client, request: &str) {
    client.say(request).await;
    control.see_blocked(&client.name()).await;
    client.send_bytes(&b"PING\r\n".repeat(PINGS)).await;
}

#[test]
fn a_client_that_closes_behind_much_unread_input_takes_nothing_along() {
    for (shards, home, away) in PLACES {
        test(async || {
            let (world, mut client, mut control) = placed(shards, home).await;
            let (name, queue) = (client.name(), queue_in(away, shards));
            block(&mut client, &mut control, &format!("POP {queue} WAIT -1")).await;
            assert_eq!(number(&control.ask("STATS").await, "takers"), 1);
            drop(client);
            control.see_gone(&name).await;
            assert_eq!(number(&control.ask("STATS").await, "takers"), 0);
            control.ask(&format!("PUT {queue} p")).await;
            assert_eq!(elements(&control.ask(&format!("POP {queue}")).await).len(), 1);
            world.end().await;
        });
    }
}

#[test]
fn a_task_goes_to_a_living_client_and_not_to_one_that_closed_before() {
    for (shards, home, away) in PLACES {
        test(async || {
            let (world, mut client, mut control) = placed(shards, home).await;
            let (name, queue) = (client.name(), queue_in(away, shards));
            let mut living = world.connect().await;
            block(&mut client, &mut control, &format!("POP {queue} WAIT -1")).await;
            living.say(&format!("POP {queue} WAIT -1")).await;
            control.see_blocked(&living.name()).await;
            drop(client);
            control.see_gone(&name).await;
            control.ask(&format!("PUT {queue} p")).await;
            assert_eq!(elements(&living.value().await).len(), 1);
            world.end().await;
        });
    }
}

#[test]
fn a_client_that_resets_behind_much_unread_input_takes_nothing_along() {
    for (shards, home, away) in PLACES {
        test(async || {
            let (world, mut client, mut control) = placed(shards, home).await;
            let (name, queue) = (client.name(), queue_in(away, shards));
            // A socket that is closed with an answer in it resets the connection.
            client.say("PING").await;
            client.stream.readable().await.unwrap();
            block(&mut client, &mut control, &format!("TAKE {queue} WAIT -1")).await;
            drop(client);
            control.see_gone(&name).await;
            assert_eq!(number(&control.ask("STATS").await, "takers"), 0);
            world.end().await;
        });
    }
}

#[test]
fn a_half_close_ends_the_wait_and_all_behind_it_is_answered() {
    for (shards, home, away) in PLACES {
        test(async || {
            let (world, mut client, mut control) = placed(shards, home).await;
            let queue = queue_in(away, shards);
            block(&mut client, &mut control, &format!("POP {queue} WAIT -1")).await;
            // What is blocked further behind does not wait either.
            client.say(&format!("TAKE {queue} WAIT -1")).await;
            client.say("ECHO last").await;
            client.half_close().await;
            let expected = [&b"*0\r\n"[..], &b"+PONG\r\n".repeat(PINGS), b"*0\r\n$4\r\nlast\r\n"];
            assert!(client.rest().await == expected.concat(), "shards: {shards}");
            control.ask(&format!("PUT {queue} p")).await;
            assert_eq!(elements(&control.ask(&format!("POP {queue}")).await).len(), 1);
            world.end().await;
        });
    }
}

#[test]
fn a_subscriber_that_closes_while_its_push_waits_is_handed_nothing_more() {
    for shards in [1, 2] {
        test(async || {
            let mut config = Config { shards, ..in_memory() };
            config.limits.task_bytes_max = 5_600 * u64::try_from(shards).unwrap();
            let world = World::start(config).await;
            let mut control = world.connect().await;
            let (wanted, filler) = ("{q}wanted", "{q}filler");
            control.ask_words(&[b"PUT", filler.as_bytes(), &[b'x'; 3_000]]).await;
            let mut client = WireClient::connect(world.wire_address).await;
            let name = client.stream.local_addr().unwrap().to_string();
            client.subscribe(wanted).await;
            client.ready(3).await;
            client.send(&push_bytes(filler.as_bytes(), 60_000, 1, b"k", &[b'y'; 2_000])).await;
            client.ready(40_000).await;
            while number(&control.ask("STATS").await, "subscribers") == 0 {}
            drop(client);
            while number(&control.ask("STATS").await, "subscribers") > 0 {}
            control.ask(&format!("PUT {wanted} p")).await;
            assert_eq!(elements(&control.ask(&format!("POP {wanted}")).await).len(), 1);
            // What it had pushed before it closed is put once there is room.
            for _ in 0..2 {
                while elements(&control.ask(&format!("POP {filler}")).await).is_empty() {}
            }
            control.see_gone(&name).await;
            world.end().await;
        });
    }
}

encrypted_too! {
    a_client_that_closes_behind_much_unread_input_takes_nothing_along
    a_task_goes_to_a_living_client_and_not_to_one_that_closed_before
    a_client_that_resets_behind_much_unread_input_takes_nothing_along
    a_half_close_ends_the_wait_and_all_behind_it_is_answered
    a_subscriber_that_closes_while_its_push_waits_is_handed_nothing_more
}
