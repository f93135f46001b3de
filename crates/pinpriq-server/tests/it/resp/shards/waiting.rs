//! Requests that wait for something in another shard than that of their connection.

use pinpriq_proto::wire::resp::put_command;

use super::{
    SHARDS, ask_until_some, homes, payloads, queue_in, queues, several, several_shards, with_homes,
};
use crate::resp::client::{field, show};
use crate::world::test;

#[test]
fn who_waits_in_another_shard_is_served_and_those_behind_wait() {
    with_homes(several(), async |_, homes| {
        for home in 0..SHARDS {
            for shard in 0..SHARDS {
                let (queue, further) = (queue_in(shard, 0), queue_in((shard + 1) % SHARDS, 1));
                let name = homes[home].name();
                for request in ["TAKE", "POP"] {
                    homes[home].say(&format!("{request} {queue} WAIT -1")).await;
                    homes[home].say(&format!("PUT {further} behind")).await;
                    homes[home].say("ECHO last").await;
                    let control = &mut homes[(home + 1) % SHARDS];
                    control.see_blocked(&name).await;
                    assert_eq!(control.told(&format!("PEEK {further}")).await, "[]");
                    control.ask(&format!("PUT {queue} p")).await;
                    assert_eq!(payloads(&homes[home].value().await), ["p"]);
                    assert!(show(&homes[home].value().await).parse::<u64>().is_ok());
                    assert_eq!(show(&homes[home].value().await), "last");
                    let behind = homes[home].ask(&format!("POP {further}")).await;
                    assert_eq!(payloads(&behind), ["behind"]);
                }
            }
        }
    });
}

#[test]
fn those_who_wait_from_several_shards_are_served_once_each_and_in_order() {
    test(async || {
        let world = several_shards().await;
        let mut control = world.connect().await;
        for queue in queues() {
            control.ask(&format!("QUEUE CREATE {queue}")).await;
            let mut waiting = Vec::new();
            for _ in 0..9 {
                let mut client = world.connect().await;
                client.say(&format!("TAKE {queue} WAIT -1")).await;
                control.see_blocked(&client.name()).await;
                // It is not only on its way: the shard has it in its line.
                let takers = (waiting.len() + 1).to_string();
                while show(field(&control.ask(&format!("STATS {queue}")).await, "takers")) != takers
                {
                }
                waiting.push(client);
            }
            for number in 0..9 {
                control.ask(&format!("PUT {queue} {number}")).await;
            }
            for (number, client) in waiting.iter_mut().enumerate() {
                assert_eq!(payloads(&client.value().await), [number.to_string()]);
            }
        }
        world.end().await;
    });
}

#[test]
fn the_time_to_wait_runs_out_in_another_shard_too() {
    test(async || {
        let world = several_shards().await;
        for client in &mut homes(&world).await {
            for queue in queues() {
                client.say(&format!("TAKE {queue} WAIT 20")).await;
                client.say(&format!("POP {queue} WAIT 1")).await;
                client.say("ECHO behind").await;
                assert_eq!(show(&client.value().await), "[]");
                assert_eq!(show(&client.value().await), "[]");
                assert_eq!(show(&client.value().await), "behind");
                // No client is left in the line.
                client.ask(&format!("PUT {queue} p")).await;
                assert_eq!(payloads(&client.ask(&format!("POP {queue}")).await), ["p"]);
            }
        }
        world.end().await;
    });
}

#[test]
fn the_end_of_input_answers_those_who_wait_in_other_shards() {
    test(async || {
        let world = several_shards().await;
        for mut client in homes(&world).await {
            for round in 0..100 {
                client.say(&format!("TAKE {} WAIT -1", queue_in(round % SHARDS, 0))).await;
                client.say(&format!("POP {} WAIT 100000", queue_in((round / 2) % SHARDS, 1))).await;
            }
            client.say("PING").await;
            client.half_close().await;
            assert_eq!(client.rest().await, [&b"*0\r\n".repeat(200)[..], b"+PONG\r\n"].concat());
        }
        world.end().await;
    });
}

#[test]
fn what_was_asked_before_the_end_of_input_is_done_in_all_shards() {
    test(async || {
        let world = several_shards().await;
        for mut client in homes(&world).await {
            let mut requests = Vec::new();
            for number in 0..300 {
                let (queue, payload) = (queue_in(number % SHARDS, 0), number.to_string());
                put_command(&mut requests, &[b"PUT", queue.as_bytes(), payload.as_bytes()]);
                put_command(&mut requests, &[b"POP", queue.as_bytes()]);
            }
            client.send_bytes(&requests).await;
            client.half_close().await;
            for number in 0..300 {
                assert!(show(&client.value().await).parse::<u64>().is_ok());
                assert_eq!(payloads(&client.value().await), [number.to_string()]);
            }
            assert_eq!(client.rest().await, b"");
        }
        world.end().await;
    });
}

#[test]
fn who_goes_while_waiting_in_another_shard_takes_nothing_along() {
    test(async || {
        let world = several_shards().await;
        let [mut control, _second, _third] = homes(&world).await;
        for queue in queues() {
            for round in 0..30 {
                let mut client = world.connect().await;
                let name = client.name();
                client.say(&format!("TAKE {queue} WAIT -1")).await;
                match round % 3 {
                    0 => {
                        control.see_blocked(&name).await;
                        let killed = control.told(&format!("CLIENT KILL ADDR {name}")).await;
                        assert_eq!(killed, "1");
                        assert_eq!(client.rest().await, b"");
                    }
                    1 => control.see_blocked(&name).await,
                    _ => {}
                }
                control.say(&format!("PUT {queue} {round}")).await;
                drop(client);
                control.value().await;
                let left = ask_until_some(&mut control, &format!("POP {queue}")).await;
                assert_eq!(payloads(&left), [round.to_string()]);
            }
        }
        world.end().await;
    });
}

#[test]
fn much_that_stands_behind_a_request_that_waits_elsewhere_is_kept_within_bounds() {
    test(async || {
        const PINGS: usize = 100_000;
        let world = several_shards().await;
        let [mut control, second, _third] = homes(&world).await;
        let (name, queue) = (second.name(), queue_in(2, 0));
        let mut requests = format!("POP {queue} WAIT -1\r\n").into_bytes();
        requests.extend(b"PING\r\n".repeat(PINGS));
        let talking = tokio::task::spawn_local(async move {
            let mut client = second;
            client.exchange(&requests, 1 + PINGS).await
        });
        control.see_blocked(&name).await;
        control.ask(&format!("PUT {queue} p")).await;
        let replies = talking.await.unwrap();
        assert_eq!(payloads(&replies[0]), ["p"]);
        assert!(replies[1..].iter().all(|reply| show(reply) == "PONG"));
        world.end().await;
    });
}
