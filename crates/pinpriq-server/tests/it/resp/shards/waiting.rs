//! Requests that wait for something in another shard than that of their connection.

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
                    assert_eq!(control.reply(&format!("PEEK {further}")).await, "[]");
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
                        let killed = control.reply(&format!("CLIENT KILL ADDR {name}")).await;
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
