//! Takes from the queues of several shards: which task they get, and that nothing is taken twice or
//! lost.

use super::{SHARDS, World, homes, payloads, queue_in, queues, several, with_homes};
use crate::resp::client::{Client, check_balance, elements, field, number, receipt, show};
use crate::world::test;

/// All queues of [`queues`], as a take names them.
fn all() -> String {
    format!("QUEUES {SHARDS} {}", queues().join(" "))
}

/// Waits until no client waits at any of the queues.
async fn see_no_waiters(control: &mut Client) {
    for queue in queues() {
        while number(&control.ask(&format!("STATS {queue}")).await, "takers") > 0 {}
    }
}

/// Waits until a client waits at each of the queues.
async fn see_waiting(control: &mut Client, takers: i64) {
    for queue in queues() {
        while number(&control.ask(&format!("STATS {queue}")).await, "takers") != takers {}
    }
}

/// Pops everything that is left, in one queue after the other.
async fn drain(control: &mut Client) -> Vec<String> {
    let mut left = Vec::new();
    for queue in queues() {
        left.extend(payloads(&control.ask(&format!("POP {queue} COUNT 1000")).await));
    }
    left
}

#[test]
fn the_most_urgent_head_of_all_shards_is_taken() {
    with_homes(several(), async |_, homes| {
        for client in homes {
            let [one, other, third] = queues();
            for (from, expected) in [
                ("", ["third 1", "one 2", "third 3", "other 5", "one 9"]),
                ("FROM MAX", ["one 9", "other 5", "third 3", "one 2", "third 1"]),
            ] {
                for command in ["TAKE", "POP"] {
                    for (queue, name, priorities) in [
                        (&one, "one", &[9, 2][..]),
                        (&other, "other", &[5]),
                        (&third, "third", &[1, 3]),
                    ] {
                        for priority in priorities {
                            let put = ["PUT", queue, &format!("{name} {priority}"), "PRIORITY"];
                            let mut words: Vec<&[u8]> =
                                put.iter().map(|it| it.as_bytes()).collect();
                            let priority = priority.to_string();
                            words.push(priority.as_bytes());
                            client.ask_words(&words).await;
                        }
                    }
                    for payload in expected {
                        let taken =
                            client.ask(format!("{command} {} {from}", all()).trim_end()).await;
                        assert_eq!(payloads(&taken), [payload], "{command} {from}");
                        if command == "TAKE" {
                            let queue = show(&elements(&elements(&taken)[0])[0]);
                            let ack = format!("ACK {queue} {}", receipt(&taken));
                            assert_eq!(client.reply(&ack).await, "OK");
                        }
                    }
                    assert_eq!(client.reply(&format!("{command} {}", all())).await, "[]");
                }
            }
        }
    });
}

#[test]
fn within_a_shard_the_queues_are_tried_in_the_order_given() {
    with_homes(several(), async |_, homes| {
        let (first, second) = (queue_in(0, 0), queue_in(0, 1));
        let elsewhere = queue_in(1, 0);
        for client in homes {
            client.ask(&format!("PUT {first} first PRIORITY 5")).await;
            client.ask(&format!("PUT {second} second PRIORITY 1")).await;
            client.ask(&format!("PUT {elsewhere} elsewhere PRIORITY 3")).await;
            let popped = client.ask(&format!("POP QUEUES 3 {first} {second} {elsewhere}")).await;
            assert_eq!(payloads(&popped), ["elsewhere"]);
            // With a count, the tasks of one shard come together.
            client.ask(&format!("PUT {elsewhere} elsewhere PRIORITY 3")).await;
            let pop = format!("POP QUEUES 3 {first} {elsewhere} {second} COUNT 9");
            assert_eq!(payloads(&client.ask(&pop).await), ["elsewhere", "first", "second"]);
        }
    });
}

#[test]
fn a_reply_is_filled_from_further_shards_the_most_urgent_first() {
    with_homes(several(), async |_, homes| {
        let [one, other, third] = queues();
        for client in homes.iter_mut() {
            for command in ["TAKE", "POP"] {
                for (queue, priorities) in [(&one, &[5, 6][..]), (&other, &[1]), (&third, &[3, 9])]
                {
                    for priority in priorities {
                        let put = format!("PUT {queue} p{priority} PRIORITY {priority}");
                        client.ask(&put).await;
                    }
                }
                let taken = client.ask(&format!("{command} {} COUNT 4", all())).await;
                assert_eq!(payloads(&taken), ["p1", "p3", "p9", "p5"], "{command}");
                let rest = client.ask(&format!("{command} {} COUNT 4", all())).await;
                assert_eq!(payloads(&rest), ["p6"]);
                if command == "POP" {
                    continue;
                }
                for task in elements(&taken).iter().chain(elements(&rest)) {
                    let (queue, receipt) = (show(&elements(task)[0]), show(&elements(task)[2]));
                    assert_eq!(client.reply(&format!("ACK {queue} {receipt}")).await, "OK");
                }
            }
            // With GROUP it counts groups.
            let keys = [(&one, "a", 1), (&one, "a", 1), (&other, "a", 2), (&third, "b", 3)];
            for (queue, key, priority) in keys {
                client.ask(&format!("PUT {queue} {key} KEY {key} PRIORITY {priority}")).await;
            }
            let popped = client.ask(&format!("POP {} COUNT 2 GROUP", all())).await;
            assert_eq!(payloads(&popped), ["a", "a", "a"]);
            assert_eq!(payloads(&client.ask(&format!("POP {} COUNT 9", all())).await), ["b"]);
        }
        check_balance(&homes[0].ask("STATS").await);
    });
}

#[test]
fn what_several_shards_gave_goes_back_to_each_when_the_reply_is_not_read() {
    test(async || {
        let mut config = several();
        config.limits.payload_bytes_max = 16 << 20;
        let world = World::start_by_the_machine(config).await;
        let [mut control, _second, _third] = homes(&world).await;
        let payload = vec![b'p'; 8 << 20];
        for command in ["TAKE", "TAKE", "POP"] {
            for queue in queues() {
                control.ask_words(&[b"PUT", queue.as_bytes(), &payload]).await;
            }
            let mut client = world.connect().await;
            client.say(&format!("{command} {} COUNT 9", all())).await;
            let ready = async |control: &mut Client| {
                number(field(&control.ask("STATS").await, "counts"), "R")
            };
            while ready(&mut control).await > 0 {}
            drop(client);
            while ready(&mut control).await < 3 {}
            for queue in queues() {
                let tasks = control.ask(&format!("POP {queue} COUNT 9 WITHMETA")).await;
                assert_eq!(elements(&tasks).len(), 1, "{command} {queue}");
                assert_eq!(number(&elements(&tasks)[0], "failures"), 0, "{command} {queue}");
            }
            let figures = control.ask("STATS").await;
            check_balance(&figures);
            assert_eq!(number(&figures, "present"), 0);
        }
        world.end().await;
    });
}

#[test]
fn who_waits_in_all_shards_is_served_by_one_and_waits_nowhere_else() {
    with_homes(several(), async |_, homes| {
        for home in 0..SHARDS {
            for queue in queues() {
                for command in ["TAKE", "POP"] {
                    let name = homes[home].name();
                    homes[home].say(&format!("{command} {} WAIT -1", all())).await;
                    homes[home].say("ECHO behind").await;
                    let control = &mut homes[(home + 1) % SHARDS];
                    control.see_blocked(&name).await;
                    see_waiting(control, 1).await;
                    control.ask(&format!("PUT {queue} p")).await;
                    let taken = homes[home].value().await;
                    assert_eq!(payloads(&taken), ["p"]);
                    assert_eq!(show(&homes[home].value().await), "behind");
                    let control = &mut homes[(home + 1) % SHARDS];
                    see_no_waiters(control).await;
                    for queue in queues() {
                        control.ask(&format!("PUT {queue} later")).await;
                    }
                    assert_eq!(drain(control).await, ["later"; SHARDS]);
                    if command == "TAKE" {
                        let ack = format!("ACK {queue} {}", receipt(&taken));
                        assert_eq!(homes[home].reply(&ack).await, "OK");
                    }
                }
            }
        }
        check_balance(&homes[0].ask("STATS").await);
    });
}

#[test]
fn what_several_shards_hand_over_at_once_is_taken_once_and_the_rest_goes_back() {
    with_homes(several(), async |world, homes| {
        let mut client = world.connect().await;
        for round in 0..60 {
            let command = ["TAKE", "POP"][round % 2];
            client.say(&format!("{command} {} WAIT -1", all())).await;
            see_waiting(&mut homes[0], 1).await;
            for (home, queue) in homes.iter_mut().zip(queues()) {
                home.say(&format!("PUT {queue} {queue}")).await;
            }
            for home in homes.iter_mut() {
                home.value().await;
            }
            let mut got = payloads(&client.value().await);
            assert_eq!(got.len(), 1);
            // What goes back has been taken, and is there again soon.
            for queue in queues().iter().filter(|queue| **queue != got[0]) {
                let ready = async |control: &mut Client| {
                    let stats = control.ask(&format!("STATS {queue}")).await;
                    number(field(&stats, "counts"), "R")
                };
                while ready(&mut homes[0]).await != 1 {}
                let task = homes[0].ask(&format!("PEEK {queue} WITHMETA")).await;
                assert_eq!(number(&elements(&task)[0], "failures"), 0);
            }
            got.extend(drain(&mut homes[0]).await);
            got.sort();
            let mut expected = queues().to_vec();
            expected.sort();
            assert_eq!(got, expected);
            // A lease without a TTR ends with its connection.
            client.ask("RESET").await;
            drain(&mut homes[0]).await;
        }
        check_balance(&homes[0].ask("STATS").await);
    });
}

#[test]
fn takers_are_served_in_the_order_in_which_they_came_to_a_shard() {
    with_homes(several(), async |world, homes| {
        let mut waiting: Vec<Client> = Vec::new();
        for number in 0..6 {
            let mut client = world.connect().await;
            client.say(&format!("POP {} WAIT -1", all())).await;
            see_waiting(&mut homes[0], number + 1).await;
            waiting.push(client);
        }
        for (number, client) in waiting.iter_mut().enumerate() {
            homes[0].ask(&format!("PUT {} {number}", queues()[number % SHARDS])).await;
            assert_eq!(payloads(&client.value().await), [number.to_string()]);
        }
    });
}

#[test]
fn done_is_acknowledged_in_the_shard_of_its_receipt() {
    with_homes(several(), async |_, homes| {
        let [one, other, third] = queues();
        for client in homes {
            for queue in [&one, &other, &third] {
                client.ask(&format!("PUT {queue} p PRIORITY -1")).await;
                client.ask(&format!("PUT {queue} q")).await;
            }
            let first = receipt(&client.ask(&format!("TAKE {one}")).await);
            let second = receipt(&client.ask(&format!("TAKE {other}")).await);
            let take = format!("TAKE {} DONE {one} {first} DONE {other} {second}", all());
            let third_task = client.ask(&take).await;
            assert_eq!(payloads(&third_task), ["p"]);
            for queue in [&one, &other] {
                let stats = client.ask(&format!("STATS {queue}")).await;
                assert_eq!(number(&stats, "present"), 1, "{queue}");
            }
            // What was done before is stale, and nothing is taken.
            assert_eq!(client.reply(&take).await, "STALE");
            let stats = client.ask("STATS").await;
            assert_eq!(number(field(&stats, "counts"), "T"), 1);
            // One queue to take from, and a receipt of another shard.
            let ack = format!("TAKE {one} DONE {third} {}", receipt(&third_task));
            assert_eq!(payloads(&client.ask(&ack).await), ["q"]);
            client.ask("RESET").await;
            drain(client).await;
            for queue in [&one, &other, &third] {
                client.ask(&format!("QUEUE DROP {queue}")).await;
            }
        }
    });
}

#[test]
fn an_order_that_a_queue_elsewhere_does_not_have_is_refused_before_anything_is_done() {
    with_homes(several(), async |_, homes| {
        let [one, other, third] = queues();
        for client in homes {
            client.ask(&format!("QUEUE SET {other} RANKING fair")).await;
            for queue in [&one, &third] {
                client.ask(&format!("PUT {queue} p")).await;
            }
            let held = receipt(&client.ask(&format!("TAKE {one}")).await);
            for queues in [
                format!("QUEUES 2 {one} {other}"),
                format!("QUEUES 2 {third} {other}"),
                format!("QUEUES 3 {one} {other} {third}"),
                other.clone(),
            ] {
                for order in ["FROM MAX", "ORDER NEWEST", "MEMBER nobody"] {
                    let take = format!("TAKE {queues} {order} DONE {one} {held}");
                    let refused = client.reply(&take).await;
                    assert!(["BADARG", "NOTFOUND"].contains(&&*refused), "{take}: {refused}");
                }
            }
            // The task is still taken, and nothing else is.
            let stats = client.ask("STATS").await;
            assert_eq!(number(field(&stats, "counts"), "T"), 1);
            let take = format!("TAKE QUEUES 2 {one} {third} FROM MAX DONE {one} {held}");
            let taken = client.ask(&take).await;
            assert_eq!(payloads(&taken), ["p"]);
            assert_eq!(client.reply(&format!("ACK {one} {held}")).await, "STALE");
            assert_eq!(client.reply(&format!("ACK {third} {}", receipt(&taken))).await, "OK");
        }
    });
}

#[test]
fn a_task_of_several_shards_is_named_by_its_id_where_it_was_taken() {
    with_homes(several(), async |world, homes| {
        for client in homes {
            for queue in queues() {
                let id = client.reply(&format!("PUT {queue} p")).await;
                let taken = client.ask(&format!("TAKE {}", all())).await;
                assert_eq!(payloads(&taken), ["p"]);
                let ack = format!("ACK {queue} ID {id}");
                let mut stranger = world.connect().await;
                assert_eq!(stranger.reply(&ack).await, "NOTOWNER");
                assert_eq!(client.reply(&ack).await, "OK");
            }
        }
    });
}

#[test]
fn what_a_connection_takes_from_several_shards_ends_with_it() {
    with_homes(several(), async |world, homes| {
        for round in 0..20 {
            let mut client = world.connect().await;
            let name = client.name();
            client.say(&format!("TAKE {} WAIT -1", all())).await;
            see_waiting(&mut homes[0], 1).await;
            for queue in queues() {
                homes[1].say(&format!("PUT {queue} {queue}")).await;
            }
            if round % 2 == 0 {
                client.value().await;
            }
            drop(client);
            for _ in queues() {
                homes[1].value().await;
            }
            homes[0].see_gone(&name).await;
            let ready = async |control: &mut Client| {
                let stats = control.ask("STATS").await;
                (number(field(&stats, "counts"), "R"), number(&stats, "takers"))
            };
            while ready(&mut homes[0]).await != (3, 0) {}
            let mut left = drain(&mut homes[0]).await;
            left.sort();
            let mut expected = queues().to_vec();
            expected.sort();
            assert_eq!(left, expected);
        }
    });
}

#[test]
fn a_wait_in_several_shards_ends_with_its_time_and_with_the_input() {
    with_homes(several(), async |world, homes| {
        assert_eq!(homes[0].reply(&format!("TAKE {} WAIT 5", all())).await, "[]");
        assert_eq!(homes[0].reply(&format!("POP {} WAIT 5", all())).await, "[]");
        see_no_waiters(&mut homes[1]).await;
        let mut client = world.connect().await;
        client.say(&format!("POP {} WAIT -1", all())).await;
        see_waiting(&mut homes[0], 1).await;
        client.half_close().await;
        assert_eq!(client.rest().await, b"*0\r\n");
        see_no_waiters(&mut homes[1]).await;
        let total = homes[1].ask("STATS").await;
        assert_eq!(number(&total, "takers"), 0);
    });
}

#[test]
fn one_who_waits_in_several_shards_counts_once() {
    with_homes(several(), async |world: &World, homes| {
        let mut client = world.connect().await;
        client.say(&format!("POP {} WAIT -1", all())).await;
        see_waiting(&mut homes[0], 1).await;
        assert_eq!(number(&homes[0].ask("STATS").await, "takers"), 1);
    });
}

#[test]
fn the_lanes_of_a_member_in_several_shards_are_taken_from_together() {
    with_homes(several(), async |_, homes| {
        for client in homes {
            let [one, other, third] = queues();
            client.ask(&format!("JOIN {one} m")).await;
            client.ask(&format!("JOIN {other} m")).await;
            client.ask(&format!("PUBLISH {one} low PRIORITY 3")).await;
            client.ask(&format!("PUBLISH {other} high PRIORITY 2")).await;
            let take = format!("POP QUEUES 2 {one} {other} MEMBER m");
            assert_eq!(payloads(&client.ask(&take).await), ["high"]);
            assert_eq!(payloads(&client.ask(&take).await), ["low"]);
            assert_eq!(client.reply(&take).await, "[]");
            let unknown = format!("POP QUEUES 2 {one} {third} MEMBER m WAIT -1");
            assert_eq!(client.reply(&unknown).await, "NOTFOUND");
            client.ask("LEAVE m").await;
        }
    });
}

#[test]
fn arguments_that_are_wrong_are_refused_over_several_shards_too() {
    with_homes(several(), async |_, homes| {
        for client in homes {
            for options in ["COUNT 0", "WAIT -2", "TTR 0", "FROM NOWHERE"] {
                assert_eq!(client.reply(&format!("TAKE {} {options}", all())).await, "BADARG");
            }
            let many = vec![queues().join(" "); 400].join(" ");
            assert_eq!(client.reply(&format!("TAKE QUEUES 1200 {many}")).await, "BADARG");
        }
    });
}
