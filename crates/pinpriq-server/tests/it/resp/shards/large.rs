//! Payloads larger than what may be under way between shards, and clients that do not read them.

use pinpriq_proto::wire::resp::{Value, put_command};

use super::{SHARDS, World, homes, queue_in, several, several_shards};
use crate::resp::client::{Client, elements, number, show};
use crate::world::test;

const MIB: usize = 1 << 20;

/// A payload that differs from all others in every piece.
fn payload(seed: usize) -> Vec<u8> {
    let mut number = seed as u64;
    let numbers = std::iter::repeat_with(|| {
        number = number.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        number.to_le_bytes()
    });
    numbers.take(MIB / 8).flatten().collect()
}

fn is_payload(task: &Value, seed: usize) -> bool {
    elements(task)[3].as_bytes() == Some(&payload(seed)[..])
}

#[test]
fn large_payloads_go_to_other_shards_and_back_whole() {
    test(async || {
        let world = several_shards().await;
        let mut playing = Vec::new();
        for (home, mut client) in homes(&world).await.into_iter().enumerate() {
            playing.push(tokio::task::spawn_local(async move {
                let mut requests = Vec::new();
                for number in 0..9 {
                    let queue = queue_in(number % SHARDS, 1 + home);
                    let payload = payload(10 * home + number);
                    put_command(&mut requests, &[b"PUT", queue.as_bytes(), &payload]);
                    put_command(&mut requests, &[b"ECHO", b"between"]);
                }
                for number in 0..9 {
                    let queue = queue_in(number % SHARDS, 1 + home);
                    put_command(&mut requests, &[b"POP", queue.as_bytes()]);
                    put_command(&mut requests, &[b"PING"]);
                }
                let replies = client.exchange(&requests, 36).await;
                for number in 0..9 {
                    assert!(show(&replies[2 * number]).parse::<u64>().is_ok());
                    assert_eq!(show(&replies[2 * number + 1]), "between");
                    let popped = elements(&replies[18 + 2 * number]);
                    assert!(is_payload(&popped[0], 10 * home + number), "{home}: {number}");
                    assert_eq!(show(&replies[18 + 2 * number + 1]), "PONG");
                }
                // All at once, in one reply.
                let queue = queue_in((home + 1) % SHARDS, 1 + home);
                for number in 0..6 {
                    let put: [&[u8]; 3] = [b"PUT", queue.as_bytes(), &payload(number)];
                    client.ask_words(&put).await;
                }
                let popped = client.ask(&format!("POP {queue} COUNT 6")).await;
                for (number, task) in elements(&popped).iter().enumerate() {
                    assert!(is_payload(task, number));
                }
                assert_eq!(elements(&popped).len(), 6);
            }));
        }
        for playing in playing {
            playing.await.unwrap();
        }
        world.end().await;
    });
}

/// How many tasks are put for a client that does not read.
const TASKS: usize = 40;

/// A server with so many large tasks in a queue of the last shard, and a client at home in the
/// first.
async fn with_tasks(in_flight_max: usize) -> (World, Client, String) {
    let mut config = several();
    config.limits.in_flight_max = in_flight_max;
    let world = World::start_by_the_machine(config).await;
    let [mut control, _second, _third] = homes(&world).await;
    let (queue, payload) = (queue_in(2, 0), payload(1));
    for _ in 0..TASKS {
        control.ask_words(&[b"PUT", queue.as_bytes(), &payload]).await;
    }
    (world, control, queue)
}

/// Gives every shard many chances to go on with whatever it can go on with. Returns how many tasks
/// are left.
async fn left(control: &mut Client) -> usize {
    let mut left = 0;
    for _ in 0..300 {
        let figures = control.ask("STATS").await;
        let counts = crate::resp::client::field(&figures, "counts");
        left = usize::try_from(number(counts, "R")).unwrap();
    }
    left
}

#[test]
fn who_does_not_read_leaves_most_of_another_shard_untouched() {
    test(async || {
        for home in 0..SHARDS - 1 {
            let (world, mut control, queue) = with_tasks(1_024).await;
            let mut slow = Client::connect_narrow(world.address).await;
            for _ in 0..home {
                slow = Client::connect_narrow(world.address).await;
            }
            let mut requests = Vec::new();
            for _ in 0..TASKS / 2 {
                put_command(&mut requests, &[b"POP", queue.as_bytes(), b"COUNT", b"2"]);
            }
            put_command(&mut requests, &[b"ECHO", b"last"]);
            slow.send_bytes(&requests).await;
            while number(&control.ask("STATS").await, "acked") == 0 {}
            let left = left(&mut control).await;
            // What the sockets hold, and what may wait for this client in each of two shards.
            assert!(left > TASKS / 2, "only {left} of {TASKS} are left, from shard {home}");
            // It gets all of them once it reads.
            for _ in 0..TASKS / 2 {
                let popped = slow.value().await;
                assert!(elements(&popped).iter().all(|task| is_payload(task, 1)));
                assert_eq!(elements(&popped).len(), 2);
            }
            assert_eq!(show(&slow.value().await), "last");
            world.end().await;
        }
    });
}

#[test]
fn a_subscriber_that_does_not_read_leaves_most_of_another_shard_untouched() {
    test(async || {
        let (world, mut control, queue) = with_tasks(4).await;
        let mut slow = Client::connect_narrow(world.address).await;
        let mut requests = Vec::new();
        put_command(&mut requests, &[b"SUBSCRIBE", queue.as_bytes(), b"POP"]);
        put_command(&mut requests, &[b"CREDIT", b"100000"]);
        slow.send_bytes(&requests).await;
        while number(&control.ask("STATS").await, "acked") == 0 {}
        let left = left(&mut control).await;
        assert!(left > TASKS / 2, "only {left} of {TASKS} are left");
        assert_eq!(show(&slow.value().await), "1");
        assert_eq!(show(&slow.value().await), "100000");
        for _ in 0..TASKS {
            let delivery = slow.value().await;
            assert!(elements(&delivery)[4].as_bytes() == Some(&payload(1)[..]));
        }
        control.ask(&format!("PUT {queue} goes-on")).await;
        assert_eq!(show(&elements(&slow.value().await)[4]), "goes-on");
        world.end().await;
    });
}
